"""Count the results of an audit. The run's checkpoint saves the counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, Self

from msgspec import Struct, field
from msgspec.structs import asdict

from auditor.model.access import ObjectAccess, Verdict, listed
from auditor.model.dates import iso_date
from auditor.model.exception import Excepted
from auditor.model.finding import Finding, Judgement, RuleUndecided, Severity
from auditor.model.json_codec import JsonError
from auditor.model.object import FactOrigin, Outcome, Whole
from auditor.model.summary import HASHING

COVERAGE: Final = ("listed", "audited", "vanished", "undecided", "delete_markers")
CALLS: Final = ("list", "head", "acl", "retried", "throttled")
REASONS: Final = 100
"""Number of pairs of action and error code that are counted separately; the rest counts as OTHER. The number needs a
bound, because a server may invent any codes."""
OTHER: Final = "other other"
OTHER_CODE: Final = "other"
"""Stands for the code of an object that could not be hashed, beyond REASONS codes."""
_BOUNDED: Final = {"failed": OTHER_CODE, "failed_accepted": OTHER_CODE, "unread": OTHER}
"""The fields that count REASONS names, and the name for the rest."""
_CODE: Final = re.compile(r"[A-Za-z0-9.-]{1,64}")
AUDIENCES: Final = 100
"""Number of audiences of each verdict that are counted separately; the rest counts as OTHERS. The number needs a bound,
because each object may be shared with another account.
"""
OTHERS: Final = "others"
LONGEST_AUDIENCE: Final = 300
"""Characters of the longest audience that is counted by its name: its name may be any text of a policy or ACL."""


class Counters(Struct):
    """A set of counts.

    Each of its fields is a count, a dict of counts, or a dict of pairs of counts.
    """

    def copy(self) -> Self:
        """Return a copy of the counts, which further counting does not change."""
        values = [getattr(self, name) for name in self.__struct_fields__]
        return type(self)(*[value if type(value) is int else value.copy() for value in values])


class Tally(Counters):
    """The counts of an audit so far. Call add() for each judged object.

    Counts never fall, except by move() and go_back_to().
    """

    accepted: Whole = 0
    audiences: dict[str, Whole] = field(default_factory=dict)
    """Number of objects by verdict and audience, with a space between the two."""
    calls: dict[str, Whole] = field(default_factory=lambda: dict.fromkeys(CALLS, 0))
    changes: dict[str, Whole] = field(default_factory=dict)
    """Number of changes since the last run: by "verdict" or "finding", the verdict or severity, and the ChangeKind."""
    compared: dict[str, Whole] = field(default_factory=dict)
    """Number of open verdicts and of findings of the last run that were compared, by the verdict or severity."""
    coverage: dict[str, Whole] = field(default_factory=lambda: dict.fromkeys(COVERAGE, 0))
    excepted_findings: dict[str, Whole] = field(default_factory=dict)
    """Number of findings by severity that an exception covers."""
    excepted_verdicts: dict[str, Whole] = field(default_factory=dict)
    """Number of objects by verdict whose verdict an exception covers."""
    exceptions: dict[str, Whole] = field(default_factory=dict)
    """By the name of an exception, how often it covered something; for an expired one, how often it would have."""
    failed: dict[str, Whole] = field(default_factory=dict)
    """By code: the number of pending objects that this run could not hash."""
    failed_accepted: dict[str, Whole] = field(default_factory=dict)
    """By code: the number of objects in `failed` that auditor.toml accepts."""
    findings: dict[str, Whole] = field(default_factory=lambda: {severity.value: 0 for severity in Severity})
    hashing: dict[str, Whole] = field(default_factory=lambda: dict.fromkeys(HASHING, 0))
    healed: Whole = 0
    """Number of damaged rows of the ledger that were written anew."""
    kept: dict[str, Whole] = field(default_factory=dict)
    """Number of facts that the run took from an earlier source, by "acl" or "head" and the FactOrigin."""
    left_bytes: dict[str, Whole] = field(default_factory=dict)
    left_objects: dict[str, Whole] = field(default_factory=dict)
    oldest: dict[str, Whole] = field(default_factory=dict)
    """When the oldest kept "acl" and "head" were read, in seconds since 1970. It is no count, and only falls."""
    routed: dict[str, Whole] = field(default_factory=lambda: {"objects": 0, "bytes": 0})
    rules: dict[str, Whole] = field(default_factory=dict)
    shadowed: dict[str, Whole] = field(default_factory=dict)
    """By the name of an exception, how often it would have covered something that an earlier one covers."""
    trusted: dict[str, Whole] = field(default_factory=dict)
    """The entries of `trusted` that trusted something; the numbers mean nothing."""
    unanswered: dict[str, Whole] = field(default_factory=dict)
    uncompared: Whole = 0
    """1 if the last run could not be read, so that the changes are not all counted."""
    unreported: Whole = 0
    """Number of listed objects whose stored ACL the S3 Inventory report of the run does not tell."""
    unread: dict[str, Whole] = field(default_factory=dict)
    verdicts: dict[str, Whole] = field(default_factory=lambda: {verdict.value: 0 for verdict in Verdict})

    def add(self, judgement: Judgement) -> None:
        """Count one listed object: its outcome, verdict and findings, and its facts that could not be read."""
        evidence = judgement.evidence
        outcome = evidence.outcome
        self.coverage["listed"] += 1
        self.coverage[outcome] += 1  # every outcome is in COVERAGE
        access = judgement.access
        if outcome is not Outcome.VANISHED and access is not None:
            self.verdicts[access.verdict] += 1
            if access.audience:
                for name in _audience_names(access):
                    self._add_audience(name)
        if outcome is Outcome.UNDECIDED:
            for fact in evidence.unread:
                _count_bounded(self.unread, f"{fact.action} {fact.code}", OTHER)
        elif judgement.unanswered:  # the line of an undecided object names the rules
            for item in judgement.unanswered:
                _count(self.unanswered, f"{item.rule} {item.action} {item.code}")
        if judgement.findings:
            self.add_findings(judgement.findings)
        if evidence.read_at is not None:
            self._keep("acl", evidence.read_at.acl, evidence.read_at.acl_from)
            self._keep("head", evidence.read_at.head, evidence.read_at.head_from)

    def _keep(self, fact: str, at: str | None, source: FactOrigin | None) -> None:
        """Count a fact of an earlier source. source: None if the run read the fact itself."""
        if source is None or at is None:
            return
        _count(self.kept, f"{fact} {source.value}")
        moment = _seconds_of(at)
        self.oldest[fact] = min(moment, self.oldest.get(fact, moment))

    def _add_audience(self, name: str, number: int = 1) -> None:
        """Count objects with an audience. name: of `audiences`."""
        if name not in self.audiences:
            start = f"{name.partition(' ')[0]} "
            if sum(known.startswith(start) for known in self.audiences) >= AUDIENCES:
                name = f"{start}{OTHERS}"
        _count(self.audiences, name, number)

    def include(self, other: Tally) -> None:
        """Add the counts of a later range of keys.

        Names beyond the limits of a tally count as the others, as they do in a run of one range.
        """
        for field_name in self.__struct_fields__:
            mine, theirs = getattr(self, field_name), getattr(other, field_name)
            if field_name == "uncompared":
                self.uncompared = max(mine, theirs)
            elif isinstance(mine, int):
                setattr(self, field_name, mine + theirs)
            else:
                self._include(field_name, mine, theirs)

    def _include(self, field_name: str, mine: dict[str, int], theirs: dict[str, int]) -> None:
        for name, number in theirs.items():
            if field_name == "oldest":
                mine[name] = min(number, mine.get(name, number))
            elif field_name == "audiences":
                self._add_audience(name, number)
            elif field_name in _BOUNDED:
                _count_bounded(mine, name, _BOUNDED[field_name], number)
            else:
                _count(mine, name, number)

    def rules_undecided(self, known: Sequence[RuleUndecided]) -> tuple[RuleUndecided, ...]:
        """Return `known`, the rules that lacked a bucket fact, and the rules that were undecided for an audited object,
        each once.
        """
        names = {item.rule for item in known}
        found = {item.rule: item for item in map(_undecided, sorted(self.unanswered))}
        return (*known, *(item for rule, item in found.items() if rule not in names))

    def trust(self, entries: Iterable[str]) -> None:
        """Note entries of `trusted` that trusted something."""
        self.trusted |= dict.fromkeys(entries, 1)

    def change(self, name: str) -> None:
        """Count a change since the last run. name: of `changes`."""
        _count(self.changes, name)

    def compare(self, name: str) -> None:
        """Count a verdict or finding of the last run that was compared. name: of `compared`."""
        _count(self.compared, name)

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Count findings, of an object or of the bucket."""
        for finding in findings:
            self.findings[finding.severity.value] += 1
            _count(self.rules, finding.rule)

    def delete_marker(self, number: int = 1) -> None:
        self.coverage["delete_markers"] += number

    def accept(self, number: int = 1) -> None:
        """Count undecided objects that auditor.toml accepts. They stay counted as undecided too."""
        self.accepted += number

    def except_(self, excepted: Excepted, judgement: Judgement) -> None:
        """Count what exceptions cover of one object, which was added before. It stays counted everywhere else."""
        if excepted.verdict is not None and judgement.verdict is not None:
            _count(self.excepted_verdicts, judgement.verdict)
        if excepted.hole is not None:
            self.accept()
        self.except_findings(excepted, judgement.findings)

    def except_findings(self, excepted: Excepted, findings: Sequence[Finding]) -> None:
        """Count what exceptions cover of these findings, of an object or of the bucket, which were added before."""
        for finding, name in zip(findings, excepted.findings, strict=False):
            if name is not None:
                _count(self.excepted_findings, finding.severity)
        for name in (*excepted.used, *excepted.expired):
            _count(self.exceptions, name)
        for name in excepted.shadowed:
            _count(self.shadowed, name)

    def hash(self, state: str, number: int = 1) -> None:
        """Count objects by the state of their digests, such as "known" or "pending".

        Each audited or undecided object has one. state: one of model.summary.HASHING.
        """
        self.hashing[state] += number

    def fail(self, code: str, *, accepted: bool) -> None:
        """Count a pending object that this run could not hash. accepted: True if auditor.toml accepts that.

        A code that is no single word counts as OTHER_CODE: sentences and alerts quote the code of a server.
        """
        known = code in self.failed or (len(self.failed) < REASONS and _CODE.fullmatch(code))
        name = code if known else OTHER_CODE
        _count(self.failed, name)
        if accepted:
            _count(self.failed_accepted, name)

    def fail_no_more(self, code: str) -> None:
        """Uncount an object that fail() may have counted."""
        for counts in (self.failed, self.failed_accepted):
            if code in counts:
                counts[code] -= 1
                if not counts[code]:
                    del counts[code]

    def move(self, old: str, new: str, number: int = 1) -> None:
        """Move objects from one state of their digests to another, for example from pending to queued."""
        self.hashing[old] -= number
        self.hashing[new] += number

    def go_back_to(self, earlier: Tally) -> None:
        """Uncount the objects that were counted after the copy `earlier` was made.

        Three counts stay: the calls, the healed rows of the ledger, and the objects that the queue took.
        """
        queued, kept = self.hashing["queued"] - earlier.hashing["queued"], earlier.copy()
        kept.calls, kept.healed = self.calls, self.healed
        for name in self.__struct_fields__:
            setattr(self, name, getattr(kept, name))
        self.move("pending", "queued", min(queued, self.hashing["pending"]))  # the queue takes objects in key order

    def leave(self, storage_class: str, size: int, number: int = 1) -> None:
        """Count a pending object that is left unread because S3 charges for reads in its storage class. size: bytes."""
        _count(self.left_objects, storage_class, number)
        _count(self.left_bytes, storage_class, size)

    def leave_no_more(self, storage_class: str, size: int) -> None:
        """Uncount a pending object that leave() may have counted. size: bytes."""
        if self.left_objects.get(storage_class, 0):
            self.leave(storage_class, -size, -1)

    def route(self, size: int, number: int = 1) -> None:
        """Count an object that the auditor cannot hash, and leaves to S3 Batch Operations. size: bytes. number: -1 to
        uncount it, with a negative size.
        """
        self.routed["objects"] += number
        self.routed["bytes"] += size

    def check(self, hashing: bool = False) -> None:
        """Raise JsonError if the counts do not add up.

        hashing: True to check also that each judged object has a digest state.
        """
        for name, counts in asdict(Tally()).items():
            if isinstance(counts, dict) and counts.keys() - getattr(self, name).keys():
                raise JsonError("lack counts", name)
        coverage = self.coverage
        judged = coverage["audited"] + coverage["undecided"]
        sums = {
            "listed = audited + vanished + undecided": coverage["listed"] == judged + coverage["vanished"],
            "verdicts = audited + undecided": sum(self.verdicts.values()) == judged,
            "findings by rule = findings by severity": sum(self.rules.values()) == sum(self.findings.values()),
            "excepted <= findings": _is_within(self.excepted_findings, self.findings),
            "excepted <= verdicts": _is_within(self.excepted_verdicts, self.verdicts),
            "accepted <= undecided": self.accepted <= coverage["undecided"],
            "hashing = audited + undecided": not hashing or sum(self.hashing.values()) == judged,
            "failed <= pending": sum(self.failed.values()) <= self.hashing["pending"],
            "accepted <= failed": sum(self.failed_accepted.values()) <= sum(self.failed.values()),
            "left for cost <= pending": sum(self.left_objects.values()) <= self.hashing["pending"],
            "classes left have their bytes": self.left_objects.keys() == self.left_bytes.keys(),
            "routed <= unhashable": self.routed["objects"] <= self.hashing["unhashable"],
        }
        if broken := [words for words, holds in sums.items() if not holds]:
            raise JsonError(f"do not add up: {'; '.join(broken)}", "the counts")


