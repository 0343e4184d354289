"""The rules of rows, lines and notifications that every kind of ledger shares, on values alone."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from auditor.ledger.base import Event, Expectation, Known, Notice, Version
from auditor.ledger.history import (
    LONGEST,
    bounded,
    disagreed,
    fingerprint,
    imported,
    noticed,
    read_detail,
    write_detail,
)
from auditor.ledger.key_record import KeyRows, Latest, Mark, NoticedVersion, is_after, is_older, is_same
from auditor.ledger.matching import LedgerRow, conflict, match
from auditor.model.object import ObjectVersion
from tests.conformance.ledgers.base import ENTRY

LATEST = Latest("05", deleted=False, at="2026-01-02", version_id=None)
UNNUMBERED = Latest("", deleted=False, at="2026-01-02", version_id=None)


def notice(sequencer: str, at: str = "2026-01-02", *, deleted: bool = False) -> Notice:
    return Notice(key="key", sequencer=sequencer, deleted=deleted, at=at)


def test_time_proves_something_only_when_it_is_later_than_the_slack() -> None:
    for one, other, after in (
        ("2026-01-01T00:15:00Z", "2026-01-01T00:00:00Z", False),
        ("2026-01-01T00:15:01Z", "2026-01-01T00:00:00Z", True),
        ("yesterday", "2026-01-01T00:00:00Z", False),
        ("2026-01-02", "2026-01-01T00:00:00Z", False),
    ):
        assert is_after(one, other) is after, one


def test_sequencers_decide_and_times_where_one_is_missing() -> None:
    for sequencer, at, latest, older in (
        ("04", "2026-01-03", LATEST, True),
        ("06", "2026-01-01", LATEST, False),
        ("", "2026-01-01", LATEST, True),
        ("", "2026-01-03", LATEST, False),
        ("06", "2026-01-01", UNNUMBERED, True),
        ("04", "2026-01-03", UNNUMBERED, False),
        ("04", "2026-01-02", UNNUMBERED, False),
        ("04", "2026-01-02", None, False),
    ):
        assert is_older(notice(sequencer, at), latest) is older, (sequencer, at, latest)
    for one, latest, same in (
        (notice("05"), LATEST, True),
        (notice("0500", "2026-01-03"), LATEST, True),
        (notice("06"), LATEST, False),
        (notice("05", deleted=True), LATEST, False),
        (notice(""), LATEST, False),
        (notice("05"), UNNUMBERED, False),
        (notice(""), UNNUMBERED, True),
        (notice("", "2026-01-03"), UNNUMBERED, False),
        (notice("05"), None, False),
    ):
        assert is_same(one, latest) is same, (one, latest)
    for before, sequencer, place, replaced in (
        (NoticedVersion("05", 9), "06", 1, True),
        (NoticedVersion("05", 1), "04", 9, False),
        (NoticedVersion("", 1), "04", 2, True),
        (NoticedVersion("05", 2), "", 1, False),
        (NoticedVersion("", 1), "", 1, False),
    ):
        assert before.replaced_by(sequencer, place) is replaced, (before, sequencer, place)


KNOWN = Known(digest="aa", source="auditor", recorded_at="2026-01-02T00:00:00Z", verified_at=None, bytes_read=1)
ONE = Version(version_id="v9", etag="e", size=1, digests={"sha256": KNOWN}, first_seen="2026")


def test_versions_of_a_key_have_their_order_and_their_doubts() -> None:
    versions = [(replace(ONE, version_id=f"v{number}"), place) for number, place in ((1, 1), (2, 5), (3, 5))]
    noticed_ = {("v1", "e"): NoticedVersion("02", 1), ("v2", "e"): NoticedVersion("01", 9)}
    record = KeyRows(versions=versions, noticed=noticed_).record("key")
    assert [found.version_id for found in record.versions] == ["v3", "v2", "v1"]
    rows = KeyRows(versions=[(ONE, 1)], noticed={("v1", "f"): NoticedVersion("05", 2)})
    assert rows.record("key").unrecorded
    assert not replace(rows, versions=[(ONE, 3)]).record("key").unrecorded
    assert not KeyRows().record("key").unrecorded
    record = KeyRows(versions=[(ONE, 1), (replace(ONE, size=2), 1)]).record("key")
    assert sorted(one.size for one in record.versions) == [1, 2]


LINE = Event(
    key="a/ke\u00ff", at="2026", what="recorded", version_id="v1", etag="e", size=5, detail={"b": "1", "a": "2"}
)


def test_fingerprint_and_detail_stay_the_same_over_releases_and_orders() -> None:
    assert fingerprint(LINE).hex() == "09e23bfe232ee4de32b2df602d691874"
    assert fingerprint(replace(LINE, detail={"a": "2", "b": "1"})) == fingerprint(LINE)
    assert write_detail(LINE.detail) == '{"a":"2","b":"1"}'


def test_detail_of_another_form_is_shown_in_part_as_damaged() -> None:
    assert read_detail('{"a":"2","n":7}') == {"a": "2", "n": "7"}
    assert read_detail("x" * 2 * LONGEST) == {"damaged": "x" * LONGEST}


def test_each_long_text_of_a_line_is_cut() -> None:
    detail = {"short": "x", "long": "y" * (LONGEST + 1)}
    assert bounded(replace(LINE, detail=detail)).detail == {"short": "x", "long": "y" * LONGEST}


def test_mismatch_names_its_version() -> None:
    event = disagreed(ObjectVersion("key", "v1", "e", 5), {"algorithm": "sha256"})
    assert datetime.fromisoformat(event.at).tzinfo is not None
    assert replace(event, at="") == Event(
        key="key", at="", what="mismatch", version_id="v1", etag="e", size=5, detail={"algorithm": "sha256"}
    )


def test_row_fits_by_etag_size_and_version() -> None:
    for row, listed, found in (
        (LedgerRow("v1", "e", 5, {"sha256": "aa"}), "v1", {"sha256": "aa"}),
        (LedgerRow("v1", "e", 5, {"sha256": "aa"}), None, {"sha256": "aa"}),
        (LedgerRow("v1", "other", 5, {"sha256": "aa"}), "v1", {}),
        (LedgerRow("v1", "e", 6, {"sha256": "aa"}), "v1", {}),
        (LedgerRow("v2", "e", 5, {"sha256": "aa"}), "v1", {}),
        (LedgerRow("v1", "e", 5, {"md5": "aa"}), "v1", {}),
    ):
        assert match([row], ObjectVersion("key", listed, "e", 5), ["sha256"]) == found, row


def test_conflict_says_what_the_ledger_holds() -> None:
    assert f" {'k' * 100!r} " in str(conflict(replace(ENTRY, key="k" * 200), "size"))
    assert str(conflict(ENTRY, "sha256")) == (
        "the ledger holds another sha256 for the same version of 'a/key' in bucket 'bucket':"
        " the object or its record was changed; nothing was overwritten"
    )


def test_events_that_a_ledger_writes_itself_have_all_fields() -> None:
    notice_ = replace(notice("05"), version_id="v1", etag="e", size=5)
    line = Event(key="key", at="2026-01-02", what="created", version_id="v1", etag="e", size=5)
    assert noticed(notice_) == replace(line, detail={"sequencer": "05"})
    assert noticed(replace(notice_, deleted=True)).what == "deleted"
    expected = Expectation(key="key", algorithm="md5", digest="aa", origin="sums", imported_at="2026", size=5)
    detail = {"algorithm": "md5", "digest": "aa", "origin": "sums"}
    assert imported(expected) == Event(key="key", at="2026", what="imported", size=5, detail=detail)


def test_key_that_only_a_manifest_names_can_be_retired() -> None:
    mark = NoticedVersion("", 1, "2026-02-01T00:00:00Z")
    assert KeyRows(noticed={("null", Mark.RETIRED): mark}).record("key").retired_at == mark.at
    assert KeyRows(noticed={("v1", Mark.RETIRED): mark}).record("key").retired_at is None
    for at, stays in (("2026-01-31T00:00:00Z", True), ("2026-02-01T00:00:00Z", True), ("2026-02-01T00:00:01Z", False)):
        noticed_: dict[tuple[str, str], NoticedVersion] = {
            ("null", Mark.RETIRED): mark,
            ("null", Mark.LISTED): NoticedVersion("", 1, at),
        }
        assert (KeyRows(noticed=noticed_).record("key").retired_at is not None) is stays
        for deleted in (True, False):
            latest = Latest("05", deleted=deleted, at=at, version_id=None)
            rows = KeyRows(noticed={("null", Mark.RETIRED): mark}, latest=latest)
            assert (rows.record("key").retired_at is not None) is (stays or deleted)
