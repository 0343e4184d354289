"""Odd results of judging make the expected bytes, and the readers of a run folder get the same facts from them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.model.access import listed
from auditor.model.object import GROUP_OF, Head, PartialHead
from tests.reports.lines.golden_lines import PLACE, finding_lines, golden, lines, object_line
from tests.support.encoded_lines import encode_undecided
from tests.support.golden_texts import difference
from tests.support.samples.odd_results import OddResult, odd_results, read_back

RESULTS = odd_results()
GROUPS = list(RESULTS)
RUN = "20260102T030405Z-0a1b2c"


@pytest.mark.parametrize("group", GROUPS)
def test_lines_are_the_expected_ones(group: str) -> None:
    expected, made = golden(group).read_bytes(), list(lines(RESULTS[group]))
    for (name, found), line in zip(made, expected.splitlines(keepends=True), strict=False):
        assert difference(line, found) is None, f"{name}, in {golden(group)}: see `make goldens` and git diff"
    assert difference(expected, b"".join(line for _, line in made)) is None


def test_nothing_else_is_there() -> None:
    assert {path.name for path in PLACE.iterdir()} == {golden(group).name for group in GROUPS}


def run_folder(root: Path, **kinds: Sequence[bytes]) -> Path:
    """Write a run folder that has one part with these lines, by the kind of its files."""
    folder = root / "bucket=audited" / f"run={RUN}"
    for kind, found in kinds.items():
        file = folder / kind / "part-00000-00000.jsonl.gz"
        file.parent.mkdir(parents=True)
        file.write_bytes(gzip.compress(b"".join(found)))
    return folder


def members_of(head: Any) -> dict[str, Any]:
    """Return the members of a HEAD that a line tells, its metadata as names."""
    unread = head.unread if isinstance(head, PartialHead) else frozenset[str]()
    values = {name: getattr(head, name) for name in GROUP_OF if name not in unread}
    return {name: sorted(value) if name == "metadata" else value for name, value in values.items()}


@pytest.mark.parametrize("group", GROUPS)
def test_a_reader_of_objects_has_the_facts(group: str, tmp_path: Path) -> None:
    results = RESULTS[group]
    run = auditor.open_run(run_folder(tmp_path, objects=list(map(object_line, results))))
    for result, line in zip(results, run.objects(), strict=True):
        expected, found = read_back(result), line.evidence
        assert (found.ref, found.acl, found.read_at) == (expected.ref, expected.acl, expected.read_at), result.name
        assert (found.dormant, found.vanished) == (expected.dormant, expected.vanished), result.name
        assert (found.changed, line.hashed) == (expected.changed, result.hashed), result.name
        access = None if expected.vanished or result.judgement.access is None else listed(result.judgement.access)
        assert line.audience == (tuple(one.text for one in access.audience) if access else ()), result.name
        if isinstance(expected.head, Head):
            assert type(found.head) is type(expected.head), result.name
            assert members_of(found.head) == members_of(expected.head), result.name
            if result.keep_metadata:
                assert dict(found.head.metadata) == dict(expected.head.metadata), result.name
        else:
            assert found.head == expected.head, result.name
        check_results(result, line)


def check_results(result: OddResult, line: Any) -> None:
    """Assert that the results in an object's line, or in the quicker form, are those of the judgement."""
    judgement, standing = result.judgement, result.standing
    access = None if judgement.evidence.vanished or judgement.access is None else listed(judgement.access)
    assert line.verdict == (access and access.verdict), result.name
    assert line.reasons == (tuple(one.text for one in access.reasons) if access else ()), result.name
    assert line.rules == tuple(sorted({one.rule for one in judgement.findings})), result.name
    assert line.outcome is judgement.evidence.outcome, result.name
    told = (standing.since, standing.exception) if standing else (None, None)
    assert (line.since, line.exception) == told, result.name


@pytest.mark.parametrize("group", GROUPS)
def test_a_reader_of_results_has_them(group: str, tmp_path: Path) -> None:
    results = RESULTS[group]
    folder = run_folder(tmp_path, objects=list(map(object_line, results)))
    for result, past in zip(results, auditor.open_run(folder).results(), strict=True):
        ref = result.judgement.evidence.ref
        assert (past.key, past.version_id) == (ref.key, ref.version_id)
        check_results(result, past.seen)


def check_findings(result: OddResult, found: Sequence[Any]) -> None:
    """Assert that these lines are those of the findings of a result."""
    judgement, history = result.judgement, result.finding
    for finding, line in zip(judgement.findings, found, strict=True):
        for name in ("fingerprint", "rule", "severity", "key", "version_id", "grantee", "permission", "message"):
            assert getattr(line, name) == getattr(finding, name), (result.name, name)
        assert line.verdict == (None if finding.key is None else judgement.verdict), result.name
        told = (history.since, history.exception) if history else (None, None)
        assert (line.since, line.exception) == told, result.name


def test_a_reader_of_findings_has_them(tmp_path: Path) -> None:
    for group in ("findings", "histories", "keys"):
        results = RESULTS[group]
        folder = run_folder(tmp_path / group, findings=[one for result in results for one in finding_lines(result)])
        found = iter(list(read_part(folder, "findings")))
        for result in results:
            check_findings(result, [next(found) for _ in result.judgement.findings])
        assert list(found) == []


def read_part(folder: Path, kind: str) -> Sequence[Any]:
    """Return the lines of a part without objects, which only a checkpoint makes a part of its run."""
    (folder / "objects").mkdir()
    (folder / "objects" / "part-00000-00000.jsonl.gz").write_bytes(gzip.compress(b""))
    run = auditor.open_run(folder)
    return list(run.findings() if kind == "findings" else run.undecided())


def test_a_reader_of_undecided_objects_has_them(tmp_path: Path) -> None:
    results = [result for results in RESULTS.values() for result in results]
    made = [(result, line) for result in results if (line := encode_undecided(result.judgement)) is not None]
    found = read_part(run_folder(tmp_path, undecided=[line for _, line in made]), "undecided")
    assert len(made) >= 10
    for (result, _), line in zip(made, found, strict=True):
        ref, judgement = result.judgement.evidence.ref, result.judgement
        assert (line.key, line.version_id) == (ref.key, ref.version_id), result.name
        assert line.unread == judgement.evidence.unread, result.name
        assert line.rules == tuple(sorted(set(judgement.undecided))), result.name
