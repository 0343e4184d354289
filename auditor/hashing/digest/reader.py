"""Read the bytes of one object version into buffers. If a response body breaks off, a new call continues after its last
byte.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Self

from msgspec import Struct, field

from auditor.aio.backoff import backoff
from auditor.aws.failures import is_throttle, is_transient
from auditor.errors import CallFailed
from auditor.hashing.queue.message import HashTask
from auditor.s3.engines.base import Body, Span
from auditor.s3.paced_reads import Reads

FRUITLESS: Final = 5
"""Number of calls in a row without progress after which the reading fails."""
HARDLY: Final = 64 * 1024
"""Number of bytes. A call that times out after fewer bytes counts as no progress: a very slow body would take days."""
SHARE: Final = 16
"""A call whose body breaks off counts as progress if it brought enough bytes: HARDLY bytes, or one part in SHARE (a
sixteenth) of the bytes that it asked for. At 50 bytes a call, 23 MB would take 465,000 calls."""
SHORT: Final = "ByteCount"
"""Error code of a response body that has fewer or more bytes than S3 announced."""


class ObjectSource(Struct):
    """The object version to read. It also has counts and checksums, which all readers of the object share."""

    engine: Reads
    task: HashTask
    sleep: Callable[[float], Awaitable[None]]
    stored: Mapping[str, str] = field(default_factory=dict)
    """The object's checksums in S3, which S3's first answer names."""
    bytes_read: int = 0
    """Number of bytes that all readers have read, bytes before a checkpoint included."""
    throttled: int = 0
    """Number of answers in which S3 asked for fewer calls."""

    def get(self, first: int, end: int) -> AbstractAsyncContextManager[Body]:
        """GET the object's bytes from `first` up to `end` (excluded).

        S3's answer names the object's checksums only if the call is for the whole object, without a range.
        """
        task = self.task
        if first == 0 and end == task.size:
            # The null version keeps its version ID when it is overwritten, so the call names its ETag too.
            pinned = task.version_id not in (None, "null")
            return self.engine.get(task.key, task.version_id, None if pinned else task.etag)
        return self.engine.get(task.key, task.version_id, task.etag, Span(first, end - 1))


class ResumingReader:
    """Reads an object's bytes from `first` up to `end` (excluded), in order, by as many calls as are needed. Use it in
    an `async with` block.

    position: the next byte to read. Raises CallFailed with S3's error code, with PreconditionFailed if the object was
    overwritten, or with SizeDiffers if it has another size. A failure that a new call may repair is raised only after
    FRUITLESS calls in a row without progress.
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
        """GET the bytes from the position to the end, by one call, and return the response body. Raises CallFailed."""
        source, task = self._source, self._source.task
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
        """Open the response body before the first fill(), with the same retries as in fill()."""
        while self._body is None:
            try:
                await self.open()
            except CallFailed as failure:
                await self._recover(failure)

    async def fill(self, view: memoryview) -> None:
        """Read bytes until the view is full. If the response body breaks off, continue with a new call."""
        filled = 0
        while filled < len(view):
            count, failure = await self._read(view[filled:])
            filled += count
            if failure is not None:
                await self._recover(failure)

    async def finish(self) -> None:
        """Check that the response body has no more bytes. Raises CallFailed with the code ByteCount if it has."""
        if (
            self._body is not None
            and self.position == self._end
            and await self._body.readinto(memoryview(bytearray(1)))
        ):
            raise CallFailed("GetObject", SHORT)

    async def _read(self, view: memoryview) -> tuple[int, CallFailed | None]:
        """Read bytes into the view, by one call. Return their number, and the failure if the view is not full."""
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

    async def _recover(self, failure: CallFailed) -> None:
        """Wait after a failure until the next call may be made. Raise the failure if no further call is worthwhile."""
        await self.__aexit__(None, None, None)
        share = max(1, (self._end - self._opened_at) // SHARE)
        progress = HARDLY if failure.code == "Timeout" else min(HARDLY, share)
        self._fruitless = 0 if self.position - self._opened_at >= progress else self._fruitless + 1
        self._opened_at = self.position
        self._source.throttled += is_throttle(failure)
        if not (is_transient(failure) or failure.code == SHORT) or self._fruitless >= FRUITLESS:
            raise failure
        if self._fruitless:
            await self._source.sleep(backoff(self._fruitless, 0.2, 20.0))
