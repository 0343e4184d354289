"""Publish messages to an SNS topic, put events on an EventBridge event bus, and start executions of a state machine of
Step Functions.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any, Final, Protocol

from auditor.aio.backoff import backoff
from auditor.aws.client import ThreadedClient, open_client
from auditor.aws.failures import explain, is_transient
from auditor.errors import CallFailed, RunError

log = logging.getLogger(__name__)

MOST_BYTES: Final = 256 * 1024
"""Largest size of an event in bytes (EventBridge quotas, "PutEvents entry size"), with a margin in _MARGIN."""
_MARGIN: Final = 1024
_ATTEMPTS: Final = 4
_PAUSE: Final = 0.5
_BUSY: Final = frozenset({"InternalFailure", "InternalException", "ThrottlingException"})
"""Codes of a refused entry that is worth another attempt. The SDK retries whole calls, but no entry of a call."""
_MOST_NAMES: Final = 5
"""Largest number of executions of one start. Each but the last has failed, or was stopped by a person."""


class EventBus(Protocol):
    """A bus that takes events."""

    async def put(self, source: str, kind: str, detail: Mapping[str, Any]) -> None:
        """Put one event. kind: its detail-type. Raises RunError if the bus refuses it."""
        ...


class EventBridgeBus:
    """An event bus of EventBridge (EventBridge API: PutEvents)."""

    def __init__(
        self, name: str, setting: str = "AUDITOR_EVENT_BUS", profile: str | None = None, region: str | None = None
    ) -> None:
        """name: the bus's name or ARN. setting: the setting that names the bus, for messages. region: that of a bus
        without an ARN; None for the environment's.
        """
        self._name = name
        self._setting = setting
        self._profile = profile
        self._region = name.split(":")[3] if name.startswith("arn:") else region

    async def put(self, source: str, kind: str, detail: Mapping[str, Any]) -> None:
        text = json.dumps(detail)
        if (size := len(text) + len(source) + len(kind)) > MOST_BYTES - _MARGIN:
            raise RunError(f"{self._words} takes no event of {size:,} bytes")
        entry = {"Source": source, "DetailType": kind, "Detail": text, "EventBusName": self._name}
        try:
            opening = open_client("events", threads=1, region=self._region, endpoint_url=None, profile=self._profile)
            async with opening as client:
                await self._sent(client, entry)
        except CallFailed as failure:
            absent = f"check {self._setting}"
            raise RunError(explain(self._words, failure, allow="events:PutEvents", absent=absent)) from failure

    @property
    def _words(self) -> str:
        return f"the event bus {self._name}"

    async def _sent(self, client: ThreadedClient, entry: Mapping[str, str]) -> None:
        """Send the entry, and send it again if the answer says that the entry failed. Raises CallFailed."""
        for failures in range(_ATTEMPTS):
            answer = await client.call("PutEvents", Entries=[entry])
            if not answer.get("FailedEntryCount"):
                return
            refused: Mapping[str, Any] = next((one for one in answer.get("Entries", ()) if one.get("ErrorCode")), {})
            failure = CallFailed("PutEvents", str(refused.get("ErrorCode") or "Malformed"))
            if failures + 1 == _ATTEMPTS or not (failure.code in _BUSY or is_transient(failure)):
                raise failure
            await asyncio.sleep(backoff(failures, _PAUSE, 8 * _PAUSE))


class Topic(Protocol):
    """A topic that takes messages and passes them to its subscribers."""

    async def publish(self, subject: str, message: str) -> None:
        """Publish one message. Raises RunError if the topic refuses it."""
        ...


class SnsTopic:
    """An SNS topic that takes messages (SNS API: Publish). The SDK retries failed calls; this class does not."""

    def __init__(self, arn: str, setting: str = "AUDITOR_TOPIC", profile: str | None = None) -> None:
        """setting: the setting that names the topic, for messages."""
        self._arn = arn
        self._setting = setting
        self._profile = profile

    async def publish(self, subject: str, message: str) -> None:
        region = self._arn.split(":")[3] if self._arn.count(":") >= 5 else None
        try:
            opening = open_client("sns", threads=1, region=region, endpoint_url=None, profile=self._profile)
            async with opening as client:
                await client.call("Publish", TopicArn=self._arn, Subject=subject, Message=message)
        except CallFailed as failure:
            topic = f"the alert topic {self._arn}"
            raise RunError(explain(topic, failure, allow="sns:Publish", absent=f"check {self._setting}")) from failure


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
            opening = open_client("stepfunctions", threads=1, region=None, endpoint_url=None, profile=None)
            async with opening as client:
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
