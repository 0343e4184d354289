"""Ask a run what a change would do: judge each object before and after the change, from the run folder alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from auditor.config import values
from auditor.errors import OutputError, RunStopped, UsageError
from auditor.model.access import ObjectAccess
from auditor.model.dates import iso_date
from auditor.model.json_codec import encode_line
from auditor.model.object import Evidence, Outcome
from auditor.model.run_lines import ObjectLine
from auditor.offline.what_if_report import AccessChange, WhatIfCounts, change_of, changed_line, render
from auditor.progress import Snapshot
from auditor.runs.reading import RunReader
from auditor.runs.run_files import RunPlan
from auditor.runs.stores.local import private
from auditor.text import counted, visible
from auditor.verdict.change import OF_ACLS, OF_POLICIES, BucketChange, ChangedObjects
from auditor.verdict.judge import VerdictJudge
from auditor.verdict.policy_text import PolicyTextError, check_policy, statement_lines, statements_of_others

MOST_BYTES: Final = 1_000_000
"""Largest size of a policy file. S3 takes policies of 20 KB."""

_AT_ONCE: Final = 1024
"""Number of objects after which the work looks if it is to stop."""

Sink = Callable[[bytes], object]
"""A function that receives the JSON line of each object that a change moves, or makes unpredictable."""


def ignored_line(line: bytes) -> None:
    """Take a line and do nothing."""


class WhatIf(Struct, frozen=True, kw_only=True):
    """The answer of a run to a change. words: the change in words. remarks: sentences on what may keep S3 from
    accepting the change, and on what the run does not tell.
    """

    run: str
    target: str
    complete: bool
    change: BucketChange
    words: tuple[str, ...]
    counts: WhatIfCounts
    remarks: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """The exit code of `auditor what-if`: 4 if something is not predictable, 3 for a new exposure, else 0."""
        return self.counts.exit_code if self.complete else 4

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as the JSON value that `auditor what-if --format json` prints."""
        return {
            "run": self.run,
            "target": self.target,
            "complete": self.complete,
            "change": list(self.words),
            **self.counts.to_dict(),
            "remarks": list(self.remarks),
        }

    def table(self, columns: int) -> str:
        """Return the answer as a table for a terminal, safe to print."""
        head = [("What if", words) for words in self.words]
        whole = "complete" if self.complete else "NOT complete"
        objects = counted(self.counts.objects, "object")
        head.append(("Run", f"{self.run} of {visible(self.target)}, {whole}, {objects}"))
        return render(head, self.counts, self.remarks, columns)


class ChangedJudge:
    """Tells the access that each object of a run would give if settings of its bucket were changed; with
    BucketChange(), that of today. Dates in conditions are judged for the time of the run.

    Raises OutputError if run.json is damaged.
    """

    def __init__(self, run: RunReader, file: RunPlan, change: BucketChange) -> None:
        try:
            now = iso_date(file.now)
        except ValueError as error:
            raise OutputError(f"the time in run.json of the run {file.run} is damaged: audit again") from error
        trusted = values.trusted(file.configuration.get("trusted", ()), f"{run.uri}/run.json")
        self._objects = ChangedObjects(file.facts, change)
        self._judge = VerdictJudge(change.facts(file.facts), trusted | change.trusted, file.target.versions, now)

    def access(self, found: Evidence) -> ObjectAccess:
        ref, changed = self._objects.object(found.ref, found.acl, found.dormant)
        return self._judge.access(ref, changed, found.head, self._objects.hidden(found.dormant))


