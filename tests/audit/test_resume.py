"""Which run may be resumed, with what, and what its refusal tells."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.audit.judging_configuration import begun_plan, check_facts, check_rollups, selection_of
from auditor.config.settings import Settings
from auditor.errors import RunChanged, RunComplete, RunDamaged, RunMissing
from auditor.model.bucket import BucketFacts
from auditor.model.object import Unread
from auditor.model.target import Target
from auditor.rules import RULES
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.runs.segment import Segment
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.killed_run import begin, end, put
from tests.support.samples.bucket import facts
from tests.support.samples.reports import RUN, judged, sample_file, sample_summary

BUCKET = Target("audited", "photos/", start_after="photos/b", stop_at="photos/y")
SELECTION: dict[str, Any] = {"rules": {"E01": None}, "trusted": [], "algorithms": None}
STATE = f"bucket=audited/run={RUN}/checkpoint/00000.json"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def write(store: LocalStore, *, complete: bool = False) -> RunPlan:
    """A run of BUCKET with one object, stopped or complete."""
    tally, plan = Tally(), begin(store, target=BUCKET, selection=SELECTION)
    with Segment(store, "audited", RUN, tally=tally) as folder:
        folder.prepare()
        put(folder, tally, judged("photos/c"))
        if complete:
            end(store, folder, sample_summary(tally, target=BUCKET))
        else:
            folder.save()
    return plan


def found(store: LocalStore, target: Target = BUCKET, selection: dict[str, Any] = SELECTION) -> RunPlan:
    return begun_plan(RunReader(store, "audited", RUN), target, Settings(), selection)


def test_the_run_goes_on_where_it_stopped(store: LocalStore) -> None:
    plan = write(store)
    assert found(store) == plan
    assert found(store, Target("audited", "photos/", stop_at="photos/y")) == plan, "as the command to resume names it"
    state = RunReader(store, "audited", RUN).checkpoint("00000")
    assert state is not None
    assert (state.run, state.start_after, state.tally.coverage["audited"]) == (RUN, "photos/c", 1)


def test_another_target_is_refused(store: LocalStore) -> None:
    write(store)
    for other in (
        Target("audited", "photos/", start_after="photos/a", stop_at="photos/y"),
        Target("audited", "photos/"),
        Target("audited", "films/", stop_at="photos/y"),
        Target("audited", "photos/", versions=True, stop_at="photos/y"),
    ):
        with pytest.raises(RunChanged, match=f"^run {RUN} has another target, prefix or key range: start a new run$"):
            found(store, other)


def test_another_selection_is_refused(store: LocalStore) -> None:
    write(store)
    changes: tuple[dict[str, Any], ...] = ({"rules": {}}, {"trusted": ["a"]}, {"algorithms": ["md5"]})
    for change in changes:
        with pytest.raises(RunChanged, match=f"^run {RUN} began with other rules.* or algorithms.*: resume it"):
            found(store, BUCKET, SELECTION | change)


def test_other_settings_of_the_bucket_are_refused_and_what_was_not_read_then_may_be_anything() -> None:
    unread = Unread("GetBucketAcl", "AccessDenied")
    check_facts(sample_file(), facts())
    check_facts(sample_file(), facts(key_policies={"arn": "{}"}))
    for name in BucketFacts.__struct_fields__:
        if name in ("bucket", "key_policies", "semantics"):
            continue
        with pytest.raises(RunChanged, match=rf"^the settings of bucket audited differ .* \({name}\), .*: start a new"):
            check_facts(sample_file(), replace(facts(), **{name: unread}))
        check_facts(sample_file(facts=replace(facts(), **{name: unread})), facts())


def test_a_run_that_is_not_there(store: LocalStore, tmp_path: Path) -> None:
    with pytest.raises(
        RunMissing, match=f"^there is no run {RUN} of audited at .*{tmp_path.name}.* wrote anything: check --out"
    ):
        found(store)


def test_a_run_that_is_complete_loses_what_only_its_work_needed(tmp_path: Path) -> None:
    """Its process may have died after it wrote the summary."""
    write(LocalStore(tmp_path), complete=True)
    store = LocalStore(tmp_path)
    store.put(STATE, b"{}")
    with pytest.raises(RunComplete, match=f"^run {RUN} is complete: there is nothing to resume$"):
        found(store)
    assert store.list(f"bucket=audited/run={RUN}/checkpoint/") == []


def test_damage_in_a_checkpoint_names_the_file(store: LocalStore) -> None:
    write(store)
    run, state = RunReader(store, "audited", RUN), json.loads(store.get(STATE) or b"")
    wrong = {**state["tally"], "coverage": {**state["tally"]["coverage"], "vanished": 1}}
    for change, words in (({"tally": wrong}, ".*listed = audited"), ({"rollups": {"groups": 7}}, "")):
        store.put(STATE, json.dumps(state | change).encode())
        with pytest.raises(RunDamaged, match=rf"/checkpoint/00000\.json is damaged \({words}.*\): start a new run$"):
            check_rollups(run, "00000", run.checkpoint("00000"))


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
