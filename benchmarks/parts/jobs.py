"""Measure `auditor audit --jobs 2` against one process: where calls wait, and where the auditor's CPU is the limit."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, Final

from benchmarks.harness import Bench, Measured, Row, laps, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

JOBS: Final = 2
WAITING: Final = "calls wait"
SERVER: Final = "a server on the same cores"
ALONE: Final = "no server: each process computes its objects"
LATENCY: Final = 0.02
"""Seconds of a call where calls wait."""
CONCURRENCY: Final = 16
"""Calls in flight of a process where calls wait: it then sends 800 calls a second, far fewer than its core allows."""
OBJECTS: Final = {WAITING: 24_000, SERVER: 200_000, ALONE: 200_000}
MOST: Final = {WAITING: 1, SERVER: 1, ALONE: None}
"""Limit of repetitions: a night takes a minute where calls wait, and half a minute with a server."""
QUICK: Final = {WAITING: 4_000, SERVER: 20_000, ALONE: 20_000}
NIGHTS: Final = ("first night", "second night")
WALL: Final = (WAITING, ALONE)
"""The settings whose time says what two processes gain. Of the other one, the server takes a part of the cores."""


def _rows(bench: Bench) -> Iterator[Row]:
    for setting, objects in bench.choose(QUICK, OBJECTS).items():
        waits = setting == WAITING
        for jobs in (1, JOBS):
            yield Row(
                labels={"setting": setting, "processes": jobs, "objects": objects},
                job={
                    "job": "jobs",
                    "url": None if setting == ALONE else bench.server.tls,
                    "objects": objects,
                    "jobs": jobs,
                    "concurrency": CONCURRENCY if waits else None,
                },
                server={"objects": objects, "latency": LATENCY if waits else 0.0},
                most=MOST[setting],
            )


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. For each night: seconds; cpu: seconds of all processes; path: those of the process that was
    called and of the slowest one that it began, one after the other.
    """
    nights = []
    for night in range(len(NIGHTS)):
        wall, path, cpu = [], [], []
        for run in measured.runs:
            own, children = laps(run, "cpu")[night], run["children"][night]
            wall.append(laps(run, "wall")[night])
            path.append(own + max(children, default=0.0))
            cpu.append(own + sum(children))
        nights.append(
            {
                "seconds": summarised(wall, 2),
                "cpu": summarised(cpu, 2),
                "path": summarised(path, 2),
                "each": {"seconds": [round(one, 3) for one in wall], "path": [round(one, 3) for one in path]},
            }
        )
    return {**measured.labels, "runs": len(measured.runs), "nights": nights}


def measure(bench: Bench) -> Results:
    return {"rows": [figures(measured) for measured in bench.measure(list(_rows(bench)))]}


def times(results: Results, setting: str, night: int, figure: str) -> float | None:
    """How many times the objects a second of one process two processes have, the median of the turns. figure: `seconds`
    as measured, or `path`: as computed from the CPU on the longest way through the processes.
    """
    each = {row["processes"]: row["nights"][night]["each"] for row in results["rows"] if row["setting"] == setting}
    if 1 not in each or JOBS not in each:
        return None
    return median(float(one) / float(two) for one, two in zip(each[1][figure], each[JOBS][figure], strict=True))


def least(results: Results, setting: str, figure: str) -> float | None:
    """The smaller one of the ratios of both nights."""
    found = [ratio for night in range(len(NIGHTS)) if (ratio := times(results, setting, night, figure)) is not None]
    return min(found, default=None)


def _cells(results: Results, setting: str, night: int) -> tuple[Any, ...]:
    rows = [row for row in results["rows"] if row["setting"] == setting]
    found = {row["processes"]: row["nights"][night] for row in rows}
    wall = times(results, setting, night, "seconds") if setting in WALL else None
    path = times(results, setting, night, "path") if setting != WAITING else None
    return (
        f"{setting}, {rows[0]['objects']:,} objects",
        NIGHTS[night],
        *(found[jobs][name]["median"] for name in ("seconds", "path") for jobs in (1, JOBS)),
        "-" if wall is None else f"{wall:.2f}",
        "-" if path is None else f"{path:.2f}",
    )


def page(results: Results) -> str:
    settings = dict.fromkeys(row["setting"] for row in results["rows"])
    columns = ("setting", "night", "seconds: one", "two", "CPU s: one", "two, longest way", "times", "computed")
    cells = [_cells(results, setting, night) for night in range(len(NIGHTS)) for setting in settings]
    return (
        f"`--jobs {JOBS}` and one process, two nights into one folder. The longest path is the CPU of the process that"
        " was called and of the slowest one that it started. `times`: the objects a second, divided by those of one"
        " process. `computed`: the CPU of one process, divided by that on the longest path of two, as if the server"
        " were elsewhere:\n\n" + table(columns, cells)
    )


PART: Final = Part(measure, page)
