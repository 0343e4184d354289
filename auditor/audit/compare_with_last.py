"""Compare the results of a run with those of an earlier one in key order: with the last run while a run is at work,
with any run of the target for `auditor diff`, and with its own lines for a run that is judged again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.errors import OutputError
from auditor.model.access import Verdict
from auditor.model.exception import Excepted
from auditor.model.finding import Finding, Judgement
from auditor.model.object import Outcome
from auditor.model.run_lines import FindingLine, ObjectLine, PastObject, Recorded, Seen, Standing, seen_of
from auditor.model.summary import ChangeKind, Summary
from auditor.model.target import Target
from auditor.reports.changes import (
    Step,
    added_step,
    bucket_kind,
    causes_between,
    fingerprints,
    judged_rules,
    kept_step,
    lost_kind,
    moved_by,
    verdict_of,
    verdict_step,
    worsening,
)
from auditor.runs.paths import began_at
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.runs.run_results import RunResults, seen_in
from auditor.runs.tally import Tally
from auditor.text import visible

log = logging.getLogger(__name__)

_AT_ONCE: Final = 5_000
"""Number of the earlier run's objects that are read at once."""
_UNREACHED: Final = Seen(Outcome.UNDECIDED, Verdict.UNKNOWN)
"""Stands for the results of an object that an incomplete run did not reach."""
AnyFinding = Finding | FindingLine


class RunChange(Struct, frozen=True):
    """One change of a finding or of a verdict between two runs. key: None for a finding on the bucket.

    finding: the finding as the new run has it, or as the old run had it if the new run does not; None for a change of a
    verdict. before, after: the verdict in the old and in the new run, None where the run has no such object; both None
    for a change of a finding.
    """

    kind: ChangeKind
    key: str | None
    version_id: str | None
    finding: FindingLine | None = None
    before: Verdict | None = None
    after: Verdict | None = None


class RunPair(Struct, frozen=True):
    """The facts of two runs that are known before their objects are compared.

    old_rules: IDs of the rules that the old run judged; None if it does not say. new_rules: those of the new run.
    worse: the result of worsening(). causes: the result of causes_between(). old_end, new_end: the last key of a run
    that is not complete; None for a complete run.
    """

    old_rules: Collection[str] | None
    new_rules: Collection[str]
    worse: Collection[str] = ()
    causes: tuple[str, ...] = ()
    old_end: str | None = None
    new_end: str | None = None


