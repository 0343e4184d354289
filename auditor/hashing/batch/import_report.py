"""Import a completion report of S3 Batch Operations: write its checksums into the ledger, as digests whose source is
S3.

A report does not give the sizes of the objects, so a HEAD reads the size of each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from io import TextIOWrapper
from itertools import islice
from typing import Final

from msgspec import Struct, field

from auditor.aio.tasks import together
from auditor.aws.failures import is_gone
from auditor.errors import CallFailed, DigestConflict, UsageError
from auditor.hashing.batch.report import Checksum, Task, checksum_of, fetched, report_files, tasks
from auditor.hashing.digest.result import entry_of
from auditor.ledger.base import S3, Entry, Ledger
from auditor.model.object import ObjectVersion
from auditor.runs.stores.base import Store
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine
from auditor.s3.engines.pool import EnginePool

log = logging.getLogger(__name__)

BATCH: Final = 32
"""Number of HEAD requests that are made at the same time."""
SHOWN: Final = 100
"""Largest number of failed tasks, and of conflicts, that are listed one by one. All of them are counted."""


class ImportCounts(Struct):
    """The counts of an import of completion reports.

    A task is one row of a report. Each task counts in exactly one of the first seven numbers.
    """

    recorded: int = 0
    """Tasks whose digest is new in the ledger."""
    known: int = 0
    """Tasks whose digest the ledger had already."""
    superseded: int = 0
    """Tasks whose object was deleted or overwritten after the job had read it."""
    failed: int = 0
    """Tasks that failed in the job, or whose object could not be read by HEAD now."""
    composite: int = 0
    """Tasks with a composite checksum: a hash of the checksums of the object's parts, not of the object's bytes."""
    unusable: int = 0
    """Tasks with an unknown algorithm or an unreadable checksum."""
    conflicts: int = 0
    """Tasks whose digest differs from the ledger's digest of the same object."""
    failures: list[dict[str, str | None]] = field(default_factory=list)
    """The first failed tasks, at most SHOWN, with their error codes."""
    conflicting: list[dict[str, str | None]] = field(default_factory=list)
    """The first tasks with a conflict, at most SHOWN."""

    @property
    def exit_code(self) -> int:
        """The command's exit code: 4 if a task failed; else 3 if a digest differs from the ledger's; else 0."""
        return 4 if self.failed else 3 if self.conflicts else 0

    def fail(self, task: Task, code: str) -> None:
        self.failed += 1
        _name(self.failures, task, code)

    def conflict(self, task: Task) -> None:
        self.conflicts += 1
        _name(self.conflicting, task, "DigestConflict")


def _name(named: list[dict[str, str | None]], task: Task, code: str) -> None:
    """Add the task and its error code to a list of failed or conflicting tasks, unless the list is full."""
    if len(named) < SHOWN:
        named.append({"bucket": task.bucket, "key": task.key, "version_id": task.version_id, "code": code})


class Importer(Struct, eq=False):
    """Imports completion reports into one ledger, and counts their tasks in `counts`.

    engines: lends the engine for calls to a bucket. caller_of: returns the Caller that limits and retries these calls.
    """

    ledger: Ledger
    engines: EnginePool[str]
    caller_of: Callable[[str], Caller]
    counts: ImportCounts = field(default_factory=ImportCounts)

    async def take(self, store: Store, given: str) -> None:
        """Import one completion report, and add its tasks to the counts.

        given: path of the report in the store, as report_files() takes it.
        """
        for file in await asyncio.to_thread(report_files, store, given):
            name = store.uri(file.path)
            with ExitStack() as stack:
                spool = await asyncio.to_thread(stack.enter_context, fetched(store, file))
                lines = stack.enter_context(TextIOWrapper(spool, encoding="utf-8", newline=""))
                rows = _decoded(tasks(lines, file.columns, name), name)
                while batch := list(islice(rows, BATCH)):
                    await self._record(batch)

    async def _record(self, batch: Iterable[Task]) -> None:
        wanted: list[tuple[Task, Checksum]] = []
        for task in batch:
            if not task.succeeded:
                self.counts.fail(task, task.code)
            elif isinstance(found := checksum_of(task), Checksum):
                wanted.append((task, found))
            elif found == "composite":
                self.counts.composite += 1
            else:
                self.counts.unusable += 1
        entries: list[tuple[Task, Entry]] = []
        for bucket in dict.fromkeys(task.bucket for task, _ in wanted):
            caller = self.caller_of(bucket)
            mine = [(task, found) for task, found in wanted if task.bucket == bucket]
            async with self.engines.lend(bucket) as engine:
                made = await together(self._entry(engine, caller, task, found) for task, found in mine)
            entries += [(task, entry) for (task, _), entry in zip(mine, made, strict=True) if entry is not None]
        if not entries:
            return
        written = await self.ledger.record_many([entry for _, entry in entries])
        for (task, _), one in zip(entries, written, strict=True):
            if isinstance(one, DigestConflict):
                log.error("%s", one)
                self.counts.conflict(task)
            elif one:
                self.counts.recorded += 1
            else:
                self.counts.known += 1

    async def _entry(self, engine: Engine, caller: Caller, task: Task, found: Checksum) -> Entry | None:
        """Return the ledger's entry for the checksum `found`, which the job computed for the task's object.

        Return None, and count the task, if the object has changed since the job read it, or if its HEAD fails.
        """
        try:
            head = await caller.call(
                "head", "HeadObject", lambda: engine.head(task.key, task.version_id, checksum=False)
            )
        except CallFailed as failure:
            if is_gone(failure):
                self.counts.superseded += 1
            else:
                self.counts.fail(task, failure.code)
            return None
        if head.etag != found.etag:
            self.counts.superseded += 1
            return None
        version = ObjectVersion(task.key, task.version_id, head.etag, head.content_length)
        return entry_of(task.bucket, version, {found.algorithm: found.digest}, source=S3)


def _decoded(found: Iterator[Task], name: str) -> Iterator[Task]:
    """Yield the tasks. A UnicodeDecodeError becomes a UsageError.

    name: name of the file, for the message.
    """
    try:
        yield from found
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: fetch the report again") from error
