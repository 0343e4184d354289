"""The limits of the measurements, as ratios within one run: `python -m benchmarks.gates` reads the last results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from auditor.s3.engines import DEFAULT_ENGINE
from benchmarks.parts import cold, engines, hashing, jobs, known, memory, packing, shares, targets, throttled, verifying

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate. measured: None without such results. at_least: the limit is a minimum, not a maximum."""

    name: str
    limit: float
    measured: float | None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def cells(self) -> tuple[str, str, str, str]:
        word = {True: "met", False: "**not met**", None: "not measured"}[self.met]
        limit = f"{'at least' if self.at_least else 'at most'} {self.limit:g}"
        return self.name, limit, "-" if self.measured is None else f"{self.measured:.3g}", word


def _engines(results: Results) -> Iterator[Gate]:
    found = results.get("engines", {"rows": []})
    direct, bare = (engines.find(found, name) for name in ("direct", "bare aiohttp"))
    yield Gate("CPU per call: direct versus bare aiohttp", 0.35, engines.ratio(direct, bare))
    for way, limit in (("executor", 20), ("aioboto3", 12)):
        article = engines.find(found, f"article: {way}", "both", "as written")
        yield Gate(
            f"CPU per call: the article's {way} function versus direct", limit, engines.ratio(article, direct), True
        )
    yield Gate(
        "CPU per call: the whole audit with direct versus bare aiohttp",
        0.7,
        engines.ratio(engines.find(found, "whole audit: direct"), bare),
    )


def _shares(results: Results) -> Iterator[Gate]:
    """Our engine is open from one event to the next, as in handlers/audit.py."""
    found = results.get("shares", {"rows": []})
    name = "a hundred ACLs, lowest of all memory sizes: the best article versus ours, engine kept open"
    yield Gate(name, 4, shares.least_advantage(found, shares.KEPT), True)
    name = "the same: the fastest of all others, including bare aiohttp, versus ours"
    yield Gate(name, 1, shares.least_advantage(found, shares.KEPT, (*shares.ARTICLES, shares.BARE)), True)
    name = "a whole audit of a hundred objects, warm, lowest of all memory sizes: the best article versus ours"
    yield Gate(name, 2.5, shares.least_advantage(found, shares.AUDIT), True)
    name = "the same, warm, with the run folder in a bucket, where the articles write nothing"
    yield Gate(name, 1, shares.least_advantage(found, shares.FILED), True)
    name = "the whole audit, cold, highest of all memory sizes: ours versus the best article"
    yield Gate(name, 1, shares.cold_ratio(found, shares.AUDIT))


def _cold(results: Results) -> Iterator[Gate]:
    found = results.get("cold", {"rows": []})
    yield Gate(f"CPU seconds of `auditor audit` on {cold.OBJECTS} objects", 0.45, cold.command_cpu(found))


def _targets(results: Results) -> Iterator[Gate]:
    found = results.get("targets", {"rows": []})
    yield Gate(
        f"{targets.BUCKETS} small buckets: time side by side versus one after the other",
        0.25,
        targets.share(found),
    )


def _hashing(results: Results) -> Iterator[Gate]:
    found = results.get("hashing", {"rows": []})
    name = "hashing: MB per CPU s, lowest of the rows: ours versus the article's"
    yield Gate(name, 0.95, hashing.least_per_cpu(found), True)
    yield Gate("hashing: peak memory above idle, MiB", 64, hashing.most_above_idle(found))
    name = "hashing: four streams versus one, where a connection has 25 MB/s"
    yield Gate(name, 3.5, hashing.times_one(found, 4), True)


def _packing(results: Results) -> Iterator[Gate]:
    found = results.get("packing", {"rows": []})
    name = "small objects: requests to SQS and Lambda, one object per message versus many"
    yield Gate(name, 50, packing.times_fewer(found), True)


def _known(results: Results) -> Iterator[Gate]:
    found = known.shares(results.get("known", {"rows": []}))
    objects = max(found, default=0)
    name = f"audit of {objects:,} objects" if objects else "audit of the most objects"
    yield Gate(f"{name}: CPU with a SQLite ledger that knows all of them versus without one", 1.3, found.get(objects))


