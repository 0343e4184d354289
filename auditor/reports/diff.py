"""Compare two runs of one target: read the lines of both run folders side by side, and yield the changes key by key, in
bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from typing import Any, Protocol, TypeVar

from auditor.model.access import Verdict
from auditor.model.changes import ChangeKind
from auditor.model.object import Outcome
from auditor.model.run_lines import FindingLine, ObjectLine

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunChange:
    """One change of a finding or of a verdict between two runs. key: None for a finding on the bucket.

    finding: the finding as the new run has it, or as the old run had it if the new run does not; None for a change of a
    verdict. before, after: the verdict in the old and in the new run; None for a change of a finding.
    """

    kind: ChangeKind
    key: str | None
    version_id: str | None
    finding: FindingLine | None = None
    before: Verdict | None = None
    after: Verdict | None = None


class ComparedRun(Protocol):
    """The interface of a run that diff() compares. objects() and findings() yield the run's lines in key order;
    findings on the bucket come first.
    """

    def objects(self) -> Iterable[ObjectLine]: ...
    def findings(self) -> Iterable[FindingLine]: ...


def diff(old: ComparedRun, new: ComparedRun) -> Iterator[RunChange]:
    """Yield the changes from the run `old` to the run `new` of the same target, in key order.

    `auditor.open_run()` returns a run that can be compared.
    """
    for key, groups in _by_key(old.objects(), old.findings(), new.objects(), new.findings()):
        old_objects, old_findings, new_objects, new_findings = groups
        before = {line.fingerprint for line in old_findings}
        after = {line.fingerprint for line in new_findings}
        for line in new_findings:
            if line.fingerprint not in before:
                yield RunChange(ChangeKind.NEW, key, line.version_id, line)
        for line in old_findings:
            if line.fingerprint not in after:
                yield RunChange(_fate(key, line, new_objects), key, line.version_id, line)
        yield from _verdicts(key, old_objects, new_objects)


def _fate(key: str | None, line: FindingLine, objects: Sequence[ObjectLine]) -> ChangeKind:
    """Return why the new run does not have a finding of the old run: the finding was resolved, or its object is gone or
    could not be read. line: the finding. objects: the new run's lines on the objects with the finding's key.
    """
    if key is None:
        return ChangeKind.RESOLVED
    outcomes = {one.outcome for one in objects if line.version_id in (None, one.version_id)} - {Outcome.VANISHED}
    if not outcomes:
        return ChangeKind.GONE
    return ChangeKind.UNREAD if Outcome.UNDECIDED in outcomes else ChangeKind.RESOLVED


def _verdicts(key: str | None, old: Sequence[ObjectLine], new: Sequence[ObjectLine]) -> Iterator[RunChange]:
    before = {line.version_id: line.verdict for line in old}
    worst_first = list(Verdict)
    for line in new:
        was, now = before.get(line.version_id), line.verdict
        if was is not None and now is not None and was is not now:
            worse = worst_first.index(now) < worst_first.index(was)
            kind = ChangeKind.WORSENED if worse else ChangeKind.IMPROVED
            yield RunChange(kind, key, line.version_id, before=was, after=now)


def _by_key(*streams: Iterable[ObjectLine | FindingLine]) -> Iterator[tuple[str | None, list[list[Any]]]]:
    """Merge streams of lines: yield each key with a list of its lines from every stream. The keys come in the order of
    their UTF-8 bytes, as S3 lists them; lines on the bucket (key None) come first.
    """
    marked = [_marked(number, stream) for number, stream in enumerate(streams)]
    for _, group in groupby(merge(*marked, key=_order), key=_order):
        groups: list[list[Any]] = [[] for _ in streams]
        for number, line in group:
            groups[number].append(line)
        yield next(line.key for lines in groups for line in lines), groups


def _marked(number: int, stream: Iterable[T]) -> Iterator[tuple[int, T]]:
    for line in stream:
        yield number, line


def _order(marked: tuple[int, ObjectLine | FindingLine]) -> tuple[bool, bytes]:
    key = marked[1].key
    return key is not None, (key or "").encode(errors="surrogatepass")
