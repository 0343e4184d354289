"""Measure the transfer of one object, down and up, by each way and size."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, Final

from benchmarks.clients.transfers import DOWN, UP
from benchmarks.harness import Bench, Measured, Row, laps, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import lines, table

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
QUICK: Final = (1_000, 10_000_000)
SHOWN: Final = (1_000, 10_000_000, 100_000_000)
"""The sizes on the page; the picture has the others."""
LATENCY: Final = 0.015
BANDWIDTH: Final = 80_000_000
"""The bandwidth of one connection in bytes a second, about as S3's."""


def _rows(bench: Bench) -> Iterator[Row]:
    for size in bench.choose(QUICK, SIZES):
        times = 2 if size >= BANDWIDTH else 5
        for way in (*DOWN, *UP):
            yield Row(
                labels={"way": way, "size": size},
                job={"job": "transfer", "url": bench.server.tls, "way": way, "size": size, "times": times},
                server={"latency": LATENCY, "bandwidth": BANDWIDTH},
            )


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. warm, cold, cpu: milliseconds of one transfer."""
    return {
        **measured.labels,
        "warm": summarised([1000 * median(laps(run, "wall")[1:]) for run in measured.runs]),
        "cold": summarised([1000 * laps(run, "wall")[0] for run in measured.runs]),
        "cpu": summarised([1000 * median(laps(run, "cpu")[1:]) for run in measured.runs]),
    }


def measure(bench: Bench) -> Results:
    return {"rows": [figures(measured) for measured in bench.measure(list(_rows(bench)))]}


def named(size: int) -> str:
    return next(f"{size // unit} {name}" for unit, name in ((10**6, "MB"), (10**3, "KB"), (1, "B")) if size >= unit)


def _found(results: Results, way: str, size: int, figure: str) -> float | None:
    rows = (row for row in results["rows"] if (row["way"], row["size"]) == (way, size))
    row = next(rows, None)
    return None if row is None else float(row[figure]["median"])


def _sizes(results: Results) -> list[int]:
    return sorted({row["size"] for row in results["rows"]})


def page(results: Results) -> str:
    sizes = [size for size in _sizes(results) if size in SHOWN]
    parts = [
        f"Milliseconds, warm; {1000 * LATENCY:.0f} ms latency, {BANDWIDTH // 10**6} MB/s a connection.\n",
        "![Uploads](performance/uploads.svg)\n",
    ]
    for title, ways in (("down", DOWN), ("up", UP)):
        rows: list[tuple[Any, ...]] = [(way, *(_found(results, way, size, "warm") for size in sizes)) for way in ways]
        parts.append(table((title, *map(named, sizes)), rows) + "\n")
    return "\n".join(parts).rstrip()


def plots(results: Results) -> dict[str, str]:
    sizes = _sizes(results)
    return {
        "uploads.svg": lines(
            "Uploads by size, warm",
            "ms",
            [named(size) for size in sizes],
            {way: [_found(results, way, size, "warm") for size in sizes] for way in UP},
        )
    }


PART: Final = Part(measure, page, plots)
