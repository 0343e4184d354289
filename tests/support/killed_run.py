"""The judgements of a run that is killed, and a store that kills its process before its Nth write."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

from auditor.model.finding import Judgement
from auditor.runs.folder import RunFolder
from auditor.runs.stores.base import Change
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.encoded_lines import encode_finding, encode_object, encode_undecided
from tests.support.samples.reports import denied, finding, gone, judged

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


def put(folder: RunFolder, tally: Tally, judgement: Judgement) -> bool:
    tally.add(judgement)
    ref = judgement.evidence.ref
    return folder.write(
        ref.key,
        ref.version_id,
        encode_object(judgement, None),
        map(encode_finding, judgement.findings),
        encode_undecided(judgement),
    )


def put_all(folder: RunFolder, tally: Tally, judgements: Iterable[Judgement]) -> None:
    """Write as the audit does: in key order, with a flush on demand, and a tick now and then."""
    for number, judgement in enumerate(judgements):
        if put(folder, tally, judgement) or number % 2:
            folder.check_due()
            folder.flush()


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