class RunComparison:
    """Compares the objects of a run, given in key order, with those of an old run, and counts the changes.

    For each object of the new run, call load() until needs() is false, then take() and compare(). drain() follows after
    the last one.

    past: the objects of the old run, in key order. tally: receives the counts. noted: receives each change, for runs
    whose findings are lines; None to note none.
    """

    def __init__(
        self, past: Iterator[PastObject], pair: RunPair, tally: Tally, noted: list[RunChange] | None = None
    ) -> None:
        self.tally = tally
        self._past = past
        self._pair = pair
        self._noted = noted
        self._all = noted is not None or bool(pair.causes)  # else the unremarkable objects need not be kept
        self._ahead: deque[PastObject] = deque()
        self._reached: str | None = None  # the key up to which the old run has been read
        self._ended = False
        self._key: str | None = None
        self._same_key: dict[str | None, PastObject] = {}

    def begin_within(self, key: str, rest: Iterable[PastObject]) -> None:
        """Begin with a key of which some versions were compared before. rest: the others that the old run has."""
        self._key, self._same_key = key, {one.version_id: one for one in rest}

    def needs(self, key: str) -> bool:
        """True if the old run is not read up to the end of this key yet, so that load() has to be called."""
        return not self._ended and (self._reached is None or self._reached <= key)

    def load(self, key: str = "") -> None:
        """Read the old run up to the end of this key, and a number of objects further. Blocks."""
        for number, one in enumerate(self._past, 1):
            if self._all or not one.seen.plain:
                self._ahead.append(one)
            if number >= _AT_ONCE and one.key > key:
                self._reached = one.key
                return
        self._ended = True

    def bucket(
        self, old: Iterable[FindingLine], new: Sequence[AnyFinding], names: Sequence[str | None]
    ) -> Sequence[Step]:
        """Compare the findings on the bucket itself, and return the step of each new one. names: the exceptions that
        cover them.
        """
        known = list(old)
        before = fingerprints(known)
        steps = self._steps(new, names, before, None)
        for line in before.values():
            self._finding_changed(bucket_kind(line.rule, self._pair.new_rules), line)
        for line in known:
            self._pass(line)
        return steps

    def take(self, key: str, version_id: str | None) -> PastObject | None:
        """Return what the old run says of the next object, and count the objects before it as gone."""
        if key != self._key and (self._same_key or self._ahead):
            self.leave_behind(key)
            while self._ahead and self._ahead[0].key == key:
                one = self._ahead.popleft()
                self._same_key[one.version_id] = one
            self._key = key
        return self._same_key.pop(version_id, None) if self._same_key else None

    def leave_behind(self, key: str) -> None:
        """Count the objects that only the old run has before this key as gone."""
        self._leave_key()
        while self._ahead and self._ahead[0].key < key:
            self._gone(self._ahead.popleft())

    def compare(
        self,
        old: PastObject | None,
        new: PastObject | Judgement,
        after: Seen,
        names: Sequence[str | None],
        judged: Collection[str],
    ) -> tuple[Step, Sequence[Step]]:
        """Compare one object, and return the step of its verdict and of each finding of the new run.

        old: the result of take(). after: the results of the new run. names: the exceptions that cover its findings.
        judged: IDs of the rules that the new run judged on the object.
        """
        key, version_id = (new.key, new.version_id) if isinstance(new, PastObject) else _name(new)
        before = old.seen if old is not None else _unreached(key, self._pair.old_end)
        step = self._verdict(before, after)
        if step.kind is not None and self._noted is not None:
            words = (old.seen.verdict if old else None, after.verdict)
            self._noted.append(RunChange(step.kind, key, version_id, None, *words))
        lost = fingerprints(old.findings if old else ())
        steps = self._steps(new.findings, names, lost, before)
        for line in lost.values():
            self._finding_changed(lost_kind(line.rule, after, judged), line)
        if old is not None:
            self._passed(old)
        return step, steps

    def drain(self) -> bool:
        """Count the objects that were read, and that only the old run has, as gone, and read on. Return False at the
        end of the old run. Blocks.
        """
        self._leave_key()
        while self._ahead:
            self._gone(self._ahead.popleft())
        if self._ended:
            return False
        self.load()
        return True

    def _leave_key(self) -> None:
        for one in self._same_key.values():
            self._gone(one)
        self._same_key = {}

    def _gone(self, old: PastObject) -> None:
        after = _unreached(old.key, self._pair.new_end)
        if after is not None or not old.seen.plain:
            step = self._verdict(old.seen, after)
            if step.kind is not None and self._noted is not None:
                self._noted.append(RunChange(step.kind, old.key, old.version_id, None, old.seen.verdict))
            for line in old.findings:
                self._finding_changed(lost_kind(line.rule, after, self._pair.new_rules), line)
            self._passed(old)

    def _verdict(self, before: Seen | None, after: Seen | None) -> Step:
        step = verdict_step(before, after)
        if step.kind is not None:
            self.tally.change(f"verdict {verdict_of(step.kind, before, after).value} {step.kind.value}")
            for cause in moved_by(self._pair.causes, step.kind, before, after):
                self.tally.change(f"cause {cause}")
        return step

    def _steps(
        self,
        findings: Sequence[AnyFinding],
        names: Sequence[str | None],
        before: dict[str, FindingLine],
        seen: Seen | None,
    ) -> Sequence[Step]:
        """Return the step of each finding of the new run. before: the findings that the old run has, by fingerprint;
        those that both have are taken out. seen: the results of the old run.
        """
        named = zip(findings, names, strict=True)
        return [self._finding(one, name, before.pop(one.fingerprint, None), seen) for one, name in named]

    def _finding(self, finding: AnyFinding, name: str | None, old: FindingLine | None, seen: Seen | None) -> Step:
        if old is not None:
            step = kept_step(old, name)
        else:
            step = added_step(finding.rule, seen, self._pair.old_rules, name, self._pair.worse)
        self._finding_changed(step.kind, finding)
        return step

    def _finding_changed(self, kind: ChangeKind | None, finding: AnyFinding) -> None:
        if kind is not None:
            self.tally.change(f"finding {finding.severity.value} {kind.value}")
            if self._noted is not None and isinstance(finding, FindingLine):
                self._noted.append(RunChange(kind, finding.key, finding.version_id, finding))

    def _passed(self, old: PastObject) -> None:
        """Count an object of the old run as compared: the rest of it is known at any time."""
        if old.seen.open and old.seen.verdict is not None:
            self.tally.compare(f"verdict {old.seen.verdict.value}")
        for line in old.findings:
            self._pass(line)

    def _pass(self, line: FindingLine) -> None:
        self.tally.compare(f"finding {line.severity.value}")


