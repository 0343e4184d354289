"""Our engines' calls alone, and whole audits as a user starts them."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from auditor.aio import loop as loops
from auditor.aws.connection import Connection
from auditor.cli.main import main
from auditor.s3.engines import ENGINES, load
from auditor.s3.engines.base import Engine
from benchmarks.clients.workers import work_through
from benchmarks.meter import Meter
from benchmarks.server.objects import BUCKET, key_of

HOLE: Final = 4
"""The exit code of a run that is complete and has an undecided object."""

WARM_UP: Final = 2
COMMAND: Final = ("auditor.cli.commands.audit", "auditor.cli.audits")
"""The modules of the command, which its first call imports."""


def _caller(engine: Engine, operations: Sequence[str]) -> Callable[[str], Awaitable[object]]:
    async def call(key: str) -> None:
        for operation in operations:
            if operation == "acl":
                await engine.get_acl(key, None)
            else:
                await engine.head(key, None, checksum=False)

    return call


def engine(
    meter: Meter, *, url: str, engine: str, operations: Sequence[str], concurrency: int, objects: int
) -> dict[str, Any]:
    """Measure the calls of so many objects, on open connections."""
    keys = [key_of(number % 1000) for number in range(objects)]

    async def measure() -> None:
        connection = Connection(bucket=BUCKET, region="us-east-1", endpoint_url=url, concurrency=concurrency)
        async with ENGINES[engine](connection) as opened:
            call = _caller(opened, operations)
            await work_through(keys[: WARM_UP * concurrency], call, concurrency)
            with meter.measuring():
                await work_through(keys, call, concurrency)

    loops.run(measure())
    return {"calls": objects * len(operations)}


def audit(
    meter: Meter,
    *,
    url: str,
    engine: str,
    concurrency: str,
    options: Sequence[str] = ("--max-rate", "unlimited"),
    holes: bool = False,
) -> dict[str, Any]:
    """Measure `auditor audit` without its imports.

    Raises RuntimeError if the run is not complete, or has an undecided object and holes is False.
    """
    load(engine)
    for module in COMMAND:
        importlib.import_module(module)
    printed, said = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as out:
        arguments = ["audit", f"s3://{BUCKET}", "--endpoint-url", url, "--out", out, "--engine", engine]
        arguments += ["--concurrency", concurrency, "--format", "json", "--fail-on", "never", *options]
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said), meter.measuring():
            code = main(arguments)
    if code and not (holes and code == HOLE):
        raise RuntimeError(f"the audit ended with {code}: {said.getvalue()[-1000:]}")
    summary = json.loads(printed.getvalue())
    calls = summary["calls"]
    return {
        "calls": sum(calls[kind] for kind in ("list", "acl", "head")),
        "coverage": summary["coverage"],
        "hashing": summary["hashing"],
        "throttled": calls["throttled"],
        "seconds": summary["seconds"],
    }
