"""A ledger around another one; a test can make its calls fail."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from auditor.errors import DigestConflict
from auditor.ledger.base import (
    Ask,
    Checked,
    Entry,
    Event,
    Expectation,
    KeyRecord,
    Ledger,
    Notice,
    OrderedReader,
    Version,
)
from auditor.ledger.leases import Held, Lease, Work
from auditor.model.object import AnyVersion


class UnorderedReader:
    """An OrderedReader whose batches are each a look-up of its own."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def known(self, refs: Sequence[AnyVersion], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        return await self._ask(refs, algorithms)

    async def close(self) -> None:
        pass


class Hooked:
    """hook: called with the name of each method before its work; its exceptions reach the caller."""

    def __init__(self, inner: Ledger, hook: Callable[[str], object] = lambda name: None) -> None:
        self.inner = inner
        self.hook = hook

    async def known(
        self, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        self.hook("known")
        return await self.inner.known(bucket, refs, algorithms)

    def in_order(self, bucket: str) -> OrderedReader:
        return UnorderedReader(partial(self.known, bucket))

    async def record(self, entry: Entry) -> bool:
        self.hook("record")
        return await self.inner.record(entry)

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        self.hook("record_many")
        return await self.inner.record_many(entries)

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        self.hook("claim")
        return await self.inner.claim(work, owner, seconds)

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        self.hook("renew")
        return await self.inner.renew(lease, seconds, checkpoint)

    async def release(self, lease: Lease, *, done: bool) -> None:
        self.hook("release")
        await self.inner.release(lease, done=done)

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        self.hook("note")
        await self.inner.note(bucket, events)

    async def history(self, bucket: str, key: str) -> list[Event]:
        self.hook("history")
        return await self.inner.history(bucket, key)

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        self.hook("arrived")
        return await self.inner.arrived(bucket, notice)

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        self.hook("expect")
        return await self.inner.expect(bucket, expectations)

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        self.hook("subject")
        return await self.inner.subject(bucket, key)

    def subjects(self, bucket: str, prefix: str = "", start_after: str = "") -> AsyncGenerator[KeyRecord, None]:
        self.hook("subjects")
        return self.inner.subjects(bucket, prefix, start_after)

    def histories(self, bucket: str, prefix: str = "") -> AsyncGenerator[list[Event], None]:
        self.hook("histories")
        return self.inner.histories(bucket, prefix)

    async def heal(self, bucket: str, keys: Sequence[str]) -> int:
        self.hook("heal")
        return await self.inner.heal(bucket, keys)

    def checked(self) -> AsyncGenerator[list[Checked], None]:
        self.hook("checked")
        return self.inner.checked()


def failing(error: Exception, *names: str) -> Callable[[str], None]:
    """A hook that raises the error in the named methods, or in all."""

    def hook(name: str) -> None:
        if not names or name in names:
            raise error

    return hook


async def versions_of(ledger: Ledger, bucket: str, key: str) -> tuple[Version, ...]:
    """The versions that the ledger has of a key. It must know the key."""
    subject = await ledger.subject(bucket, key)
    assert subject is not None
    return subject.versions