class LastRunComparison:
    """Gives the findings and verdicts of a run their history, and counts the changes since the last complete run.

    The last complete run is read along with the listing. Call open() first. Before objects are given to object(), call
    load() in a thread, with the last of their keys. If the last run cannot be read, the counts say so, and the present
    run continues.

    began: the start of this run, in ISO 8601 in UTC. tally: receives the counts. earlier: the last complete run; None
    if there is none. judged: IDs of the rules that this run judges. file: the run.json of this run. keys: the target
    that this process audits, whose limits hold for the earlier run, too.
    """

    def __init__(
        self,
        began: str,
        tally: Tally | None = None,
        earlier: RunReader | None = None,
        judged: Collection[str] = (),
        file: RunPlan | None = None,
        keys: Target | None = None,
    ) -> None:
        self._began = began
        self._tally = Tally() if tally is None else tally
        self._earlier = earlier
        self._judged = frozenset(judged)
        self._file = file
        self._keys = keys
        self._unknown = Standing(began, None)
        self._new = Standing(began, True)
        self._old_began = began if earlier is None else began_at(earlier.run_id)
        self._bucket: list[FindingLine] = []
        self._comparison: RunComparison | None = None
        """None without an earlier run that can be read."""

    def open(self, start_after: str | None = None, done: Collection[str | None] = ()) -> None:
        """Begin to read the earlier run. start_after: the last key that this run has recorded so far. done: the version
        IDs of that key that it has recorded. Blocks.
        """
        earlier = self._earlier
        if earlier is None or self._tally.uncompared:
            return
        with self._reading():
            last = earlier.summary
            old = None if earlier.plan is None else earlier.begun_with
            if last is None:
                raise OutputError(f"{earlier.uri} has no summary")
            after, upto = (None, None) if self._keys is None else (self._keys.start_after, self._keys.stop_at)
            past = RunResults(earlier, after if start_after is None else start_after)
            objects = takewhile(lambda one: upto is None or one.key <= upto, past.objects())
            comparison = RunComparison(objects, self._pair(last, old), self._tally)
            if start_after is not None:
                rest = (one for one in past.of_key(start_after) if one.version_id not in done)
                comparison.begin_within(start_after, rest)
            elif after is None:
                self._bucket = past.bucket_findings()
            self._comparison = comparison

    def _pair(self, last: Summary, old: RunPlan | None) -> RunPair:
        return RunPair(
            old_rules=None if old is None else judged_rules(old, last.rules_undecided),
            new_rules=self._judged,
            worse=worsening(old),
            causes=causes_between(old, self._file) if old and self._file else (),
        )

    def needs(self, key: str) -> bool:
        """True if the last complete run is not read up to this key yet, so that load() has to be called."""
        return self._comparison is not None and self._comparison.needs(key)

    def load(self, key: str) -> None:
        """Read the last complete run up to this key, and a number of objects further. Blocks."""
        with self._reading():
            if self._comparison is not None:
                self._comparison.load(key)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """If the last run cannot be read, stop comparing with it, and say so in the counts."""
        try:
            yield
        except OutputError as error:
            log.warning("nothing is compared with the last run: %s", visible(str(error)))
            self._tally.uncompared = 1
            self._comparison = None

    def bucket(self, findings: Sequence[Finding], excepted: Excepted) -> tuple[Standing, ...]:
        """Return the history of each finding on the bucket itself, and count the changes. excepted: the exceptions that
        cover the findings.
        """
        if self._comparison is None:
            return self._unknowns(excepted)
        return self._standings(self._comparison.bucket(self._bucket, findings, excepted.findings), excepted)

    def object(self, judgement: Judgement, excepted: Excepted) -> Recorded:
        """Return the judgement of the next object with the history of its verdict and findings, and count the
        changes. excepted: the exceptions that cover them.
        """
        comparison, ref = self._comparison, judgement.evidence.ref
        old = None if comparison is None else comparison.take(ref.key, ref.version_id)
        if old is None and not judgement.findings and not _is_open(judgement):
            return Recorded(judgement)  # nothing is new, and nothing was there
        if comparison is None:
            standing = _named(self._unknown, excepted.verdict) if _is_open(judgement) else None
            return Recorded(judgement, standing, self._unknowns(excepted))
        seen = seen_of(judgement, excepted.verdict)
        here = self._judged.difference(judgement.undecided, judgement.unstored) if old and old.findings else ()
        step, steps = comparison.compare(old, judgement, seen, excepted.findings, here)
        standing = _named(self._standing(step, old), excepted.verdict) if seen.open else None
        return Recorded(judgement, standing, self._standings(steps, excepted))

    def end(self, tally: Tally) -> None:
        """Count the objects of the earlier run that come after the last object as gone. tally: receives these counts;
        it has all others. Blocks.
        """
        self._tally = tally
        if self._comparison is not None:
            self._comparison.tally = tally
        with self._reading():
            while self._comparison is not None and self._comparison.drain():
                pass

    def _standing(self, step: Step, old: PastObject | None) -> Standing:
        if step.since is None and old is not None and step.new is False and old.seen.open:
            return Standing(self._old_began if step.kind is None else self._began, False)
        if step.since is None and step.new:
            return self._new
        return Standing(step.since or self._began, step.new)

    def _standings(self, steps: Sequence[Step], excepted: Excepted) -> tuple[Standing, ...]:
        """Return the history of each finding."""
        return tuple(
            [_named(self._of_finding(step), name) for step, name in zip(steps, excepted.findings, strict=True)]
        )

    def _of_finding(self, step: Step) -> Standing:
        if step.new is False:
            return Standing(step.since or self._old_began, False)
        return self._new if step.new else self._unknown

    def _unknowns(self, excepted: Excepted) -> tuple[Standing, ...]:
        return tuple([_named(self._unknown, name) for name in excepted.findings])


