"""An engine whose one object has any size and takes no memory, and that can fail at any byte."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from auditor.errors import CallFailed
from auditor.hashing.queue.message import HashTask
from auditor.s3.engines.base import Body, Span
from tests.support.fakes.hashing import GetOnly

PATTERN = random.Random(5).randbytes(65_521)
"""Repeated; a prime number of bytes, so that no two blocks of an object are alike."""
_DOUBLE = PATTERN * 34


def content(first: int, end: int) -> bytes:
    """The bytes from `first` to before `end`, of every object."""
    start = first % len(PATTERN)
    length = end - first
    whole = _DOUBLE if start + length <= len(_DOUBLE) else PATTERN * ((start + length) // len(PATTERN) + 1)
    return whole[start : start + length]


def digests_of(size: int, *algorithms: str) -> dict[str, str]:
    """hashlib's, of the whole object, never held at once."""
    states = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
    for first in range(0, size, 1 << 20):
        piece = content(first, min(size, first + (1 << 20)))
        for state in states.values():
            state.update(piece)
    return {name: state.hexdigest() for name, state in states.items()}


@dataclass(slots=True)
class Cut:
    """The body of a call breaks after so many bytes (None: of the object); without a code it just ends there."""

    at: int
    code: str | None = "ConnectionError"
    absolute: bool = False


@dataclass(slots=True)
class GeneratedBody:
    length: int
    etag: str
    stored: Mapping[str, str]
    position: int
    end: int
    cut: Cut | None
    engine: Generated

    async def readinto(self, buffer: memoryview) -> int:
        engine = self.engine
        engine.reading += 1
        engine.most = max(engine.most, engine.reading)
        try:
            await asyncio.sleep(engine.pause())
        finally:
            engine.reading -= 1
        stop = self.end if self.cut is None else min(self.end, self.cut.at)
        count = max(0, min(len(buffer), stop - self.position))
        buffer[:count] = content(self.position, self.position + count)
        self.position += count
        if self.cut is not None and count < len(buffer) and self.position < self.end and self.cut.code:
            failure = CallFailed("GetObject", self.cut.code)
            failure.read = count
            raise failure
        return count


@dataclass(slots=True)
class Generated(GetOnly):
    """answers: what the coming calls meet, in turn: a failure, a cut after so many bytes, or nothing. etags: of the
    answers, in turn; the last one stays. calls: span and If-Match of each call. now: bodies that are open. most: of
    them read at once.
    """

    size: int
    etags: list[str] = field(default_factory=lambda: ["etag"])
    stored: Mapping[str, str] = field(default_factory=dict)
    answers: list[CallFailed | Cut | None] = field(default_factory=list)
    pause: Callable[[], float] = lambda: 0.0
    calls: list[tuple[str | None, str | None]] = field(default_factory=list)
    now: int = 0
    reading: int = 0
    most: int = 0

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        self.calls.append((None if span is None else span.header(), etag))
        return self._get(etag, span)

    @asynccontextmanager
    async def _get(self, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
        current = self.etags.pop(0) if len(self.etags) > 1 else self.etags[0]
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, CallFailed):
            raise answer
        if etag not in (None, current):
            raise CallFailed("GetObject", "PreconditionFailed", 412)
        first = 0 if span is None else span.first
        end = self.size if span is None or span.last is None else span.last + 1
        if answer is not None:
            answer = Cut(answer.at if answer.absolute else first + answer.at, answer.code)
        self.now += 1
        try:
            stored = self.stored if span is None else {}
            yield GeneratedBody(end - first, current, stored, first, end, answer, self)
        finally:
            self.now -= 1

    @property
    def task(self) -> HashTask:
        return HashTask("key", None, "etag", self.size)


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)
