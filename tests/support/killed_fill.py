"""A fill that is killed: `python -m tests.support.killed_fill OUT RUN URL STEP` dies before its STEPth write."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from auditor.aio.stop import Stop
from auditor.cli.fill import fill_audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.runs.reading import RunReader
from tests.support.killed_run import PART, DyingStore
from tests.support.servers.clients import BUCKET


async def main(out: Path, run: str, url: str, steps: int) -> None:
    store = DyingStore(out, steps)
    settings = Settings(endpoint_url=url, max_rate=None, concurrency=8)
    await fill_audit(RunReader(store, BUCKET, run), settings, Resources(store=store), Stop(), part_lines=PART).run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
