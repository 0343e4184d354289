"""Lambda's entry point for renewals. It receives SQS batches of S3's events on objects and their ACLs."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from auditor.aio.loop import new_loop
from auditor.lambdas import logs
from auditor.lambdas.invocation_frame import FunctionContext
from auditor.lambdas.renew import RenewFunction
from auditor.s3.engines import load

load(os.environ.get("AUDITOR_ENGINE"))

# One loop for all invocations in this container.
_runner = asyncio.Runner(loop_factory=new_loop)
_service = RenewFunction(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Renew the objects that an SQS event names. Return SQS's `batchItemFailures`, the messages that must come again.

    Settings come from AUDITOR_OUT, AUDITOR_DEAD_LETTER_QUEUE and others.
    """
    logs.set_up(os.environ)
    return _runner.run(_service.handle(event, FunctionContext.of(context)))
