"""The metrics of a target, and the alert of a prefix that lists nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.config.channels import Channels
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.metrics import target_value
from auditor.model.target import Target
from tests.lambdas.test_event import environ
from tests.support.servers.stub import StubServer


class Alerts:
    def __init__(self) -> None:
        self.messages: list[str] = []

    async def publish(self, subject: str, message: str) -> None:
        self.messages.append(message)


@pytest.mark.parametrize(
    ("event", "alerts"),
    [
        ({"bucket": "audited", "prefix": "ab/"}, []),
        (
            {"bucket": "audited", "prefix": "typo/"},
            ["The audit of s3://audited/typo/: nothing is listed."],
        ),
        ({"bucket": "audited", "prefix": "ab/", "start_after": "ab/z"}, []),
        ({"bucket": "audited"}, []),
    ],
)
async def test_a_prefix_that_lists_nothing_is_told(
    stub: StubServer, tmp_path: Path, event: dict[str, Any], alerts: list[str]
) -> None:
    if "prefix" in event:  # an empty bucket is no mistake
        stub.put("audited", "ab/c", b"x")
    topic, lines = Alerts(), list[str]()
    around = FunctionContext(seconds_left=900.0, channels=Channels(topic=topic), emit=lines.append)
    await AuditFunction(environ(stub, tmp_path)).handle(event, around)
    assert [message.splitlines()[0] for message in topic.messages] == alerts
    assert json.loads(lines[0]).get("Target") == (None if "start_after" in event else target_value(Target(**event)))
