"""Read bytes of one object version into buffers, and continue a cut body after its last byte."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from auditor.aio.backoff import backoff
from auditor.aws.failures import is_throttle, is_transient
from auditor.errors import CallFailed
from auditor.hashing.queue.message import HashTask
from auditor.s3.engines.base import Body, Engine, Span

FRUITLESS: Final = 5
"""Calls in a row without a byte, after which a read fails."""
HARDLY: Final = 64 * 1024
"""Bytes below which a call that times out counts as fruitless too: a body that drips would be read for days."""
SHORT: Final = "ByteCount"
"""Code of a body that ended before its length, or went on after it."""


@dataclass(slots=True)
class ObjectSource:
    """One object version, and the counts of all its readers.

    turn: awaited before each call. stored: S3's checksums, from its first answer. bytes_read: by all readers.
    throttled: answers that asked for fewer calls.
    """

    engine: Engine
    task: HashTask
    turn: Callable[[], Awaitable[None]]
    sleep: Callable[[float], Awaitable[None]]
    stored: Mapping[str, str] = field(default_factory=dict)
    bytes_read: int = 0
    throttled: int = 0

    def get(self, first: int, end: int) -> AbstractAsyncContextManager[Body]:
        """GET the whole object without a range, since S3 tells checksums only then; else a span of the same version."""
        task = self.task
        if first == 0 and end == task.size:
            # The null version can be overwritten under its own name, so the call names its ETag too.
            pinned = task.version_id not in (None, "null")
            return self.engine.get(task.key, task.version_id, None if pinned else task.etag)
        return self.engine.get(task.key, task.version_id, task.etag, Span(first, end - 1))


class ResumingReader:
    """Reads the bytes from `first` to before `end`, in order; an async context manager. position: of the next byte.

    Raises CallFailed: PreconditionFailed for an overwritten object, SizeDiffers for another size, and the failure of
    GetObject when it does not pass, or is the fifth in a row with no byte, or timed out after hardly any.
    """

    def __init__(self, source: ObjectSource, first: int, end: int) -> None:
        self.position = first
        self._source = source
        self._end = end
        self._open: AbstractAsyncContextManager[Body] | None = None
        self._body: Body | None = None
        self._fruitless = 0
        self._opened_at = first

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened, self._open, self._body = self._open, None, None
        if opened is not None:
            await opened.__aexit__(kind, error, trace)

    async def open(self) -> Body:
        """GET the bytes from the position on; one attempt."""
        source, task = self._source, self._source.task
        await source.turn()
        opened = source.get(self.position, self._end)
        body = await opened.__aenter__()
        self._open, self._body, self._opened_at = opened, body, self.position
        if body.etag != task.etag:
            raise CallFailed("GetObject", "PreconditionFailed", 412)
        if body.length != self._end - self.position:
            raise CallFailed("GetObject", "SizeDiffers")
        if body.stored:
            source.stored = body.stored
        return body

    async def ready(self) -> None:
        """Open the body ahead of the first fill(), with as many attempts."""
        while self._body is None:
            try:
                await self.open()
            except CallFailed as failure:
                await self._recover(failure, advanced=False)

    async def fill(self, view: memoryview) -> None:
        """Fill the view."""
        filled = 0
        while filled < len(view):
            count, failure = await self._read(view[filled:])
            filled += count
            if failure is not None:
                await self._recover(failure, advanced=count > 0)

    async def finish(self) -> None:
        """Check that no byte follows the last one."""
        if (
            self._body is not None
            and self.position == self._end
            and await self._body.readinto(memoryview(bytearray(1)))
        ):
            raise CallFailed("GetObject", SHORT)

    async def _read(self, view: memoryview) -> tuple[int, CallFailed | None]:
        failure: CallFailed | None = None
        try:
            body = self._body or await self.open()
            count = await body.readinto(view)
            if count < len(view):
                failure = CallFailed("GetObject", SHORT)
        except CallFailed as error:
            count, failure = error.read, error
        self.position += count
        self._source.bytes_read += count
        return count, failure

    async def _recover(self, failure: CallFailed, *, advanced: bool) -> None:
        """Wait before the next call; raise the failure when no call is due."""
        await self.__aexit__(None, None, None)
        if failure.code == "Timeout":
            advanced = self.position - self._opened_at >= HARDLY
        self._opened_at = self.position
        self._fruitless = 0 if advanced else self._fruitless + 1
        self._source.throttled += is_throttle(failure)
        if not (is_transient(failure) or failure.code == SHORT) or self._fruitless >= FRUITLESS:
            raise failure
        if self._fruitless:
            await self._source.sleep(backoff(self._fruitless, 0.2, 20.0))
