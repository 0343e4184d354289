"""Compare an object's entry in the listing with the ledger's record of its key. The result is an outcome or, if only
the object's bytes can decide, a request to read the object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.ledger.base import S3, Event, KeyRecord, Version
from auditor.ledger.matching import NULL
from auditor.ledger.seals import contradicted
from auditor.model.digest import ALGORITHMS, VerifyOutcome
from auditor.model.object import ObjectRef
from auditor.verify.merge import Pair
from auditor.verify.outcome import Verified

LEDGER: Final = "ledger"
"""The `origin` of a digest that the auditor computed. For other digests, the origin is `s3` or the name of a
manifest."""


class ExpectedDigest(Struct, frozen=True):
    """A digest that the object's bytes must have, according to the ledger or to an imported checksum manifest.

    version: the ledger's version that has the digest; None for a manifest's digest. imported_at: time of the manifest's
    import; "" for a ledger's digest.
    """

    algorithm: str
    digest: str
    origin: str
    version: Version | None = None
    imported_at: str = ""


class ReadRequest(Struct, frozen=True, kw_only=True):
    """A request to read an object again, because only its bytes can decide its outcome."""

    ref: ObjectRef
    standing: VerifyOutcome
    """The outcome that the object gets if its bytes have all expected digests."""
    claims: tuple[ExpectedDigest, ...]
    """The digests that the object's bytes must have."""
    checked: str | None = None
    """Time since which the object was not checked; None if no digest is expected. This is the oldest time at which one
    of the ledger's expected digests was last verified or recorded. If all expected digests are from manifests, it is
    the time of the first import."""
    keep: bool = False
    """True to record the computed digests in the ledger, unless an expected digest is wrong."""
    unread: VerifyOutcome = VerifyOutcome.NOT_DUE
    """The outcome that the object gets if it is not due in this run, and therefore not read."""

    def compare(self, digests: Mapping[str, str]) -> Verified:
        """Return the outcome MISMATCH for the first wrong digest; return `standing` if all expected digests are right.

        digests: the digests of the bytes that were read, by algorithm.
        """
        for claim in self.claims:
            found = digests[claim.algorithm]
            if found != claim.digest.lower():
                return self.differs(claim, found)
        return verified(self.ref, self.standing)

    def differs(self, claim: ExpectedDigest, found: str) -> Verified:
        return _mismatch(self.ref, claim.algorithm, claim.digest.lower(), found, claim.origin)


class Comparison(Struct, frozen=True, kw_only=True):
    """Compares listing entries with the ledger's records, by the settings of one run. It calls neither S3 nor the
    ledger.

    in_flight_from, in_flight_to: the time range (ISO 8601 in UTC) of recent writes: the ledger may not have the digest
    of an object that was written in this range. A time after the range comes from a wrong clock. algorithms: the
    digests to compare; None for all. If the ledger has no digest of an object by these algorithms, all digests of the
    object are compared. record: True to read new and changed objects too, and record their digests.
    """

    in_flight_from: str
    in_flight_to: Callable[[], str]
    algorithms: Collection[str] | None = None
    record: bool = False

    def listed(self, ref: ObjectRef, subject: KeyRecord | None) -> Verified | ReadRequest:
        """Return the outcome of a listed object, or a request to read the object.

        subject: the ledger's record of the object's key; None if the ledger does not know the key.
        """
        versions = self.versions(ref, subject)
        if subject is not None and is_damaged(subject) and not (versions and all(map(is_sound, versions))):
            return verified(ref, VerifyOutcome.LEDGER_FAULT, damaged="; ".join(subject.damage))
        expected = subject.expectations if subject is not None and ref.is_latest else ()
        # A young object with a digest from a manifest is not in flight: the ledger has that digest already.
        if not versions and not expected and self.in_flight(ref.last_modified):
            return verified(ref, VerifyOutcome.IN_FLIGHT)
        sizes = [(one.size, LEDGER) for one in versions] + [(one.size, one.origin) for one in expected]
        for size, origin in sizes:
            if size not in (None, ref.size):
                return _mismatch(ref, "size", str(size), str(ref.size), origin)
        own = [claim for version in versions for claim in self._claims(version)]
        claims = own + [
            ExpectedDigest(one.algorithm, one.digest, one.origin, imported_at=one.imported_at)
            for one in expected
            if one.algorithm in ALGORITHMS
        ]
        if (versions and not own) or (expected and not claims):
            return verified(ref, VerifyOutcome.UNREADABLE, code="UnknownAlgorithm")
        return self._read_request(ref, _standing(ref, subject, versions), claims)

    @staticmethod
    def versions(ref: ObjectRef, subject: KeyRecord | None) -> list[Version]:
        """Return the versions in the ledger whose digests a listed object must have, by the same rule as
        ledger.matching.match.

        First choice: the version with the object's version ID, whatever its ETag, because a version never changes.
        Second choice: the versions with the object's ETag and the version ID NULL. Third choice, only if the listing
        gives no version ID: all versions with the object's ETag.
        """
        known = [] if subject is None else [version for version in subject.versions if version.digests]
        wanted = ref.version_id or NULL
        if wanted != NULL and (own := [version for version in known if version.version_id == wanted]):
            return own
        fitting = [version for version in known if version.etag == ref.etag]
        null = [version for version in fitting if version.version_id == NULL]
        return null or (fitting if wanted == NULL else [])

    def _read_request(
        self, ref: ObjectRef, standing: VerifyOutcome, claims: list[ExpectedDigest]
    ) -> Verified | ReadRequest:
        if not claims and not self.record:
            return verified(ref, standing)
        proven = standing is VerifyOutcome.NEW and bool(claims)
        return ReadRequest(
            ref=ref,
            standing=VerifyOutcome.MATCH if proven else standing,
            claims=tuple(claims),
            checked=_checked(claims),
            keep=proven or (self.record and standing is not VerifyOutcome.MATCH),
            unread=VerifyOutcome.NOT_DUE if proven or standing is VerifyOutcome.MATCH else standing,
        )

    def absent(self, pair: Pair) -> Verified:
        """Return the outcome of an object that the ledger has and the listing lacks."""
        subject, version = pair.subject, pair.version
        if subject is None:
            raise ValueError("the ledger does not know the key")
        if is_damaged(subject) and not (version and is_sound(version)):
            fault = VerifyOutcome.LEDGER_FAULT
            return Verified(key=pair.key, outcome=fault, listed=False, detail={"damaged": "; ".join(subject.damage)})
        last = version or next((one for one in reversed(subject.versions) if one.digests), None)
        outcome = VerifyOutcome.MISSING
        if pair.is_told:
            outcome = VerifyOutcome.DELETED
        elif pair.is_settled:
            outcome = VerifyOutcome.RETIRED
        elif self.in_flight(last.first_seen if last is not None else subject.noticed_at or ""):
            outcome = VerifyOutcome.IN_FLIGHT
        if last is None:
            return Verified(key=pair.key, outcome=outcome, listed=False)
        name = None if last.version_id == NULL else last.version_id
        return Verified(key=pair.key, outcome=outcome, listed=False, version_id=name, etag=last.etag, size=last.size)

    def in_flight(self, written: str) -> bool:
        """True if this time (ISO 8601) is so recent that the ledger may not have the digest of an object that was
        written then.
        """
        return self.in_flight_from <= written <= self.in_flight_to()

    def _claims(self, version: Version) -> Iterator[ExpectedDigest]:
        computable = {name: known for name, known in version.digests.items() if name in ALGORITHMS}
        chosen = {name: known for name, known in computable.items() if name in (self.algorithms or ())}
        for name, known in (chosen or computable).items():
            yield ExpectedDigest(name, known.digest, S3 if known.source == S3 else LEDGER, version)


