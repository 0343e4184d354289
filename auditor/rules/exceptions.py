"""Decide which findings, verdicts and holes the entries of auditor.toml except, so that they raise no exit code.

A hole is something that the run was to look at and could not read. Only an entry for holes excepts one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from auditor.model.access import ObjectAccess
from auditor.model.exception import (
    CONTRADICTED,
    Excepted,
    ExceptionEntry,
    ExceptionState,
    ExceptionUse,
    covers_audience,
    covers_everyone,
    covers_finding,
    covers_hole,
    covers_key,
    covers_rule_hole,
    is_known_reading,
    is_of_verdict,
)
from auditor.model.finding import Finding, Judgement, RuleUndecided
from auditor.model.object import Outcome

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
        if not self.entries and not judgement.findings:
            return NOTHING
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

    def of_failure(self, key: str, code: str) -> Excepted:
        """Return the entries that accept that an object could not be hashed, because GetObject failed with `code`: the
        member `hole` names the one that counts.
        """
        notes = _Notes(self._day)
        hole = None if code in CONTRADICTED else _accepting(self._holes, key, [("GetObject", code)], notes)
        return notes.result(None, (), hole)

    def of_rules(self, undecided: Iterable[RuleUndecided]) -> Excepted:
        """Return the entries that accept undecided rules: `used` has one for each accepted rule."""
        notes = _Notes(self._day)
        for item in undecided:
            notes.first([one for one in self._holes if covers_rule_hole(one, item.rule, item.action, item.code)])
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
        if not entries or not is_known_reading(access):
            return None
        if not access.audience:
            return notes.first([entry for entry in entries if entry.audience is None])
        found = [[entry for entry in entries if covers_audience(entry, audience)] for audience in access.audience]
        if access.more:
            found.append([entry for entry in entries if covers_everyone(entry)])
        return notes.together(found)

    def _finding(self, finding: Finding, access: ObjectAccess | None, verdict: str | None, notes: _Notes) -> str | None:
        entries = [entry for entry in self._rules if covers_finding(entry, finding, access)]
        if verdict is not None and access is not None and is_of_verdict(finding, access):
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

    def together(self, found: Sequence[Sequence[ExceptionEntry]]) -> str | None:
        """Note the entries that cover several parts of one thing, and return the first that counts. found: for each
        part, the entries that match it. All parts must be covered, each by an entry that has not expired.
        """
        matching = {entry.name: entry for covering in found for entry in covering}.values()
        lasting = [[entry.name for entry in covering if entry.holds_on(self.day)] for covering in found]
        if all(lasting):
            chosen = list(dict.fromkeys(names[0] for names in lasting))
            self.note(chosen, matching)
            return next(iter(chosen), None)
        if all(found):
            self._expired += [entry.name for entry in matching if not entry.holds_on(self.day)]
        return None

    def result(self, verdict: str | None, findings: tuple[str | None, ...], hole: str | None) -> Excepted:
        if not (self._used or self._shadowed or self._expired):
            return Excepted(findings=findings) if findings else NOTHING
        return Excepted(verdict, findings, hole, tuple(self._used), tuple(self._shadowed), tuple(self._expired))


def _accepting(
    entries: Sequence[ExceptionEntry], key: str, unread: Sequence[tuple[str, str]], notes: _Notes
) -> str | None:
    """Return the first entry that accepts the hole. All unread facts must be accepted, each by an entry."""
    return notes.together(
        [[entry for entry in entries if covers_hole(entry, key, action, code)] for action, code in unread]
    )
