"""An audit that is killed: `python -m tests.support.killed_audit OUT URL STEP` dies before its STEPth write."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.target import Target
from tests.support.killed_run import PART, DyingStore
from tests.support.servers.clients import BUCKET


async def main(out: Path, url: str, steps: int) -> None:
    settings = Settings(endpoint_url=url, max_rate=None, concurrency=8)
    await Audit(Target(BUCKET), settings, Resources(store=DyingStore(out, steps)), Stop(), part_lines=PART).run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
