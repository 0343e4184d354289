"""Answers without end, and such as take much memory: a failed call, and at most 128 MB above idle, for every engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.support.engine_names import OURS_FIRST
from tests.support.paths import ROOT
from tests.support.servers.hostile import ATTACKS, HostileServer

MOST = 128 * 1024
"""KiB above idle."""
CHILD = """
import asyncio, json, sys
from pathlib import Path
from auditor.aws.connection import Connection
from auditor.errors import CallFailed
from auditor.s3.engines import ENGINES
from tests.s3.engines.common import CALLS

def memory():
    status = Path("/proc/self/status").read_text()
    return {line.split()[0]: int(line.split()[1]) for line in status.splitlines() if line.startswith("Vm")}

async def failed(call):
    try:
        await call
    except CallFailed as failure:
        return failure.code
    except Exception as error:
        return repr(error)
    return "an answer"

async def attacked(name, url):
    connection = Connection(bucket="audited", endpoint_url=url, concurrency=32, read_timeout=20.0)
    async with ENGINES[name](connection) as engine:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        idle = memory()["VmRSS:"]
        codes = set()
        for at_once, calls in ((1, CALLS), (24, ["GetObjectAcl", "HeadObject"]), (2, ["ListObjectsV2"])):
            for call in calls:
                if call != "GetObject":
                    codes.update(await asyncio.gather(*[failed(CALLS[call](engine)) for _ in range(at_once)]))
        if getattr(engine, "asks", False):
            codes.add(await failed(engine.ask("GetBucketEncryption")))
    return {"codes": sorted(codes), "more": memory()["VmHWM:"] - idle}

async def main(name, *urls):
    print(json.dumps([await attacked(name, url) for url in urls]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("name", OURS_FIRST)
def test_answer_costs_little_memory_and_is_no_fact(name: str) -> None:
    """One process meets all attacks, and its memory above that before each of them is measured."""
    with ExitStack() as stack:
        urls = [stack.enter_context(HostileServer(attack)).url for attack in ATTACKS]
        child = subprocess.run(
            [sys.executable, "-c", CHILD, name, *urls],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert child.returncode == 0, child.stderr[-2000:]
    found = dict(zip(ATTACKS, json.loads(child.stdout), strict=True))
    allowed = {"BrokenReply", "ConnectionError", "Malformed", "Timeout", "500", "403"}
    failures = {attack: one for attack, one in found.items() if one["more"] > MOST or not set(one["codes"]) <= allowed}
    assert not failures, failures
