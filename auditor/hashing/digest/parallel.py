"""Read one object by several streams at once, and return its bytes in order.

The object is read in ranges, which are called blocks here. A stream is a connection that reads block after block.
"""

from __future__ import annotations

import asyncio
from collections import deque

from msgspec import Struct, field

from auditor.aio.loop import wake
from auditor.hashing.digest.reader import ObjectSource, ResumingReader
from auditor.hashing.digest.streams import RangeLayout


class BlockMemory:
    """A limited memory for the blocks of one object. A block is the range of one GET, and fills several buffers.

    A block gets the memory for all its buffers at once, and blocks get memory in the order in which ask() was called.
    Any thread may call give(); the other methods belong to the event loop.
    """

    def __init__(self) -> None:
        self._buffer = 0
        self._size = 0
        self._granted = 0
        self._free: list[bytearray] = []
        self._returned: deque[tuple[bytearray, int]] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._loop = asyncio.get_running_loop()

    def change(self, size: int, buffer: int) -> None:
        """Set the limit of memory to `size` bytes, and the size of each buffer to `buffer` bytes."""
        if buffer != self._buffer:
            self._free.clear()
        self._size, self._buffer = size, buffer
        self._settle()

    def ask(self, size: int) -> asyncio.Future[None]:
        """Return a future that is done when a block of `size` bytes may take its buffers.

        A block that is larger than the limit waits until no other block has memory.
        """
        granted: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((size, granted))
        self._settle()
        return granted

    def take(self) -> bytearray:
        """Return a buffer for a block. Call this only after the future that ask() returned for the block is done."""
        return self._free.pop() if self._free else bytearray(self._buffer)

    def give(self, buffer: bytearray, size: int) -> None:
        """Give a buffer back, from any thread.

        size: number of the block's bytes that the buffer held.
        """
        self._returned.append((buffer, size))
        if self._waiting:
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        """Collect the buffers that were given back, and grant memory to the waiting blocks, in order, as long as they
        fit.
        """
        while self._returned:
            buffer, size = self._returned.popleft()
            self._granted -= size
            if len(buffer) == self._buffer:
                self._free.append(buffer)
        while self._waiting:
            size, granted = self._waiting[0]
            if self._granted and self._granted + size > self._size:
                break
            self._waiting.popleft()
            self._granted += size
            wake(granted)


class Piece(Struct, frozen=True):
    """A filled buffer.

    view: the bytes of the object in the buffer. end: position in the object after the last of these bytes.
    """

    end: int
    view: memoryview
    buffer: bytearray


class Block(Struct):
    """A range of the object, from `first` up to `end` (excluded), which one GET reads.

    granted: future that is done when the block may take buffers. pieces: filled buffers of the block that next() has
    not returned yet.
    """

    first: int
    end: int
    granted: asyncio.Future[None]
    pieces: deque[Piece] = field(default_factory=deque)


class ParallelRanges:
    """Reads an object by several streams, from the position of `reader` up to `end` (excluded).

    `reader`, which has an open connection, reads the first block. Each stream is a task of `group`; a failed read ends
    the group. Blocks get memory in their order, so that the first block never waits for a later one. position: the
    first byte that belongs to no block yet.
    """

    def __init__(self, source: ObjectSource, reader: ResumingReader, end: int, group: asyncio.TaskGroup) -> None:
        self.position = reader.position
        self._source = source
        self._reader: ResumingReader | None = reader
        self._end = end
        self._group = group
        self._wanted: int
        self._running = 0
        self._block: int
        self._memory = BlockMemory()
        self._order: deque[Block] = deque()
        self._arrival = asyncio.Event()

    def use(self, streams: int, layout: RangeLayout) -> None:
        """Read by `streams` streams from now on, with the sizes in `layout`.

        streams: 0 to begin no more blocks. The blocks that were begun are still read to their ends.
        """
        self._wanted, self._block = streams, layout.block
        self._memory.change(layout.memory, layout.buffer)
        while self._running < self._wanted and self.position < self._end:
            self._running += 1
            self._group.create_task(self._stream(self._begin()))

    def stop(self) -> None:
        """Begin no more blocks."""
        self._wanted = 0

    async def next(self) -> Piece | None:
        """Return the next filled buffer, in the order of the object's bytes; None after the last block that was
        begun.
        """
        while self._order or self._running:
            block = self._order[0] if self._order else None
            if block is not None and block.pieces:
                piece = block.pieces.popleft()
                if piece.end == block.end:
                    self._order.popleft()
                return piece
            self._arrival.clear()
            await self._arrival.wait()
        return None

    def give(self, piece: Piece) -> None:
        """Give the buffer of a piece back, from any thread."""
        self._memory.give(piece.buffer, len(piece.view))

    def _begin(self) -> Block:
        """Begin the next block of the object, and ask for its memory."""
        size = min(self._block, self._end - self.position)
        block = Block(self.position, self.position + size, self._memory.ask(size))
        self.position = block.end
        self._order.append(block)
        return block

    async def _stream(self, block: Block) -> None:
        """Read this block and then further blocks, until the object ends or until fewer streams are wanted."""
        await self._read(block)
        while self._running <= self._wanted and self.position < self._end:
            await self._read(self._begin())
        self._running -= 1
        self._arrival.set()

    async def _read(self, block: Block) -> None:
        reader, self._reader = self._reader or ResumingReader(self._source, block.first, block.end), None
        # Wait for memory before connecting. In the other order, later blocks that wait for memory could hold every
        # connection, and the first block would never get one.
        await block.granted
        async with reader:
            await reader.ready()
            while reader.position < block.end:
                buffer = self._memory.take()
                view = memoryview(buffer)[: block.end - reader.position]
                await reader.fill(view)
                block.pieces.append(Piece(reader.position, view, buffer))
                if block is self._order[0]:
                    self._arrival.set()
            await reader.finish()
