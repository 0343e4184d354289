"""Who writes a run: one process at a time. A directory is locked; in a bucket the checkpoint says whose it is."""

from __future__ import annotations

import gzip
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from auditor.errors import OutputError, RunTaken
from auditor.runs.checkpoint import Checkpoint, parse_checkpoint
from auditor.runs.parts import KINDS, Part
from auditor.runs.paths import checkpoint_name, run_path
from auditor.runs.stores.base import ConditionalStore, LockingStore, Store

RENEW_SECONDS: Final = 10.0
"""A checkpoint in a bucket is written again at least this often, for others to see that its writer lives."""
SILENT_SECONDS: Final = 30.0
"""A writer that wrote no checkpoint for so long is taken for dead."""
POLL_SECONDS: Final = 1.0
TRIES: Final = 5
NOTHING: Final = gzip.compress(b"", mtime=0)

log = logging.getLogger(__name__)


class Writer(Protocol):
    """One process' right to write one range of a run. All methods block; RunTaken means that another has the right."""

    def claim(self, loaded: Checkpoint | None, mine: Checkpoint) -> Checkpoint:
        """Take the right; the state to begin with. loaded: the checkpoint that `mine` goes on from, None for none."""
        ...

    def put_part(self, part: Part, local: Path) -> None:
        """Move a part into its place; `local` is gone afterwards."""
        ...

    def put_state(self, state: Checkpoint) -> None: ...

    def renew(self) -> None:
        """Show that this process lives; does nothing most of the time."""
        ...

    def release(self) -> None:
        """Let others go on from the last checkpoint. Raises nothing."""
        ...


def writer_of(
    store: Store, bucket: str, run_id: str, range_id: str, clock: Callable[[], float], sleep: Callable[[float], None]
) -> Writer:
    """clock, sleep: seconds."""
    if isinstance(store, LockingStore):
        return _Locked(store, bucket, run_id, range_id)
    if isinstance(store, ConditionalStore):
        return _Leased(store, bucket, run_id, range_id, clock, sleep)
    raise TypeError(f"{store!r} neither locks nor writes on conditions")


class _Locked:
    """The lock ends with its process, however that ends."""

    def __init__(self, store: LockingStore, bucket: str, run_id: str, range_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._range_id = range_id
        self._folder = run_path(bucket, run_id)
        self._path = f"{self._folder}/{checkpoint_name(range_id)}"
        self._release: Callable[[], object] = lambda: None

    def claim(self, loaded: Checkpoint | None, mine: Checkpoint) -> Checkpoint:
        self._release = self._store.hold(self._folder, self._range_id)
        if loaded is not None:
            data, uri = self._store.get(self._path), self._store.uri(self._path)
            _check_unmoved(loaded, None if data is None else parse_checkpoint(data, self._run_id, uri), uri)
        return mine

    def put_part(self, part: Part, local: Path) -> None:
        self._store.put_file(f"{self._folder}/{part.path}", local)

    def put_state(self, state: Checkpoint) -> None:
        self._store.put(self._path, state.to_json())

    def renew(self) -> None:
        """A lock needs none."""

    def release(self) -> None:
        self._release()


class _Leased:
    """Each checkpoint names its writer and is written on the condition that nobody else wrote since: of two that claim
    the same one, one gets it. Who finds another's name there waits until that one has been silent for SILENT_SECONDS.

    A writer that was only thought dead cannot spoil the run: its next checkpoint is refused, and the one part that it
    may be about to put in place is void: the successor fills its names with nothing, and parts are only ever put
    where there is none.
    """

    def __init__(
        self,
        store: ConditionalStore,
        bucket: str,
        run_id: str,
        range_id: str,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._range_id = range_id
        self._folder = run_path(bucket, run_id)
        self._path = f"{self._folder}/{checkpoint_name(range_id)}"
        self._uri = store.uri(self._path)
        self._clock = clock
        self._sleep = sleep
        self._name = secrets.token_hex(8)
        self._last: Checkpoint | None = None
        self._tag: str | None = None
        self._written = 0.0

    def claim(self, loaded: Checkpoint | None, mine: Checkpoint) -> Checkpoint:
        there, self._tag = self._read()
        _check_unmoved(loaded, there, self._uri)
        if there is not None and there.writer is not None:
            self._wait_for_silence()
            mine = replace(mine, void=(*there.void, there.next_part), next_part=there.next_part + 1)
        self._write(mine)
        for number in mine.void:
            for kind in KINDS:
                self._store.put(f"{self._folder}/{Part(self._range_id, number, kind).path}", NOTHING)
        return mine

    def put_part(self, part: Part, local: Path) -> None:
        if not self._store.put_new_file(f"{self._folder}/{part.path}", local):
            raise _taken(self._uri)

    def put_state(self, state: Checkpoint) -> None:
        self._write(state)

    def renew(self) -> None:
        if self._last is None or self._clock() - self._written < RENEW_SECONDS:
            return
        try:
            self._write(self._last)
        except RunTaken:
            raise
        except OutputError as error:  # there is time for another attempt
            log.warning("the checkpoint was not renewed: %s", error)

    def release(self) -> None:
        if self._last is None:
            return
        last, self._last = self._last, None
        try:
            self._write(last, writer=False)
        except OutputError as error:
            log.warning("the run is not released, who goes on with it will wait: %s", error)

    def _write(self, state: Checkpoint, *, writer: bool = True) -> None:
        """Raises RunTaken; then nothing more is written."""
        beat = (self._last.beat if self._last else state.beat) + 1
        state = replace(state, writer=self._name if writer else None, beat=beat)
        for _ in range(TRIES):
            tag = self._store.put_if(self._path, state.to_json(), self._tag)
            if tag is not None:
                self._tag, self._written = tag, self._clock()
                self._last = state if writer else None
                return
            # Refused: by a write that is under way, by our own whose answer was lost, or because another has it.
            there, tag = self._read()
            if tag != self._tag and (there is None or there.writer != self._name):
                break
            self._tag = tag
        self._last = None
        raise _taken(self._uri)

    def _read(self) -> tuple[Checkpoint | None, str | None]:
        data, tag = self._store.get_tagged(self._path)
        return (None if data is None else parse_checkpoint(data, self._run_id, self._uri)), tag

    def _wait_for_silence(self) -> None:
        """By our own clock alone: the other one's may be wrong."""
        log.warning("%s names a writer: waiting up to %d s to see whether it still writes", self._uri, SILENT_SECONDS)
        for _ in range(round(SILENT_SECONDS / POLL_SECONDS)):
            self._sleep(POLL_SECONDS)
            if self._store.get_tagged(self._path)[1] != self._tag:
                raise _taken(self._uri)


def _check_unmoved(loaded: Checkpoint | None, there: Checkpoint | None, uri: str) -> None:
    """What was read when the run began must still be what it goes on from."""
    if (loaded and loaded.place) != (there and there.place):
        raise _taken(uri)


def _taken(uri: str) -> RunTaken:
    return RunTaken(f"{uri} is written by another process: this one leaves the run to it, and counts nothing")
