"""Decide which findings, verdicts and holes the entries of auditor.toml except, so that they raise no exit code.

A hole is something that the run was to look at and could not read. Only an entry for holes excepts one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import ip_network
from typing import Final

from auditor.model.access import Audience, AudienceKind, ObjectAccess, ReasonCode
from auditor.model.exception import Excepted, ExceptionEntry, ExceptionState, ExceptionUse
from auditor.model.finding import Finding, Judgement, RuleUndecided
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, Outcome
from auditor.model.run_lines import FindingLine

_UNKNOWN: Final = frozenset(
    {
        ReasonCode.ACL_UNREAD,
        ReasonCode.POLICY_UNREAD,
        ReasonCode.KEY_UNKNOWN,
        ReasonCode.ACCESS_POINTS_UNREAD,
        ReasonCode.KMS_KEY_UNREAD,
        ReasonCode.OWNER_UNKNOWN,
        ReasonCode.TOO_COMPLEX,
    }
)
"""Reasons for which the access may be wider than its verdict and audiences say."""
_READING: Final = frozenset({"READ", "READ_ACP"})
"""Permissions of an ACL that an exception of a verdict covers. The others give control of the object."""
_SIGNED: Final = frozenset(
    {AudienceKind.ANY_ACCOUNT, AudienceKind.ACCOUNT, AudienceKind.CANONICAL_ID, AudienceKind.ORGANIZATION}
)
_WIDE: Final = {
    ALL_USERS: Audience(AudienceKind.ANYONE),
    ANONYMOUS_OWNER: Audience(AudienceKind.ANYONE),
    AUTHENTICATED_USERS: Audience(AudienceKind.ANY_ACCOUNT),
}


NOTHING: Final = Excepted()


class Exceptions:
    """The entries of auditor.toml for one bucket, on the day on which its run began.

    entries: all entries, in their order; the first that covers something counts. day: YYYY-MM-DD in UTC.
    """

    def __init__(self, entries: Iterable[ExceptionEntry], bucket: str, day: str) -> None:
        self.entries = tuple(entry for entry in entries if entry.bucket in (None, bucket))
        self._day = day
        self._rules = [entry for entry in self.entries if entry.rule is not None and not entry.hole]
        self._verdicts = [entry for entry in self.entries if entry.verdict is not None]
        self._excepted = {entry.verdict for entry in self._verdicts}
        self._holes = [entry for entry in self.entries if entry.hole]

    def of_object(self, judgement: Judgement) -> Excepted:
        """Return the entries that cover the verdict, the findings, or the hole of one object."""
        outcome, access = judgement.evidence.outcome, judgement.access
        if not judgement.findings and outcome is not Outcome.UNDECIDED and judgement.verdict not in self._excepted:
            return NOTHING
        notes, key = _Notes(self._day), judgement.evidence.ref.key
        verdict = self._verdict(key, access, notes) if outcome is Outcome.AUDITED and access is not None else None
        findings = tuple(self._finding(finding, access, verdict, notes) for finding in judgement.findings)
        hole = None
        if outcome is Outcome.UNDECIDED:
            unread = [(fact.action, fact.code) for fact in judgement.evidence.unread]
            hole = _accepting(self._holes, key, unread, notes)
        return notes.result(verdict, findings, hole)

    def of_bucket(self, findings: Sequence[Finding]) -> Excepted:
        """Return the entries that cover the findings on the bucket itself."""
        notes = _Notes(self._day)
        return notes.result(None, tuple(self._finding(finding, None, None, notes) for finding in findings), None)

    def of_rules(self, undecided: Iterable[RuleUndecided]) -> Excepted:
        """Return the entries that accept undecided rules: `used` has one for each accepted rule."""
        notes = _Notes(self._day)
        for item in undecided:
            notes.first(
                [entry for entry in self._holes if _accepts_rule(entry, item.rule, item.action, item.code)],
            )
        return notes.result(None, (), None)

    def states(self, used: Callable[[str], int], shadowed: Callable[[str], int]) -> tuple[ExceptionUse, ...]:
        """Return all entries with their states. used, shadowed: return how often an entry, given by its name, covered
        something, or would have if no earlier entry did; expired entries count as used for whatever they match.
        """
        return tuple(self._state(entry, used(entry.name), shadowed(entry.name)) for entry in self.entries)

    def _state(self, entry: ExceptionEntry, used: int, shadowed: int) -> ExceptionUse:
        if not entry.holds_on(self._day):
            state = ExceptionState.EXPIRED
        elif used:
            state = ExceptionState.ACTIVE
        else:
            state = ExceptionState.SHADOWED if shadowed else ExceptionState.UNUSED
        return ExceptionUse(
            entry.name,
            entry.rule,
            entry.verdict,
            entry.prefix,
            entry.owner,
            entry.reason,
            entry.until,
            state,
            used,
            entry.pattern,
            entry.grantee,
            entry.audience,
            entry.hole,
        )

    def _verdict(self, key: str, access: ObjectAccess, notes: _Notes) -> str | None:
        """Return the first entry that covers the verdict. All audiences together must be covered, each by an entry."""
        entries = [entry for entry in self._verdicts if entry.verdict is access.verdict and covers_key(entry, key)]
        if not entries or not _is_known_reading(access):
            return None
        if not access.audience:
            return notes.first([entry for entry in entries if entry.audience is None])
        found = [[entry for entry in entries if _covers(entry, audience)] for audience in access.audience]
        if not all(any(entry.holds_on(notes.day) for entry in covering) for covering in found):
            if all(found):  # some of these have expired, else the verdict would be covered
                notes.note_expired({entry.name: entry for covering in found for entry in covering}.values())
            return None
        chosen: dict[str, None] = {}
        for covering in found:
            chosen[next(entry.name for entry in covering if entry.holds_on(notes.day))] = None
        notes.note(list(chosen), {entry.name: entry for covering in found for entry in covering}.values())
        return next(iter(chosen))

    def _finding(self, finding: Finding, access: ObjectAccess | None, verdict: str | None, notes: _Notes) -> str | None:
        entries = [entry for entry in self._rules if covers_finding(entry, finding, access)]
        if verdict is not None and access is not None and _is_of_verdict(finding, access):
            notes.note([], entries)
            return verdict
        return notes.first(entries)


class _Notes:
    """The notes on one object: the entries that cover something, and those that would."""

    def __init__(self, day: str) -> None:
        self.day = day
        self._used: list[str] = []
        self._shadowed: list[str] = []
        self._expired: list[str] = []

    def first(self, entries: Sequence[ExceptionEntry]) -> str | None:
        """Note the entries that match one thing, and return the first that has not expired."""
        chosen = next((entry.name for entry in entries if entry.holds_on(self.day)), None)
        self.note([] if chosen is None else [chosen], entries)
        return chosen

    def note(self, chosen: list[str], entries: Iterable[ExceptionEntry]) -> None:
        """Note the chosen entries as used, and of all entries that match the rest as shadowed or expired."""
        self._used += chosen
        for entry in entries:
            if not entry.holds_on(self.day):
                self._expired.append(entry.name)
            elif entry.name not in chosen:
                self._shadowed.append(entry.name)

    def note_expired(self, entries: Iterable[ExceptionEntry]) -> None:
        self._expired += [entry.name for entry in entries if not entry.holds_on(self.day)]

    def result(self, verdict: str | None, findings: tuple[str | None, ...], hole: str | None) -> Excepted:
        if not (self._used or self._shadowed or self._expired):
            return Excepted(findings=findings) if findings else NOTHING
        return Excepted(verdict, findings, hole, tuple(self._used), tuple(self._shadowed), tuple(self._expired))


def covers_key(entry: ExceptionEntry, key: str | None) -> bool:
    """True if the entry covers this key. An entry with a prefix or a pattern does not cover the bucket, key None."""
    if key is None:
        return entry.prefix is None and entry.pattern is None
    return key.startswith(entry.prefix or "") and (entry.pattern is None or matches(entry.pattern, key))


def matches(pattern: str, key: str) -> bool:
    """True if the whole key has the form of the pattern, in which `*` stands for any characters, also for none."""
    first, *rest = pattern.split("*")
    if not rest:
        return key == pattern
    *inner, last = rest
    if not key.startswith(first) or not key.endswith(last) or len(key) < len(first) + len(last):
        return False
    at, end = len(first), len(key) - len(last)
    for part in inner:
        at = key.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def contains(wide: Audience, narrow: Audience) -> bool:
    """True if each requester of the audience `narrow` is one of the audience `wide`, as far as their names tell."""
    if wide.through is not None and wide.through != narrow.through:
        return False
    if wide.kind is AudienceKind.ANYONE or (wide.kind, wide.name) == (narrow.kind, narrow.name):
        return True
    if wide.kind is AudienceKind.ANY_ACCOUNT:
        return narrow.kind in _SIGNED
    if wide.kind is not narrow.kind or wide.name is None or narrow.name is None:
        return False
    if wide.kind is AudienceKind.ACCOUNT:
        return narrow.name.startswith("arn:") and narrow.name.split(":")[4:5] == [wide.name]
    return wide.kind is AudienceKind.NETWORK and _is_within(narrow.name, wide.name)


def accepts_object(entries: Sequence[ExceptionEntry], key: str, unread: Sequence[tuple[str, str]]) -> bool:
    """True if the entries accept every fact of the object that could not be read. False if `unread` is empty. unread:
    for each such fact, the API operation that failed and its error code. The entries are those that have not expired.
    """
    return bool(unread) and all(any(_accepts(entry, key, action, code) for entry in entries) for action, code in unread)


def accepts_rule(entries: Sequence[ExceptionEntry], rule: str, action: str, code: str) -> bool:
    """True if the entries accept that the rule is undecided because `action` failed with `code`. The entries are those
    that have not expired.
    """
    return any(_accepts_rule(entry, rule, action, code) for entry in entries)


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
    if finding.grantee is not None and not _covers(entry, audience_of_grantee(finding.grantee)):
        return False
    audiences = access.audience if access is not None else ()
    return bool(audiences or finding.grantee) and all(_covers(entry, audience) for audience in audiences)


def covers_verdict(entry: ExceptionEntry, key: str, access: ObjectAccess) -> bool:
    """True if the entry alone covers the verdict of the object with this key and access."""
    if entry.verdict is not access.verdict or not covers_key(entry, key) or not _is_known_reading(access):
        return False
    if not access.audience:
        return entry.audience is None
    return all(_covers(entry, audience) for audience in access.audience)


def audience_of_grantee(grantee: str) -> Audience:
    """Return the audience to which a grant of an ACL opens an object."""
    kind = AudienceKind.GROUP if "://" in grantee else AudienceKind.CANONICAL_ID
    return _WIDE.get(grantee) or Audience(kind, grantee)


def _accepting(
    entries: Sequence[ExceptionEntry], key: str, unread: Sequence[tuple[str, str]], notes: _Notes
) -> str | None:
    """Return the first entry that accepts the hole. All unread facts must be accepted, each by an entry."""
    found = [[entry for entry in entries if _accepts(entry, key, action, code)] for action, code in unread]
    matching = {entry.name: entry for accepting in found for entry in accepting}.values()
    if not found or not all(any(entry.holds_on(notes.day) for entry in accepting) for accepting in found):
        if found and all(found):
            notes.note_expired(matching)
        return None
    chosen = dict.fromkeys(next(entry.name for entry in accepting if entry.holds_on(notes.day)) for accepting in found)
    notes.note(list(chosen), matching)
    return next(iter(chosen))


def _accepts(entry: ExceptionEntry, key: str, action: str, code: str) -> bool:
    return (
        entry.rule is None and covers_key(entry, key) and entry.action in (None, action) and entry.code in (None, code)
    )


def _accepts_rule(entry: ExceptionEntry, rule: str, action: str, code: str) -> bool:
    return (
        covers_key(entry, None)
        and entry.rule in (None, rule)
        and entry.action in (None, action)
        and entry.code in (None, code)
    )


@lru_cache(1024)
def _is_known_reading(access: ObjectAccess) -> bool:
    """True if it is known that the access lets others read only, and that no wider audience gets in."""
    return not any(
        reason.code in _UNKNOWN
        or (reason.code is ReasonCode.ACL_GRANT and (reason.cause or "").rpartition(" ")[2] not in _READING)
        for reason in access.reasons
    )


def _is_of_verdict(finding: Finding, access: ObjectAccess) -> bool:
    """True if the finding is on a grant of READ to an audience that the verdict names."""
    if finding.permission not in _READING or finding.grantee is None:
        return False
    granted = audience_of_grantee(finding.grantee)
    return any(contains(audience, granted) for audience in access.audience)


@lru_cache(1024)
def _covers(entry: ExceptionEntry, audience: Audience) -> bool:
    return entry.audience is None or contains(Audience.parse(entry.audience), audience)


def _is_within(narrow: str, wide: str) -> bool:
    try:
        inner, outer = ip_network(narrow), ip_network(wide)
    except ValueError:
        return False
    if inner.version != outer.version:
        return False
    first, last = int(inner.network_address), int(inner.broadcast_address)
    return int(outer.network_address) <= first and last <= int(outer.broadcast_address)
