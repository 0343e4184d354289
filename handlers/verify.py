"""Lambda's entry point for verifications, which run by their own schedule or by hand for a prefix."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from auditor.aio.loop import new_loop
from auditor.lambdas import logs
from auditor.lambdas.invocation_frame import FunctionContext
from auditor.lambdas.verify import VerifyFunction
from auditor.s3.engines import load

load(os.environ.get("AUDITOR_ENGINE"))

# One loop for all invocations in this container.
_runner = asyncio.Runner(loop_factory=new_loop)
_service = VerifyFunction(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Verify the targets of an event (auditor.lambdas.event); return `{"runs": [SUMMARY, ..]}`.

    Settings come from AUDITOR_BUCKETS, AUDITOR_LEDGER and others.
    """
    logs.set_up(os.environ)
    return _runner.run(_service.handle(event, FunctionContext.of(context)))
