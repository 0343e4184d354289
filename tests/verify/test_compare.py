"""The comparison of a listing entry with a ledger's record, on values alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from auditor.ledger.base import Event, Expectation, KeyRecord, Known, Version
from auditor.model.digest import VerifyOutcome
from auditor.model.object import ObjectRef
from auditor.verify.compare import Comparison, ReadRequest, cross_checked, verified
from auditor.verify.merge import Pair
from auditor.verify.outcome import Verified

SHA = "aa" * 32
OLD = "2026-01-01T00:00:00Z"
REF = ObjectRef("key", "e", 5, OLD)
KNOWN = Known(digest=SHA, source="auditor", recorded_at=OLD, verified_at=None, bytes_read=5)
VERSION = Version(version_id="null", etag="e", size=5, digests={"sha256": KNOWN}, first_seen=OLD)
EXPECTED = Expectation(key="key", algorithm="sha256", digest=SHA, origin="sums", imported_at="2026-02-01T00:00:00Z")
COMPARISON = Comparison(in_flight_from="2026-03-01", in_flight_to=lambda: "2026-03-02")
RECORDING = replace(COMPARISON, record=True)


def subject(*versions: Version, **fields: Any) -> KeyRecord:
    return KeyRecord(key="key", versions=versions, **fields)


def asked(judge: Comparison, ref: ObjectRef, *versions: Version, **fields: Any) -> ReadRequest:
    found = judge.listed(ref, subject(*versions, **fields))
    assert isinstance(found, ReadRequest), found
    return found


def outcome(judge: Comparison, ref: ObjectRef, *versions: Version, **fields: Any) -> VerifyOutcome:
    found = judge.listed(ref, subject(*versions, **fields))
    assert not isinstance(found, ReadRequest), found
    return found.outcome


def version(version_id: str, etag: str = "e") -> Version:
    return replace(VERSION, version_id=version_id, etag=etag)


@pytest.mark.parametrize(
    ("written", "young"), [("2026-02-28", False), ("2026-03-01", True), ("2026-03-02", True), ("2026-03-03", False)]
)
def test_object_is_in_flight_from_the_first_time_to_the_last_one(written: str, young: bool) -> None:
    assert COMPARISON.in_flight(written) is young


@pytest.mark.parametrize(
    ("judge", "etag", "standing", "keep", "unread"),
    [
        (COMPARISON, "other", VerifyOutcome.CHANGED, False, VerifyOutcome.CHANGED),
        (RECORDING, "other", VerifyOutcome.CHANGED, True, VerifyOutcome.CHANGED),
        (COMPARISON, "e", VerifyOutcome.MATCH, False, VerifyOutcome.NOT_DUE),
        (RECORDING, "e", VerifyOutcome.MATCH, False, VerifyOutcome.NOT_DUE),
    ],
)
def test_digests_are_recorded_only_of_objects_that_the_ledger_lacks_and_when_asked(
    judge: Comparison, etag: str, standing: VerifyOutcome, keep: bool, unread: VerifyOutcome
) -> None:
    request = asked(judge, replace(REF, etag=etag), VERSION, expectations=(EXPECTED,))
    assert (request.standing, request.keep, request.unread) == (standing, keep, unread)


@pytest.mark.parametrize(("judge", "keep"), [(COMPARISON, True), (RECORDING, True)])
def test_new_object_that_a_manifest_proves_is_a_match_and_recorded(judge: Comparison, keep: bool) -> None:
    request = asked(judge, REF, expectations=(EXPECTED,))
    assert (request.standing, request.keep, request.unread) == (VerifyOutcome.MATCH, keep, VerifyOutcome.NOT_DUE)
    assert request.checked == EXPECTED.imported_at


def test_age_is_that_of_the_digest_that_was_looked_at_longest_ago() -> None:
    fresh = replace(KNOWN, verified_at="2026-02-02")
    both = replace(VERSION, digests={"sha256": fresh, "md5": replace(KNOWN, recorded_at="2026-01-15")})
    assert asked(COMPARISON, REF, both).checked == "2026-01-15"
    assert asked(COMPARISON, REF, replace(VERSION, digests={"sha256": fresh})).checked == "2026-02-02"


def test_old_version_is_neither_changed_nor_compared_with_a_manifest() -> None:
    old = replace(REF, version_id="v0", is_latest=False)
    assert outcome(COMPARISON, old, version("v1"), expectations=(EXPECTED,)) is VerifyOutcome.NEW
    assert outcome(COMPARISON, replace(old, is_latest=True), version("v1")) is VerifyOutcome.CHANGED


def test_damaged_record_of_a_listed_object_is_the_ledgers_fault() -> None:
    broken = replace(VERSION, digests={"sha256": replace(KNOWN, damaged=True)})
    fault = verified(REF, VerifyOutcome.LEDGER_FAULT, damaged="one; two")
    assert COMPARISON.listed(REF, subject(broken, damage=("one", "two"))) == fault
    assert COMPARISON.listed(replace(REF, etag="other"), subject(broken, damage=("one", "two"))) == replace(
        fault, etag="other"
    )
    sound = subject(broken, version("v1"), damage=("one",))
    assert isinstance(COMPARISON.listed(replace(REF, version_id="v1"), sound), ReadRequest)


def test_record_without_digests_makes_nothing_changed() -> None:
    assert outcome(COMPARISON, REF, replace(VERSION, etag="other", digests={})) is VerifyOutcome.NEW


@pytest.mark.parametrize("size", [5, None])
def test_expected_size_that_fits_or_is_unknown_is_no_mismatch(size: int | None) -> None:
    asked(COMPARISON, REF, expectations=(replace(EXPECTED, size=size),))
    found = COMPARISON.listed(REF, subject(expectations=(replace(EXPECTED, size=6),)))
    sizes = {"algorithm": "size", "recorded": "6", "found": "5", "origin": "sums"}
    assert found == verified(REF, VerifyOutcome.MISMATCH, **sizes)


def test_mismatch_will_name_who_made_the_digest() -> None:
    both = replace(VERSION, digests={"sha256": replace(KNOWN, source="s3"), "md5": KNOWN})
    request = asked(COMPARISON, REF, both, expectations=(EXPECTED,))
    assert [(one.algorithm, one.origin) for one in request.claims] == [
        ("sha256", "s3"),
        ("md5", "ledger"),
        ("sha256", "sums"),
    ]
    assert request.claims[0].version is both


def test_digests_by_algorithms_that_nobody_computes_are_a_hole() -> None:
    strange = replace(VERSION, digests={"sha3": KNOWN})
    hole = verified(REF, VerifyOutcome.UNREADABLE, code="UnknownAlgorithm")
    unknown = replace(EXPECTED, algorithm="sha3")
    for record in (subject(strange), subject(strange, expectations=(EXPECTED,)), subject(expectations=(unknown,))):
        assert COMPARISON.listed(REF, record) == hole
    assert len(asked(COMPARISON, REF, VERSION, expectations=(replace(EXPECTED, algorithm="sha3"),)).claims) == 1


@pytest.mark.parametrize(
    ("listed", "recorded", "chosen"),
    [
        ("v1", [version("v1", "other"), version("null")], ["v1"]),
        ("v1", [version("v2"), version("null")], ["null"]),
        ("v1", [version("v2")], []),
        (None, [version("v2"), version("null")], ["null"]),
        (None, [version("v1"), version("v2"), version("v3", "other")], ["v1", "v2"]),
        ("null", [version("null", "other"), version("v1")], ["v1"]),
        ("v1", [replace(version("v1"), digests={}), version("null")], ["null"]),
    ],
)
def test_versions_that_an_object_is_compared_with(
    listed: str | None, recorded: list[Version], chosen: list[str]
) -> None:
    found = Comparison.versions(replace(REF, version_id=listed), subject(*recorded))
    assert [one.version_id for one in found] == chosen


@pytest.mark.parametrize(
    ("fields", "listed_at", "what"),
    [
        ({"deleted_at": OLD}, "2026-01-01T00:15:00Z", None),
        ({"deleted_at": OLD}, "2026-01-01T00:15:01Z", {"deleted": OLD}),
        ({"retired_at": OLD}, "2026-01-01T00:00:00Z", None),
        ({"retired_at": OLD}, "2026-01-01T00:00:01Z", {"retired": OLD}),
        ({}, "2026-02-01T00:00:00Z", None),
    ],
)
def test_listing_belies_a_deletion_after_the_slack_and_a_retirement_at_once(
    fields: dict[str, Any], listed_at: str, what: dict[str, str] | None
) -> None:
    pair = Pair("key", REF, subject(VERSION, **fields), listed_at=listed_at)
    event = pair.listed_again()
    assert (None if event is None else event.detail) == what
    assert replace(pair, ref=replace(REF, is_latest=False)).listed_again() is None
    assert replace(pair, ref=None).listed_again() is None
    assert replace(pair, subject=None).listed_again() is None


@pytest.mark.parametrize(
    ("seen", "retired", "deleted", "expected"),
    [
        (OLD, None, None, VerifyOutcome.MISSING),
        ("2026-03-01", None, None, VerifyOutcome.IN_FLIGHT),
        ("2026-03-01", OLD, None, VerifyOutcome.RETIRED),
        ("2026-03-01", OLD, OLD, VerifyOutcome.DELETED),
    ],
)
def test_object_that_only_the_ledger_has(
    seen: str, retired: str | None, deleted: str | None, expected: VerifyOutcome
) -> None:
    one = replace(version("v1"), first_seen=seen, retired_at=retired)
    found = Verified(key="key", outcome=expected, listed=False, version_id="v1", etag="e", size=5)
    record = subject(VERSION, replace(one, retired_at=None), retired_at=retired, deleted_at=deleted)
    of_key = Pair("key", None, record, absent=True)
    assert COMPARISON.absent(of_key) == found
    of_version = replace(one, removed_at=deleted)
    assert COMPARISON.absent(replace(of_key, subject=subject(of_version, VERSION), version=of_version)) == found


def test_key_without_digests_is_in_flight_from_its_notification_on() -> None:
    pair = Pair("key", None, subject(noticed_at="2026-03-01"), absent=True)
    assert COMPARISON.absent(pair) == Verified(key="key", outcome=VerifyOutcome.IN_FLIGHT, listed=False)
    expected = replace(pair, subject=subject(expectations=(EXPECTED,)))
    assert COMPARISON.absent(expected).outcome is VerifyOutcome.MISSING


def test_damaged_digest_makes_an_absent_key_a_fault_and_leaves_its_sound_versions() -> None:
    broken = replace(version("v1"), digests={"sha256": replace(KNOWN, damaged=True)})
    sound = replace(version("v2"), removed_at=OLD)
    pair = Pair("key", None, subject(broken, sound, damage=("one", "two"), deleted_at=OLD), absent=True)
    fault = Verified(key="key", outcome=VerifyOutcome.LEDGER_FAULT, listed=False, detail={"damaged": "one; two"})
    assert COMPARISON.absent(pair) == fault
    assert COMPARISON.absent(replace(pair, version=replace(broken, removed_at=OLD))) == fault
    assert COMPARISON.absent(replace(pair, version=sound)).outcome is VerifyOutcome.DELETED


def test_record_says_that_an_object_is_settled() -> None:
    told, open_ = subject(VERSION, deleted_at=OLD), subject(VERSION)
    gone = replace(VERSION, removed_at=OLD)
    pair = Pair("key", None, open_, absent=True)
    assert not pair.is_settled
    assert not replace(pair, subject=told, version=VERSION).is_settled, "the version itself is not"
    assert replace(pair, subject=told).is_settled
    assert replace(pair, version=gone).is_settled
    assert replace(pair, version=replace(VERSION, retired_at=OLD)).is_settled
    assert replace(pair, subject=subject(VERSION, retired_at=OLD)).is_settled
    assert not replace(pair, subject=subject(VERSION, retired_at=OLD), version=VERSION).is_settled


@pytest.mark.parametrize(
    ("digest", "names", "algorithm", "expected"),
    [
        ("bb" * 32, ["sha256"], "sha256", VerifyOutcome.MATCH),
        ("cc" * 32, ["sha256"], "sha256", VerifyOutcome.LEDGER_FAULT),
        ("bb" * 32, ["sha256", "md5"], "sha256", VerifyOutcome.LEDGER_FAULT),
        ("bb" * 32, ["sha256"], "md5", VerifyOutcome.MISMATCH),
        (SHA, ["sha256"], "sha256", VerifyOutcome.MISMATCH),
        ("cc" * 32, ["sha256"], "size", VerifyOutcome.LEDGER_FAULT),
    ],
    ids=["history is right", "neither", "another digest left", "other algorithm", "history agrees", "size"],
)
def test_mismatch_is_the_ledgers_fault_when_its_history_has_another_digest(
    digest: str, names: list[str], algorithm: str, expected: VerifyOutcome
) -> None:
    found = verified(REF, VerifyOutcome.MISMATCH, algorithm=algorithm, found="bb" * 32)
    row = replace(VERSION, digests=dict.fromkeys(names, KNOWN))
    detail = {"algorithm": "sha256", "digest": digest}
    line = Event(key="key", at=OLD, what="recorded", version_id="null", etag="e", size=5, detail=detail)
    assert cross_checked(found, [row], [line]).outcome is expected
