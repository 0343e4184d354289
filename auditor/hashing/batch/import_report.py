"""Takes a completion report into the ledger as S3's word; the size of each object, which it lacks, is asked of S3."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import islice
from typing import Any, Final

from auditor.aio.groups import together
from auditor.aws.failures import is_gone
from auditor.errors import CallFailed, DigestConflict, UsageError
from auditor.hashing.batch.report import Checksum, Task, checksum_of, tasks
from auditor.hashing.batch.report_files import Place, fetched, report_files
from auditor.ledger.base import S3, Entry, Ledger
from auditor.model.dates import now_in_utc
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine

log = logging.getLogger(__name__)

BATCH: Final = 32
"""Objects that are looked at side by side."""
SHOWN: Final = 100
"""Most failures that are named; all are counted."""

OpenBucket = Callable[[str], AbstractAsyncContextManager[tuple[Engine, Caller]]]


@dataclass(slots=True)
class ImportCounts:
    """What a report came to. Each of its tasks is in one of the seven numbers.

    recorded: new in the ledger. known: there already. superseded: gone or overwritten since the job read it. failed: of
    the job, or not to be looked at now. composite: no digest of the object. unusable: an algorithm or a form that we do
    not know. conflicts: the ledger has another digest of the very same object. failures: the first of those that
    failed, with their codes; conflicting likewise.
    """

    recorded: int = 0
    known: int = 0
    superseded: int = 0
    failed: int = 0
    composite: int = 0
    unusable: int = 0
    conflicts: int = 0
    failures: list[dict[str, str | None]] = field(default_factory=list)
    conflicting: list[dict[str, str | None]] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """4: something failed; 3: a conflict."""
        return 4 if self.failed else 3 if self.conflicts else 0

    def fail(self, task: Task, code: str) -> None:
        self.failed += 1
        _name(self.failures, task, code)

    def conflict(self, task: Task) -> None:
        self.conflicts += 1
        _name(self.conflicting, task, "DigestConflict")


def _name(named: list[dict[str, str | None]], task: Task, code: str) -> None:
    if len(named) < SHOWN:
        named.append({"bucket": task.bucket, "key": task.key, "version_id": task.version_id, "code": code})


class Importer:
    """Of reports into one ledger. open_bucket: opens an engine for the bucket of a task, and what calls it."""

    def __init__(self, ledger: Ledger, open_bucket: OpenBucket) -> None:
        self.told = ImportCounts()
        self._ledger = ledger
        self._open_bucket = open_bucket
        self._stack = AsyncExitStack()
        self._bucket: str | None = None
        self._opened: tuple[Engine, Caller] | None = None

    async def close(self) -> None:
        await self._stack.aclose()

    async def take(self, place: Place, given: str) -> None:
        """Every file of one report; what it says of an object goes to the ledger before the next file is fetched."""
        for file in await asyncio.to_thread(report_files, place, given):
            with ExitStack() as stack:
                spool = await asyncio.to_thread(stack.enter_context, fetched(place, file))
                lines = stack.enter_context(TextIOWrapper(spool, encoding="utf-8", newline=""))
                found = _decoded(tasks(lines, file.columns, file.name), file.name)
                while batch := list(islice(found, BATCH)):
                    await self._record(batch)

    async def _record(self, batch: Iterable[Task]) -> None:
        wanted: list[tuple[Task, Checksum]] = []
        for task in batch:
            if not task.succeeded:
                self.told.fail(task, task.code)
            elif isinstance(found := checksum_of(task), Checksum):
                wanted.append((task, found))
            elif found == "composite":
                self.told.composite += 1
            else:
                self.told.unusable += 1
        entries: list[tuple[Task, Entry]] = []
        for bucket in dict.fromkeys(task.bucket for task, _ in wanted):
            engine, caller = await self._reach(bucket)
            mine = [(task, found) for task, found in wanted if task.bucket == bucket]
            looked = await together(self._look(engine, caller, task, found) for task, found in mine)
            entries += [(task, entry) for (task, _), entry in zip(mine, looked, strict=True) if entry is not None]
        if not entries:
            return
        written = await self._ledger.record_many([entry for _, entry in entries])
        for (task, _), one in zip(entries, written, strict=True):
            if isinstance(one, DigestConflict):
                log.error("%s", one)
                self.told.conflict(task)
            elif one:
                self.told.recorded += 1
            else:
                self.told.known += 1

    async def _look(self, engine: Engine, caller: Caller, task: Task, found: Checksum) -> Entry | None:
        """The object as it is now, if it is still the one that the job read: the report tells no size."""
        try:
            head = await caller.call(
                "head", "HeadObject", lambda: engine.head(task.key, task.version_id, checksum=False)
            )
        except CallFailed as failure:
            if is_gone(failure):
                self.told.superseded += 1
            else:
                self.told.fail(task, failure.code)
            return None
        if head.etag != found.etag:
            self.told.superseded += 1
            return None
        return Entry(
            bucket=task.bucket,
            key=task.key,
            version_id=task.version_id,
            etag=head.etag,
            size=head.content_length,
            digests={found.algorithm: found.digest},
            hashed_at=now_in_utc(),
            source=S3,
        )

    async def _reach(self, bucket: str) -> tuple[Engine, Caller]:
        """One bucket is kept open at a time: a job's manifest has but one."""
        if self._opened is None or self._bucket != bucket:
            await self._stack.aclose()
            self._stack = AsyncExitStack()
            self._opened = await self._stack.enter_async_context(self._open_bucket(bucket))
            self._bucket = bucket
        return self._opened


def _decoded(found: Iterator[Task], name: str) -> Iterator[Task]:
    try:
        yield from found
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: fetch the report again") from error


def as_json(told: ImportCounts) -> dict[str, Any]:
    names = ("recorded", "known", "superseded", "failed", "composite", "unusable", "conflicts")
    return {**{name: getattr(told, name) for name in names}, "failures": told.failures, "conflicting": told.conflicting}
