"""Keep engines open. Each engine is opened once, and lent to many users. The least recently used engine is closed
first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Generic

from msgspec import Struct, field

from auditor.s3.engines.base import Engine, K, OpenEngine

OPEN: Final = 8


class _Slot(Struct):
    """The place of one engine in the pool. engine: None until it is open. users: number of users that have borrowed the
    engine now.
    """

    context: AbstractAsyncContextManager[Engine] | None = None
    engine: Engine | None = None
    users: int = 0
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


class EnginePool(Generic[K]):
    """Keeps engines open, and lends each to many users. A context manager, which closes all engines at its end.

    While more than `size` engines are open, engines that nobody uses are closed, the least recently used first. K: the
    type of the key by which an engine is lent, such as a bucket's name.
    """

    def __init__(self, open_engine: OpenEngine[K], size: int = OPEN) -> None:
        self._open_engine = open_engine
        self._size = size
        self._slots: dict[K, _Slot] = {}  # in the order of their last use

    async def __aenter__(self) -> EnginePool[K]:
        return self

    async def __aexit__(self, *error: object) -> None:
        for key in list(self._slots):
            await self._close(key)

    @property
    def opened(self) -> list[K]:
        """The keys of the open engines, the least recently used first."""
        return [key for key, slot in self._slots.items() if slot.engine is not None]

    @asynccontextmanager
    async def lend(self, key: K) -> AsyncIterator[Engine]:
        """Lend the engine of this key during a `with` block; open it first if needed. Raises the errors of opening."""
        slot = self._slots.pop(key, None) or _Slot()
        self._slots[key] = slot
        slot.users += 1
        try:
            async with slot.opening:
                if slot.engine is None:
                    slot.context = self._open_engine(key)
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

    async def _close(self, key: K) -> None:
        slot = self._slots.pop(key, None)
        if slot is not None and slot.context is not None and slot.engine is not None:
            await slot.context.__aexit__(None, None, None)
