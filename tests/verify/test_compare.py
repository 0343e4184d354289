"""The comparison of a listing entry with a ledger's record, on values alone."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from auditor.ledger.base import Event, Expectation, KeyRecord, Known, Version
from auditor.model.digest import VerifyOutcome
from auditor.model.object import ObjectRef
from auditor.verify.compare import Comparison, ReadRequest, cross_checked, verified
from auditor.verify.merge import Pair
from auditor.verify.outcome import Verified

SHA = "aa" * 32
OLD = "2026-01-01T00:00:00Z"
YOUNG = "2026-03-01"
REF = ObjectRef("key", "e", 5, OLD)
OTHER = replace(REF, etag="other")
KNOWN = Known(digest=SHA, source="auditor", recorded_at=OLD, verified_at=None, bytes_read=5)
VERSION = Version(version_id="null", etag="e", size=5, digests={"sha256": KNOWN}, first_seen=OLD)
EXPECTED = Expectation(key="key", algorithm="sha256", digest=SHA, origin="sums", imported_at="2026-02-01T00:00:00Z")
STRANGE = replace(EXPECTED, algorithm="sha3")
COMPARISON = Comparison(in_flight_from=YOUNG, in_flight_to=lambda: "2026-03-02")
RECORDING = replace(COMPARISON, record=True)
FRESH = replace(KNOWN, verified_at="2026-02-02")
BROKEN = replace(KNOWN, damaged=True)
MATCH, CHANGED, NEW, NOT_DUE = VerifyOutcome.MATCH, VerifyOutcome.CHANGED, VerifyOutcome.NEW, VerifyOutcome.NOT_DUE
HOLE = verified(REF, VerifyOutcome.UNREADABLE, code="UnknownAlgorithm")
FAULT = verified(REF, VerifyOutcome.LEDGER_FAULT, damaged="one; two")


def subject(*versions: Version, **fields: Any) -> KeyRecord:
    return KeyRecord(key="key", versions=versions, **fields)


def version(version_id: str, etag: str = "e", **digests: Known) -> Version:
    return replace(VERSION, version_id=version_id, etag=etag, digests=digests or VERSION.digests)


def wanted(
    standing: VerifyOutcome, checked: str | None, *claims: tuple[str, str], keep: bool = False, unread: Any = NOT_DUE
) -> dict[str, Any]:
    """A request to read, as shown() has it. claims: algorithm and origin of each digest."""
    return {"standing": standing, "checked": checked, "claims": [*claims], "keep": keep, "unread": unread}


def shown(found: Verified | ReadRequest) -> Any:
    if not isinstance(found, ReadRequest):
        return found
    claims = [(claim.algorithm, claim.origin) for claim in found.claims]
    return wanted(found.standing, found.checked, *claims, keep=found.keep, unread=found.unread)


def sized(recorded: int, origin: str) -> Verified:
    detail = {"algorithm": "size", "recorded": f"{recorded}", "found": "5", "origin": origin}
    return verified(REF, VerifyOutcome.MISMATCH, **detail)


LEDGERS, SUMS = ("sha256", "ledger"), ("sha256", "sums")
IMPORTED = EXPECTED.imported_at
V0 = replace(REF, version_id="v0", is_latest=False)


def test_listed_object_has_an_outcome_or_is_to_be_read() -> None:
    failures: dict[str, Any] = {}

    def row(
        name: str, expected: Any, *known: Version, judge: Comparison = COMPARISON, ref: Any = REF, **of: Any
    ) -> None:
        found = shown(judge.listed(ref, subject(*known, **of) if known or of else None))
        if found != expected:
            failures[name] = found

    expects: dict[str, Any] = {"expectations": (EXPECTED,)}
    proven = wanted(MATCH, IMPORTED, SUMS, keep=True)
    row("unknown key", verified(REF, NEW))
    row("unknown key, recorded", wanted(NEW, None, keep=True, unread=NEW), judge=RECORDING)
    row("changed", verified(OTHER, CHANGED), VERSION, ref=OTHER)
    row("record without digests", verified(REF, NEW), replace(VERSION, etag="other", digests={}))
    for name, judge in (("compared", COMPARISON), ("recorded", RECORDING)):
        row(f"known object, {name}", wanted(MATCH, OLD, LEDGERS), VERSION, judge=judge)
        row(f"new and proven by a manifest, {name}", proven, judge=judge, **expects)
        replaced = wanted(CHANGED, IMPORTED, SUMS, keep=judge is RECORDING, unread=CHANGED)
        row(f"changed, with a manifest, {name}", replaced, VERSION, judge=judge, ref=OTHER, **expects)
    for day, young in (("02-28", False), ("03-01", True), ("03-02", True), ("03-03", False)):
        ref = replace(REF, last_modified=f"2026-{day}")
        row(f"written on {day}", verified(ref, VerifyOutcome.IN_FLIGHT if young else NEW), ref=ref)
        row(f"known, written on {day}", wanted(MATCH, OLD, LEDGERS), VERSION, ref=ref)
    row("young and proven by a manifest", proven, ref=replace(REF, last_modified=YOUNG), **expects)
    two = version("null", sha256=FRESH, md5=replace(KNOWN, recorded_at="2026-01-15"))
    row("looked at longest ago", wanted(MATCH, "2026-01-15", LEDGERS, ("md5", "ledger")), two)
    row("last look", wanted(MATCH, "2026-02-02", LEDGERS), version("null", sha256=FRESH))
    row("old version and a manifest", verified(V0, NEW), version("v1"), ref=V0, **expects)
    row("current version without a record", verified(V0, CHANGED), version("v1"), ref=replace(V0, is_latest=True))
    broken = version("null", sha256=BROKEN)
    row("damaged", FAULT, broken, damage=("one", "two"))
    row("damaged, another ETag", replace(FAULT, etag="other"), broken, ref=OTHER, damage=("one", "two"))
    v1 = replace(REF, version_id="v1")
    row("sound beside damaged", wanted(MATCH, OLD, LEDGERS), broken, version("v1"), ref=v1, damage=("one",))
    row("expected size fits", proven, expectations=(replace(EXPECTED, size=5),))
    row("expected size differs", sized(6, "sums"), expectations=(replace(EXPECTED, size=6),))
    row("recorded size differs", sized(7, "ledger"), replace(VERSION, size=7))
    both = version("null", sha256=replace(KNOWN, source="s3"), md5=KNOWN)
    row("several makers", wanted(MATCH, OLD, ("sha256", "s3"), ("md5", "ledger"), SUMS), both, **expects)
    md5 = replace(COMPARISON, algorithms=["md5"])
    row("chosen algorithm", wanted(MATCH, OLD, ("md5", "ledger")), both, judge=md5)
    row("chosen algorithm is lacking", wanted(MATCH, OLD, LEDGERS), VERSION, judge=md5)
    for name, known, more in (
        ("unknown algorithm", [version("null", sha3=KNOWN)], {}),
        ("unknown algorithm and a manifest", [version("null", sha3=KNOWN)], expects),
        ("unknown algorithm of a manifest", [], {"expectations": (STRANGE,)}),
    ):
        row(name, HOLE, *known, **more)
    row("known object, unknown manifest", wanted(MATCH, OLD, LEDGERS), VERSION, expectations=(STRANGE,))
    assert not failures, failures


def test_versions_that_an_object_is_compared_with() -> None:
    table: list[tuple[str | None, list[Version], list[str]]] = [
        ("v1", [version("v1", "other"), version("null")], ["v1"]),
        ("v1", [version("v2"), version("null")], ["null"]),
        ("v1", [version("v2")], []),
        (None, [version("v2"), version("null")], ["null"]),
        (None, [version("v1"), version("v2"), version("v3", "other")], ["v1", "v2"]),
        ("null", [version("null", "other"), version("v1")], ["v1"]),
        ("v1", [replace(version("v1"), digests={}), version("null")], ["null"]),
    ]
    for listed, recorded, chosen in table:
        found = Comparison.versions(replace(REF, version_id=listed), subject(*recorded))
        assert [one.version_id for one in found] == chosen, (listed, recorded)


def test_listing_belies_a_deletion_after_the_slack_and_a_retirement_at_once() -> None:
    for fields, listed_at, detail in (
        ({"deleted_at": OLD}, "2026-01-01T00:15:00Z", None),
        ({"deleted_at": OLD}, "2026-01-01T00:15:01Z", {"deleted": OLD}),
        ({"retired_at": OLD}, "2026-01-01T00:00:00Z", None),
        ({"retired_at": OLD}, "2026-01-01T00:00:01Z", {"retired": OLD}),
        ({}, "2026-02-01T00:00:00Z", None),
    ):
        pair = Pair("key", REF, subject(VERSION, **fields), listed_at=listed_at)
        event = pair.listed_again()
        assert (None if event is None else event.detail) == detail, listed_at
        assert replace(pair, ref=replace(REF, is_latest=False)).listed_again() is None
        assert replace(pair, ref=None).listed_again() is None
        assert replace(pair, subject=None).listed_again() is None


def gone(outcome: VerifyOutcome, of: str | None = "v1", **detail: str) -> Verified:
    if of is None:
        return Verified(key="key", outcome=outcome, listed=False, detail=detail)
    name = None if of == "null" else of
    return Verified(key="key", outcome=outcome, listed=False, version_id=name, etag="e", size=5, detail=detail)


def test_object_that_only_the_ledger_has() -> None:
    failures: dict[str, Any] = {}

    def row(name: str, expected: Verified, *known: Version, of: Version | None = None, **fields: Any) -> None:
        pair = Pair("key", None, subject(*known, **fields), absent=True, version=of)
        settled = expected.outcome in (VerifyOutcome.DELETED, VerifyOutcome.RETIRED)
        if COMPARISON.absent(pair) != expected or (not fields.get("damage") and pair.is_settled != settled):
            failures[name] = COMPARISON.absent(pair)

    row("only noticed lately", gone(VerifyOutcome.IN_FLIGHT, None), noticed_at=YOUNG)
    row("expected by a manifest", gone(VerifyOutcome.MISSING, None), expectations=(EXPECTED,))
    row("null version", gone(VerifyOutcome.MISSING, "null"), VERSION)
    row("version of a deleted key", gone(VerifyOutcome.MISSING), of=version("v1"), deleted_at=OLD, retired_at=OLD)
    for seen, retired, deleted, outcome in (
        (OLD, None, None, VerifyOutcome.MISSING),
        (YOUNG, None, None, VerifyOutcome.IN_FLIGHT),
        (YOUNG, OLD, None, VerifyOutcome.RETIRED),
        (YOUNG, OLD, OLD, VerifyOutcome.DELETED),
    ):
        one = replace(version("v1"), first_seen=seen)
        row(f"key {outcome}", gone(outcome), VERSION, one, retired_at=retired, deleted_at=deleted)
        one = replace(one, retired_at=retired, removed_at=deleted)
        row(f"version {outcome}", gone(outcome), one, VERSION, of=one)
    broken, sound = version("v1", sha256=BROKEN), replace(version("v2"), removed_at=OLD)
    fault = gone(VerifyOutcome.LEDGER_FAULT, None, damaged="one; two")
    for name, expected, of in (
        ("damaged", fault, None),
        ("damaged version", fault, replace(broken, removed_at=OLD)),
        ("sound version of a damaged key", gone(VerifyOutcome.DELETED, "v2"), sound),
    ):
        row(name, expected, broken, sound, of=of, damage=("one", "two"), deleted_at=OLD)
    assert not failures, failures


def test_mismatch_is_the_ledgers_fault_when_its_history_has_another_digest() -> None:
    for name, digest, names, algorithm, expected in (
        ("history is right", "bb" * 32, ["sha256"], "sha256", MATCH),
        ("neither", "cc" * 32, ["sha256"], "sha256", VerifyOutcome.LEDGER_FAULT),
        ("another digest left", "bb" * 32, ["sha256", "md5"], "sha256", VerifyOutcome.LEDGER_FAULT),
        ("other algorithm", "bb" * 32, ["sha256"], "md5", VerifyOutcome.MISMATCH),
        ("history agrees", SHA, ["sha256"], "sha256", VerifyOutcome.MISMATCH),
        ("size", "cc" * 32, ["sha256"], "size", VerifyOutcome.LEDGER_FAULT),
    ):
        found = verified(REF, VerifyOutcome.MISMATCH, algorithm=algorithm, found="bb" * 32)
        row = replace(VERSION, digests=dict.fromkeys(names, KNOWN))
        detail = {"algorithm": "sha256", "digest": digest}
        line = Event(key="key", at=OLD, what="recorded", version_id="null", etag="e", size=5, detail=detail)
        assert cross_checked(found, [row], [line]).outcome is expected, name
