"""One hop's event is delivered twice: one invocation goes on with the run, the other ends with a sentence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from auditor.config.channels import Channels
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.context import FunctionContext
from auditor.runs.parts import KINDS
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from tests.support.log_lines import logged
from tests.support.run_lines import run_lines
from tests.support.servers.clients import client

OBJECTS = [f"{number:03}" for number in range(40)]


@dataclass
class Account:
    """A moto server with the audited bucket and one for results. out: where the runs are to lie."""

    url: str
    bucket: str
    out: str
    events: list[Mapping[str, Any]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)

    async def invoke(self, event: Mapping[str, Any]) -> None:
        self.events.append(json.loads(json.dumps(event)))

    async def close(self) -> None:
        """Nothing to close."""

    async def publish(self, subject: str, message: str) -> None:
        self.messages.append(message)

    async def deliver(
        self, event: Mapping[str, Any], seconds: float, rate: str = "unlimited", request: str | None = None
    ) -> dict[str, Any]:
        """Send the event to a process of its own."""
        environ = {"AUDITOR_ENDPOINT_URL": self.url, "AUDITOR_OUT": self.out}
        environ |= {"AUDITOR_MAX_RATE": rate, "AUDITOR_CONCURRENCY": "2", "AUDITOR_FAIL_ON": "never"}
        around = FunctionContext(
            seconds_left=seconds,
            successor=self,
            channels=Channels(topic=self),
            emit=lambda line: self.metrics.append(json.loads(line)),
            request=request,
        )
        return await AuditFunction(environ).handle(event, around)

    def count(self, metric: str) -> float:
        return float(sum(line.get(metric, 0) for line in self.metrics))

    def check(self, summary: Mapping[str, Any]) -> None:
        with open_store(self.out, endpoint_url=self.url) as store:
            lines = {kind: run_lines(RunReader(store, self.bucket, summary["run"]), kind) for kind in KINDS}
        assert [line["key"] for line in lines["objects"]] == OBJECTS
        assert summary["coverage"]["listed"] == len(OBJECTS)
        assert sum(summary["findings"].values()) == len(lines["findings"])
        marks = [line["fingerprint"] for line in lines["findings"]]
        assert len(set(marks)) == len(marks)


@pytest.fixture(params=["a directory", pytest.param("a bucket", marks=pytest.mark.slow)])
def account(request: pytest.FixtureRequest, moto_url: str, tmp_path: Path) -> Account:
    s3, name = client("s3", moto_url), uuid4().hex[:12]
    for bucket in (f"audited-{name}", f"results-{name}"):
        s3.create_bucket(Bucket=bucket)
    for key in OBJECTS:
        s3.put_object(Bucket=f"audited-{name}", Key=key, Body=b"x", ACL="public-read" if key == "007" else "private")
    s3.close()
    out = f"s3://results-{name}/audits" if request.param == "a bucket" else str(tmp_path / "runs")
    return Account(moto_url, f"audited-{name}", out)


async def first_hop(account: Account) -> Mapping[str, Any]:
    """The event that goes on with a run that its deadline stopped in the middle."""
    (summary,) = (await account.deliver({"bucket": account.bucket}, 12.0, rate="8"))["runs"]
    assert summary["coverage"]["listed"] < len(OBJECTS)
    return account.events.pop()


async def test_of_two_deliveries_at_once_one_does_the_work(account: Account) -> None:
    event = await first_hop(account)
    with logged() as lines:
        answers = await asyncio.gather(account.deliver(event, 900.0), account.deliver(event, 900.0))
    ended, left = sorted(answers, key=lambda answer: -len(answer["runs"]))
    (summary,) = ended["runs"]
    assert summary["complete"]
    account.check(summary)
    assert left["runs"] == []
    (sentence,) = left["left"]
    assert "another process" in sentence
    assert [line["run"] for line in lines if line["message"] == sentence] == [summary["run"]]
    assert not [line for line in lines if line["level"] == "ERROR"]
    assert (account.count("RunsComplete"), account.count("RunsFailed"), account.count("Objects")) == (
        1,
        0,
        len(OBJECTS),
    )
    assert account.messages == []

    again = await account.deliver(event, 900.0)
    assert again["runs"] == []
    assert "is complete" in again["left"][0]
    account.check(summary)


async def test_deliveries_that_run_out_of_time_again_hand_on_once(account: Account) -> None:
    event = await first_hop(account)
    await asyncio.gather(*(account.deliver(event, 12.0, rate="8") for _ in range(2)))
    assert len(account.events) == 1
    (summary,) = (await account.deliver(account.events.pop(), 900.0))["runs"]
    assert summary["complete"]
    account.check(summary)
    assert account.count("RunsFailed") == 0
