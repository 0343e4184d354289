"""A fake engine and a fake clock: they keep the contract, cost no time, and can be held, failed and counted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager

from auditor.model.object import Acl, Grant, Head, ObjectRef
from auditor.s3.calls import Caller, RetryPolicy
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.engines.base import Body, ListQuery, Page, Position, Span
from auditor.s3.rate import RateLimit

OWNER = "a0" * 32


class FakeTime:
    """A clock that only sleep() moves on."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class LongestPause(random.Random):
    """Dice that always fall on the largest number."""

    def uniform(self, a: float, b: float) -> float:
        return b


def make_caller(
    time: FakeTime | None = None,
    *,
    permits: ConcurrencyLimit | None = None,
    retry: RetryPolicy | None = None,
    max_calls: int | None = None,
    dice: random.Random | None = None,
) -> Caller:
    """A caller of the bucket "audited" that lives in fake time."""
    time = time or FakeTime()
    return Caller(
        "audited",
        rate=RateLimit(None, clock=time.clock, sleep=time.sleep),
        permits=permits or ConcurrencyLimit(4, clock=time.clock),
        retry=retry,
        max_calls=max_calls,
        clock=time.clock,
        sleep=time.sleep,
        dice=dice,
    )


def ref(key: str, version_id: str | None = None, *, latest: bool = True, owner: str | None = OWNER) -> ObjectRef:
    return ObjectRef(key, f"etag of {key}", 1, "2026-01-02T03:04:05Z", version_id, owner=owner, is_latest=latest)


def head_of(key: str) -> Head:
    return Head(etag=f"etag of {key}", content_length=1)


PRIVATE = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))

Entry = ObjectRef | str
"""What a fake bucket holds, in listing order: a version or object, or the key of a delete marker."""

Hook = Callable[[str, str], Awaitable[None]]
"""Awaited with the action and the key ("" of a listing) before each call is answered; may wait, or raise CallFailed."""


async def _no_hook(action: str, key: str) -> None:
    await asyncio.sleep(0)


class FakeEngine:
    """Engine over a list of entries. asked: (action, key) of every call. in_flight, peak: object calls at once.

    tasks: most tasks that were alive while a call was made. heads, acls: what is said of a key, where it is
    not head_of() and PRIVATE.
    """

    def __init__(self, entries: Sequence[Entry], *, page_size: int = 1000, hook: Hook = _no_hook) -> None:
        self.entries = list(entries)
        self.page_size = page_size
        self.hook = hook
        self.heads: dict[str, Head] = {}
        self.acls: dict[str, Acl] = {}
        self.open_connections = 0
        self.kept: int | None = None
        self.asked: list[tuple[str, str]] = []
        self.checksums: list[bool] = []
        self.in_flight = 0
        self.peak = 0
        self.tasks = 0

    def keep_idle(self, connections: int) -> None:
        self.kept = connections

    def count(self, action: str) -> int:
        return sum(1 for asked, _ in self.asked if asked == action)

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        self.asked.append(("list", ""))
        await self.hook("list", "")
        start = 0 if position is None or position.token is None else int(position.token)
        matching = [entry for entry in self.entries if self._in(query, entry)]
        shown = matching[start : start + self.page_size]
        end = start + self.page_size
        return Page(
            tuple(entry for entry in shown if isinstance(entry, ObjectRef)),
            Position(token=str(end)) if end < len(matching) else None,
            tuple(entry for entry in shown if isinstance(entry, str)),
        )

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        await self._object_call("acl", key)
        return self.acls.get(key) or PRIVATE

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        self.checksums.append(checksum)
        await self._object_call("head", key)
        return self.heads.get(key) or head_of(key)

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        raise NotImplementedError("an audit reads no bytes")

    async def _object_call(self, action: str, key: str) -> None:
        self.asked.append((action, key))
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        self.tasks = max(self.tasks, len(asyncio.all_tasks()))
        try:
            await self.hook(action, key)
        finally:
            self.in_flight -= 1

    @staticmethod
    def _in(query: ListQuery, entry: Entry) -> bool:
        key = entry if isinstance(entry, str) else entry.key
        return key.startswith(query.prefix) and (query.start_after is None or key > query.start_after)
