"""Measure the time from the start of a process to the first answered call, and to the end of a small audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from auditor.s3.engines import ENGINES
from benchmarks.harness import Bench, Measured, Row, laps, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

LIBRARIES: Final = ("boto3", "aioboto3", "bare aiohttp")
OBJECTS: Final = 10
COMMAND: Final = f"auditor audit, {OBJECTS} objects"


def _rows(bench: Bench) -> Iterator[Row]:
    common = {"job": "cold", "url": bench.server.tls, "authority": bench.server.authority}
    for engine in ENGINES:
        yield Row(labels={"client": f"engine {engine}"}, job={**common, "client": engine, "engine": True})
    for library in LIBRARIES:
        yield Row(labels={"client": f"{library} itself"}, job={**common, "client": library, "engine": False})
    yield Row(labels={"client": COMMAND}, job={"job": "command", "url": bench.server.tls}, server={"objects": OBJECTS})


def figures(measured: Measured) -> dict[str, Any]:
    for run in measured.runs:
        if run.get("audited", OBJECTS) != OBJECTS:
            raise RuntimeError(f"{dict(measured.labels)} audited {run['audited']} objects of {OBJECTS}")
    return {
        **measured.labels,
        "cpu": summarised([laps(run, "cpu")[0] for run in measured.runs], 3),
        "wall": summarised([laps(run, "wall")[0] for run in measured.runs], 3),
        "peak": summarised([run["peak"] for run in measured.runs], 0),
    }


def measure(bench: Bench) -> Results:
    return {"rows": [figures(measured) for measured in bench.measure(list(_rows(bench)))]}


def command_cpu(results: Results) -> float | None:
    """CPU seconds of the whole command."""
    return next((float(row["cpu"]["median"]) for row in results["rows"] if row["client"] == COMMAND), None)


def page(results: Results) -> str:
    rows = [(row["client"], *(row[name]["median"] for name in ("cpu", "wall", "peak"))) for row in results["rows"]]
    return table(("client", "CPU s", "seconds", "peak MiB"), rows)


PART: Final = Part(measure, page)
