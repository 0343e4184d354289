"""The frame of each invocation of a Lambda function: its deadline, its labels, its channels, and the one place where an
error is logged, counted and told.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.aws.publish import Machine, StateMachine
from auditor.config.channels import Channels, channels_named
from auditor.config.layers import variable
from auditor.config.resources import Resources
from auditor.config.settings import CHANNELS, Settings
from auditor.errors import AuditorError, RunTaken
from auditor.lambdas.deadline import FunctionStop, in_time, stop_before_deadline
from auditor.lambdas.event import Invocation
from auditor.lambdas.metrics import emf
from auditor.logs import bound, labels
from auditor.model.alert import failure_alert
from auditor.model.target import Target
from auditor.runs.stores.base import Store

log = logging.getLogger(__name__)


MOST_FRUITLESS: Final = 2
"""Largest number of invocations in a row that make no progress before the work fails. The first one of a short function
may end before the first object, and a server may be silent for half an hour."""


def print_line(line: str) -> None:
    """Write the line to stdout as it is. CloudWatch finds metrics only in lines that consist of JSON and
    nothing else.
    """
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class FunctionContext(Struct, frozen=True, kw_only=True):
    """The context of one invocation of a Lambda function.

    seconds_left: time until the deadline, at the beginning. machine: starts the state machine, for work that is left at
    the deadline; None if there is no state machine. channels: for alerts and events. emit: writes a line of metrics.
    request: ID of the invocation, for the logs. stopping: makes the stop that comes shortly before the deadline, from
    the seconds left. began: time.monotonic() at the beginning.
    """

    seconds_left: float
    machine: Machine | None = None
    channels: Channels = field(default_factory=Channels)
    emit: Callable[[str], object] = print_line
    request: str | None = None
    stopping: Callable[[float | None], AbstractContextManager[FunctionStop]] = stop_before_deadline
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, context: Any, environ: Mapping[str, str] = os.environ) -> Self:
        """Make the context from Lambda's context object and environment variables.

        The variables of the channels are settings, and are read here too, because wrong settings are a failure to tell.
        """
        arn = environ.get("AUDITOR_STATE_MACHINE", "")
        return cls(
            seconds_left=context.get_remaining_time_in_millis() / 1000,
            machine=StateMachine(arn) if arn else None,
            channels=channels_named({name: environ.get(variable(name)) for name in CHANNELS}, variable),
            request=getattr(context, "aws_request_id", None),
        )

    def remaining(self) -> float:
        """Return the time in seconds until the deadline, now. A lease must not outlive the invocation by much, or the
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
            telling = self.channels.tell(failure_alert(noun, str(error)))
            await in_time(telling, stop.telling(), "the topic did not answer")
        except AuditorError as refused:
            log.error("the alert was not sent: %s", refused)


class FunctionCall(Struct, frozen=True, kw_only=True):
    """One invocation of a function: its event, its stores, its stop and its surroundings."""

    invocation: Invocation
    stores: Resources
    stop: FunctionStop
    context: FunctionContext
    environ: Mapping[str, str]

    @property
    def settings(self) -> Settings:
        return self.invocation.settings

    @property
    def store(self) -> Store:
        """The store of run folders."""
        return self.stores.store

    def measure(self, values: Mapping[str, float], target: Target | None = None) -> None:
        """Write one line of metrics, as emf() makes it. The labels of the present log lines, such as the run's ID,
        become properties of the metrics.
        """
        self.context.emit(emf(self.environ, values, target, **labels()))


@asynccontextmanager
async def invoked(
    read: Callable[[], Invocation],
    opening: Callable[[Invocation, FunctionStop], AbstractAsyncContextManager[Resources]],
    environ: Mapping[str, str],
    context: FunctionContext,
    *,
    noun: str = "audit",
    failed: str = "RunsFailed",
) -> AsyncIterator[FunctionCall]:
    """Read an event, open its stores, and yield the invocation, whose context has the channels that the settings name.
    Each AuditorError is logged, counted and told before it continues.

    noun: of the work, for messages. failed: name of the metric for a failed invocation. In an event of the state
    machine, RunTaken is no failure, because the machine sends the event again.
    """
    with bound(requestId=context.request), context.stopping(context.seconds_left) as stop:
        invocation: Invocation | None = None
        try:
            invocation = read()
            context = context.with_settings(invocation.settings)
            async with opening(invocation, stop) as stores:
                yield FunctionCall(invocation=invocation, stores=stores, stop=stop, context=context, environ=environ)
        except AuditorError as error:
            if isinstance(error, RunTaken) and invocation is not None and invocation.of_machine:
                log.warning("%s", error)
                raise
            log.error("the invocation failed: %s", error)
            context.emit(emf(environ, {failed: 1}, None, **labels()))
            if not error.told:
                await context.tell_failure(noun, error, stop)
            raise
