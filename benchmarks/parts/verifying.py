"""Measure verifying: the CPU of an object that is read again, compared and noted, by kind of ledger."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from benchmarks.harness import Bench, Measured, Row, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

SIZE: Final = 1_000
OBJECTS: Final = 10_000
QUICK: Final = 2_000
LEDGERS: Final = ("dynamodb", "sqlite")


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. per_second: objects. cpu: milliseconds an object."""
    objects, laps = measured.labels["objects"], [run["laps"][-1] for run in measured.runs]
    return {
        **measured.labels,
        "per_second": summarised([objects / lap["wall"] for lap in laps]),
        "cpu": summarised([1e3 * lap["cpu"] / objects for lap in laps]),
        "peak": round(median(run["peak"] for run in measured.runs)),
    }


def measure(bench: Bench) -> Results:
    objects = bench.choose(QUICK, OBJECTS)
    rows = [
        Row(
            labels={"ledger": ledger, "objects": objects, "size": SIZE},
            job={"job": "verify", "url": bench.server.tls, "ledger": ledger, "size": SIZE, "objects": objects},
            server={"objects": objects, "size": SIZE},
        )
        for ledger in LEDGERS
    ]
    return {"rows": [figures(measured) for measured in bench.measure(rows)]}


def cpu(results: Mapping[str, Any], ledger: str) -> float | None:
    """The milliseconds of CPU of one object."""
    return next((row["cpu"]["median"] for row in results["rows"] if row["ledger"] == ledger), None)


def page(results: Results) -> str:
    rows = results["rows"]
    columns = ["ledger", "CPU ms an object", "objects a second", "peak MiB"]
    cells = [(row["ledger"], row["cpu"]["median"], row["per_second"]["median"], row["peak"]) for row in rows]
    said = f"{rows[0]['objects']:,} objects of {SIZE:,} bytes, each due, all match.\n\n"
    return said + table(columns, cells)


PART: Final = Part(measure, page)
