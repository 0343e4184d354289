"""Start executions of the state machine that audits large targets range by range."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from auditor.aws.client import open_client
from auditor.aws.failures import explain
from auditor.errors import CallFailed, RunError

log = logging.getLogger(__name__)


class StateMachine:
    """Starts an execution of a state machine in place of a function's next invocation (Step Functions API:
    StartExecution). started: ARNs of the executions.
    """

    def __init__(self, arn: str, origin: str) -> None:
        """origin: a text that is the same each time the event is delivered: one delivery starts one execution."""
        self._arn = arn
        self._origin = origin
        self.started: list[str] = []

    async def invoke(self, event: Mapping[str, Any]) -> None:
        digest = hashlib.sha256(f"{self._origin}\0{event['bucket']}\0{event['prefix']}".encode()).hexdigest()
        name = f"{event['run']}-{digest[:8]}"
        try:
            async with AsyncExitStack() as stack:
                opening = open_client("stepfunctions", threads=1, region=None, endpoint_url=None, profile=None)
                client = await stack.enter_async_context(opening)
                answer = await client.call(
                    "StartExecution", stateMachineArn=self._arn, name=name, input=json.dumps(event)
                )
        except CallFailed as failure:
            if failure.code == "ExecutionAlreadyExists":  # an earlier delivery of the event started it, and it ended
                log.info("the execution %s was started before", name)
                return
            thing, allow = f"the state machine {self._arn}", "states:StartExecution"
            raise RunError(explain(thing, failure, allow=allow, absent="deploy it again")) from failure
        self.started.append(str(answer.get("executionArn")))

    async def close(self) -> None:
        """Nothing is open between two calls."""
