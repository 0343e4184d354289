"""The channels of a run: which of them get what, one that refuses, and topics on moto's server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from auditor.config.channels import Channels
from auditor.config.layers import Layer, resolve
from auditor.errors import RunError, UsageError
from auditor.model.alert import RunEvent, failure_alert

ALERT = failure_alert("audit", "there is no bucket named 'x'")
EVENT = RunEvent("Tested", {"n": 1})


class Kept:
    """A topic and a bus in one, which keep or refuse all that they get."""

    def __init__(self, refusal: str | None = None) -> None:
        self.got: list[Any] = []
        self._refusal = refusal

    def _keep(self, *parts: Any) -> None:
        if self._refusal:
            raise RunError(self._refusal)
        self.got.append(parts)

    async def publish(self, subject: str, message: str) -> None:
        self._keep(subject, message)

    async def put(self, source: str, kind: str, detail: Mapping[str, Any]) -> None:
        self._keep(source, kind, detail)


async def test_each_channel_gets_its_own_form() -> None:
    topic, chat, bus = Kept(), Kept(), Kept()
    await Channels(topic=topic, chat=chat, bus=bus).tell(ALERT, EVENT)
    assert topic.got == [("S3 audit failed", "The audit failed: there is no bucket named 'x'")]
    ((subject, message),) = chat.got
    assert (subject, json.loads(message)["source"]) == ("S3 audit failed", "custom")
    assert bus.got == [("s3-auditor", "Tested", {"n": 1})]


async def test_channel_that_refuses_keeps_no_other_from_being_used() -> None:
    topic, chat, bus = Kept("the topic refuses"), Kept(), Kept("the bus refuses")
    with pytest.raises(RunError, match="the topic refuses; the bus refuses"):
        await Channels(topic=topic, chat=chat, bus=bus).tell(ALERT, EVENT)
    assert len(chat.got) == 1


def test_wrong_names_are_refused_in_a_sentence() -> None:
    arn = "arn:aws:sns:eu-west-1:123456789012:a"
    for given, words in (
        ({"topic": "alerts"}, "--topic is 'alerts': give the ARN of an SNS topic that is not FIFO"),
        ({"chat_topic": f"{arn}.fifo"}, "--chat_topic is 'arn"),
        ({"event_bus": "two words"}, "--event_bus is 'two words': give the name or the ARN of an event bus"),
        ({"topic": arn, "chat_topic": arn}, "are the same topic"),
    ):
        with pytest.raises(UsageError) as caught:
            resolve([Layer(given, lambda name: f"--{name}")])
        assert words in str(caught.value)
