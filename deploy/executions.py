"""Wait for executions of the state machine that an invocation has started, and return what they ended with."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import boto3

from deploy.errors import BuildError
from deploy.region import region

EVERY: Final = 10.0
"""Seconds between two questions about an execution. It ends after minutes or hours."""


def wait_for(
    executions: Iterable[str], client: Any = None, sleep: Callable[[float], object] = time.sleep, *, local: bool = False
) -> dict[str, Any]:
    """Wait until the executions, given by their ARNs, have ended. Return the answer `{"runs": [SUMMARY, ..]}`.

    client: of Step Functions; None for one in the region of the deployment. local: True for the server of
    `make local-aws`, which runs no state machine, so that a wait for it would not end. Raises BuildError for an
    execution that failed.
    """
    if local:
        raise BuildError(
            "the bucket is left to the state machine, which make local-aws does not run: give a higher max_rate, so"
            " that one function audits it within an hour; make test-e2e runs the state machine"
        )
    client = client or boto3.Session().client("stepfunctions", region_name=region())
    runs: list[Any] = []
    for arn in executions:
        sys.stderr.write(f"the state machine audits, which takes minutes or hours: {arn}\n")
        while (found := client.describe_execution(executionArn=arn))["status"] == "RUNNING":
            sleep(EVERY)
        if found["status"] != "SUCCEEDED":
            cause = found.get("cause") or found.get("error") or "its history has the cause"
            raise BuildError(f"the execution {arn} ended as {found['status']}: {cause}")
        runs += json.loads(found["output"])["runs"]
    return {"runs": runs}
