"""The counts add up and survive a checkpoint; counts that do not add up are an error."""

from __future__ import annotations

import json

import pytest

from auditor.model.finding import Judgement, Severity, Verdict
from auditor.model.object import Unread
from auditor.runs.tally import OTHER, REASONS, Tally
from tests.support.samples.reports import denied, finding, gone, judged, tally_of


def test_one_of_each_outcome() -> None:
    tally = tally_of(judged("a", finding("a"), finding("a", "O05", Severity.MEDIUM)), denied("b"), gone("c"))
    tally.delete_marker(2)
    assert tally.coverage == {"listed": 3, "audited": 1, "vanished": 1, "undecided": 1, "delete_markers": 2}
    assert tally.verdicts == {"exposed": 0, "unknown": 1, "shared": 0, "masked": 0, "private": 1}
    assert tally.findings == {"critical": 0, "high": 1, "medium": 1, "low": 0, "info": 0}
    assert tally.rules == {"O02": 1, "O05": 1}
    assert tally.unread == {"GetObjectAcl AccessDenied": 1}
    tally.check()


def test_saved_and_restored() -> None:
    tally = tally_of(judged("a", finding("a")), denied("b"))
    tally.hash("pending")
    tally.hash("known")
    tally.move("pending", "queued")
    tally.calls["head"] += 2
    tally.accept()
    twin = Tally.from_dict(json.loads(json.dumps(tally.to_dict())))
    assert twin.to_dict() == tally.to_dict()
    assert twin.hashing["queued"] == 1
    assert twin.hashing["pending"] == 0
    twin.check(hashing=True)


def test_copy_is_not_touched_by_later_counts() -> None:
    tally = tally_of(judged("a", finding("a")))
    before = tally.copy()
    saved = before.to_dict()
    tally.add(denied("b"))
    tally.accept()
    tally.calls["head"] += 1
    assert before.to_dict() == saved
    assert tally.to_dict() != saved


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("coverage", {"listed": -1}),
        ("verdicts", {"private": "3"}),
        ("accepted", True),
        ("rules", 7),
        ("routed", {"objects": [1]}),
    ],
)
def test_restored_from_something_else(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{field} is (not|negative)"):
        Tally.from_dict(Tally().to_dict() | {field: value})


def test_restored_with_fields_missing() -> None:
    with pytest.raises(ValueError, match="other fields"):
        Tally.from_dict({"coverage": {}})


def full() -> Tally:
    """Counts of which each sum is met exactly, with as many bytes as a large bucket has."""
    tally = tally_of(judged("a", finding("a")), denied("b"), gone("c"))
    tally.accept()
    tally.hash("pending")
    tally.leave("STANDARD_IA", 2**60)
    tally.hash("unhashable")
    tally.route(2**60)
    return tally


def test_counts_that_add_up_exactly() -> None:
    full().check(hashing=True)
    assert Tally.from_dict(full().to_dict()) == full()


@pytest.mark.parametrize(
    ("field", "name", "sums"),
    [
        ("coverage", "vanished", ["listed = audited + vanished + undecided"]),
        ("verdicts", "private", ["verdicts = audited + undecided"]),
        ("rules", "O02", ["findings by rule = findings by severity"]),
        ("findings", "low", ["findings by rule = findings by severity"]),
        ("hashing", "known", ["hashing = audited + undecided"]),
        ("left_objects", "STANDARD_IA", ["left for cost <= pending"]),
        ("left_objects", "GLACIER_IR", ["left for cost <= pending", "classes left have their bytes"]),
        ("left_bytes", "GLACIER_IR", ["classes left have their bytes"]),
        ("routed", "objects", ["routed <= unhashable"]),
    ],
)
def test_one_count_too_many(field: str, name: str, sums: list[str]) -> None:
    tally = full()
    counts = getattr(tally, field)
    counts[name] = counts.get(name, 0) + 1
    with pytest.raises(ValueError, match="the counts do not add up") as caught:
        tally.check(hashing=True)
    assert str(caught.value).removeprefix("the counts do not add up: ").split("; ")[:-1] == sums


def test_counts_that_do_not_add_up() -> None:
    tally = tally_of(judged("a"))
    tally.coverage["listed"] += 1
    tally.accept()
    with pytest.raises(ValueError, match=r"listed = .*; accepted <= undecided"):
        tally.check()


def test_undecided_object_without_a_verdict() -> None:
    tally = tally_of(Judgement(denied("a").evidence, None, (), ()))
    with pytest.raises(ValueError, match="verdicts"):
        tally.check()


def test_hashing_counts_only_matter_with_a_ledger() -> None:
    tally = tally_of(judged("a"))
    tally.check()
    with pytest.raises(ValueError, match="hashing"):
        tally.check(hashing=True)


def test_server_that_invents_codes_without_end() -> None:
    tally = Tally()
    for number in range(REASONS + 50):
        unread = judged("a", acl=Unread("GetObjectAcl", f"Code{number}")).evidence
        tally.add(Judgement(unread, Verdict.UNKNOWN, (), ()))
    assert len(tally.unread) == REASONS + 1
    assert tally.unread[OTHER] == 50
