"""Measure what an object costs on a night: listed alone, with its facts known, and with a call for each fact."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

from benchmarks.harness import Bench, Measured, Row, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

LISTED: Final = "listed alone"
KNOWN: Final = "facts known"
KEPT: Final = "facts kept from the last run"
ASKED: Final = "a call for each fact"
KEEP: Final = "acl=3000d,head=3000d"
"""Limits so long that next to nothing is due."""
ROW: Final = "a row of an Inventory"
OTHER_ROW: Final = "a row of another range"
OBJECTS: Final = 100_000
QUICK: Final = 10_000


def _row(bench: Bench, way: str, job: dict[str, Any]) -> Row:
    objects = bench.choose(QUICK, OBJECTS)
    more = {"objects": objects} if job["job"] == "inventory-rows" else {"url": bench.server.tls}
    return Row(labels={"way": way, "objects": objects}, job={**job, **more}, server={"objects": objects})


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. cpu: microseconds an object, on the first night and on the last one. bytes: of an object's
    compressed line or row; None where there is none.
    """
    objects = measured.labels["objects"]
    for run in measured.runs:
        if run["objects"] != objects:
            raise RuntimeError(f"{dict(measured.labels)} had {run['objects']} objects")

    def cpu(night: int) -> dict[str, float]:
        return summarised([1e6 * run["laps"][night]["cpu"] / objects for run in measured.runs], 2)

    written = [run["bytes"] for run in measured.runs if run["bytes"] is not None]
    return {
        **measured.labels,
        "first": cpu(0),
        "last": cpu(-1),
        "bytes": round(median(written), 2) if written else None,
        "peak": round(median(run["peak"] for run in measured.runs)),
    }


def measure(bench: Bench) -> Results:
    rows = [
        _row(bench, LISTED, {"job": "list-keys"}),
        _row(bench, KNOWN, {"job": "nights", "known": True}),
        _row(bench, KEPT, {"job": "nights", "keep": KEEP}),
        _row(bench, ASKED, {"job": "nights"}),
        _row(bench, ROW, {"job": "inventory-rows", "inside": True}),
        _row(bench, OTHER_ROW, {"job": "inventory-rows", "inside": False}),
    ]
    return {"rows": [figures(measured) for measured in bench.measure(rows)]}


def page(results: Results) -> str:
    columns = ("an object", "CPU us, first night", "CPU us, later nights", "bytes, compressed", "peak MiB")
    rows = [
        (row["way"], row["first"]["median"], row["last"]["median"], row["bytes"], row["peak"])
        for row in results["rows"]
    ]
    return table(columns, rows)


PART: Final = Part(measure, page)
