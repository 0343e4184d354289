"""Write the folder of a run: lines in parts, a checkpoint after each complete part, and the reports at the end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Self

from msgspec.structs import replace

from auditor.aio.threads import side_by_side
from auditor.errors import OutputError
from auditor.model.finding import RuleUndecided
from auditor.model.object import AnyVersion, ObjectVersion
from auditor.model.rollup import NAME as ROLLUPS
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.bucket_file import NAME as BUCKET_FILE
from auditor.runs.checkpoint import Checkpoint, RangeEnd
from auditor.runs.folder_seal import FolderSeal
from auditor.runs.latest import update_latest_json
from auditor.runs.ownership import writer_of
from auditor.runs.parts import KINDS, Part, PartFile, delete_spools, tidy
from auditor.runs.paths import UNDIVIDED, checkpoint_name, run_path, seal_name
from auditor.runs.pending import KeyedCounts, LineBatch, PendingLines, RunPosition
from auditor.runs.reading import link_to
from auditor.runs.seal import NAME as SEAL
from auditor.runs.seal import Link, SealedPart, sha256_of
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally

PART_LINES: Final = 50_000
"""Number of lines of a part's largest file at which the part ends."""


class RunFolder:
    """Writes one run's folder: lines in parts, a checkpoint after each complete part, and the reports at the end.

    write(), passed(), write_findings() and check_due() are cheap: call them in the thread that counts the objects,
    which may run an event loop. All other methods block: call them in one thread. Call prepare() before the first
    write. Lines are JSON with their newlines. Count an object in `tally`, then write its lines, with no
    `await` in between: the tally of each checkpoint then agrees with its lines. A part never ends between two versions
    of one key, whose lines are held until the next key.

    selection: the settings that must stay the same when the run is continued. tally: the counts of the run, which the
    caller increases; if the run is continued, the caller has restored them. state: the checkpoint of the run that is
    continued; None for a new run. part_seconds: longest time that a part is open. fresh: True if the run's ID is new,
    so that the folder cannot have any parts yet. describe: returns the bytes of the file that describes the bucket,
    given the number of the first part that this process writes; None to write no such file. describes: the name of the
    file. described: the bytes that it has by now. growing: True if it grows with the lines, and is written again before
    each part. previous: ID of the run that the seal names as the previous one. rollups: counts that each checkpoint
    saves with the tally; None for none.
    """

    def __init__(
        self,
        store: Store,
        bucket: str,
        run_id: str,
        range_id: str = UNDIVIDED,
        *,
        target: Target,
        selection: Mapping[str, Any] | None = None,
        rules_undecided: Sequence[RuleUndecided] = (),
        tally: Tally,
        hop: int = 0,
        state: Checkpoint | None = None,
        part_lines: int = PART_LINES,
        part_seconds: float = 60.0,
        fresh: bool = False,
        describe: Callable[[int], bytes] | None = None,
        describes: str = BUCKET_FILE,
        described: bytes = b"",
        growing: bool = False,
        previous: str | None = None,
        rollups: KeyedCounts | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = run_path(bucket, run_id)
        self.uri = store.uri(self.path)
        self.run_id = run_id
        self._store = store
        self._range_id = range_id
        self._target = target
        self._seal = FolderSeal(store, self.path, run_id, range_id)
        self.described = described
        """The bytes of the file that describes the bucket by now; b"" if the run has no such file."""
        self._describe = describe
        self._describes = describes
        self._growing = growing
        self._first_part = 0
        self._selection = dict(selection or {})
        self._rules_undecided = tuple(rules_undecided)
        self._hop = hop
        self._io = threading.Lock()  # guards the files
        self._files: dict[str, PartFile] = {}
        self._failure: OutputError | None = None
        first = state.next_part if state else 0
        self._tally = tally
        mark = RunPosition(
            state.start_after if state else None,
            tally.copy(),
            state.rollups if state else {},
            state.unsent if state else (),
        )
        self._pending = PendingLines(
            first,
            mark,
            tally,
            part_lines=part_lines,
            part_seconds=part_seconds,
            clock=clock,
            rollups=rollups or KeyedCounts(),
        )
        self.saved_key = mark.key
        """The last key of the checkpoint that is in place."""
        self._saved: str | None = None  # digest of the last checkpoint of this process
        self._loaded = state
        self._fresh = fresh
        self._skipped_parts = state.skipped_parts if state else ()
        self._writer = writer_of(store, bucket, run_id, range_id)
        self._previous = previous

    def prepare(self) -> None:
        """Claim the run, and delete the files that a killed process wrote after its last checkpoint.

        Raises RunTaken if another process writes this run, OutputError if a part that the checkpoint covers is gone.
        """
        start = self._checkpoint(self._pending.part, self._pending.mark)
        first = self._claimed(start)
        self._first_part = first.next_part
        self._skipped_parts = first.skipped_parts
        self._pending.begin_at(first.next_part)
        if not self._fresh:
            tidy(self._store, self.path, self._range_id, first.next_part)
        self._seal.begin(first.next_part, first.skipped_parts, fresh=self._fresh)
        names = [checkpoint_name(self._range_id), seal_name(self._range_id), self._describes]
        if self._range_id == UNDIVIDED:
            names += [BUCKET_FILE, ROLLUPS, "summary.json", "report.html"]
        delete_spools(self._store.spool_dir(self.path), self._range_id, names)

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
        lines = [("objects", object_line), *(("findings", line) for line in finding_lines)]
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
        self._seal.write(unsealed=False)

    def end_range(self, end: RangeEnd) -> None:
        """Write the seal of the range's parts, then a checkpoint that says that the range is complete."""
        mark = self._pending.end(whole_key=True)
        self.flush()
        assert mark is not None  # all versions of the last key were taken
        self._seal.write(unsealed=True)
        self._save(replace(self._checkpoint(self._pending.part, mark), ended=end), last=True)

    def adopt(self, parts: Iterable[SealedPart], files: Mapping[str, str]) -> None:
        """Name parts and files that other processes wrote in the seal. files: their SHA-256 by their names."""
        self._seal.add(parts, files)

    def finish(
        self,
        summary: Summary,
        html: str,
        rollups: bytes,
        *,
        update_latest: bool = False,
    ) -> Summary:
        """Save a checkpoint, write the page `html`, the bytes of rollups.json, the seal and the summary, and return the
        summary with the digests that it is written with.

        update_latest: True to update latest.json too, if the run is complete and its target is no range of keys.

        The seal follows when all that it names is in place, then the summary, which says that the run has ended. A
        process that dies before leaves a run that another one continues.
        """
        reports = {"report.html": html.encode(), ROLLUPS: rollups}
        early: list[str] = []
        links: list[Link] = []
        ending: list[Callable[[], object]] = [
            self.save,
            *(partial(self._put_early, name, data, early) for name, data in reports.items()),
        ]
        if self._previous is not None:
            link = partial(link_to, self._store, self._target.bucket, self._previous)
            ending.append(lambda: links.append(link()))
        side_by_side(ending)
        for name, report in reports.items():
            if name not in early:
                self._store.put(f"{self.path}/{name}", report)
            self._seal.note(name, report)
        sealed = {SEAL: self._seal.finish(links[0] if links else None)}
        if self._saved is not None:
            sealed[checkpoint_name(UNDIVIDED)] = self._saved
        summary = replace(summary, sealed=sealed)
        self._store.put(f"{self.path}/summary.json", json.dumps(summary.to_dict(), indent=1).encode() + b"\n")
        if update_latest and summary.complete and self._target.whole:
            update_latest_json(self._store, self._target, self.run_id)
        return summary

    def _put_early(self, name: str, data: bytes, done: list[str]) -> None:
        if self._writer.put_early(name, data):
            done.append(name)

    def close(self) -> None:
        """Drop the lines that are not saved, and let other processes claim the run."""
        with self._io:
            self._discard()
            self._writer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _claimed(self, start: Checkpoint) -> Checkpoint:
        """Claim the run, write the file that describes the bucket, and return the checkpoint to begin with. start: that
        of a new run. Raises RunTaken if another process writes the run.
        """
        writer = self._writer
        if self._describe is None or self._loaded is not None:
            first = writer.claim(self._loaded, start)
            if self._describe is not None:
                self._put_described(self._describe(first.next_part))
            return first
        made = self._describe(start.next_part)
        claimed, early = [], []
        side_by_side(
            [
                lambda: claimed.append(writer.claim(None, start)),
                lambda: early.append(writer.put_early(self._describes, made)),
            ]
        )
        self._put_described(made, there=early == [True])
        return claimed[0]

    def _put_described(self, data: bytes, *, there: bool = False) -> None:
        """Write the file, unless it has this content. there: True if it has been written just now."""
        self._seal.note(self._describes, data)
        if not there and data != self.described:
            self._store.put(f"{self.path}/{self._describes}", data)
        self.described = data

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
        if self._describe is not None and self._growing:  # what was read meanwhile belongs to the lines
            self._put_described(self._describe(self._first_part))
        self._writer.put_parts({part: file.path for part, file in parts.items()})
        self._files.clear()
        self._seal.add(file.sealed(part) for part, file in parts.items())
        if batch.checkpoint is not None:
            self._save(self._checkpoint(batch.number + 1, batch.checkpoint))

    def _save(self, checkpoint: Checkpoint, *, last: bool = False) -> None:
        self._saved = sha256_of(self._writer.put_checkpoint(checkpoint, last=last))
        self.saved_key = checkpoint.start_after

    def _checkpoint(self, next_part: int, mark: RunPosition) -> Checkpoint:
        return Checkpoint(
            run=self.run_id,
            target=self._target,
            selection=self._selection,
            rules_undecided=self._rules_undecided,
            next_part=next_part,
            start_after=mark.key,
            hop=self._hop,
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
