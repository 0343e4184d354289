"""Blocks of one object, read by several streams at once and given in order, in bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from auditor.reading import Reader, Source
from auditor.streams import Layout


@dataclass(slots=True)
class Block:
    """A range of the object. view: its bytes, once it is ready."""

    first: int
    view: memoryview
    buffer: bytearray
    ready: asyncio.Event = field(default_factory=asyncio.Event)


class Blocks:
    """Reads from a reader's position to `end`. The reader itself reads the first block, as it is open already.

    group: where the reads run; a read that fails ends it. As many blocks are asked for as the memory holds; as many of
    them are read at once as there are streams. position: of the first byte that no block was begun for.
    """

    def __init__(self, source: Source, reader: Reader, end: int, group: asyncio.TaskGroup) -> None:
        self.position = reader.position
        self._source = source
        self._reader: Reader | None = reader
        self._end = end
        self._group = group
        self._streams = 0
        self._slots = 1
        self._filling = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._layout = Layout(0, 0)
        self._held = 0
        self._order: deque[Block] = deque()
        self._begun = asyncio.Event()
        self._free: list[bytearray] = []

    def use(self, streams: int, layout: Layout) -> None:
        """Have so many streams from now on; with 0 no further block is begun."""
        if layout.block != self._layout.block:
            self._free.clear()
        self._streams, self._layout = streams, layout
        self._slots = streams or self._slots  # what was begun is read to its end
        self._wake()
        self._begin()
        self._begun.set()

    def stop(self) -> None:
        """Begin no further block."""
        self.use(0, self._layout)

    async def next(self) -> Block | None:
        """The next block in order, read to its end; None after the last one that was begun."""
        while not self._order:
            if not self._streams or self.position >= self._end:
                return None
            self._begun.clear()
            await self._begun.wait()
        block = self._order.popleft()
        await block.ready.wait()
        return block

    def give(self, block: Block) -> None:
        """A block's memory can be used again."""
        self._held -= len(block.buffer)
        if len(block.buffer) == self._layout.block:
            self._free.append(block.buffer)
        self._begin()

    def _begin(self) -> None:
        """Ask for further blocks, more than are read at once: their answers' first bytes take a while to come."""
        while self._streams and self.position < self._end:
            size = self._layout.next(self._streams, self._end - self.position)
            if self._held and self._held + self._layout.block > self._layout.memory:
                return
            buffer = self._free.pop() if self._free else bytearray(self._layout.block)
            block = Block(self.position, memoryview(buffer)[:size], buffer)
            self.position += size
            self._held += len(buffer)
            self._order.append(block)
            self._begun.set()
            self._group.create_task(self._read(block))

    async def _read(self, block: Block) -> None:
        end = block.first + len(block.view)
        reader, self._reader = self._reader or Reader(self._source, block.first, end), None
        async with reader:
            await reader.ready()
            await self._turn()
            try:
                await reader.fill(block.view)
                await reader.finish()
            finally:
                self._filling -= 1
                self._wake()
        block.ready.set()

    async def _turn(self) -> None:
        """Wait until fewer blocks are filled than there are streams."""
        while self._filling >= self._slots:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._filling += 1

    def _wake(self) -> None:
        """Let those who wait look again, the first first."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
