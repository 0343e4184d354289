"""Lambda's entry point for hashing. It receives SQS batches of our own messages and of S3's notifications."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from auditor.aio.loop import new_loop
from auditor.lambdas import logs
from auditor.lambdas.hashing import HashingFunction
from auditor.s3.engines import load

load(os.environ.get("AUDITOR_ENGINE"))

# One loop and one set of clients for all invocations in this container.
_runner = asyncio.Runner(loop_factory=new_loop)
_service = HashingFunction(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Hash the objects that an SQS event names. Return SQS's `batchItemFailures`, the messages that must come again.

    Settings come from AUDITOR_QUEUE, AUDITOR_LEDGER and others.
    """
    logs.set_up(os.environ)
    seconds_left = None if context is None else context.get_remaining_time_in_millis() / 1000
    return _runner.run(_service.handle(event, getattr(context, "aws_request_id", None), seconds_left))
