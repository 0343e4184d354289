"""The context of one invocation of a Lambda function: its deadline, the next invocation, the topic for alerts, the
metrics.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from auditor.lambdas.alerts import SnsTopic, Topic
from auditor.lambdas.handover import FunctionStop, NextInvocation, OwnFunction, stop_before_deadline


def print_line(line: str) -> None:
    """Write the line to stdout as it is. CloudWatch finds metrics only in lines that consist of JSON and
    nothing else.
    """
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionContext:
    """The context of one invocation of a Lambda function.

    seconds_left: time until the deadline. successor: starts the next invocation, for work that is left at the deadline;
    None if such work is not done. topic: takes alerts; None to send none. emit: writes a line of metrics. request: ID
    of the invocation, for the logs. stopping: makes the stop that comes shortly before the deadline, from the seconds
    left.
    """

    seconds_left: float
    successor: NextInvocation | None = None
    topic: Topic | None = None
    emit: Callable[[str], object] = print_line
    request: str | None = None
    stopping: Callable[[float | None], AbstractContextManager[FunctionStop]] = stop_before_deadline

    @classmethod
    def of(cls, context: Any, environ: Mapping[str, str] = os.environ) -> FunctionContext:
        """Make the context from Lambda's context object and two environment variables.

        AUDITOR_HANDS_ON is "true" if the function may invoke itself. AUDITOR_TOPIC is the ARN of the topic for alerts.
        """
        hands_on = environ.get("AUDITOR_HANDS_ON", "").lower() == "true"
        topic = environ.get("AUDITOR_TOPIC")
        return cls(
            seconds_left=context.get_remaining_time_in_millis() / 1000,
            successor=OwnFunction(context.invoked_function_arn) if hands_on else None,
            topic=SnsTopic(topic) if topic else None,
            request=getattr(context, "aws_request_id", None),
        )
