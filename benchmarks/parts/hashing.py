"""Measure hashing an object by memory, chunk and size, beside the article's plain loop; and with several streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, Final

from auditor.hashing.limits import BUFFER
from benchmarks.harness import Bench, Measured, Row, laps, summarised
from benchmarks.meter import MIB
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import lines, table

MB: Final = 1_000_000
SETTINGS: Final = (
    *((128, 1), (128, 10), (256, 10), (256, 20), (256, 50), (512, 1), (512, 5), (512, 20), (512, 50)),
    *((1024, 20), (1024, 50), (1769, 1), (1769, 20), (2048, 1), (2048, 20)),
)
"""Memory in MB and chunk in MiB, as in the published table, and some small chunks."""
QUICK: Final = ((512, 1), (512, 20), (2048, 1))
SIZES: Final = (100, 500, 1000)
CHUNKS: Final = (BUFFER // MIB, 20)
"""Chunks in MiB that the page shows, at the least size."""
HUGE: Final = 5000
"""Memory in MB; measured once, with the default chunk."""
LAPS: Final = 5
HALF: Final = 512
"""Memory in MB. Two functions of this size have little more than half a core, so they run side by side."""
HASHERS: Final = {"ours": "hash", "article": "hash-article"}
STREAMS: Final = (1, 2, 4, 8, None)
"""Streams to measure; None for auto."""
BANDWIDTH: Final = 25 * MB
"""The bandwidth of one connection, in bytes a second."""
LATENCY: Final = 0.015


def _rows(bench: Bench) -> Iterator[Row]:
    for memory, chunk in bench.choose(QUICK, SETTINGS):
        sizes = bench.choose((100,), SIZES)
        if not bench.quick and chunk == BUFFER // MIB:
            sizes = (*SIZES, HUGE)
        for size in sizes:
            for hasher, job in HASHERS.items():
                yield Row(
                    labels={"memory": memory, "chunk": chunk, "size": size, "hasher": hasher},
                    job={
                        "job": job,
                        "url": bench.server.tls,
                        "size": size * MB,
                        "chunk": chunk,
                        # A lap of a tenth of a second would say little.
                        "times": max(1, min(LAPS, memory // size)),
                    },
                    memory=memory,
                    most=1 if size > 1000 else None,
                    with_next=memory <= HALF and hasher != list(HASHERS)[-1],
                )


def _streams(bench: Bench) -> Iterator[Row]:
    size = bench.choose(200, 500)
    for streams in STREAMS:
        yield Row(
            labels={"streams": "auto" if streams is None else streams, "size": size, "hasher": "ours"},
            job={"job": HASHERS["ours"], "url": bench.server.tls, "size": size * MB, "chunk": 1, "streams": streams},
            server={"latency": LATENCY, "bandwidth": BANDWIDTH},
        )


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. speed: MB a second. per_cpu: MB a second of CPU. peak: MiB. above: the part of it
    after the client was ready, if it was measured.
    """
    size = measured.labels["size"]
    return {
        **measured.labels,
        "speed": summarised([size / _lap(run, "wall") for run in measured.runs]),
        "per_cpu": summarised([size / _lap(run, "cpu") for run in measured.runs]),
        "peak": round(median(run["peak"] for run in measured.runs)),
        "above": median(run["peak"] - run["idle"] for run in measured.runs) if "idle" in measured.runs[0] else None,
        "digest": measured.runs[0]["digest"],
    }


def _lap(run: Mapping[str, Any], figure: str) -> float:
    """The figure of the median lap, without the first lap, which reads one byte."""
    return median(laps(run, figure)[1:])


def measure(bench: Bench) -> Results:
    streams = [figures(measured) for measured in bench.measure(list(_streams(bench)))]
    check(streams)
    try:
        rows = _compared(bench.measure(list(_rows(bench))))
    except OSError as error:
        missing = f"no control group for the CPU can be made here ({error.strerror})"
        return {"rows": [], "streams": streams, "missing": missing}
    check(rows)
    return {"rows": rows, "streams": streams}


