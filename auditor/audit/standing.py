"""Give each finding, and each verdict that is not private, its history."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Final

from msgspec.structs import replace

from auditor.errors import OutputError
from auditor.model.access import Verdict
from auditor.model.exception import Excepted
from auditor.model.finding import Finding, Judgement, Severity
from auditor.model.object import ObjectRef
from auditor.model.run_lines import FindingLine, PastObject, Recorded, Seen, Standing, seen_of
from auditor.model.summary import ChangeKind, Changes
from auditor.model.target import Target
from auditor.reports.changes import NO_RUN, causes_between, changes_since, moved_by
from auditor.reports.compare import (
    Step,
    added_step,
    bucket_kind,
    fingerprints,
    judged_rules,
    kept_step,
    lost_kind,
    verdict_of,
    verdict_step,
    worsening,
)
from auditor.runs.bucket_file import BucketFile
from auditor.runs.past import PastRun
from auditor.runs.paths import began_at
from auditor.runs.reading import RunReader
from auditor.runs.tally import Tally
from auditor.text import visible

log = logging.getLogger(__name__)

_AT_ONCE: Final = 5_000
"""Number of the earlier run's objects that are read at once."""
_LAST: Final = chr(0x10FFFF) * 1025
"""A text after every key."""


def is_open(judgement: Judgement) -> bool:
    """True if the object is there, and is not private."""
    verdict = judgement.verdict
    return verdict is not None and verdict is not Verdict.PRIVATE and not judgement.evidence.vanished


