"""The context of a function: its deadline, its next invocation, its alert topic, its metrics."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from auditor.lambdas.alerts import SnsTopic, Topic
from auditor.lambdas.handover import NextInvocation, OwnFunction


def print_line(line: str) -> None:
    """Write the line to the log unchanged: CloudWatch finds metrics only in lines that are JSON from end to end."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionContext:
    """seconds_left: until the deadline. successor: takes the work that the deadline leaves; None: nothing does.

    topic: takes alerts; None: nothing does. emit: takes a line of metrics. request: the invocation's ID, for the logs.
    """

    seconds_left: float
    successor: NextInvocation | None = None
    topic: Topic | None = None
    emit: Callable[[str], object] = print_line
    request: str | None = None

    @classmethod
    def of(cls, context: Any, environ: Mapping[str, str] = os.environ) -> FunctionContext:
        """From Lambda's context object. AUDITOR_HANDS_ON: the function may invoke itself; AUDITOR_TOPIC: an ARN."""
        hands_on = environ.get("AUDITOR_HANDS_ON", "").lower() == "true"
        topic = environ.get("AUDITOR_TOPIC")
        return cls(
            seconds_left=context.get_remaining_time_in_millis() / 1000,
            successor=OwnFunction(context.invoked_function_arn) if hands_on else None,
            topic=SnsTopic(topic) if topic else None,
            request=getattr(context, "aws_request_id", None),
        )
