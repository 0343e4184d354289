"""The types of three kinds of JSON lines in a run folder's files: a listed object, a finding, an undecided object."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.object import (
    NO_LEDGER,
    PUBLIC_GROUPS,
    Acl,
    DormantAcl,
    Evidence,
    Head,
    ObjectRef,
    Outcome,
    PartialHead,
    ReadAt,
    Skipped,
    Unread,
)
from auditor.model.unstored import UNSTORED_DIGESTS


class FactState(StrEnum):
    """The state of a fact of one object: it was read, could not be read, or was not asked for. PARTIAL: a HEAD of which
    some members were read; the line leaves the others out.
    """

    READ = "read"
    PARTIAL = "partial"
    UNREAD = "unread"
    SKIPPED = "skipped"


def state_of(fact: Acl | Head | Unread | Skipped) -> FactState:
    if isinstance(fact, Unread):
        return FactState.UNREAD
    if isinstance(fact, PartialHead):
        return FactState.PARTIAL
    return FactState.SKIPPED if isinstance(fact, Skipped) else FactState.READ


def has_public_grant(acl: Acl | Unread | Skipped) -> bool | None:
    """Return True if the ACL has a grant to everyone or to any account; None if the ACL was not read."""
    if not isinstance(acl, Acl):
        return None
    return any(grant.grantee in PUBLIC_GROUPS for grant in acl.grants)


def is_public(verdict: Verdict | None) -> bool | None:
    """Return True if anyone or any account can reach the object; None if that is unknown, or if the object is gone."""
    return None if verdict in (None, Verdict.UNKNOWN) else verdict is Verdict.EXPOSED


def first_prefix(key: str) -> str:
    """Return the key up to its first slash, with the slash; "" if it has none."""
    return key[: key.find("/") + 1]


class ObjectLine(Struct, frozen=True):
    """One JSON line of the `objects` files in a run folder: the facts and results of one listed object version.

    The line also has members that repeat others for SQL. They are not read back: the properties of the same names are
    made from the members that they repeat.
    """

    key: str
    version_id: str | None
    etag: str
    """The ETag without quotes."""
    size: int
    """Size in bytes."""
    last_modified: str
    """S3's LastModified: ISO 8601 in UTC, to the second."""
    storage_class: str
    owner: str | None
    """Canonical ID of the owner; None if it is unknown."""
    acl: Acl | Unread | Skipped
    head: Head | Unread | Skipped
    """The metadata of this Head has names only unless the run keeps the values. Asking for a value raises NotStored."""
    outcome: Outcome
    changed: bool
    """True if HEAD's ETag differs from the listing's."""
    verdict: Verdict | None
    """The verdict; None if the object was deleted after it was listed."""
    rules: tuple[str, ...]
    """IDs of the rules that have a finding on the object."""
    hashed: bool | None
    """True if the ledger has the object's digests, False if not; None if the run has no ledger."""
    latest: bool
    """False if the version is not the current one of its key."""
    audience: tuple[str, ...]
    """Each audience that gets in, in the form of Audience.text."""
    reasons: tuple[str, ...]
    """The reasons of the verdict, in the form of Reason.text."""
    since: str | None
    """Since when the object has been at least this open: the start of the first of an unbroken row of complete runs
    that say so. None if the object is private."""
    exception: str | None
    """ID of the exception that covers the verdict."""
    read_at: ReadAt | None = None
    """When and where the ACL or the HEAD was read that was not read along with the listing; most lines lack it."""
    dormant: DormantAcl | None = None
    """The part of the stored ACL that counts for nothing today, as S3 Inventory shows it; lines without one lack it."""

    @property
    def prefix1(self) -> str:
        """The key up to its first slash, with the slash; "" if it has none."""
        return first_prefix(self.key)

    @property
    def acl_state(self) -> FactState:
        return state_of(self.acl)

    @property
    def public_grant(self) -> bool | None:
        """True if the ACL has a grant to everyone or to any account; None if the ACL was not read."""
        return has_public_grant(self.acl)

    @property
    def head_state(self) -> FactState:
        return state_of(self.head)

    @property
    def public(self) -> bool | None:
        """True if anyone, or any account, can reach the object; None if that is unknown, or if the object is gone."""
        return is_public(self.verdict)

    @property
    def evidence(self) -> Evidence:
        """The facts of the object that the line has. The line has no digests."""
        ref = ObjectRef(
            self.key,
            self.etag,
            self.size,
            self.last_modified,
            self.version_id,
            self.storage_class,
            self.owner,
            self.latest,
        )
        digests = NO_LEDGER if self.hashed is None else UNSTORED_DIGESTS
        vanished = self.outcome is Outcome.VANISHED
        return Evidence(ref, self.acl, self.head, vanished, self.changed, digests, self.read_at, self.dormant)


class FindingLine(Struct, frozen=True):
    """One JSON line of the `findings` files in a run folder: one finding. key, verdict: those of the object; None for a
    finding on the bucket. since: the start of the first of an unbroken row of complete runs that have the finding.
    exception: ID of the exception that covers the finding.
    """

    fingerprint: str
    rule: str
    severity: Severity
    key: str | None
    version_id: str | None
    grantee: str | None
    permission: str | None
    message: str
    verdict: Verdict | None
    since: str | None
    exception: str | None


class UndecidedLine(Struct, frozen=True):
    """One JSON line of the `undecided` files in a run folder: an object with facts that could not be read. unread:
    these facts. rules: IDs of the rules that could not be judged without them.
    """

    key: str
    version_id: str | None
    unread: tuple[Unread, ...]
    rules: tuple[str, ...]
