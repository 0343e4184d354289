"""CPU of an audit apart from its engine, in microseconds an object: `python -m benchmarks.hotpath`.

An engine in this process answers at once, so the CPU is our own: listing, gather, rules, lines, JSON, gzip and files.
The stages are timed one by one over the same objects, then the whole run. Figures are medians of CPU time, threads
included. `--profile` prints the profile of a whole run instead.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from auditor.aio import loop as loops
from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.line_records import encode_object
from auditor.model.object import Evidence
from auditor.model.target import Target
from auditor.rules import RULES
from auditor.rules.base import make_plan
from auditor.rules.judge import Judge, select
from auditor.runs.parts import PartFile
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from auditor.s3.calls import Caller, ConcurrencyLimit
from auditor.s3.engines.base import ListQuery, Position
from auditor.s3.gather import Gathered, gather
from auditor.s3.listing import pages
from auditor.s3.object_reader import ObjectReader
from auditor.s3.rate import RateLimit
from benchmarks.facts import BUCKET, FACTS
from benchmarks.in_process import NAME, PARTNER, InProcessEngine, Objects, engine

PERMITS: Final = 64
BATCH: Final = 200
SETTINGS: Final = Settings(engine=NAME, concurrency=PERMITS, max_rate=None, trusted=frozenset({PARTNER}))
TARGET: Final = Target(BUCKET)


async def whole(out: Path) -> None:
    """Run an audit as a user does, into a folder on disk."""
    places = Resources(store=LocalStore(out), ledger=None)
    summary = await Audit(TARGET, SETTINGS, places, Stop()).run()
    if not summary.complete:
        raise RuntimeError(f"the audit did not end: {summary}")


@dataclass(slots=True)
class Stages:
    """Microseconds of CPU an object, for every repetition."""

    found: dict[str, list[float]] = field(default_factory=dict)

    def note(self, stage: str, seconds: float, objects: int) -> None:
        self.found.setdefault(stage, []).append(1e6 * seconds / objects)

    def median(self, stage: str) -> float:
        return median(self.found[stage])


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Call `work`; returns the CPU seconds of the whole process, and the result."""
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


async def _listed(objects: Objects) -> None:
    async for _ in pages(InProcessEngine(objects), _caller(), TARGET):
        pass


async def _gathered(objects: Objects, kept: list[Evidence] | None) -> None:
    """Gather all objects. kept: receives the evidence; None to drop it."""
    caller, made = _caller(), InProcessEngine(objects)

    async def sink(batch: list[Gathered]) -> None:
        if kept is not None:
            kept.extend(item.evidence for item in batch if item.evidence is not None)

    plan = make_plan(select(RULES, {}, (), (), ledger=False), FACTS)
    reader = ObjectReader(made, caller, plan.ask, ("sha256",))
    await gather(pages(made, caller, TARGET), reader, caller, Stop(), sink, calls_per_object=2)


def _caller() -> Caller:
    return Caller(BUCKET, rate=RateLimit(None), permits=ConcurrencyLimit(PERMITS))


async def _answered(objects: Objects) -> None:
    """The cost of the engine itself: making the facts, and waiting a turn for each."""
    made = InProcessEngine(objects)
    position: Position | None = Position(token="0")
    while position is not None:
        page = await made.list_page(ListQuery(), position)
        for ref in page.refs:
            await made.get_acl(ref.key, None)
            await made.head(ref.key, None, checksum=False)
        position = page.next


def _judge() -> Judge:
    return Judge(make_plan(select(RULES, {}, (), (), ledger=False), FACTS), FACTS, trusted=SETTINGS.trusted)


def _after_gather(out: Path, evidence: Sequence[Evidence]) -> Iterator[tuple[str, float]]:
    """Time the stages after gather, batch by batch; it keeps no more in memory than a run."""
    judge, tally, part = _judge(), Tally(), PartFile(out / "part")
    for start in range(0, len(evidence), BATCH):
        batch = evidence[start : start + BATCH]
        seconds, judgements = cpu(lambda: [judge.object(item) for item in batch])  # noqa: B023 - called at once
        yield "judge", seconds
        yield "tally", cpu(lambda: deque(map(tally.add, judgements), 0))[0]  # noqa: B023
        seconds, data = cpu(lambda: [encode_object(judgement, None) for judgement in judgements])  # noqa: B023
        yield "lines of JSON", seconds
        yield "gzip and write", cpu(lambda: part.write(data))[0]  # noqa: B023
    part.close()


def measure(stages: Stages, objects: Objects, out: Path) -> None:
    """Time every stage once, over the same objects."""

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        seconds, result = cpu(work)
        stages.note(stage, seconds, objects.count)
        return result

    timed("engine", lambda: loops.run(_answered(objects)))
    timed("listing", lambda: loops.run(_listed(objects)))
    timed("gather", lambda: loops.run(_gathered(objects, None)))
    evidence: list[Evidence] = []
    loops.run(_gathered(objects, evidence))
    gc.freeze()  # no run holds so much, which each collection would go through
    spent: dict[str, float] = {}
    for stage, seconds in _after_gather(out, evidence):
        spent[stage] = spent.get(stage, 0.0) + seconds
    gc.unfreeze()
    for stage, seconds in spent.items():
        stages.note(stage, seconds, objects.count)
    evidence.clear()
    with engine(objects):
        timed("whole", lambda: loops.run(whole(out)))


def show(stages: Stages) -> None:
    for stage in stages.found:
        print(f"{stage:<16} {stages.median(stage):>8.1f}")
    ours = stages.median("whole") - stages.median("engine")
    print(f"{'ours':<16} {ours:>8.1f}   {ours / 2:.1f} a call", flush=True)


def profile(objects: Objects, lines: int) -> None:
    with tempfile.TemporaryDirectory() as out, engine(objects):
        with cProfile.Profile(time.process_time) as profiler:
            loops.run(whole(Path(out)))
        pstats.Stats(profiler, stream=sys.stdout).sort_stats("tottime").print_stats(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--public", type=int, default=100, help="every how many-th object anybody can read (100)")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    objects = Objects(options.objects, options.public)
    if options.profile:
        profile(objects, 45)
        return 0
    stages = Stages()
    for _ in range(options.times):
        with tempfile.TemporaryDirectory() as out:
            measure(stages, objects, Path(out))
    show(stages)
    return 0


if __name__ == "__main__":
    sys.exit(main())
