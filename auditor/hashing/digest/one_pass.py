"""Hash one object in one pass: read its bytes by one stream or several, hash them in order, and pause and continue.

A stream is a connection that reads a part of the object.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from auditor.aio.budget import InFlightBudget
from auditor.aio.stop import POLL
from auditor.aio.tasks import task_group
from auditor.errors import CallFailed, CheckpointError
from auditor.hashing.digest import resumable
from auditor.hashing.digest.checkpoint import Binding, HashProgress, opened, sealed
from auditor.hashing.digest.digester import (
    CRC64NVME,
    INLINE,
    Buffers,
    Digester,
    DigestThread,
    ResumableDigester,
    has_crc64nvme,
    make_digester,
    make_resumable,
)
from auditor.hashing.digest.options import Checkpoint, HashOptions
from auditor.hashing.digest.parallel import ParallelRanges
from auditor.hashing.digest.reader import ObjectSource, ResumingReader
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Paused, Result, classify
from auditor.hashing.digest.streams import MEMORY, Fixed, Tuner, core_share, layout, make_tuner
from auditor.hashing.queue.message import HashTask
from auditor.s3.paced_reads import Reads

log = logging.getLogger(__name__)

BUFFERS: Final = 4
"""Number of buffers of one stream. One is being filled, one is being hashed, and two wait, so that neither the reading
nor the hashing stops at each buffer."""


class _Stopping(Exception):  # noqa: N818 - it only leads out of the reading
    """Ends the reading, after `options.stop` has asked the hashing to pause."""


class ObjectDigester:
    """Reads and hashes one object. Call run() once."""

    def __init__(self, engine: Reads, task: HashTask, algorithms: Sequence[str], options: HashOptions) -> None:
        self._task = task
        self._algorithms = tuple(dict.fromkeys(algorithms))
        self._options = options
        self._binding = Binding(options.bucket, task, self._algorithms)
        self._source = ObjectSource(engine, task, options.sleep)
        # A small object is hashed on the event loop, without pauses and checkpoints.
        self._small = task.size <= INLINE
        self._executor = None if self._small else options.executor
        self._stop = None if self._small else options.stop
        self._save = None if self._small else options.save
        self._buffer_size = max(resumable.BLOCK, options.buffer_size // resumable.BLOCK * resumable.BLOCK)
        self._memory = options.memory or InFlightBudget(1, MEMORY)
        self._borrowed = 0
        self._first = 0
        self._granted = 1
        self._saved_at = time.monotonic()
        self._digester: Digester
        self._thread: DigestThread
        self._tuner: Tuner | Fixed
        self._throttled = 0
        self._core = core_share()

    async def run(self, checkpoint: Checkpoint | None) -> Result:
        """Read and hash the object, and return the result.

        checkpoint: where to continue; None, or a checkpoint that does not fit, to begin at the first byte.
        """
        progress = self._progress(checkpoint)
        first = self._first = progress.bytes if progress is not None else 0
        before = self._source.bytes_read
        try:
            reader = ResumingReader(self._source, first, self._task.size)
            async with reader:
                try:
                    await self._until_stop(reader.open())
                except _Stopping:
                    return Paused(self._task, checkpoint if progress is not None else None, first)
                self._prepare(progress)
                return await self._hash(reader)
        except CallFailed as failure:
            result = classify(self._task, failure)
            if isinstance(result, Failed) and self._source.bytes_read > before:
                return replace(result, retryable=False)  # the reader has made all its attempts
            return result
        finally:
            if self._borrowed:
                self._memory.repay(self._borrowed)

    def _progress(self, checkpoint: Checkpoint | None) -> HashProgress | None:
        """Return the progress in a usable checkpoint; None if the hashing has to begin at the object's first byte."""
        if checkpoint is None or self._small:
            return None
        reason = resumable.refusal()
        if reason is None:
            try:
                progress = opened(checkpoint, self._binding)
            except CheckpointError as error:
                reason = str(error)
            else:
                self._source.stored = progress.stored
                self._source.bytes_read = progress.bytes_read
                return progress
        log.warning("hashing an object from its start: %s", reason)
        return None

    def _prepare(self, progress: HashProgress | None) -> None:
        """Make the digester. Call this after S3's first answer, which names the checksums to compare the digests
        with.
        """
        stored = self._source.stored
        names = list(self._algorithms)
        if CRC64NVME in stored and CRC64NVME not in names and has_crc64nvme():
            names.append(CRC64NVME)
        digester: Digester | None = None
        if progress is not None:
            names = [name for name in names if name in progress.states]
            digester = make_resumable(names, progress.states, progress.bytes)
        elif self._stop is not None or self._save is not None:
            digester = make_resumable(names)
        self._digester = digester or make_digester(names)
        self._thread = DigestThread(self._digester, self._executor)
        rest = self._task.size - self._digester.count
        self._tuner = make_tuner(self._options.streams, rest, time.monotonic())

    async def _hash(self, reader: ResumingReader) -> Result:
        try:
            await self._until_stop(self._read(reader))
            await self._thread.empty()
        except _Stopping:
            await self._thread.empty()
            if self._digester.count < self._task.size:
                checkpoint = self._checkpoint()
                reason = "" if checkpoint is not None else resumable.refusal() or ""
                count = self._digester.count
                return Paused(self._task, checkpoint, count, reason, count - self._first)
        finally:
            self._thread.abandon()
        return self._compared()

    def _compared(self) -> Hashed | Mismatch:
        """Return the result of a completely hashed object: Mismatch if a digest differs from S3's checksum, else
        Hashed.
        """
        digests, stored = self._digester.hexdigests(), self._source.stored
        for name, digest in digests.items():
            if name in stored and stored[name] != digest:
                return Mismatch(self._task, name, digest, stored[name], self._source.bytes_read)
        return Hashed(self._task, {name: digests[name] for name in self._algorithms}, self._source.bytes_read)

    async def _until_stop(self, work: Coroutine[Any, Any, object]) -> None:
        """Wait for the work to end. Raises _Stopping at a stop, even while the work waits for S3."""
        if self._stop is None:
            await work
            return
        async with task_group() as group:
            watch = group.create_task(self._watch(self._stop))
            await work
            watch.cancel()

    async def _watch(self, stop: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(POLL)
            if stop():
                raise _Stopping

    async def _read(self, reader: ResumingReader) -> None:
        """Read and hash the rest of the object, at any time by as many streams as the tuner wants."""
        size = self._task.size
        while True:
            async with reader:
                await self._one_stream(reader)
                if reader.position == size:
                    await reader.finish()
                    return
                position = await self._several(reader)
            if position == size:
                return
            reader = ResumingReader(self._source, position, size)

    async def _one_stream(self, reader: ResumingReader) -> None:
        """Read by one stream, up to the object's end, or until the tuner wants several streams."""
        size = self._task.size
        length = min(self._buffer_size, size)
        buffers = Buffers(length, BUFFERS)
        while reader.position < size and self._wanted() == 1:
            buffer = await buffers.take()
            view = memoryview(buffer)[: min(length, size - reader.position)]
            await reader.fill(view)
            self._thread.put(view, partial(buffers.give, buffer))
            if reader.position < size:
                await self._between()

    async def _several(self, reader: ResumingReader) -> int:
        """Read by several streams, up to the object's end, or until the tuner wants one stream. Return the position
        reached.
        """
        size = self._task.size
        async with task_group() as group:
            ranges = ParallelRanges(self._source, reader, size, group)
            try:
                used = 0
                while True:
                    wanted = self._wanted()
                    if wanted != used:
                        used = wanted
                        ranges.use(wanted if wanted > 1 else 0, layout(wanted, size - ranges.position))
                    piece = await ranges.next()
                    if piece is None:
                        return ranges.position
                    self._thread.put(piece.view, partial(ranges.give, piece))
                    if piece.end < size:
                        await self._between()
            finally:
                ranges.stop()

    async def _between(self) -> None:
        """Do the work between two buffers: raise _Stopping at a stop, and save a checkpoint when it is time."""
        if self._stop is not None and self._stop():
            raise _Stopping
        if self._save is not None and time.monotonic() - self._saved_at >= self._options.save_seconds:
            await self._thread.empty()
            await self._save(self._checkpoint())
            self._saved_at = time.monotonic()

    def _checkpoint(self) -> dict[str, Any] | None:
        """Return a checkpoint at the last hashed byte; None if the digester's state cannot be saved. Call this between
        buffers.
        """
        digester, source = self._digester, self._source
        if not isinstance(digester, ResumableDigester):
            return None
        stored = {name: digest for name, digest in source.stored.items() if name in digester.names}
        progress = HashProgress(
            bytes=digester.count, states=digester.states(), stored=stored, bytes_read=source.bytes_read
        )
        return sealed(self._binding, progress)

    def _wanted(self) -> int:
        """Return the number of streams that the tuner wants from now on, or fewer if the memory does not suffice."""
        now, tuner = time.monotonic(), self._tuner
        wanted = tuner.note(now, self._digester.count, time.process_time() / self._core)
        if self._source.throttled > self._throttled:
            self._throttled = self._source.throttled
            tuner.refused(now)
            wanted = tuner.streams
        while wanted != self._granted:
            needed = layout(wanted, self._task.size).memory if wanted > 1 else 0
            if needed <= self._borrowed or self._memory.borrow(needed - self._borrowed):
                self._memory.repay(max(0, self._borrowed - needed))
                self._borrowed, self._granted = needed, wanted
            else:
                tuner.refused(now)
                wanted = tuner.streams
        return wanted
