"""Measure the time from the start of a process to the first answered call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from auditor.s3.engines import ENGINES
from benchmarks.harness import Bench, Row, laps, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

LIBRARIES: Final = ("boto3", "aioboto3", "bare aiohttp")


def _rows(bench: Bench) -> Iterator[Row]:
    common = {"job": "cold", "url": bench.server.tls, "authority": bench.server.authority}
    for engine in ENGINES:
        yield Row(labels={"client": f"engine {engine}"}, job={**common, "client": engine, "engine": True})
    for library in LIBRARIES:
        yield Row(labels={"client": f"{library} itself"}, job={**common, "client": library, "engine": False})


def measure(bench: Bench) -> Results:
    return {
        "rows": [
            {
                **measured.labels,
                "cpu": summarised([laps(run, "cpu")[0] for run in measured.runs], 3),
                "wall": summarised([laps(run, "wall")[0] for run in measured.runs], 3),
                "peak": summarised([run["peak"] for run in measured.runs], 0),
            }
            for measured in bench.measure(list(_rows(bench)))
        ]
    }


def page(results: Results) -> str:
    rows = [(row["client"], *(row[name]["median"] for name in ("cpu", "wall", "peak"))) for row in results["rows"]]
    return table(("client", "CPU s", "seconds", "peak MiB"), rows)


PART: Final = Part(measure, page)