class OwnHistory:
    """Gives a run that is judged again the history of its findings and verdicts, as its own lines have it.

    began: the start of the run that read the facts. A finding or verdict that the lines do not have gets this time.
    """

    def __init__(self, began: str) -> None:
        self._began = began

    def findings(
        self, findings: Sequence[Finding], excepted: Excepted, stored: Sequence[FindingLine]
    ) -> tuple[Standing, ...]:
        """Return the history of each finding. excepted: the exceptions that cover them now. stored: the finding lines
        of the same object, or of the bucket.
        """
        since = {line.fingerprint: line.since for line in stored}
        named = zip(findings, excepted.findings, strict=True)
        return tuple([Standing(since.get(one.fingerprint) or self._began, None, name) for one, name in named])

    def object(
        self, judgement: Judgement, excepted: Excepted, line: ObjectLine, stored: Sequence[FindingLine]
    ) -> Recorded:
        """Return the judgement of an object with its history. line: its line. The others are as for findings()."""
        findings = self.findings(judgement.findings, excepted, stored)
        if not _is_open(judgement):
            return Recorded(judgement, None, findings)
        since = verdict_step(seen_in(line), seen_of(judgement, excepted.verdict)).since
        return Recorded(judgement, Standing(since or self._began, None, excepted.verdict), findings)


def _is_open(judgement: Judgement) -> bool:
    """True if the object is there, and is not private."""
    verdict = judgement.verdict
    return verdict is not None and verdict is not Verdict.PRIVATE and not judgement.evidence.vanished


def _name(judgement: Judgement) -> tuple[str, str | None]:
    return judgement.evidence.ref.key, judgement.evidence.ref.version_id


def _unreached(key: str, end: str | None) -> Seen | None:
    """Return the results of an object that a run does not have. end: the last key of a run that is not complete."""
    return _UNREACHED if end is not None and key > end else None


def _named(standing: Standing, exception: str | None) -> Standing:
    return standing if exception is None else replace(standing, exception=exception)
