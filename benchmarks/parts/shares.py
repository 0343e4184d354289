"""Measure a hundred ACLs by memory size: the memory of a function sets its share of a CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, Final

from benchmarks.harness import Bench, Measured, Row, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import lines, table

OBJECTS: Final = 100
LATENCY: Final = 0.015
MEMORY: Final = (128, 512, 1024, 1536, 1769, 2048, 3008)
QUICK: Final = (128, 1769)
SHOWN: Final = (128, 512, 1024, 1769, 3008)
"""The sizes on the page; the picture has the others."""
WAYS: Final = ("serial", "executor", "aioboto3")
ARTICLES: Final = tuple(f"article: {way}" for way in WAYS)
OURS: Final = "ours"
KEPT: Final = "ours, engine kept open"
AUDIT: Final = "ours, whole audit"
FILED: Final = "ours, whole audit, run folder in a bucket"
BARE: Final = "bare aiohttp, kept open"


def _rows(bench: Bench) -> Iterator[Row]:
    for memory in bench.choose(QUICK, MEMORY):
        warm = bench.choose(1 if memory == 128 else 3, 5 if memory == 128 else 10)
        common = {"url": bench.server.tls, "warm": warm}
        jobs: dict[str, dict[str, Any]] = {
            **{name: {"job": "article-invoked", "way": way} for name, way in zip(ARTICLES, WAYS, strict=True)},
            BARE: {"job": "bare-invoked", "authority": bench.server.authority, "objects": OBJECTS},
            OURS: {"job": "gather", "kept": False},
            KEPT: {"job": "gather", "kept": True},
            AUDIT: {"job": "audit-invoked", "bucket": False},
            FILED: {"job": "audit-invoked", "bucket": True},
        }
        for client, job in jobs.items():
            yield Row(
                labels={"memory": memory, "client": client},
                job={**job, **common},
                server={"objects": OBJECTS, "latency": LATENCY},
                memory=memory,
            )


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. warm, cold: milliseconds. cpu: of a warm invocation, milliseconds."""
    for run in measured.runs:
        if run["calls"] != OBJECTS:
            raise RuntimeError(f"{dict(measured.labels)} read {run['calls']} ACLs of {OBJECTS}")
    warm = [median(1000 * lap["wall"] for lap in run["laps"][1:]) for run in measured.runs]
    cpu = [median(1000 * lap["cpu"] for lap in run["laps"][1:]) for run in measured.runs]
    return {
        **measured.labels,
        "warm": summarised(warm),
        "cold": summarised([1000 * run["laps"][0]["wall"] for run in measured.runs], 0),
        "cpu": summarised(cpu),
        "peak": round(median(run["peak"] for run in measured.runs)),
    }


def measure(bench: Bench) -> Results:
    try:
        return {"rows": [figures(measured) for measured in bench.measure(list(_rows(bench)))]}
    except OSError as error:
        return {"rows": [], "missing": f"no control group for the CPU can be made here ({error.strerror})"}


def warm(results: Results, memory: int, client: str) -> float | None:
    rows = (row for row in results["rows"] if (row["memory"], row["client"]) == (memory, client))
    found = next(rows, None)
    return None if found is None else float(found["warm"]["median"])


def sizes(results: Results) -> list[int]:
    return sorted({row["memory"] for row in results["rows"]})


def advantage(results: Results, memory: int, client: str, others: Sequence[str] = ARTICLES) -> float | None:
    """The speed of this client as a multiple of the best other client's."""
    theirs = [found for other in others if (found := warm(results, memory, other)) is not None]
    mine = warm(results, memory, client)
    return min(theirs) / mine if theirs and mine else None


def least_advantage(results: Results, client: str, others: Sequence[str] = ARTICLES) -> float | None:
    """The worst ratio over all sizes."""
    found = [value for memory in sizes(results) if (value := advantage(results, memory, client, others)) is not None]
    return min(found, default=None)


def cold_ratio(results: Results, client: str) -> float | None:
    """The worst ratio, over all sizes, of this client's cold invocation to the fastest article's."""
    cold = {(row["memory"], row["client"]): float(row["cold"]["median"]) for row in results["rows"] if "cold" in row}
    found = []
    for memory in sizes(results):
        theirs = [cold[memory, name] for name in ARTICLES if (memory, name) in cold]
        if theirs and (memory, client) in cold:
            found.append(cold[memory, client] / min(theirs))
    return max(found, default=None)


def page(results: Results) -> str:
    if not results["rows"]:
        return f"Not measured: {results['missing']}."
    clients = list(dict.fromkeys(row["client"] for row in results["rows"]))
    rows = [
        (memory, *(warm(results, memory, client) for client in clients)) for memory in sizes(results) if memory in SHOWN
    ]
    return (
        "![A hundred ACLs by memory size](performance/shares.svg)\n\n"
        f"Milliseconds of a warm invocation, {OBJECTS} objects, {1000 * LATENCY:.0f} ms latency:\n\n"
        + table(("memory MB", *clients), rows)
    )


def plots(results: Results) -> dict[str, str]:
    if not results["rows"]:
        return {}
    memory = sizes(results)
    clients = dict.fromkeys(row["client"] for row in results["rows"])
    return {
        "shares.svg": lines(
            f"A hundred ACLs, warm invocation, {1000 * LATENCY:.0f} ms latency",
            "ms",
            [f"{size} MB" for size in memory],
            {client: [warm(results, size, client) for size in memory] for client in clients},
        )
    }


PART: Final = Part(measure, page, plots)
