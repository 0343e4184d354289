"""The context of one invocation of a Lambda function: its deadline, the next invocation, the channels for alerts and
events, the metrics.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.config.channels import Channels, channels_named
from auditor.config.layers import variable
from auditor.config.settings import CHANNELS, Settings
from auditor.errors import AuditorError
from auditor.lambdas.handover import FunctionStop, NextInvocation, OwnFunction, stop_before_deadline
from auditor.model.alert import failure_alert

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 15.0


def print_line(line: str) -> None:
    """Write the line to stdout as it is. CloudWatch finds metrics only in lines that consist of JSON and
    nothing else.
    """
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class FunctionContext(Struct, frozen=True, kw_only=True):
    """The context of one invocation of a Lambda function.

    seconds_left: time until the deadline, at the beginning. successor: starts the next invocation, for work that is
    left at the deadline; None if such work is not done. channels: for alerts and events. emit: writes a line of
    metrics. request: ID of the invocation, for the logs. stopping: makes the stop that comes shortly before the
    deadline, from the seconds left. poll_seconds: time between two attempts to claim what another invocation has.
    began: time.monotonic() at the beginning.
    """

    seconds_left: float
    successor: NextInvocation | None = None
    channels: Channels = field(default_factory=Channels)
    emit: Callable[[str], object] = print_line
    request: str | None = None
    stopping: Callable[[float | None], AbstractContextManager[FunctionStop]] = stop_before_deadline
    poll_seconds: float = POLL_SECONDS
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, context: Any, environ: Mapping[str, str] = os.environ) -> FunctionContext:
        """Make the context from Lambda's context object and environment variables.

        AUDITOR_HANDS_ON is "true" if the function may invoke itself. The variables of the channels are settings, and
        are read here too, because wrong settings are a failure to tell.
        """
        hands_on = environ.get("AUDITOR_HANDS_ON", "").lower() == "true"
        return cls(
            seconds_left=context.get_remaining_time_in_millis() / 1000,
            successor=OwnFunction(context.invoked_function_arn) if hands_on else None,
            channels=channels_named({name: environ.get(variable(name)) for name in CHANNELS}, variable),
            request=getattr(context, "aws_request_id", None),
        )

    def remaining(self) -> float:
        """Return the time in seconds until the deadline, now. A claim must not outlive the invocation by more, or the
        retry of an event finds it.
        """
        return max(0.0, self.seconds_left - (time.monotonic() - self.began))

    def with_settings(self, settings: Settings) -> FunctionContext:
        """Return the context with the channels that auditor.toml names, where the environment names none."""
        found, own = channels_named({name: getattr(settings, name) for name in CHANNELS}, variable), self.channels
        both = Channels(topic=own.topic or found.topic, chat=own.chat or found.chat, bus=own.bus or found.bus)
        return replace(self, channels=both)

    async def tell_failure(self, noun: str, error: AuditorError, stop: FunctionStop) -> None:
        """Send the alert for a failed invocation. If the topic fails or does not answer, log that."""
        try:
            async with stop.telling() as limit:
                await self.channels.tell(failure_alert(noun, str(error)))
            if limit.expired():
                log.error("the alert was not sent: the topic did not answer")
        except AuditorError as refused:
            log.error("the alert was not sent: %s", refused)
