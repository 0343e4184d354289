"""Measure rows in turn, each time in a fresh process, so that a disturbance of the machine affects all rows alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.launch import Server, run_client


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement."""

    labels: Mapping[str, Any]
    """Its name in the results."""
    job: Mapping[str, Any]
    """Of the child."""
    server: Mapping[str, Any] = field(default_factory=dict)
    """The server's behaviour."""
    memory: int | None = None
    """MB of a function; the client gets its share of a CPU."""
    most: int | None = None
    """Limit of repetitions; None for the usual number."""
    with_next: bool = False
    """Run at the same time as the next row, which needs the same server behaviour."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A row with the results of its repetitions."""

    labels: Mapping[str, Any]
    runs: tuple[Mapping[str, Any], ...]


@dataclass(slots=True)
class Bench:
    """The parts' tool to measure. quick: fewer and coarser rows, in minutes. run: one job, in a fresh process."""

    server: Server
    repeat: int
    quick: bool
    run: Callable[..., Mapping[str, Any]] = run_client

    def choose(self, quick: Any, full: Any) -> Any:
        return quick if self.quick else full

    def measure(self, rows: Sequence[Row]) -> list[Measured]:
        """Measure every row once, then every row again. A row that fails ends all."""
        runs: list[list[Mapping[str, Any]]] = [[] for _ in rows]
        for turn in range(self.repeat):
            for together in _together(rows):
                due = [number for number in together if (most := rows[number].most) is None or turn < most]
                for number, run in zip(due, self._run(turn, [rows[number] for number in due]), strict=True):
                    runs[number].append(run)
        return [Measured(row.labels, tuple(found)) for row, found in zip(rows, runs, strict=True)]

    def _run(self, turn: int, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
        """Run all of these rows at once."""
        if not rows:
            return []
        for row in rows:
            self.say(f"{turn + 1}/{self.repeat} {' '.join(str(value) for value in row.labels.values())}")
        self.server.set(**{**DEFAULTS, **rows[0].server})
        with ThreadPoolExecutor(len(rows)) as threads:
            return list(threads.map(lambda row: self.run(self.server, row.job, memory=row.memory), rows))

    @staticmethod
    def say(line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def _together(rows: Sequence[Row]) -> Iterator[list[int]]:
    """The indexes of rows that run at the same time."""
    together: list[int] = []
    for number, row in enumerate(rows):
        together.append(number)
        if not row.with_next:
            yield together
            together = []
    if together:
        raise ValueError("the last row has none after it to run with")


DEFAULTS: Mapping[str, Any] = {
    "objects": 1000,
    "strangers": 0,
    "latency": 0.0,
    "rate": None,
    "error_rate": 0.0,
    "refused_share": 0.0,
    "bandwidth": None,
}


def summarised(values: Sequence[float], digits: int = 1) -> dict[str, float]:
    """Median, minimum and maximum."""
    return {
        "median": round(median(values), digits),
        "least": round(min(values), digits),
        "most": round(max(values), digits),
    }


def laps(run: Mapping[str, Any], figure: str) -> list[float]:
    """One figure of each lap of a repetition."""
    return [float(lap[figure]) for lap in run["laps"]]
