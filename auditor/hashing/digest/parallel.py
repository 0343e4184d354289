"""Blocks of one object, read by several streams at once and given in order, in bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from auditor.hashing.digest.buffers import Room
from auditor.hashing.digest.reader import ObjectSource, ResumingReader
from auditor.hashing.digest.streams import RangeLayout


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of the object that have come. end: the position after them."""

    end: int
    view: memoryview
    buffer: bytearray


@dataclass(slots=True)
class Block:
    """A range of the object, read by one GET. granted: its buffers can be had. pieces: that have come and wait."""

    first: int
    end: int
    granted: asyncio.Future[None]
    pieces: deque[Piece] = field(default_factory=deque)


class ParallelRanges:
    """Reads from a reader's position to `end`. The reader itself reads the first block, as it is open already.

    group: where the streams run; a read that fails ends it. A stream asks for the next block as soon as it has read
    its last, and has one connection at a time; memory is granted in the order of the blocks, so that the first one
    never waits for a later one. position: of the first byte that no block was begun for.
    """

    def __init__(self, source: ObjectSource, reader: ResumingReader, end: int, group: asyncio.TaskGroup) -> None:
        self.position = reader.position
        self._source = source
        self._reader: ResumingReader | None = reader
        self._end = end
        self._group = group
        self._wanted = 0
        self._running = 0
        self._block = 0
        self._room = Room()
        self._order: deque[Block] = deque()
        self._news = asyncio.Event()

    def use(self, streams: int, layout: RangeLayout) -> None:
        """Have so many streams from now on; with 0 no further block is begun."""
        self._wanted, self._block = streams, layout.block
        self._room.change(layout.memory, layout.buffer)
        while self._running < self._wanted and self.position < self._end:
            self._running += 1
            self._group.create_task(self._stream(self._begin()))

    def stop(self) -> None:
        """Begin no further block."""
        self._wanted = 0

    async def next(self) -> Piece | None:
        """The next piece in order; None after the last block that was begun."""
        while self._order or self._running:
            block = self._order[0] if self._order else None
            if block is not None and block.pieces:
                piece = block.pieces.popleft()
                if piece.end == block.end:
                    self._order.popleft()
                return piece
            self._news.clear()
            await self._news.wait()
        return None

    def give(self, piece: Piece) -> None:
        """A piece's memory can be used again; called in any thread."""
        self._room.give(piece.buffer, len(piece.view))

    def _begin(self) -> Block:
        size = min(self._block, self._end - self.position)
        block = Block(self.position, self.position + size, self._room.ask(size))
        self.position = block.end
        self._order.append(block)
        return block

    async def _stream(self, block: Block) -> None:
        """One block after the other, until there are no more or too many streams; the first is begun already."""
        await self._read(block)
        while self._running <= self._wanted and self.position < self._end:
            await self._read(self._begin())
        self._running -= 1
        self._news.set()

    async def _read(self, block: Block) -> None:
        reader, self._reader = self._reader or ResumingReader(self._source, block.first, block.end), None
        # Memory first: who waits for it with a connection in hand could keep the first block from one, for ever.
        await block.granted
        async with reader:
            await reader.ready()
            while reader.position < block.end:
                buffer = self._room.take()
                view = memoryview(buffer)[: block.end - reader.position]
                await reader.fill(view)
                block.pieces.append(Piece(reader.position, view, buffer))
                if block is self._order[0]:
                    self._news.set()
            await reader.finish()
