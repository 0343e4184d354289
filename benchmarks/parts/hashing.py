"""How fast an object is hashed, by memory, chunk and size, beside the plain loop of old."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, Final

from auditor.hashing import CHUNK_SIZE
from benchmarks.harness import Bench, Measured, Row, summarised
from benchmarks.meter import MIB
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import lines, table

MB: Final = 1_000_000
SETTINGS: Final = (
    *((128, 1), (128, 10), (256, 10), (256, 20), (256, 50), (512, 1), (512, 5), (512, 20), (512, 50)),
    *((1024, 20), (1024, 50), (1769, 1), (1769, 20), (2048, 20)),
)
"""Memory in MB and chunk in MiB; those of the published table, and some small chunks."""
QUICK: Final = ((512, 1), (512, 20))
SIZES: Final = (100, 500, 1000)
HUGE: Final = 5000
"""MB; measured once, with the default chunk."""
HASHERS: Final = {"ours": "hash", "article": "hash-article"}


def _rows(bench: Bench) -> Iterator[Row]:
    for memory, chunk in bench.choose(QUICK, SETTINGS):
        sizes = bench.choose((30,), SIZES)
        if not bench.quick and chunk == CHUNK_SIZE // MIB:
            sizes = (*SIZES, HUGE)
        for size in sizes:
            for hasher, job in HASHERS.items():
                yield Row(
                    labels={"memory": memory, "chunk": chunk, "size": size, "hasher": hasher},
                    job={"job": job, "url": bench.server.tls, "size": size * MB, "chunk": chunk},
                    memory=memory,
                    most=1 if size > 1000 else None,
                )


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. speed: MB a second. per_cpu: MB a second of CPU. peak: MiB."""
    size, laps = measured.labels["size"], [run["laps"][-1] for run in measured.runs]
    return {
        **measured.labels,
        "speed": summarised([size / lap["wall"] for lap in laps]),
        "per_cpu": summarised([size / lap["cpu"] for lap in laps]),
        "peak": round(median(run["peak"] for run in measured.runs)),
        "digest": measured.runs[0]["digest"],
    }


def measure(bench: Bench) -> Results:
    try:
        rows = [figures(measured) for measured in bench.measure(list(_rows(bench)))]
    except OSError as error:
        return {"rows": [], "missing": f"no control group for the CPU can be made here ({error.strerror})"}
    check(rows)
    return {"rows": rows}


def check(rows: list[dict[str, Any]]) -> None:
    """Raises RuntimeError unless all hashers found the same digest for the same bytes."""
    for size in {row["size"] for row in rows}:
        if len({row["digest"] for row in rows if row["size"] == size}) != 1:
            raise RuntimeError(f"the hashers do not agree about {size} MB")


def page(results: Results) -> str:
    if not results["rows"]:
        return f"Not measured: {results['missing']}."
    cells = {(row["memory"], row["chunk"], row["size"], row["hasher"]): row for row in results["rows"]}
    keys = dict.fromkeys((memory, chunk, size) for memory, chunk, size, _ in cells)
    rows: list[tuple[Any, ...]] = []
    for key in keys:
        both = [cells[(*key, hasher)] for hasher in HASHERS]
        figures_of_both = [(row["speed"]["median"], row["per_cpu"]["median"], row["peak"]) for row in both]
        rows.append((*key, *figures_of_both[0], *figures_of_both[1]))
    columns = ["memory MB", "chunk MiB", "object MB"]
    columns += [f"{hasher}: {figure}" for hasher in HASHERS for figure in ("MB/s", "MB per CPU s", "peak MiB")]
    return "![Hashing](performance/hashing.svg)\n\n" + table(columns, rows)


def plots(results: Results) -> dict[str, str]:
    if not results["rows"]:
        return {}
    settings = list(dict.fromkeys((row["memory"], row["chunk"]) for row in results["rows"]))
    size = min(row["size"] for row in results["rows"])
    found = {
        (row["memory"], row["chunk"], row["hasher"]): float(row["speed"]["median"])
        for row in results["rows"]
        if row["size"] == size
    }
    return {
        "hashing.svg": lines(
            f"SHA-1 of an object of {size} MB, by memory in MB and chunk in MiB",
            "MB/s",
            [f"{memory}/{chunk}" for memory, chunk in settings],
            {hasher: [found.get((*setting, hasher)) for setting in settings] for hasher in HASHERS},
        )
    }


PART: Final = Part(measure, page, plots)
