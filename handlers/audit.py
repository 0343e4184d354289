"""Lambda's entry for audits: the nightly schedule, and whoever invokes it for a prefix."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from auditor import logs
from auditor.auditing import AuditService
from auditor.enginepool import EnginePool
from auditor.engines import load, open_engine
from auditor.invocation import Surroundings
from auditor.loops import new_loop

load(os.environ.get("AUDITOR_ENGINE"))

# One loop, and the connections of the buckets audited last, for as long as the container lives.
_runner = asyncio.Runner(loop_factory=new_loop)
_service = AuditService(os.environ, engines=EnginePool(open_engine).lend)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Event of auditor.invocation -> `{"runs": [SUMMARY, ..]}`. Settings: AUDITOR_BUCKETS, AUDITOR_OUT and others."""
    logs.set_up(os.environ)
    return _runner.run(_service.handle(event, Surroundings.of(context)))
