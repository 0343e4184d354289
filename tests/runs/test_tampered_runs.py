"""Run folders that somebody changed: resuming such a run fails with a sentence that names the damage."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import OutputError
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.folder import RunFolder
from auditor.runs.reading import RunReader
from auditor.runs.run import open_run
from auditor.runs.stores.base import members_of
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.killed_run import judgements, put_all
from tests.support.samples.reports import RUN, target

FOLDER = f"bucket=audited/run={RUN}"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A store with a run that was stopped."""
    made = LocalStore(tmp_path)
    tally = Tally()
    with RunFolder(made, "audited", RUN, target=target(), tally=tally, part_lines=5) as folder:
        folder.prepare()
        put_all(folder, tally, judgements())
        folder.save()
    return made


def resume(store: LocalStore) -> None:
    state = load_checkpoint(store, "audited", RUN)
    assert state is not None
    with RunFolder(store, "audited", RUN, target=target(), tally=state.tally, state=state) as folder:
        folder.prepare()


def test_untouched_run_goes_on(store: LocalStore) -> None:
    resume(store)


@pytest.mark.parametrize("number", [0, 2])
def test_part_that_is_gone_ends_the_run(store: LocalStore, number: int) -> None:
    for kind in ("objects", "findings", "undecided"):
        store.delete(f"{FOLDER}/{kind}/part-00000-0000{number}.jsonl.gz")
    with pytest.raises(OutputError, match=f"part-00000-0000{number}.jsonl.gz is gone.*start a new run"):
        resume(store)


def test_objects_of_a_part_are_missed_though_its_findings_are_there(store: LocalStore) -> None:
    store.delete(f"{FOLDER}/objects/part-00000-00001.jsonl.gz")
    with pytest.raises(OutputError, match="is gone"):
        resume(store)


def nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "more parts than there are": lambda state: state.update(next_part=10**30),
    "a negative number of parts": lambda state: state.update(next_part=-1),
    "a key that is a number": lambda state: state.update(start_after=3),
    "a target without a key range": lambda state: state["target"].pop("start_after"),
    "a target that begins at a list": lambda state: state["target"].update(start_after=[1]),
    "a target nested beyond measure": lambda state: state.update(target=nested(450)),
    "a negative hop": lambda state: state.update(hop=-1),
    "a skipped part with a negative number": lambda state: state.update(void=[-1]),
    "a skipped part that is not behind": lambda state: state.update(void=[state["next_part"]]),
    "a field of its own": lambda state: state.update(more=1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_checkpoint_with(store: LocalStore, what: str) -> None:
    state = json.loads(store.get(f"{FOLDER}/state.json") or b"")
    CHANGES[what](state)
    store.put(f"{FOLDER}/state.json", json.dumps(state).encode())
    with pytest.raises(OutputError, match="start a new run"):
        resume(store)


def test_checkpoint_nested_beyond_measure(store: LocalStore) -> None:
    store.put(f"{FOLDER}/state.json", b"[" * 100_000)
    with pytest.raises(OutputError, match="is damaged"):
        resume(store)
    with pytest.raises(OutputError, match="is not JSON"):
        members_of(b"[" * 100_000, "summary.json")


@pytest.mark.parametrize("line", [b"[1]", b'"text"', b"7", b"[" * 100_000])
def test_line_that_is_no_object_is_damage(store: LocalStore, line: bytes) -> None:
    store.put(f"{FOLDER}/findings/part-00000-00000.jsonl.gz", gzip.compress(line + b"\n"))
    with pytest.raises(OutputError, match=r"part-00000-00000\.jsonl\.gz is damaged"):
        list(RunReader(store, "audited", RUN).findings())


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"version_id":null,', b""),
        lambda line: line.replace(b'"key":"k001"', b'"key":7'),
        lambda line: line.replace(b'"key":"k001"', b'"key":"\xff"'),
    ],
    ids=["no version ID", "a key that is a number", "a key that is not UTF-8"],
)
def test_result_of_an_object_without_a_name_is_damage(store: LocalStore, change: Callable[[bytes], bytes]) -> None:
    path = f"{FOLDER}/objects/part-00000-00000.jsonl.gz"
    lines = gzip.decompress(store.get(path) or b"").splitlines(keepends=True)
    whole = lines[1]
    store.put(path, gzip.compress(b"".join([whole, change(whole)])))
    with pytest.raises(OutputError, match="is damaged"):
        list(open_run(Path(store.uri(FOLDER))).results())
