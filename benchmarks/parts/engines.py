"""Measure the CPU of a call over TLS: our engines, the articles' functions, bare aiohttp and the floor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

from auditor.s3.engines import DEFAULT_ENGINE, ENGINES
from benchmarks.clients.defaults import ARTICLE_CONNECTIONS, default_threads
from benchmarks.harness import Bench, Measured, Row, summarised
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import bars, lines, table

OPERATIONS: Final[Mapping[str, Sequence[str]]] = {"HEAD": ("head",), "ACL": ("acl",), "both": ("acl", "head")}
CONCURRENCY: Final = (1, 16, 64, 256)
CHEAP: Final = ("direct", "bare aiohttp", "floor")
"""Fast clients; they need more calls for a good measurement, and less time for them."""
SELDOM: Final = 2
"""Repetitions of the SDKs' engines at all other concurrencies: their calls take ten times as long."""
DIFFERENT: Final = "both, each ACL different"
ALL_DIFFERENT: Final = 10**9
"""More strangers than objects, so that remembering one ACL does not help with another."""
ARTICLES: Final = ("serial", "executor", "aioboto3")
AT: Final = 64
LABELS: Final = ("client", "operation", "concurrency")
EQUAL: Final = {"executor": ("boto3", default_threads()), "aioboto3": ("aioboto3", ARTICLE_CONNECTIONS)}
"""Our engine and concurrency, by the article's function with the same number of calls at once."""
SHOWN: Final = (AT, "as written")
"""The concurrency of the rows on the page; the picture has the others."""


def _rows(bench: Bench) -> Iterator[Row]:
    server = bench.server
    levels = bench.choose((1, AT), CONCURRENCY)
    for operation, calls in OPERATIONS.items():
        if bench.quick and operation != "both":
            continue
        for concurrency in levels:
            for client in CHEAP:
                yield _row(bench, client, operation, calls, concurrency)
            if (operation, concurrency) == ("both", AT):
                yield _audit(bench, DEFAULT_ENGINE)
            for client in (name for name in ENGINES if name not in CHEAP):
                row = _row(bench, client, operation, calls, concurrency)
                yield row if (operation, concurrency) == ("both", AT) else replace(row, most=SELDOM)
        for way in ARTICLES:
            yield Row(
                labels={"client": f"article: {way}", "operation": operation, "concurrency": "as written"},
                job={"job": "article", "counters": server.plain, "url": server.tls, "way": way, "operations": calls},
                server={"objects": bench.choose(300, 1000)},
            )
    for client, concurrency in EQUAL.values():
        yield _row(bench, client, "both", OPERATIONS["both"], concurrency)
    for client in (DEFAULT_ENGINE, "bare aiohttp"):
        yield replace(
            _row(bench, client, "both", OPERATIONS["both"], AT),
            labels={"client": client, "operation": DIFFERENT, "concurrency": AT},
            server={"strangers": ALL_DIFFERENT},
        )
    yield from _audits(bench)


def _audits(bench: Bench) -> Iterator[Row]:
    for engine in ENGINES:
        if engine != DEFAULT_ENGINE:
            yield _audit(bench, engine)
    yield _audit(bench, DEFAULT_ENGINE, DIFFERENT, ALL_DIFFERENT)


def _audit(bench: Bench, engine: str, operation: str = "both", strangers: int = 0) -> Row:
    server = bench.server
    objects = bench.choose((500, 12_000), (2000, 20_000))[engine in CHEAP]
    return Row(
        labels={"client": f"whole audit: {engine}", "operation": operation, "concurrency": AT},
        job={"job": "audit", "counters": server.plain, "url": server.tls, "engine": engine, "concurrency": str(AT)},
        server={"objects": objects, "strangers": strangers},
    )


def _row(bench: Bench, client: str, operation: str, calls: Sequence[str], concurrency: int) -> Row:
    wanted = bench.choose((600, 20_000), (2000, 20_000))[client in CHEAP]
    job: dict[str, Any] = {
        "counters": bench.server.plain,
        "url": bench.server.tls,
        "operations": calls,
        "concurrency": concurrency,
        "objects": wanted // len(calls),
    }
    if client in ENGINES:
        job |= {"job": "engine", "engine": client}
    else:
        job |= {"job": client.partition(" ")[0], "authority": bench.server.authority}
    return Row(labels={"client": client, "operation": operation, "concurrency": concurrency}, job=job)


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results. cpu: microseconds a call; each: the same by repetition. busy: the server's share of a
    core.
    """
    laps = [(run["laps"][-1], run["calls"]) for run in measured.runs]
    each = [1e6 * lap["cpu"] / calls for lap, calls in laps]
    return {
        **measured.labels,
        "cpu": summarised(each),
        "each": [round(cpu, 1) for cpu in each],
        "rate": summarised([calls / lap["wall"] for lap, calls in laps], 0),
        "server_cpu": summarised([1e6 * lap["server"] / calls for lap, calls in laps]),
        "busy": round(median(lap["server"] / lap["wall"] for lap, _ in laps), 2),
        "peak": round(median(run["peak"] for run in measured.runs)),
    }


def measure(bench: Bench) -> Results:
    return {"rows": [figures(measured) for measured in bench.measure(list(_rows(bench)))]}


def find(results: Results, client: str, operation: str = "both", concurrency: Any = AT) -> dict[str, Any] | None:
    wanted = (client, operation, concurrency)
    return next(
        (row for row in results["rows"] if (row["client"], row["operation"], row["concurrency"]) == wanted), None
    )


def ratio(upper: Mapping[str, Any] | None, lower: Mapping[str, Any] | None) -> float | None:
    """The ratio of two rows' CPU a call: the median over repetitions, because a disturbance slows both rows down."""
    if upper is None or lower is None or "each" not in upper or "each" not in lower:
        return None
    return median([float(a) / float(b) for a, b in zip(upper["each"], lower["each"], strict=True)])


def page(results: Results) -> str:
    rows = [
        (
            *(row[name] for name in LABELS),
            row["cpu"]["median"],
            row["rate"]["median"],
            row["peak"],
        )
        for row in results["rows"]
        if row["operation"] in ("both", DIFFERENT) and row["concurrency"] in SHOWN
    ]
    columns = ("client", "calls", "concurrency", "CPU us a call", "calls/s", "peak MiB")
    return (
        "![CPU of a call](performance/engines.svg)\n\n![CPU by concurrency](performance/concurrency.svg)\n\n"
        + table(columns, rows)
    )


def plots(results: Results) -> dict[str, str]:
    rows = results["rows"]
    at = [row for row in rows if row["operation"] == "both" and row["concurrency"] in (AT, "as written")]
    at.sort(key=lambda row: float(row["cpu"]["median"]))
    levels = sorted({row["concurrency"] for row in rows if row["client"] == "floor"})
    clients = dict.fromkeys(row["client"] for row in rows if row["concurrency"] == levels[0])
    series = {client: [_cpu(results, client, level) for level in levels] for client in clients}
    return {
        "engines.svg": bars(
            f"CPU of a call over TLS, ACL and HEAD of each object, {AT} at once or as written",
            "us",
            [(str(row["client"]), float(row["cpu"]["median"])) for row in at],
        ),
        "concurrency.svg": lines(
            "CPU of a call by calls at once, ACL and HEAD, over TLS", "us a call", [str(n) for n in levels], series
        ),
    }


def _cpu(results: Results, client: str, concurrency: int) -> float | None:
    row = find(results, client, "both", concurrency)
    return None if row is None else float(row["cpu"]["median"])


PART: Final = Part(measure, page, plots)
