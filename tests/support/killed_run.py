"""The judgements of a run that is killed, its begin and its end, and a store that kills before its Nth write."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from auditor.model.finding import Judgement
from auditor.model.summary import Summary
from auditor.runs.paths import run_path
from auditor.runs.run_end import RunClosing
from auditor.runs.run_files import RunPlan
from auditor.runs.segment import Segment
from auditor.runs.stores.base import Change, Store
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.encoded_lines import encode_finding, encode_object, encode_undecided
from tests.support.samples.reports import ROLLED_UP, RUN, denied, finding, gone, judged, sample_file

OBJECTS = 23
PART = 5


def judgements() -> list[Judgement]:
    """Judgements: every third with a finding, every fourth undecided, every fifth vanished."""
    made = []
    for number in range(OBJECTS):
        key = f"k{number:03}"
        plain = judged(key, finding(key)) if number % 3 == 0 else judged(key)
        made.append(denied(key) if number % 4 == 0 else gone(key) if number % 5 == 0 else plain)
    return made


def put(folder: Segment, tally: Tally, judgement: Judgement) -> bool:
    tally.add(judgement)
    ref = judgement.evidence.ref
    return folder.write(
        ref.key,
        ref.version_id,
        encode_object(judgement, None),
        map(encode_finding, judgement.findings),
        encode_undecided(judgement),
    )


def put_all(folder: Segment, tally: Tally, judgements: Iterable[Judgement]) -> None:
    """Write as the audit does: in key order, with a flush on demand, and a tick now and then."""
    for number, judgement in enumerate(judgements):
        if put(folder, tally, judgement) or number % 2:
            folder.check_due()
            folder.flush()


def begin(store: Store, run_id: str = RUN, **changes: Any) -> RunPlan:
    """Write the run.json of a run of one range, and return its content. Without changes, one that is there stays."""
    path, plan = f"{run_path('audited', run_id)}/run.json", sample_file(run=run_id, **changes)
    if not changes and (data := store.get(path)) is not None:
        return RunPlan.from_json(data)
    store.put(path, plan.to_json())
    return plan


def end(
    store: Store, folder: Segment, summary: Summary, page: str = "", *, update_latest: bool = False, **changes: Any
) -> None:
    """End a run of one range as the audit does, from the counts in memory. changes: of its run.json."""
    plan = begin(store, folder.run_id, **changes)
    closing = RunClosing(store, plan, plan.to_json(), plan.against)
    files = {"rollups.json": ROLLED_UP, "report.html": page.encode()}
    closing.finish(summary, files, folder.sealed_parts, save=folder.save, update_latest=update_latest)


class DyingStore(LocalStore):
    """Kills this process before its Nth write."""

    def __init__(self, root: Path, steps: int) -> None:
        super().__init__(root)
        self._steps = steps

    def put(self, path: str, data: bytes) -> None:
        self._step()
        super().put(path, data)

    def replace_file(self, path: str, local: Path) -> None:
        self._step()
        super().replace_file(path, local)

    def update_json(self, path: str, change: Change) -> None:
        self._step()
        super().update_json(path, change)

    def _step(self) -> None:
        self._steps -= 1
        if self._steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)
