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
DYNAMODB: Final = "DynamoDB"
LEDGERS: Final = (SQLITE, DYNAMODB)


def _rows(bench: Bench) -> Iterator[Row]:
    common = {"url": bench.server.tls, "engine": DEFAULT_ENGINE, "concurrency": "auto"}
    for objects in bench.choose(QUICK, SIZES):
        for ledger in (WITHOUT, *LEDGERS):
            if ledger == DYNAMODB and objects == SIZES[-1]:
                continue  # to fill the table would take as long as all the rest
            job = {"job": "audit-known", "ledger": ledger.lower(), "objects": objects, "size": SIZE}
            yield Row(
                labels={"ledger": ledger, "objects": objects},
                job={**({"job": "audit"} if ledger == WITHOUT else job), **common},
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


def shares(results: Results, ledger: str = SQLITE) -> dict[int, float]:
    """By number of objects: the CPU with a ledger to that without, the median of the ratios within each turn."""
    each = {(row["ledger"], row["objects"]): row["each"] for row in results["rows"]}
    found = {}
    for objects in sorted({number for _, number in each}):
        without, known = each.get((WITHOUT, objects)), each.get((ledger, objects))
        if without and known:
            found[objects] = median(float(one) / float(other) for one, other in zip(known, without, strict=True))
    return found


def page(results: Results) -> str:
    found = {ledger: shares(results, ledger) for ledger in LEDGERS}
    cells = [
        (
            row["ledger"],
            f"{row['objects']:,}",
            row["cpu"]["median"],
            "1" if row["ledger"] == WITHOUT else f"{found[row['ledger']][row['objects']]:.2f}",
        )
        for row in results["rows"]
    ]
    return table(["ledger", "objects", "CPU us an object", "to none"], cells)


PART: Final = Part(measure, page)
