"""A fact is kept only for the object that it was read of, and only with all that the run needs."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.audit.keeping.keeper import FactKeeper
from auditor.audit.keeping.turns import FactTurns
from auditor.model.dates import iso_date
from auditor.model.object import Acl, FactSource, Head, ObjectRef, Outcome, ReadAt, Skipped, Unread
from auditor.model.reuse import NamesOnly, Prior
from auditor.model.run_lines import ObjectLine

DAY: Final = 86_400.0
LISTED: Final = "2027-03-01T02:00:00Z"
NOW: Final = iso_date("2027-03-02T02:00:00Z").timestamp()
ACL: Final = Acl("owner", ())
HEAD: Final = Head(etag="e", content_length=3)
REF: Final = ObjectRef("k", "e", 3, "2027-01-01T00:00:00Z", owner="owner")
LINE: Final = ObjectLine(
    "k",
    None,
    "e",
    3,
    REF.last_modified,
    "STANDARD",
    "owner",
    ACL,
    HEAD,
    Outcome.AUDITED,
    False,
    None,
    (),
    None,
    True,
    (),
    (),
    None,
    None,
)


def kept(line: ObjectLine, ref: ObjectRef = REF, *, limit: float = 90 * DAY, values: bool = False) -> tuple[Any, Any]:
    """Return the ACL and the HEAD that are kept. The object has its turn on another night."""
    turns = FactTurns(limit, DAY, NOW)
    assert turns.turn_of("k", None) != int(NOW // DAY) % turns.number
    found = FactKeeper(LISTED, turns, turns, values=values).prior(ref, line, NOW)
    return (None, None) if found is None else (found.acl, found.head)


def test_both_facts_of_an_unchanged_object() -> None:
    turns = FactTurns(90 * DAY, DAY, NOW)
    found = FactKeeper(LISTED, turns, turns).prior(REF, LINE, NOW)
    assert found == Prior(acl=ACL, acl_at=LISTED, head=HEAD, head_at=LISTED)


@pytest.mark.parametrize("change", [{"etag": "f"}, {"size": 4}, {"last_modified": "2027-01-01T00:00:01Z"}])
def test_nothing_of_an_object_that_was_written_again(change: dict[str, Any]) -> None:
    assert kept(LINE, replace(REF, **change)) == (None, None)


def test_no_head_of_another_storage_class() -> None:
    assert kept(LINE, replace(REF, storage_class="GLACIER")) == (ACL, None)


@pytest.mark.parametrize("missing", [Unread("X", "403"), Skipped("no selected rule needs it")])
def test_what_was_not_read_is_asked(missing: Unread | Skipped) -> None:
    assert kept(replace(LINE, acl=missing)) == (None, HEAD)
    assert kept(replace(LINE, head=missing)) == (ACL, None)
    assert kept(replace(LINE, acl=missing, head=missing)) == (None, None)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("2027-03-01T01:45:00Z", (ACL, HEAD)),
        ("2027-03-01T01:45:01Z", (None, None)),
        ("2027-03-01T05:00:00Z", (None, None)),
    ],
)
def test_object_that_was_written_around_the_time_of_reading(written: str, found: tuple[Any, Any]) -> None:
    assert kept(replace(LINE, last_modified=written), replace(REF, last_modified=written)) == found


def test_age_counts_from_the_time_on_the_line() -> None:
    old = ReadAt(acl="2026-12-01T00:00:00Z", acl_from=FactSource.RUN)
    early = replace(REF, last_modified="2026-01-01T00:00:00Z")
    line = replace(LINE, read_at=old, last_modified=early.last_modified)
    assert kept(line, early) == (None, HEAD)
    assert kept(line, early, limit=120 * DAY) == (ACL, HEAD)


@pytest.mark.parametrize("at", ["", "yesterday", "2027-13-01T00:00:00Z", "2028-01-01T00:00:00Z"])
def test_time_that_is_none_or_lies_ahead_keeps_nothing(at: str) -> None:
    assert kept(replace(LINE, read_at=ReadAt(acl=at or "?", acl_from=FactSource.RUN)))[0] is None


def test_head_of_an_inventory_lacks_members() -> None:
    line = replace(LINE, read_at=ReadAt(LISTED, LISTED, FactSource.INVENTORY, FactSource.INVENTORY))
    assert kept(line) == (ACL, None)
    turns = FactTurns(90 * DAY, DAY, NOW)
    found = FactKeeper(LISTED, turns, None).prior(REF, line, NOW)
    assert found is not None
    assert found.acl_from is FactSource.INVENTORY


def test_values_of_metadata_that_are_not_stored() -> None:
    names, none = replace(HEAD, metadata=NamesOnly(["team"])), replace(HEAD, metadata=NamesOnly([]))
    assert kept(replace(LINE, head=names)) == (ACL, names)
    assert kept(replace(LINE, head=names), values=True) == (ACL, None)
    assert kept(replace(LINE, head=none), values=True) == (ACL, none)
    whole = replace(HEAD, metadata={"team": "x"})
    assert kept(replace(LINE, head=whole), values=True) == (ACL, whole)


def test_nothing_without_a_limit() -> None:
    assert FactKeeper(LISTED, None, None).prior(REF, LINE, NOW) is None
