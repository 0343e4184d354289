"""The JSON lines of a run folder's files as they are written, and the functions that turn them into the model and back.

A fact that is missing stands on a line as {"unread": error} or {"skipped": reason}. msgspec tells two kinds of objects
in one place apart only by a tag. So a record has the members of all kinds, and leaves out those without a value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType, defstruct
from msgspec.structs import asdict, fields, replace

from auditor.model.access import ObjectAccess, Verdict, listed
from auditor.model.finding import Finding, Judgement
from auditor.model.json_codec import JsonError, decode, encode_line
from auditor.model.object import (
    Acl,
    AnyVersion,
    DormantAcl,
    Grant,
    Head,
    ObjectVersion,
    Outcome,
    PartialHead,
    ReadAt,
    Skipped,
    Unread,
    Whole,
)
from auditor.model.reuse import NamesOnly
from auditor.model.run_lines import (
    FactState,
    FindingLine,
    ObjectLine,
    Standing,
    UndecidedLine,
    first_prefix,
    has_public_grant,
    is_public,
    state_of,
)

T = TypeVar("T")

_KEPT: Final = 256
"""Number of accesses, and of ACLs, whose members of a line are kept: most objects of a bucket share a few."""


class FactRecord(Struct, frozen=True, kw_only=True):
    """The reason why a fact was not read. A subclass adds the members of the fact."""

    unread: Unread | UnsetType = UNSET
    skipped: str | UnsetType = UNSET


class AclRecord(FactRecord, frozen=True, kw_only=True):
    """The `acl` of an object's line: the owner and the grants, or why the ACL was not read."""

    owner: str | UnsetType = UNSET
    grants: tuple[Grant, ...] | UnsetType = UNSET


_HEAD_FIELDS: Final = [
    (one.name, dict[str, str] | list[str] | UnsetType if one.name == "metadata" else one.type | UnsetType, UNSET)
    for one in fields(Head)
]
HeadRecord: Final[Any] = defstruct(
    "HeadRecord",
    [("partial", Literal[True] | UnsetType, UNSET), *_HEAD_FIELDS],
    bases=(FactRecord,),
    frozen=True,
)
"""The `head` of an object's line: the members of Head, or why the HEAD was not read. `partial` stands before those of a
HEAD of which some members were not read. `metadata` is a list of names unless the run stores the values."""


class ObjectRecord(Struct, frozen=True):
    """A line of the `objects` files, in the order of its members: those of ObjectLine, and flat ones for SQL that
    repeat others.

    A query engine that knows the nested members only by examples reads `{"unread": ..}` as an ACL without grants. No
    flat member has a value for a fact that was not read: it is null, or it says so. They are not read back.
    """

    key: str
    prefix1: str
    version_id: str | None
    etag: str
    size: Whole
    last_modified: str
    storage_class: str
    owner: str | None
    acl_state: FactState
    public_grant: bool | None
    acl: AclRecord
    head_state: FactState
    head: HeadRecord
    outcome: Outcome
    changed: bool
    latest: bool
    public: bool | None
    verdict: Verdict | None
    audience: tuple[str, ...]
    reasons: tuple[str, ...]
    rules: tuple[str, ...]
    hashed: bool | None
    since: str | None
    exception: str | None
    read_at: ReadAt | UnsetType = UNSET
    dormant: DormantAcl | UnsetType = UNSET


def object_line(
    judgement: Judgement, hashed: bool | None, keep_metadata: bool = False, standing: Standing | None = None
) -> ObjectRecord:
    """Return the line of an object for the `objects` files of a run folder.

    hashed: True if the ledger has the object's digests; None if there is no ledger. keep_metadata: True to write the
    values of user metadata too, not only the names. standing: the history of the verdict, unless it is private.
    """
    evidence = judgement.evidence
    ref, head = evidence.ref, evidence.head
    key, owner, findings = ref.key, evidence.owner, judgement.findings
    acl_state, public_grant, acl = _acl_members(evidence.acl)
    verdict, audience, reasons = access_texts(None if evidence.vanished else judgement.access)
    return ObjectRecord(
        key,
        first_prefix(key),
        ref.version_id,
        ref.etag,
        ref.size,
        ref.last_modified,
        ref.storage_class,
        owner if isinstance(owner, str) else None,
        acl_state,
        public_grant,
        acl,
        state_of(head),
        _head_member(head, keep_metadata),
        evidence.outcome,
        evidence.changed,
        ref.is_latest,
        is_public(verdict),
        verdict,
        audience,
        reasons,
        tuple(sorted({finding.rule for finding in findings})) if findings else (),
        hashed,
        standing.since if standing else None,
        standing.exception if standing else None,
        evidence.read_at or UNSET,
        evidence.dormant or UNSET,
    )


@lru_cache(_KEPT)
def access_texts(access: ObjectAccess | None) -> tuple[Verdict | None, tuple[str, ...], tuple[str, ...]]:
    """Return the members of an object's line on its access: verdict, audience and reasons. access: None if the object
    was deleted after it was listed.
    """
    if access is None:
        return None, (), ()
    access = listed(access)
    return access.verdict, tuple(one.text for one in access.audience), tuple(one.text for one in access.reasons)


