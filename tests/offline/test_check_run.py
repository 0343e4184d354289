"""Whatever is done to a run folder after the run, the check names it in a sentence; a whole run has no fault."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.offline.library.run import open_run
from auditor.offline.library.runs import check_run
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.paths import FIRST, run_path
from auditor.runs.segment import Segment
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.killed_run import PART, begin, end, judgements, put_all
from tests.support.samples.reports import RUN, sample_summary

NIGHTS: Final = tuple(f"2026010{day}T030405Z-0a1b2c" for day in (1, 2, 3))
OBJECTS: Final = "objects/part-00000-{:05}.jsonl.gz"


def write_run(root: Path, run_id: str = RUN, previous: str | None = None, until: int | None = None) -> Path:
    """A run of 23 objects in five parts; of fewer, which has not ended, if `until` says so."""
    store, tally = LocalStore(root), Tally()
    begin(store, run_id, against=previous)
    with Segment(store, "audited", run_id, tally=tally, part_lines=PART, fresh=True) as segment:
        segment.prepare()
        put_all(segment, tally, judgements()[:until])
        end(store, segment, sample_summary(tally, run=run_id, complete=until is None), update_latest=True)
    return root / run_path("audited", run_id)


def faults(folder: Path) -> list[str]:
    found = check_run(folder)
    assert found.exit_code == (1 if found.faults else 4 if found.lacks else 0)
    return list(found.faults)


def lines_of(file: Path) -> list[bytes]:
    return gzip.decompress(file.read_bytes()).splitlines(keepends=True)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path)


def test_a_whole_run(run: Path) -> None:
    found = check_run(run)
    assert (found.faults, found.lacks, found.exit_code) == ((), (), 0)
    objects, parts = len(judgements()), list(run.glob("*/part-*"))
    assert found.parts == len(parts)
    assert found.lines == sum(len(lines_of(part)) for part in parts) > objects
    assert found.sha256 == hashlib.sha256((run / "summary.json").read_bytes()).hexdigest()


def test_a_flipped_byte_and_a_part_that_is_removed(run: Path) -> None:
    for kind, at in product(("objects", "findings", "undecided"), (0, 10, -9, -1)):
        part = sorted((run / kind).glob("part-*"))[1]
        whole = part.read_bytes()
        data = bytearray(whole)
        data[at] ^= 1
        part.write_bytes(data)
        assert faults(run) == [f"{kind}/{part.name} was altered: its SHA-256 is not the one in seal.json"], at
        part.unlink()
        assert faults(run) == [f"{kind}/{part.name} is gone"]
        part.write_bytes(whole)


def test_two_parts_that_are_swapped(run: Path) -> None:
    one, two = run / OBJECTS.format(1), run / OBJECTS.format(3)
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    assert faults(run) == [
        f"{OBJECTS.format(1)} has the bytes of {OBJECTS.format(3)}: parts were swapped",
        f"{OBJECTS.format(3)} has the bytes of {OBJECTS.format(1)}: parts were swapped",
    ]


def test_a_part_that_is_added_is_a_fault_and_an_added_checkpoint_changes_nothing(run: Path) -> None:
    keys = [line.key for line in open_run(run).objects()]
    (run / "checkpoint").mkdir(exist_ok=True)
    (run / "checkpoint" / "00001.json").write_text(json.dumps({"v": 1}))
    for name in (OBJECTS.format(9), "objects/part-00009-00000.jsonl.gz"):
        (run / name).write_bytes(gzip.compress(b'{"key":"x"}\n'))
        assert faults(run) == [f"{name} is not named in seal.json: it was added"]
        assert [line.key for line in open_run(run).objects()] == keys
        (run / name).unlink()


def test_another_file_that_is_edited_or_removed(run: Path) -> None:
    for name in ("seal.json", "run.json", "report.html", "rollups.json"):
        file = run / name
        whole = file.read_bytes()
        file.write_bytes(whole + b" ")
        source = "summary.json" if name == "seal.json" else "seal.json"
        assert f"{name} was altered: its SHA-256 is not the one in {source}" in faults(run)
        file.unlink()
        assert any(found.startswith(f"{name} is gone") for found in faults(run)), name
        file.write_bytes(whole)


def edit_seal(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change seal.json, and its digest in summary.json."""
    value = json.loads((run / "seal.json").read_text())
    change(value)
    (run / "seal.json").write_text(json.dumps(value))
    seal_anew(run)


def seal_anew(run: Path) -> None:
    """Replace the digest of seal.json in summary.json."""
    summary = json.loads((run / "summary.json").read_text())
    summary["sealed"] = {"seal.json": hashlib.sha256((run / "seal.json").read_bytes()).hexdigest()}
    (run / "summary.json").write_text(json.dumps(summary))


def reseal(run: Path, name: str, data: bytes) -> None:
    """Replace a file of the run, and its digest, as a forger would."""
    (run / name).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()

    def change(value: dict[str, Any]) -> None:
        for part in value["parts"]:
            if part["path"] == name:
                part.update(sha256=digest, bytes=len(data))
        if name in value["files"]:
            value["files"][name] = digest

    edit_seal(run, change)


def test_lines_that_are_swapped_or_left_out_and_sealed_anew(tmp_path: Path) -> None:
    name = OBJECTS.format(1)
    run = write_run(tmp_path / "swapped")
    first, second, *rest = lines_of(run / name)
    reseal(run, name, gzip.compress(b"".join([second, first, *rest])))
    assert faults(run) == [
        f"{name} has keys out of order",
        f"{name} has another first or last key than seal.json says",
    ]
    reseal(run, name, gzip.compress(b"".join([first, *rest])))
    assert faults(run) == [f"{name} has 4 lines, and seal.json says 5"]
    run = write_run(tmp_path / "left out")
    (run / name).unlink()
    edit_seal(run, lambda value: value["parts"].remove(next(one for one in value["parts"] if one["path"] == name)))
    assert faults(run)[0] == "objects/ has 18 lines, and the summary counts 23"


