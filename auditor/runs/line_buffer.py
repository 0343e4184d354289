"""The lines of a run that wait in memory, in key order, until a thread writes them to disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.model.object import AnyVersion
from auditor.runs.parts import KINDS
from auditor.runs.tally import Tally

FLUSH_BYTES: Final = 256 * 1024
"""Bytes of waiting lines in memory at which write() asks for a flush()."""

PART_BYTES: Final = 48 * 1024 * 1024
"""Bytes of lines after which a part ends: its file stays below the limit of a reader, even if nothing compresses."""
HELD_BYTES: Final = 8 * 1024 * 1024
"""Bytes of lines that are held until all versions of their key are read. About 10,000 versions have so many."""


class KeyedCounts:
    """Counts that are too large to copy at each key. The caller notes the results of an object before it hands over the
    object's lines. The methods are called under one lock. This class counts nothing.
    """

    def upto(self, key: str | None) -> None:
        """Count the noted results of the object versions with this key. With None, count the results of the bucket
        itself.
        """

    def keep(self) -> None:
        """Count all noted results."""

    def drop(self) -> None:
        """Forget the noted results that are not counted."""

    def saved(self) -> Mapping[str, Any]:
        """Return the counts as JSON values, for a checkpoint."""
        return {}


class RunPosition(Struct, frozen=True):
    """How far a run has come: the last key whose lines were taken, and a copy of the tally after that key.

    tally: None while the run's own tally is still the tally of this key. Only a run with versions copies the tally at
    each key; other runs copy it where a part ends. rollups: the roll-ups after that key, as KeyedCounts.saved() gives
    them; empty unless a checkpoint saves the position. unsent: objects that wait to be sent to the hashing queue, some
    of them with later keys; () while the tally is None.
    """

    key: str | None
    tally: Tally | None
    rollups: Mapping[str, Any] = field(default_factory=dict)
    unsent: Sequence[AnyVersion] = ()


class LineBatch(Struct):
    """Lines of one part of the run that wait to be written to disk."""

    number: int
    """Number of their part."""
    lines: dict[str, list[bytes]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    size: int = 0
    """Bytes of the lines."""
    end: bool = False
    """True if the part ends with these lines."""
    checkpoint: RunPosition | None = None
    """The position that a checkpoint saves after the part; None: save none."""


class LineBuffer:
    """Holds the lines of a run until a thread writes them to disk, and divides them into parts.

    The methods are cheap, and any thread may call them; but only the caller that counts objects may call those that
    take lines or end a part, because they copy the tally. first: number of the first part. mark: the last key before
    the first line, and the counts up to it. tally: the run's counts; the caller counts an object before it hands over
    the object's lines. A part ends when it has part_lines lines of one kind (objects or findings, for example) or
    PART_BYTES of lines, or has been open for part_seconds. rollups: counts that go with the lines, too.
    """

    def __init__(
        self,
        first: int,
        mark: RunPosition,
        tally: Tally,
        *,
        part_lines: int,
        part_seconds: float,
        clock: Callable[[], float],
        rollups: KeyedCounts,
    ) -> None:
        self.mark = mark
        """The last key whose lines were taken, and the tally after it."""
        self.unsent: Callable[[], Sequence[AnyVersion]] = lambda: mark.unsent
        """Returns the objects that wait to be sent to the hashing queue."""
        self._tally = tally
        self._rollups = rollups
        self._part_lines = part_lines
        self._part_seconds = part_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._batches = [LineBatch(first)]
        self._counts = dict.fromkeys(KINDS, 0)
        self._size = 0
        self._opened = 0.0
        self._held: list[tuple[str, bytes]] = []
        self._held_size = 0
        self._key: RunPosition | None = None  # the key whose versions are being read
        self._torn = False  # True if a part has some versions of that key
        self._cut = False  # True after end(whole_key=False)

    @property
    def part(self) -> int:
        """Return the number of the part that the next line belongs to."""
        return self._batches[-1].number

    def begin_at(self, part: int) -> None:
        """Set the number of the first part. Call this before the first line comes."""
        self._batches[0].number = part

    def write(self, key: str, version_id: str | None, lines: Sequence[tuple[str, bytes]]) -> bool:
        """Take the lines of one object. Return True if so many lines wait that the caller must call taken() next."""
        with self._lock:
            if version_id is None:
                self._end_key()
                self._append(lines)
                self.mark = RunPosition(key, None)
                self._rollups.upto(key)
                self._check_due()
                return self._is_full()
            self._begin_key(key)
            self._held += lines
            self._held_size += sum(len(line) for _, line in lines)
            if self._held_size >= HELD_BYTES:
                self._torn = True
                self._append_held()
                self._rollups.keep()
            return self._is_full()

    def passed(self, key: str) -> None:
        """Note that the listing has reached a delete marker of this key, for which no line is written."""
        with self._lock:
            self._begin_key(key)

    def write_findings(self, lines: Iterable[bytes]) -> bool:
        """Take the lines of findings on the bucket itself. Return True if the caller must call taken() next."""
        with self._lock:
            self._append([("findings", line) for line in lines])
            self.mark = self._position(self.mark.key)
            self._rollups.upto(self.mark.key)
            self._check_due()
            return self._is_full()

    def end_part(self) -> None:
        """End the part after the last key whose lines were taken, whatever the part's size. Call this only if all
        versions of that key were taken.
        """
        with self._lock:
            self._end_key()
            if self._size:
                self._end_part(self.mark)

    def taken(self) -> list[LineBatch]:
        """Hand over the waiting lines to the caller, who writes them to disk, and keep none of them."""
        with self._lock:
            batches, self._batches = self._batches, [LineBatch(self._batches[-1].number)]
            return batches

    def check_due(self) -> None:
        """End the part if it is full, or has been open for part_seconds; but never between two versions of one key."""
        with self._lock:
            self._check_due()

    def end(self, whole_key: bool) -> RunPosition | None:
        """End the part, and return the run's position for a checkpoint.

        Return None if the parts have some versions of the last key, but may lack others. whole_key: False if the last
        key may have more versions; its lines are dropped if no part has any of them.
        """
        with self._lock:
            self._cut |= not whole_key
            if not self._cut:
                self._end_key()
            elif self._key is not None and not self._torn:
                assert self.mark.tally is not None  # a run over versions copies the tally after each key
                self._tally.go_back_to(self.mark.tally)
                self._held, self._held_size, self._key = [], 0, None
                self._rollups.drop()
            if self._size:
                self._end_part(None)
            return None if self._torn else self._with_rollups(self._position(self.mark.key))

    def _append(self, lines: Iterable[tuple[str, bytes]]) -> None:
        batch = self._batches[-1]
        if not self._size:
            self._opened = self._clock()
        for kind, line in lines:
            batch.lines[kind].append(line)
            batch.size += len(line)
            self._size += len(line)
            self._counts[kind] += 1

    def _append_held(self) -> None:
        self._append(self._held)
        self._held, self._held_size = [], 0

    def _begin_key(self, key: str) -> None:
        """Note that the caller has counted a version or a delete marker of this key.

        If the key is a new one, end the key before it.
        """
        if self._key is not None and self._key.key != key:
            self._end_key()
        self._key = self._position(key)

    def _end_key(self) -> None:
        """Release the held lines of the last key for writing to disk: all versions of this key have been read."""
        if self._key is not None:
            self._append_held()
            self.mark, self._key, self._torn = self._key, None, False
            self._rollups.upto(self.mark.key)
            self._check_due()

    def _is_full(self) -> bool:
        return len(self._batches) > 1 or self._batches[-1].size >= FLUSH_BYTES

    def _check_due(self) -> None:
        """End the part if it is full, or has been open for part_seconds; but never between two versions of one key."""
        if not self._size or self._torn:
            return
        full = max(self._counts.values()) >= self._part_lines or self._size >= PART_BYTES
        if full or self._clock() - self._opened >= self._part_seconds:
            self._end_part(self.mark)

    def _end_part(self, checkpoint: RunPosition | None) -> None:
        if checkpoint is not None and checkpoint.tally is None:
            checkpoint = self._position(checkpoint.key)
        batch = self._batches[-1]
        batch.end, batch.checkpoint = True, checkpoint and self._with_rollups(checkpoint)
        self._batches.append(LineBatch(batch.number + 1))
        self._counts, self._size = dict.fromkeys(KINDS, 0), 0

    def _position(self, key: str | None) -> RunPosition:
        unsent = self.unsent()  # first: it counts what the queue has accepted by now
        return RunPosition(key, self._tally.copy(), unsent=unsent)

    def _with_rollups(self, position: RunPosition) -> RunPosition:
        return replace(position, rollups=self._rollups.saved())
