"""Lambda's entry for verifications: by their own schedule, or invoked by hand for a prefix."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from auditor.aio.loop import new_loop
from auditor.lambdas import logs
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.verify import VerifyFunction
from auditor.s3.engines import load

load(os.environ.get("AUDITOR_ENGINE"))

# The container has one loop.
_runner = asyncio.Runner(loop_factory=new_loop)
_service = VerifyFunction(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Event (auditor.lambdas.event) -> `{"runs": [SUMMARY, ..]}`. Settings: AUDITOR_BUCKETS, _LEDGER and others."""
    logs.set_up(os.environ)
    return _runner.run(_service.handle(event, FunctionContext.of(context)))
