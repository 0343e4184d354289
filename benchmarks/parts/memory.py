"""Measure the peak memory of whole audits of small and of large buckets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from auditor.s3.engines import DEFAULT_ENGINE, ENGINES
from benchmarks.harness import Bench, Measured, Row, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import lines, table

SIZES: Final = (10_000, 100_000, 1_000_000)
"""The largest bucket, measured once and with the default engine only: the others would take an hour each."""
QUICK: Final = (2_000, 20_000)
MANY: Final = 20_000
"""From so many objects on, the SDKs' engines are measured once."""


def _rows(bench: Bench) -> Iterator[Row]:
    sizes = bench.choose(QUICK, SIZES)
    for engine in ENGINES:
        default = engine == DEFAULT_ENGINE
        for objects in sizes if default else sizes[:1] if bench.quick else sizes[:2]:
            once = objects == SIZES[-1] or (not default and objects >= MANY)
            yield Row(
                labels={"engine": engine, "objects": objects},
                job={"job": "audit", "url": bench.server.tls, "engine": engine, "concurrency": "auto"},
                server={"objects": objects},
                most=1 if once else None,
            )


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. peak: MiB. cpu: microseconds a call, the whole run's."""
    for run in measured.runs:
        if run["coverage"]["audited"] != measured.labels["objects"]:
            raise RuntimeError(f"{dict(measured.labels)} audited {run['coverage']}")
    return {
        **measured.labels,
        "peak": summarised([run["peak"] for run in measured.runs]),
        "cpu": summarised([1e6 * run["laps"][0]["cpu"] / run["calls"] for run in measured.runs]),
        "seconds": summarised([run["seconds"] for run in measured.runs]),
        "rate": summarised([run["calls"] / run["seconds"] for run in measured.runs], 0),
        "times": len(measured.runs),
    }


def measure(bench: Bench) -> Results:
    return {"rows": [figures(measured) for measured in bench.measure(list(_rows(bench)))]}


def peaks(results: Results, engine: str) -> list[tuple[int, float]]:
    """(objects, MiB) of each bucket, the smallest first."""
    return sorted((row["objects"], float(row["peak"]["median"])) for row in results["rows"] if row["engine"] == engine)


def page(results: Results) -> str:
    rows = [
        (row["engine"], row["objects"], *(row[name]["median"] for name in ("peak", "cpu", "rate")))
        for row in results["rows"]
    ]
    columns = ("engine", "objects", "peak MiB", "CPU us a call", "calls/s")
    return "![Peak memory](performance/memory.svg)\n\n" + table(columns, rows)


def plots(results: Results) -> dict[str, str]:
    sizes = sorted({row["objects"] for row in results["rows"]})
    series = {
        engine: dict(peaks(results, engine)) for engine in dict.fromkeys(row["engine"] for row in results["rows"])
    }
    return {
        "memory.svg": lines(
            "Peak memory of a whole audit",
            "MiB",
            [f"{size:,}" for size in sizes],
            {engine: [found.get(size) for size in sizes] for engine, found in series.items()},
        )
    }


PART: Final = Part(measure, page, plots)
