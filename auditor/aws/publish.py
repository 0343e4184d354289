"""Publish messages to an SNS topic, and put events on an EventBridge event bus."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from auditor.aio.backoff import backoff
from auditor.aws.client import ThreadedClient, open_client
from auditor.aws.failures import explain, is_transient
from auditor.errors import CallFailed, RunError

MOST_BYTES: Final = 256 * 1024
"""Largest size of an event in bytes (EventBridge quotas, "PutEvents entry size"), with a margin in _MARGIN."""
_MARGIN: Final = 1024
_ATTEMPTS: Final = 4
_PAUSE: Final = 0.5
_BUSY: Final = frozenset({"InternalFailure", "InternalException", "ThrottlingException"})
"""Codes of a refused entry that is worth another attempt. The SDK retries whole calls, but no entry of a call."""


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