def _count(counts: dict[str, int], name: str, number: int = 1) -> None:
    counts[name] = counts.get(name, 0) + number


def _count_bounded(counts: dict[str, int], name: str, rest: str, number: int = 1) -> None:
    """Count by the name, and by `rest` if the name would be one too many."""
    _count(counts, name if name in counts or len(counts) < REASONS else rest, number)


@lru_cache(1024)
def _seconds_of(at: str) -> int:
    return int(iso_date(at).timestamp())


def _is_within(part: dict[str, int], whole: dict[str, int]) -> bool:
    return all(number <= whole.get(name, 0) for name, number in part.items())


@lru_cache(1024)
def _audience_names(access: ObjectAccess) -> tuple[str, ...]:
    """Return the names under which the object is counted, one for each different audience that gets in."""
    access = listed(access)
    texts = [*(audience.text for audience in access.audience), *([OTHERS] if access.more else [])]
    bounded = (OTHERS if len(text) > LONGEST_AUDIENCE else text for text in texts)
    return tuple(dict.fromkeys(f"{access.verdict.value} {text}" for text in bounded))


def _undecided(name: str) -> RuleUndecided:
    """Return the rule that Tally.unanswered counts by this name: RULE ACTION CODE."""
    rule, _, cause = name.partition(" ")
    action, _, code = cause.partition(" ")
    return RuleUndecided(rule, action, code)