def is_damaged(subject: KeyRecord) -> bool:
    """True if a digest in the ledger's record is damaged, and the key's history had no copy to replace it."""
    return not all(map(is_sound, subject.versions))


def is_sound(version: Version) -> bool:
    return not any(known.damaged for known in version.digests.values())


def verified(ref: ObjectRef, outcome: VerifyOutcome, **detail: str) -> Verified:
    """Return the listed object with its outcome and with details such as `algorithm` and `code`."""
    return Verified(
        key=ref.key, outcome=outcome, version_id=ref.version_id, etag=ref.etag, size=ref.size, detail=detail
    )


def _mismatch(ref: ObjectRef, algorithm: str, recorded: str, found: str, origin: str) -> Verified:
    detail = {"algorithm": algorithm, "recorded": recorded, "found": found, "origin": origin}
    return verified(ref, VerifyOutcome.MISMATCH, **detail)


def _standing(ref: ObjectRef, subject: KeyRecord | None, versions: list[Version]) -> VerifyOutcome:
    """Return the outcome that a listed object has if all its expected digests are right: MATCH, CHANGED or NEW.

    versions: the versions in the ledger whose digests the object must have.
    """
    if versions:
        return VerifyOutcome.MATCH
    known = subject is not None and any(version.digests for version in subject.versions)
    return VerifyOutcome.CHANGED if known and ref.is_latest else VerifyOutcome.NEW


def cross_checked(found: Verified, versions: Sequence[Version], lines: Sequence[Event]) -> Verified:
    """Return the mismatch `found`, unless the key's history shows that the ledger's row is wrong, not the object.

    If the history has the digest that the object's bytes have, return MATCH. If the history contradicts the row in any
    other way, return LEDGER_FAULT. lines: the events of the history.
    """
    for version in versions:
        for algorithm in version.digests:
            told = contradicted(lines, version, algorithm)
            if told is None or found.detail.get("algorithm") not in (algorithm, "size"):
                continue
            right = told == found.detail["found"] and len(version.digests) == 1
            return replace(found, outcome=VerifyOutcome.MATCH if right else VerifyOutcome.LEDGER_FAULT)
    return found


def _checked(claims: list[ExpectedDigest]) -> str | None:
    """Return since when the object was not checked (ReadRequest.checked): the oldest time at which one of the ledger's
    expected digests was last verified or recorded.

    If all expected digests are from manifests, return the time of the first import; None if no digest is expected.
    """
    ours = [(claim.version, claim.algorithm) for claim in claims if claim.version is not None]
    times = [version.digests[algorithm].checked_at for version, algorithm in ours]
    return min(times or [claim.imported_at for claim in claims], default=None)
