"""Measure audits with a ledger that knows every object, beside audits without a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, Final

from auditor.s3.engines import DEFAULT_ENGINE
from benchmarks.harness import Bench, Measured, Row, laps, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

SIZE: Final = 1_000
SIZES: Final = (100_000, 1_000_000)
"""Numbers of objects; the largest is measured once."""
QUICK: Final = (5_000,)
WITHOUT: Final = "none"
SQLITE: Final = "SQLite"


def _rows(bench: Bench) -> Iterator[Row]:
    common = {"url": bench.server.tls, "engine": DEFAULT_ENGINE, "concurrency": "auto"}
    for objects in bench.choose(QUICK, SIZES):
        jobs = {WITHOUT: {"job": "audit"}, SQLITE: {"job": "audit-known", "objects": objects, "size": SIZE}}
        for ledger, job in jobs.items():
            yield Row(
                labels={"ledger": ledger, "objects": objects},
                job={**job, **common},
                server={"objects": objects, "size": SIZE},
                most=1 if objects == SIZES[-1] else None,
            )


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. cpu: microseconds an object."""
    objects = measured.labels["objects"]
    for run in measured.runs:
        if run["coverage"]["audited"] != objects:
            raise RuntimeError(f"{dict(measured.labels)} audited {run['coverage']}")
    each = [1e6 * laps(run, "cpu")[0] / objects for run in measured.runs]
    return {**measured.labels, "cpu": summarised(each), "each": [round(one, 2) for one in each]}


def measure(bench: Bench) -> Results:
    return {"rows": [figures(measured) for measured in bench.measure(list(_rows(bench)))]}


def shares(results: Results) -> dict[int, float]:
    """By number of objects: the CPU with a ledger to that without, the median of the ratios within each turn."""
    each = {(row["ledger"], row["objects"]): row["each"] for row in results["rows"]}
    found = {}
    for objects in sorted({number for _, number in each}):
        without, known = each.get((WITHOUT, objects)), each.get((SQLITE, objects))
        if without and known:
            found[objects] = median(float(one) / float(other) for one, other in zip(known, without, strict=True))
    return found


def page(results: Results) -> str:
    found = shares(results)
    cells = [
        (row["ledger"], f"{row['objects']:,}", row["cpu"]["median"], f"{found.get(row['objects'], 0):.2f}")
        if row["ledger"] == SQLITE
        else (row["ledger"], f"{row['objects']:,}", row["cpu"]["median"], "1")
        for row in results["rows"]
    ]
    return table(["ledger", "objects", "CPU us an object", "to none"], cells)


PART: Final = Part(measure, page)
