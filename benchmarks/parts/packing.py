"""Measure small objects: the requests that packing saves, and the cost of an object, beside a message for each."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from benchmarks.harness import Bench, Measured, Row, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

SIZE: Final = 10_000
OBJECTS: Final = 20_000
QUICK: Final = 500
LATENCY: Final = 0.015
WORKERS: Final = {"ours": "pack", "article": "pack-article"}


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. requests: to SQS and Lambda, by operation. per_second: objects. cpu: microseconds an
    object.
    """
    objects, laps = measured.labels["objects"], [run["laps"][-1] for run in measured.runs]
    return {
        **measured.labels,
        "requests": measured.runs[0]["requests"],
        "per_second": summarised([objects / lap["wall"] for lap in laps]),
        "cpu": summarised([1e6 * lap["cpu"] / objects for lap in laps]),
        "peak": round(median(run["peak"] for run in measured.runs)),
    }


def measure(bench: Bench) -> Results:
    objects = bench.choose(QUICK, OBJECTS)
    rows = [
        Row(
            labels={"worker": worker, "objects": objects, "size": SIZE},
            job={"job": job, "url": bench.server.tls, "size": SIZE, "objects": objects},
            server={"latency": LATENCY},
            most=None if worker == "ours" else 1,  # five minutes each time
        )
        for worker, job in WORKERS.items()
    ]
    return {"rows": [figures(measured) for measured in bench.measure(rows)]}


def find(results: Mapping[str, Any], worker: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = next((row for row in results["rows"] if row["worker"] == worker), None)
    return found


def times_fewer(results: Mapping[str, Any]) -> float | None:
    """The requests of the article's function for one request of ours."""
    ours, article = (find(results, worker) for worker in WORKERS)
    if ours is None or article is None:
        return None
    return float(sum(article["requests"].values())) / float(sum(ours["requests"].values()))


def page(results: Results) -> str:
    rows = results["rows"]
    columns = ["", "requests", "objects a second", "CPU us an object", "peak MiB"]
    cells = [
        (
            row["worker"],
            sum(row["requests"].values()),
            row["per_second"]["median"],
            row["cpu"]["median"],
            row["peak"],
        )
        for row in rows
    ]
    said = f"{rows[0]['objects']:,} objects of {SIZE:,} bytes, {1000 * LATENCY:.0f} ms latency.\n\n"
    return said + table(columns, cells)


PART: Final = Part(measure, page)