def test_a_seal_that_is_damaged_or_gone(run: Path) -> None:
    for data in (b"", b"[]", b'{"format": 1}', b'{"format": 2}'):
        (run / "seal.json").write_bytes(data)
        assert any("seal.json is damaged" in fault for fault in faults(run)), data
    (run / "seal.json").unlink()
    assert faults(run) == ["seal.json is gone: a complete run has one"]


def test_the_seal_of_another_run(tmp_path: Path) -> None:
    one, two = (write_run(tmp_path / str(number), run_id) for number, run_id in enumerate(NIGHTS[:2]))
    (two / "seal.json").write_bytes((one / "seal.json").read_bytes())
    seal_anew(two)
    assert f"seal.json is that of another run, {NIGHTS[0]}" in faults(two)


def test_a_run_that_has_not_ended(tmp_path: Path) -> None:
    run = write_run(tmp_path, until=13)
    assert faults(run) == []
    assert check_run(run).exit_code == 4
    store = LocalStore(tmp_path)
    state = load_checkpoint(store, "audited", RUN, FIRST)
    assert state is not None
    tally = state.tally
    with Segment(store, "audited", RUN, tally=tally, state=state, part_lines=PART) as segment:
        segment.prepare()
        put_all(segment, tally, judgements()[13:20])
        segment.save()
    found = check_run(run)
    assert (found.faults, found.exit_code) == ((), 4)
    assert "the run has not ended" in found.lacks[0]
    (run / "seal.json").unlink()
    assert "the run has not ended" in check_run(run).lacks[0]


@pytest.fixture
def nights(tmp_path: Path) -> list[Path]:
    """Three runs of one target, each of which names the one before."""
    before = (None, *NIGHTS)
    return [write_run(tmp_path, night, previous) for night, previous in zip(NIGHTS, before, strict=False)]


def test_the_chain_leads_to_the_first_run(nights: list[Path]) -> None:
    assert [check_run(night).chain for night in nights] == [(), NIGHTS[:1], (NIGHTS[1], NIGHTS[0])]
    assert [check_run(night).exit_code for night in nights] == [0, 0, 0]


def test_a_run_of_the_chain_whose_seal_is_replaced_or_that_is_sealed_anew(nights: list[Path]) -> None:
    whole = (nights[1] / "seal.json").read_bytes()
    (nights[1] / "seal.json").write_bytes(b"{}")
    assert faults(nights[2]) == [f"the seal of the earlier run {NIGHTS[1]} is not the one that its summary names"]
    (nights[1] / "seal.json").write_bytes(whole)
    reseal(nights[1], "run.json", b"{}")
    assert faults(nights[2]) == [
        f"the summary of the earlier run {NIGHTS[1]} was altered after run {NIGHTS[2]} named it"
    ]
    assert faults(nights[1]) == [
        f"summary.json was altered: the later run {NIGHTS[2]} names a different SHA-256 for it"
    ]


def test_old_runs_of_the_chain_may_be_deleted(nights: list[Path]) -> None:
    for file in sorted(nights[0].rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    assert faults(nights[2]) == []
    assert check_run(nights[2]).chain == (NIGHTS[1],)
    (nights[1] / "summary.json").unlink()
    assert faults(nights[2]) == [f"the earlier run {NIGHTS[1]} has lost its summary.json"]
    assert faults(nights[1]) == [f"summary.json is gone: the later run {NIGHTS[2]} names the run as a complete one"]


def test_hostile_names_in_the_seal_are_no_paths(run: Path) -> None:
    edit_seal(run, lambda value: value["parts"].append({**value["parts"][0], "path": "../\x1b[2J"}))
    assert "seal.json names no part's file" in faults(run)
    for name in ("../../x", "20260230T030405Z-0a1b2c", RUN, "20270102T030405Z-0a1b2c"):
        edit_seal(run, lambda value, name=name: value.update(previous={"run": name, "sha256": "f"}))  # type: ignore[misc]
        assert "seal.json names a previous run that is not earlier" in faults(run), name


def test_damaged_lines_and_files_that_are_sealed_anew(run: Path) -> None:
    name = OBJECTS.format(1)
    _, *rest = lines_of(run / name)
    for damage in (b"no line", b'{"key":"k005", no JSON}', b'{"key":"k005"}', b'{"key":"k005","outcome":"good"}'):
        reseal(run, name, gzip.compress(b"".join([damage, b"\n", *rest])))
        assert any(fault.startswith(f"{name} is damaged (") for fault in faults(run)), damage
    for other in ("run.json", "rollups.json"):
        reseal(run, other, b"no JSON")
        assert f"{other} is damaged (it is not JSON)" in faults(run)


def test_a_name_that_leads_elsewhere_is_damage(run: Path) -> None:
    whole = {name: (run / name).read_bytes() for name in ("seal.json", "summary.json")}
    for name in ("../../../secret", "/etc/passwd", "objects/../../x", "latest.json", "", "a\0b"):
        edit_seal(run, lambda value, name=name: value["files"].update({name: "0" * 64}))  # type: ignore[misc]
        assert faults(run) == ["seal.json is damaged (files names a file that no run has)"], name
        for path, data in whole.items():
            (run / path).write_bytes(data)
    for name in ("../../../secret", "/etc/passwd", "a\0b"):
        summary = json.loads(whole["summary.json"])
        summary.setdefault("sealed", {})[name] = "0" * 64
        (run / "summary.json").write_text(json.dumps(summary))
        assert faults(run) == ["summary.json names a file that no run has"], name
