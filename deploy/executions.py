"""Start the state machine by hand, wait for executions, and return what they ended with."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import uuid4

import boto3

from deploy.errors import BuildError
from deploy.region import region

EVERY: Final = 10.0
"""Seconds between two questions about an execution. It ends after minutes or hours."""
_SOON: Final = 1.0
"""The same for an execution on this machine."""


def start(machine: str, event: Mapping[str, Any], client: Any = None) -> str:
    """Start an execution with the event that an alert, or an answer of a function, names. Return its ARN.

    machine: the ARN of the state machine. client: of Step Functions; None for one in the region of the deployment.
    """
    client = client or _client()
    begun = client.start_execution(stateMachineArn=machine, name=uuid4().hex, input=json.dumps(event))
    return str(begun["executionArn"])


def wait_for(
    executions: Iterable[str],
    client: Any = None,
    sleep: Callable[[float], object] = time.sleep,
    *,
    local: bool = False,
) -> dict[str, Any]:
    """Wait until the executions, given by their ARNs, have ended. Return the answer of the machine's last step.

    Of several executions, `runs` and `left` have those of all, and the other members are the last one's. local: True
    for the server of `make local-aws`, where an execution ends within seconds. Raises BuildError for an execution that
    failed.
    """
    client = client or _client()
    ended: dict[str, Any] = {"runs": []}
    for arn in executions:
        sys.stderr.write(f"the state machine continues, which may take hours; Ctrl-C does not end it: {arn}\n")
        while (found := client.describe_execution(executionArn=arn))["status"] == "RUNNING":
            sleep(_SOON if local else EVERY)
        if found["status"] != "SUCCEEDED":
            cause = found.get("cause") or found.get("error") or "its history has the cause"
            raise BuildError(f"the execution {arn} ended as {found['status']}: {cause}")
        output = json.loads(found["output"])
        ended = output | {name: [*ended.get(name, ()), *(output.get(name) or ())] for name in ("runs", "left")}
    return ended


def with_ends(answer: Mapping[str, Any], ended: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function's answer with the end of the executions that it started, which counts for a run in both."""
    runs = {_name(run): run for run in [*answer.get("runs", ()), *ended["runs"]]}
    found = {**answer, "runs": list(runs.values()), "left": ended.get("left"), "estate": ended.get("estate")}
    return {name: value for name, value in found.items() if value or name == "runs"}


def _name(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ID of a run or verification, and its target: the runs of an account have IDs of their own targets."""
    return str(run.get("run") or run.get("verify")), json.dumps(run.get("target"), sort_keys=True)


def _client() -> Any:
    return boto3.Session().client("stepfunctions", region_name=region())
