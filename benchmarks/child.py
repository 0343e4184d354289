"""A client's process: it reads one job from its input, and prints the cost last. It imports its client only."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

JOBS: Final = {
    "engine": "benchmarks.clients.ours:engine",
    "audit": "benchmarks.clients.ours:audit",
    "nights": "benchmarks.clients.nights:nights",
    "inventory-rows": "benchmarks.clients.inventory:rows",
    "list-keys": "benchmarks.clients.nights:listing",
    "jobs": "benchmarks.clients.jobs:nights",
    "audit-known": "benchmarks.clients.known:audited",
    "audit-invoked": "benchmarks.clients.invoked:audit",
    "gather": "benchmarks.clients.invoked:ours",
    "cold": "benchmarks.clients.cold:first_call",
    "command": "benchmarks.clients.cold:command",
    "targets": "benchmarks.clients.targets:command",
    "article-invoked": "benchmarks.clients.invoked:article",
    "bare-invoked": "benchmarks.clients.invoked:bare",
    "article": "benchmarks.clients.articles:calls",
    "bare": "benchmarks.clients.bare:calls",
    "foreground": "benchmarks.clients.foreground:calls",
    "hash": "benchmarks.clients.hashers:ours",
    "hash-article": "benchmarks.clients.hashers:article",
    "pack": "benchmarks.clients.packing:ours",
    "pack-article": "benchmarks.clients.packing:article",
    "verify": "benchmarks.clients.verifying:verified",
    "transfer": "benchmarks.clients.transfers:calls",
    "floor": "benchmarks.clients.floor:calls",
    "obstore": "benchmarks.clients.rust:calls",
    "sdk-for-go": "benchmarks.clients.golang:calls",
}
"""The function of each job. It gets a Meter and the job's other fields; its result is added to the meter's figures."""


def main() -> None:
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    from benchmarks.meter import Meter

    module, _, function = JOBS[job.pop("job")].partition(":")
    meter = Meter(job.pop("counters", None))
    found = getattr(importlib.import_module(module), function)(meter, **job)
    report({**meter.to_dict(), **(found or {})})


def report(result: Mapping[str, Any]) -> None:
    """Write all of the result to the output.

    A write to a pipe may end early, after a stop of the process for example. Where PYTHONUNBUFFERED is set, sys.stdout
    then loses the rest without an error; a buffered file writes it.
    """
    with open(sys.stdout.fileno(), "wb", closefd=False) as output:
        output.write(json.dumps(result).encode() + b"\n")


if __name__ == "__main__":
    main()
