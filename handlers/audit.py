"""Lambda's entry point for audits, which run by the nightly schedule or by hand for a prefix."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from auditor.aio.loop import new_loop
from auditor.lambdas import logs
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.invocation_frame import FunctionContext
from auditor.runs.stores.direct_objects import KeptTransports
from auditor.s3.engines import load, open_engine
from auditor.s3.engines.pool import EnginePool

load(os.environ.get("AUDITOR_ENGINE"))

# One loop for all invocations in this container. It keeps the connections to the last audited buckets, and to the store
# of run folders.
_runner = asyncio.Runner(loop_factory=new_loop)
_service = AuditFunction(os.environ, engines=EnginePool(open_engine).lend, kept=KeptTransports())


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Audit the targets of an event (auditor.lambdas.event); return `{"runs": [SUMMARY, ..]}`.

    Settings come from AUDITOR_BUCKETS, AUDITOR_OUT and others.
    """
    logs.set_up(os.environ)
    return _runner.run(_service.handle(event, FunctionContext.of(context)))
