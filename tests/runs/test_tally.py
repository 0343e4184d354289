"""The counts add up and survive a checkpoint; counts that do not add up are an error."""

from __future__ import annotations

import pytest
from msgspec.structs import fields

from auditor.model.access import ObjectAccess, Verdict
from auditor.model.finding import Judgement
from auditor.model.object import Unread
from auditor.runs.tally import AUDIENCES, OTHER, OTHERS, REASONS, Tally
from tests.support.samples.reports import denied, finding, gone, judged, tally_of


def full() -> Tally:
    """Counts of which each sum is met exactly, with as many bytes as a large bucket has."""
    tally = tally_of(judged("a", finding("a")), denied("b"), gone("c"))
    tally.accept()
    tally.hash("pending")
    tally.leave("STANDARD_IA", 2**60)
    tally.hash("unhashable")
    tally.route(2**60)
    return tally


def test_one_count_too_many() -> None:
    full().check(hashing=True)
    left = "classes left have their bytes"
    for field, name, sums in (
        ("coverage", "vanished", ["listed = audited + vanished + undecided"]),
        ("verdicts", "private", ["verdicts = audited + undecided"]),
        ("rules", "O02", ["findings by rule = findings by severity"]),
        ("findings", "low", ["findings by rule = findings by severity"]),
        ("hashing", "known", ["hashing = audited + undecided"]),
        ("left_objects", "STANDARD_IA", ["left for cost <= pending"]),
        ("left_objects", "GLACIER_IR", ["left for cost <= pending", left]),
        ("left_bytes", "GLACIER_IR", [left]),
        ("routed", "objects", ["routed <= unhashable"]),
    ):
        tally = full()
        counts = getattr(tally, field)
        counts[name] = counts.get(name, 0) + 1
        with pytest.raises(ValueError, match="the counts do not add up") as caught:
            tally.check(hashing=True)
        assert str(caught.value).removeprefix("the counts do not add up: ").split("; ") == sums, (field, name)
    tally = tally_of(judged("a"))
    tally.check()  # the counts of hashing only matter with a ledger
    tally.coverage["listed"] += 1
    tally.accept()
    with pytest.raises(ValueError, match=r"listed = .*; accepted <= undecided"):
        tally.check()


def filled(number: int) -> Tally:
    """A tally in which every field has something, different for each number."""
    tally = Tally()
    for place, field in enumerate(fields(Tally), number):
        value = getattr(tally, field.name)
        if isinstance(value, int):
            setattr(tally, field.name, min(place, 1) if field.name == "uncompared" else place)
        elif field.name == "audiences":
            value["exposed anyone"] = place
        else:
            for name in value or ("x", f"only {number}"):
                value[name] = place
    return tally


def test_every_field_is_added() -> None:
    total = Tally()
    parts = [filled(1), filled(5)]
    for one in parts:
        total.include(one)
    for field in fields(Tally):
        found, added = getattr(total, field.name), [getattr(one, field.name) for one in parts]
        if field.name == "uncompared":
            assert found == 1
        elif isinstance(found, int):
            assert found == sum(added)
        else:
            how = min if field.name == "oldest" else sum
            assert found == {
                name: how([one[name] for one in added if name in one]) for name in {**added[0], **added[1]}
            }


def test_names_beyond_the_limits_count_as_others() -> None:
    total = Tally()
    for part in range(3):
        one = Tally()
        one.unread = {f"Head {part}-{number}": 1 for number in range(REASONS)}
        one.audiences = {f"{Verdict.SHARED.value} {part}-{number}": 1 for number in range(AUDIENCES)}
        total.include(one)
        assert total.unread.get(OTHER, 0) == part * REASONS
        assert total.audiences.get(f"{Verdict.SHARED.value} {OTHERS}", 0) == part * AUDIENCES
    assert (len(total.unread), len(total.audiences)) == (REASONS + 1, AUDIENCES + 1)


def test_server_that_invents_codes_without_end() -> None:
    tally = Tally()
    for number in range(REASONS + 50):
        unread = judged("a", acl=Unread("GetObjectAcl", f"Code{number}")).evidence
        tally.add(Judgement(unread, ObjectAccess(Verdict.UNKNOWN), (), ()))
    assert (len(tally.unread), tally.unread[OTHER]) == (REASONS + 1, 50)
