"""The lines of a run folder's files: a listed object, a finding, an undecided object; and the history of a finding or a
verdict: since when it holds, whether it is new, and the exception of the configuration that covers it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from auditor.model.access import Reason, ReasonCode, Verdict
from auditor.model.finding import Judgement, Severity
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
from auditor.model.reuse import UNSTORED_DIGESTS


class FactState(StrEnum):
    """The state of a fact of one object: it was read, could not be read, or was not asked for. PARTIAL: a HEAD of which
    some members were read; the line leaves the others out.
    """

    READ = "read"
    PARTIAL = "partial"
    UNREAD = "unread"
    SKIPPED = "skipped"


_STATES: Final = {
    Acl: FactState.READ,
    Head: FactState.READ,
    PartialHead: FactState.PARTIAL,
    Unread: FactState.UNREAD,
    Skipped: FactState.SKIPPED,
}


def state_of(fact: Acl | Head | Unread | Skipped) -> FactState:
    return _STATES[type(fact)]


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
    """The start of the first run in the unbroken series of complete runs in which the object was at least this open.
    None if the object is private."""
    exception: str | None
    """ID of the exception that covers the verdict."""
    read_at: ReadAt | None = None
    """When and where the ACL or the HEAD was read that was not read along with the listing; most lines lack it."""
    dormant: DormantAcl | None = None
    """The part of the stored ACL that counts for nothing today, as S3 Inventory shows it; lines without one lack it."""

    def __repr__(self) -> str:
        name = repr(self.key) if self.version_id is None else f"{self.key!r}, version_id={self.version_id!r}"
        verdict = self.verdict.value if self.verdict else self.outcome.value
        return f"ObjectLine({name}, {verdict}, audience={list(self.audience)}, rules={list(self.rules)})"

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
    """One JSON line of the `findings` files in a run folder: one finding.

    fingerprint: the same in each run for the same bucket, key, rule, grantee and permission. key, verdict: of the
    object; None for a finding on the bucket. grantee, permission: of the grant; None for a finding without a grant.
    since: the start of the first run in the unbroken series of complete runs that have the finding. exception: ID of
    the exception that covers the finding.
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
    these facts, each with its API operation and error code. rules: IDs of the rules that could not be judged without
    them.
    """

    key: str
    version_id: str | None
    unread: tuple[Unread, ...]
    rules: tuple[str, ...]


WIDTH: Final = {verdict: width for width, verdict in enumerate(reversed(Verdict))}
"""The width of each verdict: a number that is larger, the more requesters the verdict lets in."""
_UNREAD: Final = tuple(
    f"{code}" for code in ReasonCode if code.value.endswith("-unread") or code is ReasonCode.OWNER_UNKNOWN
)
"""The codes of the reasons that stand for a fact that was not read."""


class Standing(Struct, frozen=True):
    """The history of one finding, or of one object's verdict: its age and newness from the last complete run, and the
    exception that covers it from the configuration.
    """

    since: str | None
    """The start of the first run in the unbroken series of complete runs that have the finding or verdict, in ISO 8601
    in UTC, to the second. It is the start of this run if the last run does not have the finding or verdict."""
    new: bool | None
    """True: the last complete run of the target looked for the finding or verdict, and did not have it. False: that run
    had it. None: there is no such run to compare with, or that run could not tell."""
    exception: str | None = None
    """ID of the exception that covers the finding or verdict; None if there is none."""


class Recorded(Struct, frozen=True):
    """The results of judging one object, and their history. standing: of the verdict; None if the object is private or
    was deleted after it was listed. findings: the history of each finding of the judgement, in the same order.
    """

    judgement: Judgement
    standing: Standing | None = None
    findings: tuple[Standing, ...] = ()


class Seen(Struct, frozen=True):
    """The results of one object, as the line of a run's object has them: the part that two runs can compare."""

    outcome: Outcome
    verdict: Verdict | None
    """None if the object was deleted after it was listed."""
    rules: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    since: str | None = None
    exception: str | None = None

    @property
    def there(self) -> bool:
        """True unless the object was deleted after it was listed."""
        return self.verdict is not None and self.outcome is not Outcome.VANISHED

    @property
    def open(self) -> bool:
        """True if the object is there, and is not private."""
        return self.there and self.verdict is not Verdict.PRIVATE

    @property
    def told(self) -> bool:
        """True if the run could decide on the verdict: no deciding fact was unread."""
        if self.verdict is not Verdict.UNKNOWN:
            return True
        return self.outcome is not Outcome.UNDECIDED and not any(text.startswith(_UNREAD) for text in self.reasons)

    @property
    def plain(self) -> bool:
        """True if the object is unremarkable: it was read or is gone, is not open, and has no finding."""
        return not (self.open or self.rules or self.outcome is Outcome.UNDECIDED)


class PastObject(Struct, frozen=True):
    """One object version of a run: its results and findings."""

    key: str
    version_id: str | None
    seen: Seen
    findings: tuple[FindingLine, ...] = ()


def seen_of(judgement: Judgement, exception: str | None) -> Seen:
    """Return the results of a judged object, as its line will have them but for their age. exception: ID of the one
    that covers the verdict; None if none does.
    """
    access = None if judgement.evidence.vanished else judgement.access
    return Seen(
        judgement.evidence.outcome,
        access.verdict if access else None,
        tuple(finding.rule for finding in judgement.findings),
        tuple(map(_text, access.reasons)) if access else (),
        exception=exception,
    )


def _text(reason: Reason) -> str:
    return reason.text
