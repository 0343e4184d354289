"""Measure the CPU of a call over TLS: our engines beside obstore, in Rust, and the AWS SDK for Go v2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from auditor.s3.engines import DEFAULT_ENGINE, ENGINES
from benchmarks.clients import golang
from benchmarks.harness import Bench, Measured, Row
from benchmarks.parts import engines
from benchmarks.parts.interface import Part, Results
from benchmarks.tables import table

OBSTORE: Final = "obstore"
GO: Final = "AWS SDK for Go v2"
OPERATIONS: Final = ("HEAD", "both")


def _rows(bench: Bench, program: Path | None) -> Iterator[Row]:
    for operation in OPERATIONS:
        for engine in ENGINES:
            yield _row(bench, engine, operation, {"job": "engine", "engine": engine})
        authority = {"authority": bench.server.authority}
        if operation == "HEAD":
            yield _row(bench, OBSTORE, operation, {"job": "obstore", **authority})
        if program is not None:
            yield _row(bench, GO, operation, {"job": "sdk-for-go", "program": [str(program)], **authority})


def _row(bench: Bench, client: str, operation: str, job: dict[str, Any]) -> Row:
    fast = client == DEFAULT_ENGINE or client not in ENGINES
    calls = engines.OPERATIONS[operation]
    common = {
        "counters": bench.server.plain,
        "url": bench.server.tls,
        "operations": calls,
        "concurrency": engines.AT,
        "objects": bench.choose((600, 20_000), (2000, 20_000))[fast] // len(calls),
    }
    return Row(labels={"client": client, "operation": operation, "concurrency": engines.AT}, job=common | job)


def figures(measured: Measured) -> dict[str, Any]:
    """A row of the results, as those of the engines. The memory is left out: a program's is not its starter's."""
    return {name: value for name, value in engines.figures(measured).items() if name != "peak"}


def measure(bench: Bench) -> Results:
    found = bench.measure(list(_rows(bench, golang.build(bench.say))))
    versions: dict[str, str] = {}
    for measured in found:
        versions |= measured.runs[0].get("versions", {})
    return {"rows": [figures(measured) for measured in found], "versions": versions}


def page(results: Results) -> str:
    clients = dict.fromkeys(row["client"] for row in results["rows"])
    cells = []
    for client in clients:
        rows = [engines.find(results, client, operation) for operation in OPERATIONS]
        cells.append((client, *(row and row[name]["median"] for row in rows for name in ("cpu", "rate"))))
    columns = ("client", "HEAD: CPU us a call", "HEAD: calls/s", "HEAD and ACL: CPU us a call", "HEAD and ACL: calls/s")
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    missing = "" if GO in clients else f" The {GO} is left out: Go, or a module of the SDK, is missing on this machine."
    return f"{engines.AT} calls at once; {versions}.{missing}\n\n{table(columns, cells)}"


PART: Final = Part(measure, page)
