"""Which run may be resumed, with what, and what its refusal tells."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from auditor.audit.resume import checkpoint, selection_of
from auditor.config.settings import Settings
from auditor.errors import RunChanged, RunComplete, RunDamaged, RunMissing
from auditor.model.target import Target
from auditor.reports.rollup import RollUpBuilder
from auditor.rules import RULES
from auditor.runs.folder import RunFolder
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.killed_run import put
from tests.support.samples.reports import ROLLED_UP, RUN, judged, sample_summary

BUCKET = Target("audited", "photos/", start_after="photos/b", stop_at="photos/y")
SELECTION: dict[str, Any] = {"rules": {"E01": None}, "trusted": [], "algorithms": None}
STATE = f"bucket=audited/run={RUN}/state.json"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def begin(store: LocalStore, *, complete: bool = False) -> None:
    """A run of BUCKET with one object, stopped or complete."""
    tally = Tally()
    with RunFolder(
        store, "audited", RUN, target=BUCKET, selection=SELECTION, tally=tally, rollups=RollUpBuilder()
    ) as folder:
        folder.prepare()
        put(folder, tally, judged("photos/c"))
        if complete:
            folder.finish(sample_summary(tally), "", ROLLED_UP)
        else:
            folder.save()


def test_the_run_goes_on_where_it_stopped(store: LocalStore) -> None:
    begin(store)
    found, target = checkpoint(store, RUN, BUCKET, SELECTION)
    assert found is not None
    assert (found.run, found.start_after, found.tally.coverage["audited"], target) == (RUN, "photos/c", 1, BUCKET)


def test_the_run_keeps_the_beginning_of_its_range(store: LocalStore) -> None:
    """The command to resume names the end of the range alone."""
    begin(store)
    _, target = checkpoint(store, RUN, Target("audited", "photos/", stop_at="photos/y"), SELECTION)
    assert target == BUCKET


def test_another_target_is_refused(store: LocalStore) -> None:
    begin(store)
    for other in (
        Target("audited", "photos/", start_after="photos/a", stop_at="photos/y"),
        Target("audited", "photos/"),
        Target("audited", "films/", stop_at="photos/y"),
        Target("audited", "photos/", versions=True, stop_at="photos/y"),
    ):
        with pytest.raises(RunChanged, match=f"^run {RUN} has another target, prefix or key range: start a new run$"):
            checkpoint(store, RUN, other, SELECTION)


def test_another_selection_is_refused(store: LocalStore) -> None:
    begin(store)
    changes: tuple[dict[str, Any], ...] = ({"rules": {}}, {"trusted": ["a"]}, {"algorithms": ["md5"]})
    for change in changes:
        with pytest.raises(RunChanged, match=f"^run {RUN} began with other rules.* or algorithms.*: resume it"):
            checkpoint(store, RUN, BUCKET, SELECTION | change)


def test_a_run_that_is_not_there(store: LocalStore, tmp_path: Path) -> None:
    with pytest.raises(
        RunMissing, match=f"^there is no run {RUN} of audited at .*{tmp_path.name}.* wrote anything: check --out"
    ):
        checkpoint(store, RUN, BUCKET, SELECTION)


def test_a_run_that_is_complete(store: LocalStore) -> None:
    begin(store, complete=True)
    with pytest.raises(RunComplete, match=f"^run {RUN} is complete: there is nothing to resume$"):
        checkpoint(store, RUN, BUCKET, SELECTION)


def test_a_run_without_a_checkpoint_begins_with_the_target_that_was_asked_for(store: LocalStore) -> None:
    store.put(f"bucket=audited/run={RUN}/objects/part-00000-00000.jsonl.gz", b"")
    assert checkpoint(store, RUN, BUCKET, SELECTION) == (None, BUCKET)


def test_counts_that_do_not_add_up_name_the_file(store: LocalStore) -> None:
    begin(store)
    state = json.loads(store.get(STATE) or b"")
    state["tally"]["coverage"]["vanished"] += 1
    store.put(STATE, json.dumps(state).encode())
    with pytest.raises(
        RunDamaged, match=rf"/run={RUN}/state\.json is damaged \(.*listed = audited.*\): start a new run$"
    ):
        checkpoint(store, RUN, BUCKET, SELECTION)


def test_the_selection_has_what_a_finding_depends_on() -> None:
    settings = Settings(
        trusted=frozenset({"222222222222", "111111111111"}),
        algorithms=("md5", "sha256"),
        rules={"M01": {"required": ["owner"]}},
    )
    chosen = [rule for rule in RULES if rule.id in {"E01", "M01"}]
    selection = selection_of(chosen, settings, ledger=True)
    assert selection == {
        "rules": {"E01": None, "M01": {"required": ["owner"]}},
        "trusted": ["111111111111", "222222222222"],
        "algorithms": ["md5", "sha256"],
        "exceptions": [],
    }
    assert selection_of(chosen, settings, ledger=False)["algorithms"] is None
    assert json.loads(json.dumps(selection)) == selection


def test_an_option_that_is_a_date_in_toml_is_part_of_the_selection() -> None:
    settings = Settings(rules={"M01": {"since": date(2026, 1, 2), "required": ("owner",)}})
    rules = [rule for rule in RULES if rule.id == "M01"]
    found = selection_of(rules, settings, ledger=False)["rules"]
    assert found == {"M01": {"since": "2026-01-02", "required": ["owner"]}}
