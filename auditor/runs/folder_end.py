"""Write the files at the end of a run: its reports, its summary, its seal, and latest.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from auditor.aio.threads import side_by_side
from auditor.model.rollup import NAME as ROLLUPS
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.folder_seal import FolderSeal
from auditor.runs.latest import update_latest_json
from auditor.runs.ownership import RunWriter
from auditor.runs.paths import run_path, target_name
from auditor.runs.reading import link_to
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
        self, summary: Summary, html: str, rollups: bytes | None, save: Callable[[], None], *, update_latest: bool
    ) -> None:
        """Call save(), which saves the last checkpoint, and write the files. Blocks. The parameters are those of
        RunFolder.finish().
        """
        reports = {"report.html": html.encode()} | ({} if rollups is None else {ROLLUPS: rollups})
        early: list[str] = []
        links: list[Link] = []
        ending: list[Callable[[], object]] = [
            save,
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
        data = json.dumps(summary.to_dict(), indent=1).encode() + b"\n"
        self._store.put(f"{self._path}/summary.json", data)
        self._seal.note("summary.json", data)
        seal = self._seal.finished(links[0] if links else None)
        latest = update_latest and summary.complete and self._target.whole
        name = target_name(self._target)
        update = partial(update_latest_json, self._store, self._target.bucket, name, self._run_id)
        side_by_side([partial(self._seal.finish, seal), *([update] if latest else [])])

    def _put_early(self, name: str, data: bytes, done: list[str]) -> None:
        if self._writer.put_early(name, data):
            done.append(name)
