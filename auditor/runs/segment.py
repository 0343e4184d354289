"""Write the lines of one range of a run: lines in parts, a checkpoint after each complete part, and the entries that
the run's seal has of the range, from this process and from earlier ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Self

from msgspec.structs import replace

from auditor.errors import OutputError, RunTaken
from auditor.model.object import AnyVersion, ObjectVersion
from auditor.runs.checkpoint import Checkpoint, RangeEnd
from auditor.runs.line_buffer import KeyedCounts, LineBatch, LineBuffer, RunPosition
from auditor.runs.ownership import EMPTY_PART, writer_of
from auditor.runs.parts import KINDS, Part, PartFile, delete_spools, found_parts, named_parts, sealed_from_store, tidy
from auditor.runs.paths import FIRST, checkpoint_name, range_keys_name, range_seal_name, run_path
from auditor.runs.reading import RunReader, parse_seal
from auditor.runs.run_files import SEAL, Seal, SealedPart, sha256_of, sorted_parts
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally

PART_LINES: Final = 50_000
"""Number of lines of a part's largest file at which the part ends."""


class SegmentSeal:
    """The seal of a range, while a process writes it. path: of the run folder in its store.

    All methods but add() block.
    """

    def __init__(self, store: Store, path: str, run_id: str, range_id: str) -> None:
        self._store = store
        self._path = path
        self._run_id = run_id
        self._range_id = range_id
        self._earlier: Sequence[SealedPart] = ()  # what an earlier process sealed
        self._own: list[SealedPart] = []
        self._found: list[SealedPart] | None = None  # what no earlier process sealed
        self._first_part = 0
        self._skipped: Collection[int] = ()

    def begin(self, first_part: int, skipped: Collection[int], *, fresh: bool) -> None:
        """Take over the entries that an earlier process sealed, of the parts that stay.

        first_part: number of the first part that this process writes. skipped: numbers of the parts that were skipped.
        fresh: True if there cannot be an earlier process.
        """
        self._first_part, self._skipped = first_part, skipped
        if not fresh:
            names = (range_seal_name(self._range_id), SEAL)  # of a process that handed on, or that was stopped
            seal = next(filter(None, (parse_seal(self._store.get(f"{self._path}/{name}")) for name in names)), None)
            self._earlier = [one for part, one in named_parts(seal.parts if seal else ()) if self._stays(part)]

    def add(self, parts: Iterable[SealedPart]) -> None:
        """Add the entries of parts that are written."""
        self._own += parts

    def write(self, *, unsealed: bool) -> None:
        """Write the seal of the range. unsealed: True to read the parts that killed processes did not seal; without
        them, the next process reads them.
        """
        parts = [*self._earlier, *(self._unsealed() if unsealed else ()), *self._own]
        seal = Seal(run=self._run_id, parts=sorted_parts(parts))
        self._store.put(f"{self._path}/{range_seal_name(self._range_id)}", seal.to_json())

    def all_parts(self, upto: int) -> tuple[SealedPart, ...]:
        """Return the entries of the parts with numbers below `upto`, with the empty ones in place of those that were
        skipped.
        """
        empty = empty_parts(self._range_id, self._skipped)
        found = sorted_parts([*empty, *self._earlier, *self._unsealed(), *self._own])
        return tuple(one for part, one in named_parts(found) if part.number < upto)

    def _unsealed(self) -> list[SealedPart]:
        """Read the parts that earlier processes wrote and did not seal before they were killed. Return their
        entries.
        """
        if not self._first_part or self._found is not None:
            return self._found or []
        known = {one.path for one in self._earlier}
        parts = [part for part in found_parts(self._store, self._path) if self._stays(part) and part.path not in known]
        self._found = [sealed_from_store(self._store, self._path, part) for part in parts]
        return self._found

    def _stays(self, part: Part) -> bool:
        """True if an earlier process wrote this part, and the part has not been skipped."""
        before = part.range_id == self._range_id and part.number < self._first_part
        return before and part.number not in self._skipped


def empty_parts(range_id: str, skipped: Iterable[int]) -> list[SealedPart]:
    """Return the entries of the empty files that stand in the place of the parts with these numbers."""
    paths = [Part(range_id, number, kind).path for number in skipped for kind in KINDS]
    size, digest = len(EMPTY_PART), sha256_of(EMPTY_PART)
    return [SealedPart(path=one, first=None, last=None, lines=0, bytes=size, sha256=digest) for one in paths]


