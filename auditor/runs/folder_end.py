"""Write the files at the end of a run: its reports, its seal, its summary, and latest.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from auditor.aio.threads import side_by_side
from auditor.model.rollup import NAME as ROLLUPS
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.folder_seal import FolderSeal
from auditor.runs.latest import update_latest_json
from auditor.runs.ownership import RunWriter
from auditor.runs.paths import UNDIVIDED, checkpoint_name, run_path
from auditor.runs.reading import link_to
from auditor.runs.seal import NAME as SEAL
from auditor.runs.seal import Link
from auditor.runs.stores.base import Store


class FolderEnd:
    """Ends the folder of one run of the target. writer: of the run. seal: names all files. previous: ID of the run that
    the seal names as the previous one; None for none.
    """

    def __init__(
        self, store: Store, target: Target, run_id: str, writer: RunWriter, seal: FolderSeal, previous: str | None
    ) -> None:
        self._store = store
        self._target = target
        self._run_id = run_id
        self._path = run_path(target.bucket, run_id)
        self._writer = writer
        self._seal = seal
        self._previous = previous

    def write(
        self, summary: Summary, html: str, rollups: bytes, save: Callable[[], str | None], *, update_latest: bool
    ) -> Summary:
        """Write the files, and return the summary as it is written. Blocks. The seal follows when all that it names is
        in place, then the summary, which says that the run has ended. A process that dies before leaves a run that
        another one goes on with.

        save: saves the last checkpoint, and returns its SHA-256; None if the one before stays. The other parameters are
        those of RunFolder.finish().
        """
        reports = {"report.html": html.encode(), ROLLUPS: rollups}
        early: list[str] = []
        links: list[Link] = []
        saved: list[str | None] = []
        ending: list[Callable[[], object]] = [
            lambda: saved.append(save()),
            *(partial(self._put_early, name, data, early) for name, data in reports.items()),
        ]
        if self._previous is not None:
            link = partial(link_to, self._store, self._target.bucket, self._previous)
            ending.append(lambda: links.append(link()))
        side_by_side(ending)
        for name, report in reports.items():
            if name not in early:
                self._store.put(f"{self._path}/{name}", report)
            self._seal.note(name, report)
        sealed = {SEAL: self._seal.finish(links[0] if links else None)}
        if saved[0] is not None:
            sealed[checkpoint_name(UNDIVIDED)] = saved[0]
        summary = replace(summary, sealed=sealed)
        self._store.put(f"{self._path}/summary.json", json.dumps(summary.to_dict(), indent=1).encode() + b"\n")
        if update_latest and summary.complete and self._target.whole:
            update_latest_json(self._store, self._target, self._run_id)
        return summary

    def _put_early(self, name: str, data: bytes, done: list[str]) -> None:
        if self._writer.put_early(name, data):
            done.append(name)
