"""Engines by bucket: opened once, lent to many, the least lately used closed when there are too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from auditor.engines.interface import Engine

OPEN: Final = 8

OpenEngine = Callable[[str], AbstractAsyncContextManager[Engine]]


@dataclass(slots=True)
class _Slot:
    """One bucket's engine, once it is open. users: who has it now."""

    context: AbstractAsyncContextManager[Engine] | None = None
    engine: Engine | None = None
    users: int = 0
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class EnginePool:
    """At most `size` engines stay open while nobody uses them; entered and left like a context manager."""

    def __init__(self, open_engine: OpenEngine, size: int = OPEN) -> None:
        self._open_engine = open_engine
        self._size = size
        self._slots: dict[str, _Slot] = {}  # in the order of their last use

    async def __aenter__(self) -> EnginePool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for bucket in list(self._slots):
            await self._close(bucket)

    @property
    def opened(self) -> list[str]:
        """The buckets whose engines are open, the least lately used first."""
        return [bucket for bucket, slot in self._slots.items() if slot.engine is not None]

    @asynccontextmanager
    async def lend(self, bucket: str) -> AsyncIterator[Engine]:
        """The bucket's engine; raises what opening it raises, and tries again the next time."""
        slot = self._slots.pop(bucket, None) or _Slot()
        self._slots[bucket] = slot
        slot.users += 1
        try:
            async with slot.opening:
                if slot.engine is None:
                    slot.context = self._open_engine(bucket)
                    slot.engine = await slot.context.__aenter__()
            yield slot.engine
        finally:
            slot.users -= 1
            await self._trim()

    async def _trim(self) -> None:
        for bucket in [name for name, slot in self._slots.items() if not slot.users and slot.engine is None]:
            del self._slots[bucket]
        idle = [name for name, slot in self._slots.items() if not slot.users]
        for bucket in idle[: max(0, len(self._slots) - self._size)]:
            await self._close(bucket)

    async def _close(self, bucket: str) -> None:
        slot = self._slots.pop(bucket, None)
        if slot is not None and slot.context is not None and slot.engine is not None:
            await slot.context.__aexit__(None, None, None)