def _compared(measured: list[Measured]) -> list[dict[str, Any]]:
    """The rows. In each of ours, beside is the ratio of MB per CPU second to the article's of the same repetition.

    The two are measured together or one after the other, so that a disturbance of a minute slows both.
    """
    rows = []
    for ours, article in zip(measured[::2], measured[1::2], strict=True):
        pairs = zip(ours.runs, article.runs, strict=True)
        ratios = [_lap(theirs, "cpu") / _lap(mine, "cpu") for mine, theirs in pairs]
        rows += [figures(ours) | {"beside": summarised(ratios, 3)}, figures(article)]
    return rows


def check(rows: list[dict[str, Any]]) -> None:
    """Raise RuntimeError unless all hashers computed the same digest of the same bytes."""
    for size in {row["size"] for row in rows}:
        if len({row["digest"] for row in rows if row["size"] == size}) != 1:
            raise RuntimeError(f"the hashers do not agree about {size} MB")


def least_per_cpu(results: Mapping[str, Any]) -> float | None:
    """The least ratio of ours to the article's MB a CPU second."""
    return min((float(row["beside"]["median"]) for row in results["rows"] if "beside" in row), default=None)


def most_above_idle(results: Mapping[str, Any]) -> float | None:
    """The most MiB above the idle client, of all rows."""
    rows = [*results["rows"], *results.get("streams", [])]
    return max((row["above"] for row in rows if row.get("above") is not None), default=None)


def times_one(results: Mapping[str, Any], streams: int | str) -> float | None:
    """The speed of so many streams as a multiple of one stream's."""
    found = {row["streams"]: float(row["speed"]["median"]) for row in results.get("streams", [])}
    return found[streams] / found[1] if streams in found and 1 in found else None


def page(results: Results) -> str:
    parts = [_page_of_rows(results)]
    if results.get("streams"):
        parts.append(_page_of_streams(results))
    return "\n\n".join(parts)


def _page_of_streams(results: Results) -> str:
    rows = [
        (str(row["streams"]), row["speed"]["median"], times, row["above"])
        for row in results["streams"]
        for times in (times_one(results, row["streams"]),)
    ]
    columns = ("streams", "MB/s", "times one", "above idle MiB")
    said = (
        f"An object of {results['streams'][0]['size']} MB by several streams, each limited to {BANDWIDTH // MB} MB/s,"
        f" {1000 * LATENCY:.0f} ms latency:\n\n"
    )
    return said + table(columns, rows)


def _page_of_rows(results: Results) -> str:
    if not results["rows"]:
        return f"Not measured: {results['missing']}."
    cells = {(row["memory"], row["chunk"], row["size"], row["hasher"]): row for row in results["rows"]}
    least = min(row["size"] for row in results["rows"])
    sizes = {memory for memory, chunk, *_ in cells if chunk == CHUNKS[0]}
    keys = dict.fromkeys(cell[:3] for cell in cells if cell[0] in sizes and cell[1] in CHUNKS and cell[2] == least)
    rows: list[tuple[Any, ...]] = []
    for key in keys:
        both = [cells[(*key, hasher)] for hasher in HASHERS]
        figures_of_both = [(row["speed"]["median"], row["per_cpu"]["median"], row["peak"]) for row in both]
        beside = both[0].get("beside")
        rows.append((*key[:2], *figures_of_both[0], *figures_of_both[1], f"{beside['median']:.2f}" if beside else ""))
    columns = ["memory MB", "chunk MiB"]
    columns += [f"{hasher}: {figure}" for hasher in HASHERS for figure in ("MB/s", "MB per CPU s", "peak MiB")]
    columns.append("ours to article, MB per CPU s")
    return f"![Hashing](performance/hashing.svg)\n\nAn object of {least} MB:\n\n" + table(columns, rows)


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
