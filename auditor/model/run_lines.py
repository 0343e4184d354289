"""The types of three kinds of JSON lines in a run folder's files: a listed object, a finding, an undecided object."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.flat_members import FactState, first_prefix, has_public_grant, is_public, state_of
from auditor.model.json_text import JsonError, as_object, items, typed
from auditor.model.object import (
    MEMBERS,
    NO_LEDGER,
    PARTIAL,
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
from auditor.model.unstored import UNSTORED_DIGESTS, NamesOnly


def _acl(value: Any) -> Acl | Unread | Skipped:
    return _missing(value) or typed(Acl, value)


def _head(value: Any) -> Head | Unread | Skipped:
    """Read the `head` of an object's line. If the line has only the names of the metadata, the Head's metadata has no
    values.
    """
    if missing := _missing(value):
        return missing
    if value.get(PARTIAL) is True:
        known = {name: given for name, given in value.items() if name in MEMBERS - {"metadata"}}
        return replace(typed(PartialHead, known), unread=MEMBERS - known.keys())
    metadata = value.get("metadata")
    if not isinstance(metadata, list):
        return typed(Head, value)
    names = NamesOnly(items(metadata, _name))
    return replace(typed(Head, {**value, "metadata": {}}), metadata=names)


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise JsonError("is not text")
    return value


def _missing(value: Any) -> Unread | Skipped | None:
    if "unread" in as_object(value):
        return typed(Unread, value["unread"])
    return Skipped(value["skipped"]) if isinstance(value.get("skipped"), str) else None


class ObjectLine(Struct, frozen=True):
    """One JSON line of the `objects` files in a run folder: the facts and results of one listed object version.

    A line also has the members of flat_members.NAMES, which repeat others for SQL. They are not read back: the
    properties of the same names are made from the members that they repeat.
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
    acl: Annotated[Acl | Unread | Skipped, _acl]
    head: Annotated[Head | Unread | Skipped, _head]
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
