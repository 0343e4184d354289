"""Compute the digests of an object by several algorithms while its bytes are read once.

A thread hashes filled buffers in order, while the event loop fills other buffers of the object's pool.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cache, partial
from queue import SimpleQueue
from typing import Final, Protocol

from auditor.aio.loop import wake
from auditor.errors import UsageError
from auditor.hashing.digest import resumable
from auditor.hashing.digest.resumable import ResumableDigest
from auditor.model.digest import ALGORITHMS, SIZES

CRC64NVME: Final = "crc64nvme"
_NO_CRC64: Final = (
    "crc64nvme needs the package awscrt: from the project's folder, pip install '.[crc64]'; or ask for sha256"
)
STATE_DIGITS: Final[Mapping[str, int]] = {name: 2 * SIZES[name] for name in ALGORITHMS}
"""Number of hex digits of each algorithm's state, which is as long as its digest."""
_Checksum = Callable[[memoryview, int], int]

INLINE: Final = 256 * 1024
"""Largest size in bytes of objects that the event loop hashes itself. For these, a thread would cost more than it
saves."""


class Digest(Protocol):
    """A running digest of one algorithm: a hashlib object, a ResumableDigest or a Crc64."""

    def update(self, data: memoryview, /) -> None: ...
    def hexdigest(self) -> str: ...


class StatefulDigest(Digest, Protocol):
    """A running digest whose state can be saved, so that another process can continue it."""

    def state(self) -> str:
        """Return the digest's state in hex."""
        ...


class Crc64:
    """A running CRC-64/NVME checksum. Its state is the checksum of the bytes so far."""

    __slots__ = ("_checksum", "_value")

    def __init__(self, state: str | None = None) -> None:
        self._checksum = _crc64nvme()
        self._value = int(state, 16) if state else 0

    def update(self, data: memoryview, /) -> None:
        self._value = self._checksum(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:016x}"

    def state(self) -> str:
        return self.hexdigest()


class Digester:
    """Running digests of the same bytes by several algorithms.

    count: number of bytes hashed so far. names: the algorithms.
    """

    __slots__ = ("_digests", "count")

    def __init__(self, digests: Mapping[str, Digest], count: int = 0) -> None:
        self._digests = digests
        self.count = count

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._digests)

    def update(self, data: memoryview) -> None:
        for digest in self._digests.values():
            digest.update(data)
        self.count += len(data)

    def hexdigests(self) -> dict[str, str]:
        return {name: digest.hexdigest() for name, digest in self._digests.items()}


class ResumableDigester(Digester):
    """A Digester whose states can be saved after any multiple of resumable.BLOCK bytes."""

    __slots__ = ("_stateful",)

    def __init__(self, digests: Mapping[str, StatefulDigest], count: int) -> None:
        super().__init__(digests, count)
        self._stateful = digests

    def states(self) -> dict[str, str]:
        return {name: digest.state() for name, digest in self._stateful.items()}


def make_digester(algorithms: Iterable[str]) -> Digester:
    """Return a Digester that uses hashlib, and whose states cannot be saved.

    Raises UsageError for crc64nvme if the package awscrt is missing.
    """
    return Digester({name: _plain(name) for name in algorithms})


def make_resumable(
    algorithms: Sequence[str], states: Mapping[str, str] | None = None, count: int = 0
) -> ResumableDigester | None:
    """Return a ResumableDigester; None if this machine's libcrypto cannot continue digests.

    states: the states in a checkpoint, by algorithm, after `count` bytes; None to begin at the object's first byte.
    """
    if resumable.refusal() is not None:
        return None
    given: Mapping[str, str] = states or {}
    return ResumableDigester(
        {
            name: Crc64(given.get(name)) if name == CRC64NVME else ResumableDigest(name, given.get(name), count)
            for name in algorithms
        },
        count,
    )


def has_crc64nvme() -> bool:
    """True if the package awscrt is installed, which computes crc64nvme."""
    try:
        _crc64nvme()
    except UsageError:
        return False
    return True


def _plain(name: str) -> Digest:
    if name == CRC64NVME:
        return Crc64()
    # The digests show that bytes are unchanged; no security depends on them. FIPS builds need this for sha1 and md5.
    return hashlib.new(name, usedforsecurity=False)


@cache
def _crc64nvme() -> _Checksum:
    try:
        from awscrt.checksums import crc64nvme  # dear, and for this algorithm alone
    except ImportError as error:
        raise UsageError(_NO_CRC64) from error
    checksum: _Checksum = crc64nvme
    return checksum


class Buffers:
    """A pool of at most `most` buffers of `size` bytes. Each buffer is allocated when it is first needed, and then
    reused.

    Only one task of the event loop at a time may take buffers. Any thread may give buffers back.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._left = most
        self._enough = max(1, most // 2)
        self._free: deque[bytearray] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Future[None] | None = None

    async def take(self) -> bytearray:
        """Return a free buffer. If all are in use, wait until half of them are free again.

        A wait for one buffer would wake the event loop twice as often.
        """
        if not self._free and self._left:
            self._left -= 1
            return bytearray(self._size)
        if not self._free:
            self._waiting = waiting = self._loop.create_future()
            if len(self._free) < self._enough:  # if not, a thread gave buffers back before it could see the waiter
                await waiting
            self._waiting = None
        return self._free.pop()

    def give(self, buffer: bytearray) -> None:
        self._free.append(buffer)
        waiting = self._waiting
        if waiting is not None and len(self._free) == self._enough:
            self._loop.call_soon_threadsafe(wake, waiting)


class InlineExecutor(Executor):
    """A marker in place of an executor with threads. A DigestThread with this executor hashes on the event loop."""


class DigestThread:
    """Hashes the buffers of one object, one after the other, in a thread.

    executor: lends the thread, from the first buffer until abandon(), because a new task for each buffer would cost
    more CPU. With None or an InlineExecutor there is no thread, and put() hashes on the event loop.
    """

    def __init__(self, digester: Digester, executor: Executor | None) -> None:
        self._digester = digester
        self._executor = None if isinstance(executor, InlineExecutor) else executor
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[memoryview | None, Callable[[], object]] | None] = SimpleQueue()
        self._begun = False
        self._abandoned = False
        self._error: Exception | None = None

    def put(self, view: memoryview, hashed: Callable[[], object]) -> None:
        """Pass a filled buffer to the thread. Raises the error of an earlier buffer.

        hashed: called in the thread when the buffer may be used again.
        """
        if self._error is not None:
            raise self._error
        if self._executor is None:
            self._digester.update(view)
            hashed()
            return
        self._queue.put((view, hashed))
        if not self._begun:
            self._begun = True
            self._executor.submit(self._work)

    async def empty(self) -> None:
        """Wait until all buffers are hashed. Raises the first error of the hashing."""
        if self._begun:
            empty: asyncio.Future[None] = self._loop.create_future()
            self._queue.put((None, partial(self._loop.call_soon_threadsafe, wake, empty)))
            await empty
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Drop the buffers that wait, and end the thread's work when the buffer in hand is hashed."""
        self._abandoned = True
        self._queue.put(None)

    def _work(self) -> None:
        """Hash buffers until abandon() is called. The thread runs this function."""
        while (item := self._queue.get()) is not None and not self._abandoned:
            view, done = item
            if view is not None and self._error is None:
                try:
                    self._digester.update(view)
                except Exception as error:  # put() and empty() raise it on the event loop
                    self._error = error
            done()