@lru_cache(_KEPT)
def _acl_members(fact: Acl | Unread | Skipped) -> tuple[FactState, bool | None, AclRecord]:
    if isinstance(fact, Acl):
        record = AclRecord(owner=fact.owner, grants=fact.grants)
    else:
        record = AclRecord(unread=fact) if isinstance(fact, Unread) else AclRecord(skipped=fact.reason)
    return state_of(fact), has_public_grant(fact), record


def _head_member(fact: Head | Unread | Skipped, keep_metadata: bool) -> Any:
    """Return the `head` of an object's line: a HeadRecord, or a Head, which is written with the same members."""
    if not isinstance(fact, Head):
        return HeadRecord(unread=fact) if isinstance(fact, Unread) else HeadRecord(skipped=fact.reason)
    if type(fact) is PartialHead:
        known = {name: getattr(fact, name) for name in Head.__struct_fields__ if name not in fact.unread}
        return HeadRecord(partial=True, **known)
    if keep_metadata and isinstance(fact.metadata, dict):
        return fact
    names = sorted(fact.metadata)
    return replace(fact, metadata=names or {} if keep_metadata else names)  # no names: no values are lacking


def read_line(kind: type[T], line: bytes) -> T:
    """Return a line of a run folder as the type `kind`: ObjectLine, another of run_lines, or one with some of its
    members. Raises JsonError.
    """
    if kind is ObjectLine:
        return object_of(decode(ObjectRecord, line))  # type: ignore[return-value]
    return decode(kind, line)


def object_of(line: ObjectRecord) -> ObjectLine:
    """Return the object of a line. Raises JsonError if its ACL or HEAD lacks a member.

    The metadata of its Head has names only unless the run keeps the values. Asking for a value raises NotStored.
    """
    return ObjectLine(
        line.key,
        line.version_id,
        line.etag,
        line.size,
        line.last_modified,
        line.storage_class,
        line.owner,
        _acl_of(line.acl),
        _head_of(line.head),
        line.outcome,
        line.changed,
        line.verdict,
        line.rules,
        line.hashed,
        line.latest,
        line.audience,
        line.reasons,
        line.since,
        line.exception,
        None if line.read_at is UNSET else line.read_at,
        None if line.dormant is UNSET else line.dormant,
    )


def _acl_of(record: AclRecord) -> Acl | Unread | Skipped:
    if missing := _missing(record):
        return missing
    if record.owner is UNSET or record.grants is UNSET:
        raise JsonError("lacks a member", "acl")
    return Acl(record.owner, record.grants)


def _head_of(record: Any) -> Head | Unread | Skipped:
    if missing := _missing(record):
        return missing
    names = Head.__struct_fields__
    known = {name: value for name in names if (value := getattr(record, name)) is not UNSET}
    if record.partial is True:
        known.pop("metadata", None)
    if not known.keys() >= (_ALWAYS if record.partial is True else frozenset(names)):
        raise JsonError("lacks a member", "head")
    if record.partial is True:
        return PartialHead(**known, unread=frozenset(names) - known.keys())
    if isinstance(record.metadata, list):
        known["metadata"] = NamesOnly(record.metadata)
    return Head(**known)


_ALWAYS: Final = {"etag", "content_length"}
"""The members that a HEAD has even if it is partial. Without `partial`, a missing member is damage, not a header that
S3 did not send, which is null."""


def _missing(record: FactRecord) -> Unread | Skipped | None:
    """Return the reason why the fact was not read, even if the line has members of the fact too: then it is damaged."""
    if record.unread is not UNSET:
        return record.unread
    return None if record.skipped is UNSET else Skipped(record.skipped)


def finding_line(finding: Finding, verdict: Verdict | None = None, standing: Standing | None = None) -> FindingLine:
    """Return the line of a finding for the `findings` files of a run folder. verdict: the verdict of the object; None
    for a finding on the bucket. standing: the history of the finding.
    """
    since, exception = (standing.since, standing.exception) if standing else (None, None)
    return FindingLine(**asdict(finding), verdict=verdict, since=since, exception=exception)


def undecided_line(judgement: Judgement) -> UndecidedLine | None:
    """Return the line of an undecided object for the `undecided` files of a run folder; None if the object is not
    undecided.
    """
    evidence = judgement.evidence
    if evidence.outcome is not Outcome.UNDECIDED:
        return None
    ref = evidence.ref
    return UndecidedLine(ref.key, ref.version_id, evidence.unread, tuple(sorted(set(judgement.undecided))))


def routed_line(ref: AnyVersion) -> bytes:
    """Return the line, as JSON bytes, that a run folder's `routed` files have for an object left to S3 Batch
    Operations.
    """
    return encode_line(ObjectVersion(ref.key, ref.version_id, ref.etag, ref.size))


def encode_object(
    judgement: Judgement, hashed: bool | None, keep_metadata: bool = False, standing: Standing | None = None
) -> bytes:
    """Return object_line() as JSON bytes with a newline."""
    return encode_line(object_line(judgement, hashed, keep_metadata, standing))


def encode_finding(finding: Finding, verdict: Verdict | None = None, standing: Standing | None = None) -> bytes:
    """Return finding_line() as JSON bytes with a newline."""
    return encode_line(finding_line(finding, verdict, standing))
