"""Make the JSON lines of a run folder's files from judgements, and encode them."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import Any, Final

from auditor.model.access import ObjectAccess, Verdict
from auditor.model.audiences import listed
from auditor.model.finding import Finding, Judgement
from auditor.model.flat_members import first_prefix, has_public_grant, is_public, state_of
from auditor.model.json_text import plain
from auditor.model.object import (
    PARTIAL,
    Acl,
    AnyVersion,
    DormantAcl,
    Head,
    Outcome,
    PartialHead,
    ReadAt,
    Skipped,
    Unread,
)
from auditor.model.run_lines import FindingLine, UndecidedLine
from auditor.model.standing import Standing

HEAD_NAMES: Final = Head.__struct_fields__
_HEAD_VALUES: Final = attrgetter(*HEAD_NAMES)
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def encode_line(line: dict[str, Any]) -> bytes:
    """Return a line of JSON in UTF-8 with its newline. Lone surrogates, which UTF-8 cannot hold, are escaped."""
    try:
        return _encode(line).encode() + b"\n"
    except UnicodeEncodeError:
        return _encode_ascii(line).encode() + b"\n"


def object_line(
    judgement: Judgement, hashed: bool | None, keep_metadata: bool = False, standing: Standing | None = None
) -> dict[str, Any]:
    """Return the line of one S3 object for the `objects` files of a run folder, as a dict with the fields of
    ObjectLine, and the flat members.

    hashed: True if the ledger has the object's digests; None if there is no ledger. keep_metadata: True to write the
    values of user metadata too, not only the names. standing: the history of the verdict, unless it is private.
    """
    evidence = judgement.evidence
    ref = evidence.ref
    access = None if evidence.vanished else judgement.access
    return {
        "key": ref.key,
        "prefix1": first_prefix(ref.key),
        "version_id": ref.version_id,
        "etag": ref.etag,
        "size": ref.size,
        "last_modified": ref.last_modified,
        "storage_class": ref.storage_class,
        "owner": evidence.owner if isinstance(evidence.owner, str) else None,
        **acl_members(evidence.acl),
        "head_state": state_of(evidence.head).value,
        "head": _head(evidence.head, keep_metadata),
        "outcome": evidence.outcome.value,
        "changed": evidence.changed,
        "latest": ref.is_latest,
        "public": is_public(access.verdict if access else None),
        **access_members(access),
        "rules": sorted({finding.rule for finding in judgement.findings}),
        "hashed": hashed,
        **standing_members(standing),
        **read_at_member(evidence.read_at),
        **dormant_member(evidence.dormant),
    }


def read_at_member(read_at: ReadAt | None) -> dict[str, Any]:
    """Return the member `read_at` of an object's line; no member if all facts were read along with the listing."""
    return {} if read_at is None else {"read_at": plain(read_at)}


def dormant_member(dormant: DormantAcl | None) -> dict[str, Any]:
    """Return the member `dormant` of an object's line; no member if no hidden grant is known."""
    return {} if dormant is None else {"dormant": {"acl": acl_fact(dormant.acl), "at": dormant.at}}


def access_members(access: ObjectAccess | None) -> dict[str, Any]:
    """Return the members of an object's line on its access: verdict, audience and reasons. access: None if the object
    was deleted after it was listed.
    """
    if access is None:
        return {"verdict": None, "audience": [], "reasons": []}
    access = listed(access)
    return {
        "verdict": access.verdict.value,
        "audience": [audience.text for audience in access.audience],
        "reasons": [reason.text for reason in access.reasons],
    }


def standing_members(standing: Standing | None) -> dict[str, str | None]:
    """Return the members of an object's or finding's line on its history: since and exception."""
    if standing is None:
        return {"since": None, "exception": None}
    return {"since": standing.since, "exception": standing.exception}


def finding_line(finding: Finding, verdict: Verdict | None = None, standing: Standing | None = None) -> FindingLine:
    """Return the line of a finding for the `findings` files of a run folder. verdict: the verdict of the object; None
    for a finding on the bucket. standing: the history of the finding.
    """
    return FindingLine(
        finding.fingerprint,
        finding.rule,
        finding.severity,
        finding.key,
        finding.version_id,
        finding.grantee,
        finding.permission,
        finding.message,
        verdict,
        standing.since if standing else None,
        standing.exception if standing else None,
    )


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
    return encode_line({"key": ref.key, "version_id": ref.version_id, "etag": ref.etag, "size": ref.size})


def acl_members(fact: Acl | Unread | Skipped) -> dict[str, Any]:
    """Return the members of an object's line on its ACL: acl_state, public_grant and acl."""
    return {"acl_state": state_of(fact).value, "public_grant": has_public_grant(fact), "acl": acl_fact(fact)}


def acl_fact(fact: Acl | Unread | Skipped) -> dict[str, Any]:
    """Return the value of `acl` in an object's line: the owner and the grants, or why the ACL was not read."""
    if isinstance(fact, Acl):
        grants = [{"grantee": grant.grantee, "permission": grant.permission} for grant in fact.grants]
        return {"owner": fact.owner, "grants": grants}
    return missing_fact(fact)


def _head(fact: Head | Unread | Skipped, keep_metadata: bool) -> dict[str, Any]:
    if not isinstance(fact, Head):
        return missing_fact(fact)
    if isinstance(fact, PartialHead):
        return partial_head(fact)
    line = dict(zip(HEAD_NAMES, _HEAD_VALUES(fact), strict=True))
    line["metadata"] = dict(fact.metadata) if keep_metadata else sorted(fact.metadata)
    return line


def partial_head(head: PartialHead) -> dict[str, Any]:
    """Return the value of `head` in an object's line for a HEAD of which some members were not read."""
    return {PARTIAL: True, **{name: getattr(head, name) for name in HEAD_NAMES if name not in head.unread}}


def missing_fact(fact: Unread | Skipped) -> dict[str, Any]:
    """Return the value that an object's line has in place of a fact: {"unread": error} or {"skipped": reason}."""
    if isinstance(fact, Unread):
        return {"unread": {"action": fact.action, "code": fact.code}}
    return {"skipped": fact.reason}
