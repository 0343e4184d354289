"""Lambda's entry for verifications: their own schedule, and whoever invokes it for a prefix."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from auditor import logs
from auditor.engines import load
from auditor.invocation import Surroundings
from auditor.loops import new_loop
from auditor.verification.service import VerifyService

load(os.environ.get("AUDITOR_ENGINE"))

# One loop for as long as the container lives.
_runner = asyncio.Runner(loop_factory=new_loop)
_service = VerifyService(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Event of auditor.verification.service -> `{"runs": [SUMMARY, ..]}`. Settings: AUDITOR_BUCKETS, AUDITOR_LEDGER."""
    logs.set_up(os.environ)
    return _runner.run(_service.handle(event, Surroundings.of(context)))
