"""Lambda's entry for audits: the nightly schedule, and whoever invokes it for a prefix."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import auditor.engines.direct  # noqa: F401 - engines are imported when they are opened; the default one is needed anyway
from auditor import logs
from auditor.auditing import AuditService
from auditor.enginepool import EnginePool
from auditor.engines import open_engine
from auditor.invocation import Surroundings
from auditor.loops import new_loop

# One loop, and the connections of the buckets audited last, for as long as the container lives.
_runner = asyncio.Runner(loop_factory=new_loop)
_service = AuditService(os.environ, engines=EnginePool(open_engine).lend)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Event of auditor.invocation -> `{"runs": [SUMMARY, ..]}`. Settings: AUDITOR_BUCKETS, AUDITOR_OUT and others."""
    logs.set_up(os.environ)
    return _runner.run(_service.handle(event, Surroundings.of(context)))
