"""Start executions of the state machine, which continues the work that one invocation of a function leaves."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, Protocol

from auditor.aws.client import open_client
from auditor.aws.failures import explain
from auditor.errors import CallFailed, RunError

log = logging.getLogger(__name__)

MOST_FRUITLESS: Final = 2
"""Largest number of invocations in a row that make no progress before the work fails. The first one of a short function
may end before the first object, and a server may be silent for half an hour."""
_MOST_NAMES: Final = 5
"""Largest number of executions of one start. Each but the last has failed, or was stopped by a person."""


class Machine(Protocol):
    """Starts the state machine for work that is left."""

    async def start(self, name: str, event: Mapping[str, Any]) -> str:
        """Start an execution, and do not wait for its end. Return its ARN.

        name: of the work, which is the same each time the work is left: one execution at a time works on it. Raises
        RunError if no execution can be started.
        """
        ...


class StateMachine:
    """A state machine of Step Functions, by its ARN (Step Functions API: StartExecution, DescribeExecution)."""

    def __init__(self, arn: str) -> None:
        self._arn = arn

    async def start(self, name: str, event: Mapping[str, Any]) -> str:
        text = json.dumps(event)
        name = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        try:
            async with AsyncExitStack() as stack:
                opening = open_client("stepfunctions", threads=1, region=None, endpoint_url=None, profile=None)
                client = await stack.enter_async_context(opening)
                for number in range(_MOST_NAMES):
                    wanted = f"{name}-{number}" if number else name
                    try:
                        answer = await client.call("StartExecution", stateMachineArn=self._arn, name=wanted, input=text)
                        return str(answer.get("executionArn"))
                    except CallFailed as failure:
                        if failure.code != "ExecutionAlreadyExists":
                            raise
                    # An earlier delivery of the event has started it. A failed one does no work any more.
                    arn = f"{self._arn.replace(':stateMachine:', ':execution:')}:{wanted}"
                    found = await client.call("DescribeExecution", executionArn=arn, includedData="METADATA_ONLY")
                    if found.get("status") in ("RUNNING", "SUCCEEDED"):
                        log.info("the execution %s was started before", wanted)
                        return arn
        except CallFailed as failure:
            thing, allow = f"the state machine {self._arn}", "states:StartExecution and states:DescribeExecution"
            raise RunError(explain(thing, failure, allow=allow, absent="deploy it again")) from failure
        raise RunError(f"{_MOST_NAMES} executions of {name} have failed: look at the history of the last one")
