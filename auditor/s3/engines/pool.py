"""Engines by what they are for: opened once, lent to many, the least lately used closed when there are too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Generic, TypeVar

from auditor.s3.engines.base import Engine

OPEN: Final = 8

K = TypeVar("K", bound=Hashable)

OpenEngine = Callable[[str], AbstractAsyncContextManager[Engine]]
"""Of a bucket."""


@dataclass(slots=True)
class _Slot:
    """One engine, once it is open. users: who has it now."""

    context: AbstractAsyncContextManager[Engine] | None = None
    engine: Engine | None = None
    users: int = 0
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class EnginePool(Generic[K]):
    """At most `size` engines stay open while nobody uses them; entered and left like a context manager.

    K: what an engine is for, such as a bucket.
    """

    def __init__(self, open_engine: Callable[[K], AbstractAsyncContextManager[Engine]], size: int = OPEN) -> None:
        self._open_engine = open_engine
        self._size = size
        self._slots: dict[K, _Slot] = {}  # in the order of their last use

    async def __aenter__(self) -> EnginePool[K]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for wanted in list(self._slots):
            await self._close(wanted)

    @property
    def opened(self) -> list[K]:
        """Whose engines are open, the least lately used first."""
        return [wanted for wanted, slot in self._slots.items() if slot.engine is not None]

    @asynccontextmanager
    async def lend(self, wanted: K) -> AsyncIterator[Engine]:
        """Its engine; raises what opening it raises, and tries again the next time."""
        slot = self._slots.pop(wanted, None) or _Slot()
        self._slots[wanted] = slot
        slot.users += 1
        try:
            async with slot.opening:
                if slot.engine is None:
                    slot.context = self._open_engine(wanted)
                    slot.engine = await slot.context.__aenter__()
            yield slot.engine
        finally:
            slot.users -= 1
            await self._trim()

    async def _trim(self) -> None:
        for unused in [name for name, slot in self._slots.items() if not slot.users and slot.engine is None]:
            del self._slots[unused]
        idle = [name for name, slot in self._slots.items() if not slot.users]
        for spare in idle[: max(0, len(self._slots) - self._size)]:
            await self._close(spare)

    async def _close(self, wanted: K) -> None:
        slot = self._slots.pop(wanted, None)
        if slot is not None and slot.context is not None and slot.engine is not None:
            await slot.context.__aexit__(None, None, None)
