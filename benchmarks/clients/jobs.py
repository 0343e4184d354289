"""Audits of one bucket on two nights in one process, or in several by `--jobs`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

from auditor.aio import loop as loops
from auditor.aio.stop import Stop
from auditor.audit import jobs as range_processes
from auditor.audit.audit_run import Audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from auditor.s3.engines import load
from benchmarks.clients import range_process
from benchmarks.in_process import NAME, PARTNER, Objects, engine, put_for
from benchmarks.meter import Meter
from benchmarks.server.objects import BUCKET

NIGHTS: Final = 2
TARGET: Final = Target(BUCKET)


def nights(meter: Meter, *, url: str | None, objects: int, jobs: int, concurrency: int | None) -> dict[str, Any]:
    """Measure two whole audits into one place: the second one compares each object with the first.

    url: of the server; None for objects that each process computes by itself, without a server. jobs: number of
    processes; 1 for an audit that is not divided. Returns for each night the CPU seconds of the process that was
    called (`parent`), and of each one that it began (`children`).
    """
    with tempfile.TemporaryDirectory() as out, tempfile.TemporaryDirectory() as notes, _objects(url, objects, notes):
        settings = Settings(
            engine=NAME if url is None else Settings().engine,
            endpoint_url=url,
            out=out,
            max_rate=None,
            concurrency=concurrency,
            trusted=frozenset({PARTNER}),
        )
        if url is not None:
            load(settings.engine)
        places = Resources(store=LocalStore(Path(out)), ledger=None)
        noting = partial(range_processes.RangeProcesses, module=range_process.__name__)
        children = []
        for _ in range(NIGHTS):
            with put_for(range_processes, "RangeProcesses", noting), meter.measuring():
                summary = loops.run(Audit(TARGET, settings, places, Stop(), jobs=jobs).run())
            if not summary.complete or summary.coverage.audited != objects:
                raise RuntimeError(f"the audit is not the one to measure: {summary}")
            children.append(_noted(Path(notes)))
    return {"children": children}


@contextmanager
def _objects(url: str | None, objects: int, notes: str) -> Iterator[None]:
    """Tell the processes where to note their CPU, and give all processes the objects if no server has them."""
    os.environ[range_process.NOTES] = notes
    if url is None:
        os.environ[range_process.OBJECTS] = str(objects)
    with engine(Objects(objects, range_process.PUBLIC)) if url is None else nullcontext():
        yield


def _noted(notes: Path) -> list[float]:
    """The CPU seconds of each process that ended since the last call."""
    found = []
    for note in sorted(notes.iterdir()):
        found.append(float(json.loads(note.read_text())))
        note.unlink()
    return found
