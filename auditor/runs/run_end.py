"""Write the last files of a run: its reports, its seal, then its summary, which says that the run has ended."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from auditor.aio.tasks import in_order, side_by_side
from auditor.errors import OutputError, RunTaken
from auditor.model.rollup import NAME as ROLLUPS
from auditor.model.summary import Summary
from auditor.runs.key_file import NAME as KEYS
from auditor.runs.parts import delete_spools
from auditor.runs.paths import CHECKPOINTS, run_path
from auditor.runs.reading import link_to, update_latest_json
from auditor.runs.run_files import PLAN, SEAL, Link, RunPlan, Seal, SealedPart, sha256_of
from auditor.runs.stores.base import ConditionalStore, LockingStore, Store
from auditor.text import visible

log = logging.getLogger(__name__)

SUMMARY: Final = "summary.json"
PAGE: Final = "report.html"
_AT_ONCE: Final = 16
"""Number of files that are read or deleted at the same time."""
_NAMES: Final = (PLAN, ROLLUPS, KEYS, SUMMARY, PAGE, SEAL)


class RunClosing:
    """Writes the last files of a run. Call finish() once; it blocks.

    In a bucket each file is written on the condition that no other process has written it since finish() began.

    plan: its run.json. data: the bytes of that file. previous: ID of the run that the seal names as the previous one.
    checkpoints: names of the checkpoints to delete once the run is complete, if this process alone has worked on the
    run; None to look for them.
    """

    def __init__(
        self, store: Store, plan: RunPlan, data: bytes, previous: str | None, checkpoints: Sequence[str] | None = None
    ) -> None:
        self._store = store
        self._plan = plan
        self._data = data
        self._previous = previous
        self._checkpoints = checkpoints
        self._path = run_path(plan.target.bucket, plan.run)
        self._tags: dict[str, str | None] = {}
        self._link: Link | None = None

    def finish(
        self,
        summary: Summary,
        files: Mapping[str, bytes],
        parts: Callable[[], Sequence[SealedPart]],
        *,
        save: Callable[[], object] = lambda: None,
        update_latest: bool = False,
    ) -> Summary:
        """Write the files, the seal and the summary. Return the summary with the digest that it is written with.

        files: the reports by their names. parts: returns the entries of all parts, once they are written. save: writes
        the last part and checkpoint; in a bucket, at the same time as the files. update_latest: True to name the run in
        latest.json, if it is complete and its target is no range of keys.

        The seal follows when all that it names is in place, then the summary. A process that dies before leaves a run
        that another one continues. Raises RunTaken if another process ends the run.
        """
        delete_spools(self._store.spool_dir(self._path), _NAMES)
        writes: list[Callable[[], object]] = [
            save,
            self._read_link,
            *(partial(self._put, *file) for file in files.items()),
        ]
        if isinstance(self._store, ConditionalStore):
            self._read_tags(self._store, [SUMMARY, SEAL, *files])
            side_by_side(writes)
        else:
            for write in writes:
                write()
        digests = {PLAN: sha256_of(self._data), **{name: sha256_of(data) for name, data in files.items()}}
        seal = Seal(run=self._plan.run, previous=self._link, files=digests, parts=tuple(parts())).to_json()
        self._put(SEAL, seal)
        summary = replace(summary, sealed={SEAL: sha256_of(seal)})
        self._put(SUMMARY, json.dumps(summary.to_dict(), indent=1).encode() + b"\n")
        if summary.complete:
            delete = partial(delete_checkpoints, self._store, self._path, self._checkpoints)
            latest = [self._update_latest] if update_latest and self._plan.target.whole else []
            side_by_side([*latest, delete])
        return summary

    def _update_latest(self) -> None:
        update_latest_json(self._store, self._plan.target, self._plan.run)

    def _read_tags(self, store: ConditionalStore, names: Sequence[str]) -> None:
        """Note the tags of the files that a stopped process has written. Raises RunTaken if the run is complete by
        now.
        """
        if self._checkpoints is not None:
            return
        reads = (partial(store.get_tagged, f"{self._path}/{name}") for name in names)
        for name, (data, tag) in zip(names, in_order(reads, _AT_ONCE), strict=True):
            if name == SUMMARY and data is not None and Summary.from_json(data).complete:
                raise self._taken()
            self._tags[name] = tag

    def _put(self, name: str, data: bytes) -> None:
        path = f"{self._path}/{name}"
        if not isinstance(self._store, ConditionalStore):
            self._store.put(path, data)
        elif self._store.put_if(path, data, self._tags.get(name)) is None and self._store.get(path) != data:
            raise self._taken()

    def _taken(self) -> RunTaken:
        return RunTaken(f"{self._store.uri(self._path)} is being summed up by another process: wait for it")

    def _read_link(self) -> None:
        if self._previous is not None:
            self._link = link_to(self._store, self._plan.target.bucket, self._previous)


def delete_checkpoints(store: Store, path: str, names: Sequence[str] | None = None) -> None:
    """Delete the checkpoints of a complete run. Nothing needs them any more: if they cannot be deleted, the log says
    so. path: of the run folder. names: of the files; None for all. Blocks.
    """
    try:
        _delete(store, path, names)
    except OutputError as error:
        log.warning("the checkpoints of a complete run are not deleted: %s", visible(str(error)))


def _delete(store: Store, path: str, names: Sequence[str] | None) -> None:
    found = store.list(f"{path}/{CHECKPOINTS}/") if names is None else [f"{path}/{name}" for name in names]
    for _ in in_order((partial(store.delete, one) for one in found), _AT_ONCE):
        pass
    if isinstance(store, LockingStore):  # a killed process may have left the folder without a file
        place = store.spool_dir(path) / CHECKPOINTS
        with suppress(OSError):  # another process still writes there
            for left in place.glob(".*.tmp"):
                left.unlink(missing_ok=True)
            place.rmdir()
