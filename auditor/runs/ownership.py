"""Let only one process at a time write a range of a run: by a lock in a directory, by a name in the checkpoint in a
bucket.
"""

from __future__ import annotations

import gzip
import logging
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from auditor.aio.tasks import side_by_side
from auditor.errors import RunTaken
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.parts import KINDS, Part
from auditor.runs.paths import checkpoint_name, run_path
from auditor.runs.run_files import load, parsed
from auditor.runs.stores.base import ConditionalStore, LockingStore, Store

TRIES: Final = 5
"""Number of attempts to write one checkpoint. S3 also refuses a write while another write is under way."""
EMPTY_PART: Final = gzip.compress(b"", mtime=0)

log = logging.getLogger(__name__)


class LockedRun:
    """Writes the parts and checkpoints of a range in a directory, under a lock.

    The lock ends with the process, so a range is never taken from a process that still writes it.
    """

    def __init__(self, store: LockingStore, bucket: str, run_id: str, range_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._range_id = range_id
        self._folder = run_path(bucket, run_id)
        self._path = f"{self._folder}/{checkpoint_name(range_id)}"
        self.release: Callable[[], object] = lambda: None
        """Let others write the run."""

    def claim(self, loaded: Checkpoint | None, first: Checkpoint) -> Checkpoint:
        """Lock the run, and return `first`, the checkpoint to begin with.

        loaded: the checkpoint that the caller has read; None for a new run. Raises RunTaken if another process writes
        the run, or has written it since the caller read the checkpoint.
        """
        self.release = self._store.hold(self._folder, self._range_id)
        if load(self._store, self._path, Checkpoint, self._run_id) != loaded:
            raise _taken(self._store.uri(self._path))
        return first

    def put_parts(self, files: Mapping[Part, Path]) -> None:
        """Move the local files of these parts into the run folder, one after the other."""
        for part, local in files.items():
            self._store.replace_file(f"{self._folder}/{part.path}", local)

    def put_checkpoint(self, checkpoint: Checkpoint, *, last: bool = False) -> None:
        """Write the checkpoint."""
        self._store.put(self._path, checkpoint.to_json())


class ClaimedRun:
    """Writes the parts and checkpoints of a run in a bucket.

    A process may claim the run from its earlier writer at any time. Each checkpoint names its writer, and is written on
    the condition that nobody else wrote one since. To claim a run, a process writes its checkpoint under its own name.
    If two do so at once, one succeeds. The earlier writer stops at its next checkpoint. Until then it may still put one
    part in place, the one after its last checkpoint. Therefore the new writer skips the number of this part, and
    overwrites the part with an empty one. Every other part is put only if its file is not there yet.
    """

    def __init__(self, store: ConditionalStore, bucket: str, run_id: str, range_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._range_id = range_id
        self._folder = run_path(bucket, run_id)
        self._path = f"{self._folder}/{checkpoint_name(range_id)}"
        self._uri = store.uri(self._path)
        self._name = secrets.token_hex(8)
        self._tag: str | None = None

    def claim(self, loaded: Checkpoint | None, first: Checkpoint) -> Checkpoint:
        """Claim the run, and return the checkpoint to begin with.

        This is `first`; or, if an earlier writer has not ended, a copy that skips the part which that writer may still
        put. loaded: the checkpoint that the caller has read; None for a new run. Raises RunTaken if another process has
        written a checkpoint since.
        """
        if loaded is not None:  # else the condition of the first write shows that nobody wrote a checkpoint
            data, self._tag = self._store.get_tagged(self._path)
            if data is None or parsed(data, self._uri, Checkpoint, self._run_id) != loaded:
                raise _taken(self._uri)
        if loaded is not None and loaded.writer is not None:
            log.warning("%s names a writer that did not end: this process takes over, and that one stops", self._uri)
            skipped = (*loaded.skipped_parts, loaded.next_part)
            first = replace(first, skipped_parts=skipped, next_part=loaded.next_part + 1)
        self.put_checkpoint(first)
        for number in first.skipped_parts:
            for kind in KINDS:
                self._store.put(f"{self._folder}/{Part(self._range_id, number, kind).path}", EMPTY_PART)
        return first

    def put_parts(self, files: Mapping[Part, Path]) -> None:
        """Move the local files of these parts into the run folder.

        The file of objects follows when the others are in place. Raises RunTaken if another process has put one of
        these files there.
        """
        side_by_side([partial(self._put_part, part, files[part]) for part in files if part.kind != KINDS[-1]])
        side_by_side([partial(self._put_part, part, files[part]) for part in files if part.kind == KINDS[-1]])

    def _put_part(self, part: Part, local: Path) -> None:
        if not self._store.put_new_file(f"{self._folder}/{part.path}", local):
            raise _taken(self._uri)

    def put_checkpoint(self, checkpoint: Checkpoint, *, last: bool = False) -> None:
        """Write the checkpoint. Raises RunTaken if another process has claimed the run.

        last: True if no part follows; the checkpoint then names no writer.
        """
        data = replace(checkpoint, writer=None if last else self._name).to_json()
        for _ in range(TRIES):
            tag = self._store.put_if(self._path, data, self._tag)
            if tag is None:
                found, found_tag = self._store.get_tagged(self._path)
                if found == data:  # our own write, whose answer was lost
                    tag = found_tag
                elif found_tag != self._tag:
                    break
            if tag is not None:
                self._tag = tag
                return
        raise _taken(self._uri)

    def release(self) -> None:
        """Do nothing: any process can claim the run at any time."""


RunWriter = LockedRun | ClaimedRun


def writer_of(store: Store, bucket: str, run_id: str, range_id: str) -> RunWriter:
    """Return the writer of a run, or of one of its ranges: a LockedRun for a directory, a ClaimedRun for a bucket.

    All methods of the writer block.
    """
    if isinstance(store, LockingStore):
        return LockedRun(store, bucket, run_id, range_id)
    if isinstance(store, ConditionalStore):
        return ClaimedRun(store, bucket, run_id, range_id)
    raise TypeError(f"{store!r} has neither locks nor conditional writes")


def _taken(uri: str) -> RunTaken:
    return RunTaken(f"{uri} is being written by another process: this one stops, and counts nothing")