def _verifying(results: Results) -> Iterator[Gate]:
    found = results.get("verifying", {"rows": []})
    yield Gate("verifying with DynamoDB: CPU of an object of 1,000 bytes, ms", 1, verifying.cpu(found, "dynamodb"))


def _memory(results: Results) -> Iterator[Gate]:
    found = memory.peaks(results.get("memory", {"rows": []}), DEFAULT_ENGINE)
    *_, (fewer, small), (many, large) = [(0, 0.0), (0, 0.0), *found]
    sizes = f"{many:,} objects" if many else "the most objects"
    yield Gate(f"peak memory at {sizes} to that at {fewer:,}", 1.1, large / small if small else None)
    yield Gate(f"peak memory at {sizes}, MiB", 128, large or None)


def _throttled(results: Results) -> Iterator[Gate]:
    found = results.get("throttled", {"rows": []})
    answered = throttled.worst(found, "throughput", guest=False, least=True)
    yield Gate("throttled: calls answered, of the limit", 0.9, answered, True)
    yield Gate("throttled: share of calls refused once settled", 0.05, throttled.worst(found, "refused", guest=False))
    yield Gate("throttled: objects lost", 0, throttled.worst(found, "lost", guest=False))
    refused = throttled.worst(found, "foreground_refused", guest=True, capped=True)
    yield Gate("as a guest with --max-rate: share of the users' calls refused", 0, refused)
    rise = throttled.worst(found, "p99_rise", guest=True, capped=True)
    yield Gate("as a guest with --max-rate: rise of the users' p99", 0.1, rise)
    refused = throttled.worst(found, "foreground_refused", guest=True)
    yield Gate("as a guest without a ceiling: share of the users' calls refused", 0.02, refused)
    for share in throttled.SHARES[1:]:
        name = (
            f"{share:.0%} of calls refused by chance: objects/s versus a quiet run's, times the share of answered calls"
        )
        yield Gate(name, 0.5, throttled.kept(found, share), True)
    for share in throttled.SHARES[1:]:
        name = f"{share:.0%} of calls refused by chance, {throttled.SHORT:,} objects: seconds, of the quiet ones"
        yield Gate(f"{name}, median", 2.5, throttled.longer(found, share, "median"))
        yield Gate(f"{name}, slowest run", 5.0, throttled.longer(found, share, "least"))


def _jobs(results: Results) -> Iterator[Gate]:
    found = results.get("jobs", {"rows": []})
    name = f"--jobs {jobs.JOBS}: objects/s versus one process, lowest of the nights"
    yield Gate(f"{name}: {jobs.WAITING}", 1.7, jobs.least(found, jobs.WAITING, "seconds"), True)
    yield Gate(f"{name}: {jobs.ALONE}", 1.7, jobs.least(found, jobs.ALONE, "seconds"), True)
    yield Gate(f"{name}: {jobs.SERVER}, computed from CPU", 1.7, jobs.least(found, jobs.SERVER, "path"), True)


SOURCES: Final[tuple[Callable[[Results], Iterator[Gate]], ...]] = (
    _engines,
    _shares,
    _cold,
    _hashing,
    _packing,
    _known,
    _verifying,
    _memory,
    _throttled,
    _targets,
    _jobs,
)


def evaluate(results: Results) -> list[Gate]:
    return [gate for source in SOURCES for gate in source(results)]


def main() -> int:
    from benchmarks.page import load

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs"), help="the folder of the page (docs)")
    parser.add_argument("--strict", action="store_true", help="fail unless all are met")
    options = parser.parse_args()
    gates = evaluate(load(options.out))
    show(gates)
    return int(options.strict and not all(gate.met for gate in gates))


def show(gates: list[Gate]) -> None:
    for gate in gates:
        name, limit, measured, word = gate.cells()
        print(f"{word.strip('*'):<13} {measured:>8}  {limit:<14} {name}")


if __name__ == "__main__":
    sys.exit(main())
