"""One pass over one object: its bytes read by one stream or several, hashed in order, paused and gone on with."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final

from auditor.aio.budget import InFlightBudget
from auditor.aio.groups import task_group
from auditor.errors import CallFailed, CheckpointError
from auditor.hashing.digest import resumable as carried
from auditor.hashing.digest.buffers import Buffers
from auditor.hashing.digest.checkpoint import Binding, HashProgress, opened, sealed
from auditor.hashing.digest.digester import (
    CRC64NVME,
    CarriedDigester,
    Digester,
    has_crc64nvme,
    make_carried,
    make_digester,
)
from auditor.hashing.digest.digester_thread import INLINE, DigestThread
from auditor.hashing.digest.parallel import ParallelRanges
from auditor.hashing.digest.reader import ObjectSource, ResumingReader
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Paused, Result, classify
from auditor.hashing.digest.streams import BUFFER, MEMORY, Fixed, Tuner, core_share, layout, make_tuner
from auditor.hashing.queue.message import HashTask
from auditor.s3.engines.base import Engine

log = logging.getLogger(__name__)

BUFFERS: Final = 4
"""Of one stream: one is filled, one is hashed, and two wait, so that neither side stops at each buffer."""
_POLL: Final = 0.5
"""Seconds between questions whether to stop, while a read waits."""


class _Stopping(Exception):  # noqa: N818 - it only leads out of the reading
    """It was told to stop."""


class ObjectDigester:
    """Reads and digests one object; what the arguments mean is said at hashing.hash_object."""

    def __init__(
        self,
        engine: Engine,
        task: HashTask,
        algorithms: Sequence[str],
        *,
        bucket: str,
        chunk_size: int,
        streams: int | None,
        executor: Executor | None,
        memory: InFlightBudget | None,
        stop: Callable[[], object] | None,
        save: Callable[[Mapping[str, Any] | None], Awaitable[None]] | None,
        save_seconds: float,
        turn: Callable[[], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._task = task
        self._algorithms = tuple(dict.fromkeys(algorithms))
        self._binding = Binding.of(bucket, task, self._algorithms)
        self._source = ObjectSource(engine, task, turn, sleep)
        self._small = task.size <= INLINE
        self._chunk_size = max(carried.BLOCK, min(chunk_size, BUFFER) // carried.BLOCK * carried.BLOCK)
        self._executor = None if self._small else executor
        self._streams = streams
        self._memory = memory or InFlightBudget(1, MEMORY)
        self._borrowed = 0
        self._first = 0
        self._granted = 1
        self._stop = None if self._small else stop
        self._save = None if self._small else save
        self._save_seconds = save_seconds
        self._saved_at = time.monotonic()
        self._digester: Digester
        self._feed: DigestThread
        self._tuner: Tuner | Fixed
        self._throttled = 0
        self._core = core_share()

    async def run(self, checkpoint: Mapping[str, Any] | None) -> Result:
        """Read and digest it, from a checkpoint when there is one that is right."""
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
                return Failed(self._task, result.code, retryable=False)  # it was tried again as often as is fit
            return result
        finally:
            self._memory.repay(self._borrowed)

    def _progress(self, checkpoint: Mapping[str, Any] | None) -> HashProgress | None:
        if checkpoint is None:
            return None
        if self._small:
            return None
        reason = carried.refusal()
        if reason is None:
            try:
                progress = opened(checkpoint, self._binding)
            except CheckpointError as error:
                reason = str(error)
            else:
                self._source.stored = progress.stored
                self._source.bytes_read = progress.bytes_read
                return progress
        log.warning("an object is hashed from its start: %s", reason)
        return None

    def _prepare(self, progress: HashProgress | None) -> None:
        """Choose the kind of digests, once it is known what S3 stores."""
        stored = self._source.stored
        names = list(self._algorithms)
        if CRC64NVME in stored and CRC64NVME not in names and has_crc64nvme():
            names.append(CRC64NVME)
        digester: Digester | None = None
        if progress is not None:
            names = [name for name in names if name in progress.states]
            digester = make_carried(names, progress.states, progress.bytes)
        elif self._stop is not None or self._save is not None:
            digester = make_carried(names)
        self._digester = digester or make_digester(names)
        self._feed = DigestThread(self._digester, self._executor)
        left = self._task.size - self._digester.count
        self._tuner = make_tuner(self._streams, left, time.monotonic())

    async def _hash(self, reader: ResumingReader) -> Result:
        try:
            await self._until_stop(self._read(reader))
            await self._feed.empty()
        except _Stopping:
            await self._feed.empty()
            if self._digester.count < self._task.size:
                checkpoint = self._checkpoint()
                reason = "" if checkpoint is not None else carried.refusal() or ""
                count = self._digester.count
                return Paused(self._task, checkpoint, count, reason, count - self._first)
        finally:
            self._feed.abandon()
        return self._compared()

    def _compared(self) -> Hashed | Mismatch:
        digests, stored = self._digester.hexdigests(), self._source.stored
        same: list[str] = []
        for name, digest in digests.items():
            if name in stored and stored[name] != digest:
                return Mismatch(self._task, name, digest, stored[name], self._source.bytes_read)
            if name in stored:
                same.append(name)
        wanted = {name: digests[name] for name in self._algorithms}
        return Hashed(self._task, wanted, self._source.bytes_read, tuple(same))

    async def _until_stop(self, work: Coroutine[Any, Any, object]) -> None:
        """Raises _Stopping when it is time to, while the work waits for S3 as well."""
        if self._stop is None:
            await work
            return
        async with task_group() as group:
            watch = group.create_task(self._watch(self._stop))
            await work
            watch.cancel()

    async def _watch(self, stop: Callable[[], object]) -> None:
        while True:
            await asyncio.sleep(_POLL)
            if stop():
                raise _Stopping

    async def _read(self, reader: ResumingReader) -> None:
        """Feed every byte that is left, now by one stream, now by several."""
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
        """Until the end, or until several streams are to be tried."""
        size = self._task.size
        length = min(self._chunk_size, size)
        buffers = Buffers(length, BUFFERS)
        while reader.position < size and self._wanted() == 1:
            buffer = await buffers.take()
            view = memoryview(buffer)[: min(length, size - reader.position)]
            await reader.fill(view)
            self._feed.put(view, partial(buffers.give, buffer))
            if reader.position < size:
                await self._between()

    async def _several(self, reader: ResumingReader) -> int:
        """Until the end, or until one stream is as good; the position where it ended."""
        size = self._task.size
        async with task_group() as group:
            blocks = ParallelRanges(self._source, reader, size, group)
            try:
                used = 0
                while True:
                    wanted = self._wanted()
                    if wanted != used:
                        used = wanted
                        blocks.use(wanted if wanted > 1 else 0, layout(wanted, size - blocks.position))
                    piece = await blocks.next()
                    if piece is None:
                        return blocks.position
                    self._feed.put(piece.view, partial(blocks.give, piece))
                    if piece.end < size:
                        await self._between()
            finally:
                blocks.stop()

    async def _between(self) -> None:
        """After a buffer and before the next: stop, or save, where it is time to."""
        if self._stop is not None and self._stop():
            raise _Stopping
        if self._save is not None and time.monotonic() - self._saved_at >= self._save_seconds:
            await self._feed.empty()
            await self._save(self._checkpoint())
            self._saved_at = time.monotonic()

    def _checkpoint(self) -> dict[str, Any] | None:
        """Of what is hashed now, while nothing is being hashed."""
        digester, source = self._digester, self._source
        if not isinstance(digester, CarriedDigester):
            return None
        stored = {name: digest for name, digest in source.stored.items() if name in digester.names}
        progress = HashProgress(
            bytes=digester.count, states=digester.states(), stored=stored, bytes_read=source.bytes_read
        )
        return sealed(self._binding, progress)

    def _wanted(self) -> int:
        """How many streams to have now; memory for their blocks is borrowed."""
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
