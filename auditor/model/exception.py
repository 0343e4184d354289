"""An entry of [[exceptions]] in auditor.toml, the state in which a run found it, and the findings, verdicts and holes
that it covers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Final

from msgspec import Struct

from auditor.model.access import Audience, AudienceKind, ObjectAccess, ReasonCode, Verdict, contains
from auditor.model.finding import Finding
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS
from auditor.model.run_lines import FindingLine
from auditor.model.target import BUCKET_NAME
from auditor.model.toml_forms import Day, Owner, Text, form
from auditor.model.wildcard import Wild, Wildcard

OPEN: Final = (Verdict.EXPOSED, Verdict.SHARED, Verdict.MASKED)
"""The verdicts that an exception may cover. Nobody gets in at private and dormant, which need no exception, and
unknown is a hole."""
_ID: Final = "[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

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


class ExceptionEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry by which the owner of a bucket accepts findings of a rule, objects with a verdict, or holes. The
    accepted matches stay in the counts and in the report, but do not raise the exit code.

    The members that are not None are conditions, and an entry matches whatever meets all of them. An entry with an
    action or a code accepts holes: undecided objects or, if it also has a rule, undecided rules.
    """

    reason: Annotated[Text, form("say why it is accepted")]
    owner: Owner
    until: Day
    prefix: Text | None = None
    """Prefix of the keys that the entry covers."""
    rule: Text | None = None
    """ID of a rule."""
    action: Text | None = None
    """The API operation that failed, for a hole."""
    code: Text | None = None
    """The error code of the failure, for a hole."""
    verdict: Annotated[Verdict, form(f"use {', '.join(OPEN)}", quote=True)] | None = None
    pattern: Text | None = None
    """Pattern of the keys that the entry covers: `*` stands for any characters."""
    bucket: Annotated[str, form("write its name, without s3:// and prefix", BUCKET_NAME.pattern)] | None = None
    """The bucket in which the entry holds; None for each audited bucket."""
    grantee: Text | None = None
    """Grantee of the findings: a canonical ID, or the URI of a group."""
    audience: Text | None = None
    """The widest audience that the entry covers, in the form of Audience.text."""
    id: Annotated[str, form("write at most 64 letters, digits, '.', '_' and '-', a letter or digit first", _ID)] = ""
    """The ID given in auditor.toml; "" if none is given. The property `name` then makes one."""

    @property
    def hole(self) -> bool:
        """True if the entry accepts holes."""
        return self.action is not None or self.code is not None

    @property
    def name(self) -> str:
        """The entry's ID: the given one, or else 12 hex digits computed from the conditions of the entry. A new reason,
        owner or date does not change the ID.
        """
        if self.id:
            return self.id
        covered = [self.bucket, self.rule, self.verdict, self.prefix, self.pattern, self.grantee, self.audience]
        text = json.dumps([*covered, self.action, self.code, self.hole])
        return hashlib.sha256(text.encode("ascii")).hexdigest()[:12]

    def holds_on(self, day: str) -> bool:
        """True if the entry has not expired on this day, YYYY-MM-DD."""
        return day <= self.until


class ExceptionState(StrEnum):
    """The state of an exception entry after a run."""

    ACTIVE = "active"
    """The entry covered something in the run."""
    EXPIRED = "expired"
    """The entry's last day is over, so whatever the entry matches counts again."""
    UNUSED = "unused"
    """The entry matches nothing in the run."""
    SHADOWED = "shadowed"
    """The entry matches something, but earlier entries cover all of it."""


class ExceptionUse(Struct, frozen=True):
    """An exception entry in the summary of a run. matched: number of objects whose verdict the entry covers, of
    findings, and of holes; for an expired entry, the number that it would cover. A finding is not counted if an entry
    covers the verdict of its object.
    """

    id: str
    rule: str | None
    verdict: Verdict | None
    prefix: str | None
    owner: str
    reason: str
    until: str
    state: ExceptionState
    matched: int = 0
    pattern: str | None = None
    grantee: str | None = None
    audience: str | None = None
    hole: bool = False
    """True if the entry accepts holes."""


class Excepted(Struct, frozen=True):
    """The names of the entries that cover one object, or the bucket.

    verdict: the entry that covers the verdict; None if none does. findings: for each finding, in order, the entry that
    covers it, or None. hole: the entry that accepts that the object is undecided, or None. used: each entry that covers
    something, once for each thing that it covers. shadowed: each entry that would cover something if no earlier entry
    did. expired: each entry that would cover something if it had not expired.
    """

    verdict: str | None = None
    findings: tuple[str | None, ...] = ()
    hole: str | None = None
    used: tuple[str, ...] = ()
    shadowed: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()


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
