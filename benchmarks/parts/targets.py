"""Measure the audit of sixty small buckets by one command, side by side and one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, Final

from benchmarks.harness import Bench, Measured, Row, laps, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

BUCKETS: Final = 60
OBJECTS: Final = 20
LATENCY: Final = 0.03
"""Seconds of a call, as of a laptop that is near the region."""
TOGETHER: Final = "side by side"
ONE_BY_ONE: Final = "one after the other"


def _rows(bench: Bench) -> Iterator[Row]:
    for name, together in ((TOGETHER, True), (ONE_BY_ONE, False)):
        yield Row(
            labels={"targets": name},
            job={"job": "targets", "url": bench.server.plain, "buckets": BUCKETS, "together": together},
            server={"objects": OBJECTS, "latency": LATENCY},
        )


def figures(measured: Measured) -> dict[str, Any]:
    for run in measured.runs:
        if (run["buckets"], run["audited"]) != (BUCKETS, BUCKETS * OBJECTS):
            raise RuntimeError(f"{run['audited']} objects of {run['buckets']} buckets were audited")
    return {
        **measured.labels,
        "seconds": summarised([laps(run, "wall")[0] for run in measured.runs], 2),
        "each": [round(laps(run, "wall")[0], 3) for run in measured.runs],
        "cpu": summarised([laps(run, "cpu")[0] for run in measured.runs], 2),
        "peak": summarised([run["peak"] for run in measured.runs], 0),
    }


def measure(bench: Bench) -> Results:
    return {"rows": [figures(measured) for measured in bench.measure(list(_rows(bench)))]}


def share(results: Results) -> float | None:
    """The time side by side as a share of the time one after the other: the median of the repetitions' shares."""
    each = {row["targets"]: row["each"] for row in results["rows"]}
    if TOGETHER not in each or ONE_BY_ONE not in each:
        return None
    return median(float(mine) / float(others) for mine, others in zip(each[TOGETHER], each[ONE_BY_ONE], strict=True))


def page(results: Results) -> str:
    rows = [(row["targets"], *(row[name]["median"] for name in ("seconds", "cpu", "peak"))) for row in results["rows"]]
    return (
        f"{BUCKETS} buckets of {OBJECTS} objects each, {1000 * LATENCY:.0f} ms latency, one command with a process"
        " of its own:\n\n" + table(("targets", "seconds", "CPU s", "peak MiB"), rows)
    )


PART: Final = Part(measure, page)