class WhatIfQuestion:
    """Asks a run about a change. Call answer() once; it blocks.

    policy_name: name of the new policy's file, for the words; None if it has none. sink: takes the line of each object
    that the change moves, or makes unpredictable. stopped: returns True once the work is to stop. Raises UsageError for
    a change of nothing, and for a run without the facts of its bucket.
    """

    def __init__(
        self,
        run: RunReader,
        change: BucketChange,
        *,
        policy_name: str | None = None,
        sink: Sink = ignored_line,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        if change.nothing:
            raise UsageError(
                "no change is named: give --policy FILE, --acls-off, --block-public-access or another change"
            )
        self._run = run
        self._file = run.begun_with
        self._change = change
        self._others = self._of_others(change.policy or "")
        self._policy_name = policy_name
        self._sink = sink
        self._stopped = stopped
        self._counts = WhatIfCounts()
        self._started = time.monotonic()

    def _of_others(self, policy: str) -> list[str]:
        """Return the names of the statements that name no resource of the bucket. Raises UsageError if all are such:
        the answer would be about another bucket than the policy.
        """
        others = statements_of_others(policy, self._run.bucket_name)
        if others and len(others) == len(statement_lines(policy)):
            raise UsageError(
                f"the policy names no resource in the bucket {self._run.bucket_name}: is it another bucket's policy?"
            )
        return others

    def answer(self) -> WhatIf:
        """Judge each object of the run before and after the change, and count the differences.

        Raises RunStopped if the work was stopped.
        """
        counts, file = self._counts, self._file
        for line, change in self._compared():
            counts.judged_otherwise += change.before.verdict is not line.verdict
            counts.add(line.key, line.version_id, change)
            if change.moves or not change.predictable:
                self._sink(encode_line(changed_line(line.key, line.version_id, change)))
            if not counts.objects % _AT_ONCE and self._stopped():
                raise RunStopped(f"the run {self._run.run_id} was not read to its end: run the command again")
        return WhatIf(
            run=self._run.run_id,
            target=file.target.uri,
            complete=self._run.complete,
            change=self._change,
            words=tuple(_words(self._change, self._policy_name)),
            counts=counts,
            remarks=(
                *(
                    f"S3 refuses the policy: its statement {visible(name)} names another bucket"
                    for name in self._others
                ),
                *self._change.remarks(file.facts),
                *_holes(self._run, counts),
            ),
        )

    def _compared(self) -> Iterator[tuple[ObjectLine, AccessChange]]:
        """Yield each object with the access before and after the change."""
        before, after = (ChangedJudge(self._run, self._file, change) for change in (BucketChange(), self._change))
        for line in self._run.objects():
            if line.outcome is Outcome.VANISHED:
                continue
            found = line.evidence
            yield line, change_of(before.access(found), after.access(found))

    def snapshot(self) -> Snapshot:
        """Return the present counts, for a progress line."""
        summary = self._run.summary
        return Snapshot(
            what=f"run {self._run.run_id}",
            objects=self._counts.objects,
            seconds=time.monotonic() - self._started,
            detail=f"{self._counts.changed:,} changed",
            expected=None if summary is None else summary.coverage.listed,
        )


def _holes(run: RunReader, counts: WhatIfCounts) -> Iterator[str]:
    if not run.complete:
        yield "the run is not complete: the change may touch objects that it did not reach"
    if counts.judged_otherwise:
        others = counted(counts.judged_otherwise, "object")
        yield f"{others} had another verdict in the run, by another version's rules: `before` is this version's"


def _words(change: BucketChange, policy_name: str | None) -> Iterator[str]:
    """Yield the parts of the change in words, safe to print."""
    if change.acls is not None:
        yield "ACLs count again" if change.acls else "ACLs are off (BucketOwnerEnforced)"
    if change.policy is not None:
        named = "a new one" if policy_name is None else visible(policy_name)
        yield f"the bucket policy is {named if change.policy else 'deleted'}"
    if change.block is not None:
        yield "all public access is blocked" if change.block else "the bucket has no public access block"
    if change.switches >= OF_ACLS:
        yield "BlockPublicAcls and IgnorePublicAcls are on"
    if change.switches >= OF_POLICIES:
        yield "BlockPublicPolicy and RestrictPublicBuckets are on"
    if change.requester_pays:
        yield "the requester pays"
    if change.trusted:
        yield f"trusted too: {', '.join(visible(entry) for entry in sorted(change.trusted))}"


def read_policy(path: str) -> str:
    """Return the text of a policy file. Raises UsageError, which names the line, if it is no bucket policy."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"the policy file {visible(path)} cannot be read ({reason}): check --policy") from error
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"the policy file {visible(path)} is larger than {MOST_BYTES:,} bytes: S3 accepts at most 20 KB"
        )
    try:
        return checked_policy(data.decode("utf-8-sig"), f"the policy file {visible(path)}")
    except UnicodeDecodeError as error:
        raise UsageError(f"the policy file {visible(path)} is not UTF-8: save it as UTF-8") from error


def checked_policy(text: str, source: str) -> str:
    """Return the text. Raises UsageError, which names the source and the line, if it is no bucket policy."""
    try:
        check_policy(text)
    except PolicyTextError as error:
        raise UsageError(f"{source} is not a bucket policy: {error}") from error
    return text


@contextmanager
def lines_to(path: str | None) -> Iterator[Sink]:
    """Yield a function that writes lines into the file `path`; None: they are not written. Raises OutputError."""
    if path is None:
        yield ignored_line
        return
    try:
        with open(path, "wb", opener=private) as file:
            yield file.write
    except OSError as error:
        raise OutputError(
            f"the --keys file {visible(path)} cannot be written ({error.strerror}): give another file"
        ) from error