class Standings:
    """Gives findings and verdicts their history, and counts the changes since the last complete run in the tally.

    The last complete run is read along with the listing, in key order. Before objects are given to object(), call
    load() in a thread, with the last of their keys. If the last run cannot be read, the counts say so, and the present
    run continues.

    began: the start of this run, in ISO 8601 in UTC. tally: receives the counts. earlier: the last complete run; None
    if there is none. judged: IDs of the rules that this run judges. start_after: the last key that this run has
    recorded so far. done: the recorded version IDs of that key. file: the bucket.json of this run; None to look for no
    causes. keys: the target that this process audits, whose limits hold for the earlier run, too; None for all keys.
    """

    def __init__(
        self,
        began: str,
        tally: Tally | None = None,
        earlier: RunReader | None = None,
        judged: Collection[str] = (),
        start_after: str | None = None,
        done: Collection[str | None] = (),
        file: BucketFile | None = None,
        keys: Target | None = None,
    ) -> None:
        self._after, self._upto = (None, None) if keys is None else (keys.start_after, keys.stop_at)
        self._file = file
        self._causes: tuple[str, ...] = ()
        self._why_not: str | None = None if earlier else NO_RUN
        self._began = began
        self._tally = Tally() if tally is None else tally
        self._against = earlier
        self._earlier = None if self._tally.uncompared else earlier
        self._judged = frozenset(judged)
        self._start_after = start_after
        self._done = done
        self._unknown = Standing(began, None)
        self._new = Standing(began, True)
        self._old_began = began if earlier is None else began_at(earlier.run_id)
        self._old_rules: Collection[str] | None = None
        self._worse: Collection[str] = ()
        self._lines: Iterator[PastObject] | None = None
        self._ahead: deque[PastObject] = deque()
        self._bucket: list[FindingLine] = []
        self._reached: str | None = None  # the key up to which the earlier run has been read
        self._ended = self._earlier is None
        self._key: str | None = None
        self._same_key: dict[str | None, PastObject] = {}

    def open(self) -> None:
        """Begin to read the earlier run. Blocks."""
        if self._earlier is None:
            return
        with self._reading():
            summary, file = self._earlier.summary, self._earlier.bucket
            if summary is None:
                raise OutputError(f"{self._earlier.uri} has no summary")
            self._old_rules = None if file is None else judged_rules(file, summary.rules_undecided)
            self._worse = worsening(file)
            if file is not None and self._file is not None:
                self._causes = causes_between(file, self._file)
            start = self._start_after
            past = PastRun(self._earlier, self._after if start is None else start)
            if start is None and self._after is None:
                self._bucket = past.bucket_findings()
            elif start is not None:
                self._same_key = {one.version_id: one for one in past.of_key(start) if one.version_id not in self._done}
                self._key = start
            self._lines = takewhile(lambda one: self._upto is None or one.key <= self._upto, past.objects())

    def needs(self, key: str) -> bool:
        """True if the last complete run is not read up to this key yet, so that load() has to be called."""
        return not self._ended and (self._reached is None or self._reached < key)

    def load(self, key: str) -> None:
        """Read the last complete run up to this key, and a number of objects further. Blocks."""
        with self._reading():
            assert self._lines is not None
            for number, one in enumerate(self._lines, 1):
                if self._causes or not one.seen.plain:
                    self._ahead.append(one)
                if number >= _AT_ONCE and one.key > key:
                    self._reached = one.key
                    return
            self._ended = True

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """If the last run cannot be read, stop comparing with it, and say so in the counts."""
        try:
            yield
        except OutputError as error:
            log.warning("nothing is compared with the last run: %s", visible(str(error)))
            self._tally.uncompared = 1
            self._why_not = str(error)
            self._earlier, self._ended = None, True
            self._ahead.clear()
            self._same_key = {}

    def bucket(self, findings: Sequence[Finding], excepted: Excepted) -> tuple[Standing, ...]:
        """Return the history of each finding on the bucket itself, and count the changes. excepted: the exceptions that
        cover the findings.
        """
        before = fingerprints(self._bucket)
        found = self._findings(findings, excepted, before, None)
        for line in before.values():
            self._count("finding", line.severity, bucket_kind(line.rule, self._judged))
        for line in self._bucket:
            self._pass(line)
        return found

    def object(self, judgement: Judgement, excepted: Excepted) -> Recorded:
        """Return the judgement of the next object with the history of its verdict and findings, and count the
        changes. excepted: the exceptions that cover them.
        """
        old = self._old(judgement.evidence.ref)
        if old is None and not judgement.findings and not is_open(judgement):
            return Recorded(judgement)  # nothing is new, and nothing was there
        return self._compared(judgement, excepted, old)

    def _old(self, ref: ObjectRef) -> PastObject | None:
        """Return what the earlier run says of the object, and count the objects before it as gone."""
        key, ahead = ref.key, self._ahead
        if key != self._key and (self._same_key or ahead):
            self._leave_key()
            while ahead and ahead[0].key < key:
                self._gone(ahead.popleft())
            while ahead and ahead[0].key == key:
                one = ahead.popleft()
                self._same_key[one.version_id] = one
            self._key = key
        return self._same_key.pop(ref.version_id, None) if self._same_key else None

    def changes(self, complete: bool) -> Changes:
        """Return the changes for the summary. Call this once, after the last object. Blocks.

        Objects that only the earlier run has after the last object count as gone if the listing is complete, and else
        as unread. The run's own tally does not include these, because a run resumed from a checkpoint would count
        them again.
        """
        against = self._against.run_id if self._against else None
        if against is None:
            return Changes(why_not=self._why_not)
        self._tally = self._tally.copy()
        if complete:
            self.end()
        last = None if self._earlier is None else self._earlier.summary
        return changes_since(self._tally, against, last, self._causes, complete=complete)

    def end(self) -> None:
        """Count the objects of the earlier run that come after the last object as gone. Blocks."""
        if not self._ended:
            self.load(_LAST)
        self._leave_key()
        while self._ahead:
            self._gone(self._ahead.popleft())

    def _leave_key(self) -> None:
        for one in self._same_key.values():
            self._gone(one)
        self._same_key = {}

    def _gone(self, old: PastObject) -> None:
        step = verdict_step(old.seen, None)
        if step.kind is not None:
            self._count("verdict", verdict_of(step.kind, old.seen, None), step.kind)
        for line in old.findings:
            self._count("finding", line.severity, lost_kind(line.rule, None, ()))
        self._passed(old)

    def _compared(self, judgement: Judgement, excepted: Excepted, old: PastObject | None) -> Recorded:
        before = fingerprints(old.findings) if old else {}
        seen = old.seen if old else None
        findings = self._findings(judgement.findings, excepted, before, seen)
        bare = seen_of(judgement, excepted.verdict)
        if self._earlier is None:
            standing = _named(self._unknown, excepted.verdict) if bare.open else None
            return Recorded(judgement, standing, findings)
        step = verdict_step(seen, bare)
        if step.kind is not None:
            self._count("verdict", verdict_of(step.kind, seen, bare), step.kind)
            for cause in moved_by(self._causes, step.kind, seen, bare):
                self._tally.change(f"cause {cause}")
        here = self._judged.difference(judgement.undecided, judgement.unstored) if before else ()
        for line in before.values():
            self._count("finding", line.severity, lost_kind(line.rule, bare, here))
        if old is not None:
            self._passed(old)
        standing = _named(self._standing(step, seen), excepted.verdict) if bare.open else None
        return Recorded(judgement, standing, findings)

    def _standing(self, step: Step, seen: Seen | None) -> Standing:
        if step.since is None and seen is not None and step.new is False and seen.open:
            return Standing(self._old_began if step.kind is None else self._began, False)
        if step.since is None and step.new:
            return self._new
        return Standing(step.since or self._began, step.new)

    def _findings(
        self, findings: Sequence[Finding], excepted: Excepted, before: dict[str, FindingLine], seen: Seen | None
    ) -> tuple[Standing, ...]:
        """Return the history of each finding. before: the findings that the earlier run has, by their fingerprints;
        those that are found again are taken out.
        """
        return tuple(
            [
                self._finding(finding, name, before.pop(finding.fingerprint, None), seen)
                for finding, name in zip(findings, excepted.findings, strict=True)
            ]
        )

    def _finding(self, finding: Finding, name: str | None, old: FindingLine | None, seen: Seen | None) -> Standing:
        if self._earlier is None:
            return _named(self._unknown, name)
        if old is not None:
            step = kept_step(old, name)
            standing = Standing(step.since or self._old_began, False)
        else:
            step = added_step(finding.rule, seen, self._old_rules, name, self._worse)
            standing = self._new if step.new else self._unknown
        if step.kind is not None:
            self._count("finding", finding.severity, step.kind)
        return _named(standing, name)

    def _count(self, what: str, word: Verdict | Severity, kind: ChangeKind) -> None:
        self._tally.change(f"{what} {word.value} {kind.value}")

    def _passed(self, old: PastObject) -> None:
        """Count an object of the earlier run as compared: the rest of it is known at any time."""
        if old.seen.open and old.seen.verdict is not None:
            self._tally.compare(f"verdict {old.seen.verdict.value}")
        for line in old.findings:
            self._pass(line)

    def _pass(self, line: FindingLine) -> None:
        self._tally.compare(f"finding {line.severity.value}")


def _named(standing: Standing, exception: str | None) -> Standing:
    return standing if exception is None else replace(standing, exception=exception)
