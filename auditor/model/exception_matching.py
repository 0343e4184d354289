"""Match entries of auditor.toml that except findings, verdicts and holes with the things that they cover."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from auditor.model.access import Audience, AudienceKind, ObjectAccess, ReasonCode
from auditor.model.audiences import contains
from auditor.model.exception import ExceptionEntry
from auditor.model.finding import Finding
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS
from auditor.model.run_lines import FindingLine
from auditor.model.wildcard import Wild, Wildcard

_UNKNOWN: Final = frozenset(
    {
        ReasonCode.ACL_UNREAD,
        ReasonCode.POLICY_UNREAD,
        ReasonCode.KEY_UNKNOWN,
        ReasonCode.ACCESS_POINTS_UNREAD,
        ReasonCode.BUCKET_TAGS_UNREAD,
        ReasonCode.KMS_KEY_UNREAD,
        ReasonCode.OWNER_UNKNOWN,
        ReasonCode.TOO_COMPLEX,
    }
)
"""Reasons for which the access may be wider than its verdict and audiences say."""
CONTRADICTED: Final = frozenset({"ChecksumMismatch", "DigestConflict"})
"""Codes of objects with two digests that contradict each other: no entry accepts that these could not be hashed."""
_READING: Final = frozenset({"READ", "READ_ACP"})
"""Permissions of an ACL that an exception of a verdict covers. The others give control of the object."""
_WIDE: Final = {
    ALL_USERS: Audience(AudienceKind.ANYONE),
    ANONYMOUS_OWNER: Audience(AudienceKind.ANYONE),
    AUTHENTICATED_USERS: Audience(AudienceKind.ANY_ACCOUNT),
}


def covers_key(entry: ExceptionEntry, key: str | None) -> bool:
    """True if the entry covers this key. An entry with a prefix or a pattern does not cover the bucket, key None."""
    if key is None:
        return entry.prefix is None and entry.pattern is None
    return key.startswith(entry.prefix or "") and (entry.pattern is None or _key_pattern(entry.pattern).matches(key))


@lru_cache(1024)
def _key_pattern(text: str) -> Wildcard:
    """Return the pattern of keys, in which only `*` is a wildcard."""
    return Wildcard(tuple(Wild.STAR if part == "*" else part for part in re.findall(r"\*|[^*]+", text)))


def accepts_object(entries: Sequence[ExceptionEntry], key: str, unread: Sequence[tuple[str, str]]) -> bool:
    """True if the entries accept every fact of the object that could not be read. False if `unread` is empty. unread:
    for each such fact, the API operation that failed and its error code. The entries are those that have not expired.
    """
    return bool(unread) and all(
        any(covers_hole(entry, key, action, code) for entry in entries) for action, code in unread
    )


def accepts_rule(entries: Sequence[ExceptionEntry], rule: str, action: str, code: str) -> bool:
    """True if the entries accept that the rule is undecided because `action` failed with `code`. The entries are those
    that have not expired.
    """
    return any(covers_rule_hole(entry, rule, action, code) for entry in entries)


def holes_of(entries: Iterable[ExceptionEntry], bucket: str, day: str) -> tuple[ExceptionEntry, ...]:
    """Return the entries that accept holes in this bucket on this day, YYYY-MM-DD."""
    return tuple(entry for entry in entries if entry.hole and entry.bucket in (None, bucket) and entry.holds_on(day))


def covers_finding(entry: ExceptionEntry, finding: Finding | FindingLine, access: ObjectAccess | None) -> bool:
    """True if the entry covers the finding. access: that of its object; None for a finding on the bucket."""
    if entry.rule != finding.rule or not covers_key(entry, finding.key):
        return False
    if entry.grantee not in (None, finding.grantee):
        return False
    if entry.audience is None:
        return True
    if finding.grantee is not None and not covers_audience(entry, audience_of_grantee(finding.grantee)):
        return False
    if access is None:
        return bool(finding.grantee)
    return bool(access.audience or finding.grantee) and _covers_all(entry, access)


def covers_verdict(entry: ExceptionEntry, key: str, access: ObjectAccess) -> bool:
    """True if the entry alone covers the verdict of the object with this key and access."""
    if entry.verdict is not access.verdict or not covers_key(entry, key) or not is_known_reading(access):
        return False
    if not access.audience:
        return entry.audience is None
    return _covers_all(entry, access)


def _covers_all(entry: ExceptionEntry, access: ObjectAccess) -> bool:
    """True if the entry covers each audience of the access, also those that a line does not name."""
    if access.more and not covers_everyone(entry):
        return False
    return all(covers_audience(entry, audience) for audience in access.audience)


def audience_of_grantee(grantee: str) -> Audience:
    """Return the audience to which a grant of an ACL opens an object."""
    kind = AudienceKind.GROUP if "://" in grantee else AudienceKind.CANONICAL_ID
    return _WIDE.get(grantee) or Audience(kind, grantee)


def covers_hole(entry: ExceptionEntry, key: str, action: str, code: str) -> bool:
    """True if the entry accepts that `action` failed with `code` on the object with this key."""
    return entry.rule is None and covers_key(entry, key) and _accepts(entry, action, code)


def covers_rule_hole(entry: ExceptionEntry, rule: str, action: str, code: str) -> bool:
    """True if the entry accepts that the rule is undecided, because `action` failed with `code`."""
    return entry.rule in (None, rule) and covers_key(entry, None) and _accepts(entry, action, code)


def _accepts(entry: ExceptionEntry, action: str, code: str) -> bool:
    return entry.action in (None, action) and entry.code in (None, code)


@lru_cache(1024)
def is_known_reading(access: ObjectAccess) -> bool:
    """True if it is known that the access lets others read only, and that no wider audience gets in."""
    return not any(
        reason.code in _UNKNOWN
        or (reason.code is ReasonCode.ACL_GRANT and (reason.cause or "").rpartition(" ")[2] not in _READING)
        for reason in access.reasons
    )


def is_of_verdict(finding: Finding, access: ObjectAccess) -> bool:
    """True if the finding is on a grant of READ to an audience that the verdict names."""
    if finding.permission not in _READING or finding.grantee is None:
        return False
    granted = audience_of_grantee(finding.grantee)
    return any(contains(audience, granted) for audience in access.audience)


def covers_everyone(entry: ExceptionEntry) -> bool:
    """True if the entry covers every audience, also those that a line does not name."""
    return covers_audience(entry, Audience(AudienceKind.ANYONE))


@lru_cache(1024)
def covers_audience(entry: ExceptionEntry, audience: Audience) -> bool:
    """True if the entry covers this audience: its own contains it, or it has none."""
    return entry.audience is None or contains(Audience.parse(entry.audience), audience)