class Segment:
    """Writes the lines of one range of a run: lines in parts, and a checkpoint after each complete part.

    write(), passed(), write_findings() and check_due() are cheap: call them in the thread that counts the objects,
    which may run an event loop. All other methods block: call them in one thread. Call prepare() before the first
    write. Lines are JSON with their newlines. Count an object in `tally`, then write its lines, with no
    `await` in between: the tally of each checkpoint then agrees with its lines. A part never ends between two versions
    of one key, whose lines are held until the next key.

    tally: the counts of the range, which the caller increases; if the range is continued, the caller has restored them.
    state: the checkpoint of the range that is continued; None for a new one. part_seconds: longest time that a part is
    open. fresh: True if the run's ID is new, so that the folder cannot have any parts yet. keys: returns the bytes of
    the file with the policies of KMS keys, which is written before each part; None to write no such file. rollups:
    counts that each checkpoint saves with the tally; None for none.
    """

    def __init__(
        self,
        store: Store,
        bucket: str,
        run_id: str,
        range_id: str = FIRST,
        *,
        tally: Tally,
        state: Checkpoint | None = None,
        part_lines: int = PART_LINES,
        part_seconds: float = 60.0,
        fresh: bool = False,
        keys: Callable[[], bytes] | None = None,
        rollups: KeyedCounts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = run_path(bucket, run_id)
        self.uri = store.uri(self.path)
        self.run_id = run_id
        self._bucket = bucket
        self._store = store
        self._range_id = range_id
        self._seal = SegmentSeal(store, self.path, run_id, range_id)
        self._keys = keys
        self._written_keys: bytes | None = None
        self._io = threading.Lock()  # guards the files
        self._files: dict[str, PartFile] = {}
        self._failure: OutputError | None = None
        begun = state or Checkpoint(run=run_id, next_part=0, start_after=None, tally=tally)
        self._tally = tally
        mark = RunPosition(begun.start_after, tally.copy(), begun.rollups, begun.unsent)
        self._pending = LineBuffer(
            begun.next_part,
            mark,
            tally,
            part_lines=part_lines,
            part_seconds=part_seconds,
            clock=clock,
            rollups=rollups or KeyedCounts(),
        )
        self.saved_key = mark.key
        """The last key of the checkpoint that is in place."""
        self._covered = begun.next_part
        """Number of the first part that this checkpoint does not cover."""
        self._loaded = state
        self._fresh = fresh
        self._skipped_parts = begun.skipped_parts
        self._writer = writer_of(store, bucket, run_id, range_id)

    def prepare(self) -> None:
        """Claim the range, and delete the files that a killed process wrote after its last checkpoint.

        Raises RunTaken if another process writes this range, or has completed the run, and OutputError if a part that
        the checkpoint covers is gone.
        """
        first = self._writer.claim(self._loaded, self._checkpoint(self._pending.part, self._pending.mark))
        if self._loaded is None and not self._fresh:
            self._refuse_complete()
        self._skipped_parts = first.skipped_parts
        self._covered = first.next_part
        self._pending.begin_at(first.next_part)
        if not self._fresh:
            tidy(self._store, self.path, self._range_id, first.next_part)
        self._seal.begin(first.next_part, first.skipped_parts, fresh=self._fresh)
        names = (checkpoint_name(self._range_id), range_seal_name(self._range_id), range_keys_name(self._range_id))
        delete_spools(self._store.spool_dir(self.path), names, self._range_id)

    def _refuse_complete(self) -> None:
        """Raise RunTaken if the run is complete by now: it has no checkpoints, as a range that has not begun."""
        if RunReader(self._store, self._bucket, self.run_id).complete:
            self._store.delete(f"{self.path}/{checkpoint_name(self._range_id)}")  # the one that claims the range
            raise RunTaken(f"{self.uri} has been completed by another process: there is nothing to resume")

    def follow_unsent(self, unsent: Callable[[], Sequence[AnyVersion]]) -> None:
        """Save in each checkpoint the objects that wait to be sent to the hashing queue.

        unsent: returns these objects. It is called before the tally is copied for the checkpoint.
        """
        self._pending.unsent = unsent

    def write(
        self,
        key: str,
        version_id: str | None,
        object_line: bytes,
        finding_lines: Iterable[bytes] = (),
        undecided_line: bytes | None = None,
        routed_line: bytes | None = None,
    ) -> bool:
        """Take the lines of the next object in key order. Return True if flush() must come next, to free memory.

        undecided_line: None if all facts were read. routed_line: None if the object is not left to S3 Batch Operations.
        """
        lines = [("objects", object_line)]
        if finding_lines:
            lines += [("findings", line) for line in finding_lines]
        if undecided_line is not None:
            lines.append(("undecided", undecided_line))
        if routed_line is not None:
            lines.append(("routed", routed_line))
        self._raise_failure()
        return self._pending.write(key, version_id, lines)

    @property
    def position(self) -> str | None:
        """The last key whose lines were taken. The lines of all keys up to this one were taken too."""
        return self._pending.mark.key

    def passed(self, key: str) -> None:
        """Note that the listing has reached a delete marker of this key, for which no line is written."""
        self._pending.passed(key)

    def write_findings(self, lines: Iterable[bytes]) -> bool:
        """Take the lines of findings on the bucket itself. Return True if flush() must come next, to free memory."""
        self._raise_failure()
        return self._pending.write_findings(lines)

    def flush(self) -> None:
        """Write the waiting lines to disk, and move the files of complete parts into the run folder."""
        with self._io:
            self._raise_failure()
            batches = self._pending.taken()
            try:
                for batch in batches:
                    self._spill(batch)
                    if batch.end:
                        self._commit(batch)
            except BaseException as error:  # lines are lost, so no checkpoint may follow
                stopped = OutputError(f"{self.uri}: writing was stopped in the middle; start a new run")
                self._failure = error if isinstance(error, OutputError) else stopped
                self._discard()
                raise

    def check_due(self) -> None:
        """End the part if it has been open for part_seconds; flush() then writes it.

        The caller calls this every few seconds. It is cheap, and belongs to the thread that counts the objects.
        """
        self._pending.check_due()

    def begin_part(self, number: int) -> None:
        """End the part, write it, and give the next part this number. The last key has no more versions."""
        self._pending.end_part()
        self.flush()
        self._pending.begin_at(number)

    def save(self, whole_key: bool = True) -> None:
        """End the part, and save a checkpoint with the present tally. No line may be written after this.

        whole_key: False if the last key may have more versions. Its lines are then dropped, also from the tally, and
        the process that continues the run reads this key again. If a part already has some of these lines, no
        checkpoint is saved: that process goes back to the last one, and replaces the part.
        """
        mark = self._pending.end(whole_key)
        self.flush()
        if mark is not None:
            self._save(self._checkpoint(self._pending.part, mark), last=True)

    def hand_on(self) -> None:
        """Save a checkpoint, and the seal of the parts so far: the next process then need not read them again."""
        self.save()
        self._put_keys(again=True)
        self._seal.write(unsealed=False)

    def end_range(self, end: RangeEnd) -> None:
        """Write the seal of the range, and a checkpoint that says that the range is complete, for another process that
        concludes the run.
        """
        mark = self._pending.end(whole_key=True)
        self.flush()
        assert mark is not None  # all versions of the last key were taken
        self._put_keys(again=True)
        self._seal.write(unsealed=True)
        self._save(replace(self._checkpoint(self._pending.part, mark), ended=end), last=True)

    def sealed_parts(self) -> tuple[SealedPart, ...]:
        """Return the entries of all parts of the range that its checkpoint covers. Those that a killed process did not
        seal are read.
        """
        return self._seal.all_parts(self._covered)

    def close(self) -> None:
        """Drop the lines that are not saved, and let other processes claim the range."""
        with self._io:
            self._discard()
            self._writer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _spill(self, batch: LineBatch) -> None:
        for kind, lines in batch.lines.items():
            if not lines:
                continue
            if kind not in self._files:
                part = Part(self._range_id, batch.number, kind)
                self._files[kind] = PartFile(self._store.spool_dir(self.path) / part.spool_name)
            self._files[kind].write(lines)

    def _commit(self, batch: LineBatch) -> None:
        parts = {Part(self._range_id, batch.number, kind): self._files[kind] for kind in KINDS if kind in self._files}
        for file in parts.values():
            file.close()
        self._put_keys()
        self._writer.put_parts({part: file.path for part, file in parts.items()})
        self._files.clear()
        self._seal.add(file.sealed(part) for part, file in parts.items())
        if batch.checkpoint is not None:
            self._save(self._checkpoint(batch.number + 1, batch.checkpoint))

    def _put_keys(self, *, again: bool = False) -> None:
        """Write the policies of KMS keys that were read so far: they belong to the lines. again: True to write them
        even if they are written, because a process that has lost the range may have overwritten them once.
        """
        data = None if self._keys is None else self._keys()
        if data is not None and (again or data != self._written_keys):
            self._store.put(f"{self.path}/{range_keys_name(self._range_id)}", data)
            self._written_keys = data

    def _save(self, checkpoint: Checkpoint, *, last: bool = False) -> None:
        self._writer.put_checkpoint(checkpoint, last=last)
        self.saved_key, self._covered = checkpoint.start_after, checkpoint.next_part

    def _checkpoint(self, next_part: int, mark: RunPosition) -> Checkpoint:
        return Checkpoint(
            run=self.run_id,
            next_part=next_part,
            start_after=mark.key,
            tally=(mark.tally or self._tally).copy(),
            rollups=mark.rollups,
            skipped_parts=self._skipped_parts,
            unsent=tuple(
                ObjectVersion(one.key, one.version_id, one.etag, one.size)
                for one in mark.unsent
                if mark.key is not None and one.key <= mark.key
            ),
        )

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _discard(self) -> None:
        for file in self._files.values():
            file.discard()
        self._files.clear()
