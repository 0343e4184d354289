"""The metrics of a target, and the alert of a prefix that lists nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.config.channels import Channels
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.metrics import emf, target_value
from auditor.model.target import Target
from tests.lambdas.test_event import environ
from tests.support.servers.stub import StubServer


def test_a_target_has_its_own_form_of_what_watches_it() -> None:
    def line(target: Target | None, **values: float) -> Any:
        return json.loads(emf(values, service="ours", milliseconds=1, target=target, run="R"))

    made = line(Target("photos", "a b/"), RunsComplete=1, Seconds=2)
    of_all, own = made["_aws"]["CloudWatchMetrics"]
    assert (of_all["Dimensions"], own["Dimensions"]) == ([["Service"]], [["Service", "Target"]])
    assert [one["Name"] for one in of_all["Metrics"]] == ["RunsComplete", "Seconds"]
    assert [one["Name"] for one in own["Metrics"]] == ["RunsComplete"]
    assert (made["Service"], made["Target"], made["RunsComplete"]) == ("ours", "photos/a%20b/", 1)
    for target in (None, Target("photos", "", False, "k"), Target("photos", "", False, None, "k")):
        made = line(target, RunsComplete=1)
        assert [one["Dimensions"] for one in made["_aws"]["CloudWatchMetrics"]] == [[["Service"]]]
        assert "Target" not in made


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
