"""The server as a process: `python -m benchmarks.server` prints its URLs, and ends when its input ends."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

import uvloop

from benchmarks.meter import come_first
from benchmarks.server.answers import Answers
from benchmarks.server.behaviour import Behaviour, Gate
from benchmarks.server.tls import make_certificates, server_context
from tests.support.servers.http_server import listening


async def _serve(folder: Path) -> None:
    authority = make_certificates(folder)
    answers = Answers(Gate(Behaviour()))
    async with listening(answers) as plain, listening(answers, server_context(folder)) as tls:
        print(json.dumps({"plain": plain, "tls": tls, "authority": str(authority)}), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def main() -> None:
    come_first()
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(_serve(Path(folder)))


if __name__ == "__main__":
    main()
