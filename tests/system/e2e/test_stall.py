"""A server stops answering in mid-run: before Lambda's deadline the run is handed on, or its end is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.servers.forwarding import Silencing
from tests.system.e2e.deployment import Deployment
from tests.system.e2e.system import Make, System, keys, told

OBJECTS = {f"key-{number:03}": b"" for number in range(60)}
LAST_BEFORE = "key-030"
SECONDS = 30.0


class Silence(Silencing):
    """What is silent, from the HEAD of an object on: a service, and a part of the request's target."""

    def __init__(self, behind: str, service: str, part: str) -> None:
        super().__init__(behind)
        self.over = False
        self._begun = False
        self._what = service, part
        self.silent = self._silent

    def _silent(self, method: str, target: str, headers: Mapping[str, str]) -> bool:
        self._begun |= method == "HEAD" and target.endswith(f"/{LAST_BEFORE}")
        service = headers["authorization"].split("/")[3]
        return self._begun and not self.over and service == self._what[0] and self._what[1] in target


def letters(system: System) -> list[dict[str, Any]]:
    return [json.loads(body) for body in system.queues.taken(system.deployment.failure_queue())]


def system_behind(make: Make, deployment: Deployment, server: Silencing, **variables: str) -> System:
    """The functions reach everything but Lambda through this server."""
    deployed = deployment.functions()["audit"].variables
    moved = {name: value.replace(deployment.url, server.url) for name, value in deployed.items()}
    moved |= {"AWS_ENDPOINT_URL": server.url, "AUDITOR_MAX_RATE": "60", **variables}
    return make(audit={"timeout": SECONDS, "variables": moved})


@pytest.mark.parametrize("silent", ["objects", "reports", "dynamodb", "sqs"])
def test_run_is_handed_on_or_its_end_is_told_and_the_next_night_finishes_it(
    make: Make, deployment: Deployment, bucket: str, silent: str
) -> None:
    reports = deployment.outputs()["Reports"].removeprefix("s3://").partition("/")[0]
    service, part = {"objects": ("s3", bucket + "/key-"), "reports": ("s3", reports)}.get(silent, (silent, ""))
    with Silence(deployment.url, service, part) as server:
        system = system_behind(make, deployment, server)
        system.put(bucket, OBJECTS)
        system.fire({"bucket": bucket})
        hops = [one.event.get("hop", 0) for one in system.local.invoked]
        assert hops == list(range(len(hops)))
        assert len(hops) > 1
        assert "Task timed out" not in repr(system.local.invoked)
        (letter,) = letters(system)  # the server stays silent, so in the end the run is given up
        run = system.local.invoked[-1].event["run"]
        for words in (bucket, run, "the event"):
            assert words in letter["responsePayload"]["errorMessage"]
        server.over = True
        system.local.invoked.clear()
        system.fire({"bucket": bucket})
    assert letters(system) == []
    (last,) = [summary for one in system.local.invoked for summary in told(one.answer)["runs"] if summary["complete"]]
    assert (last["run"], last["coverage"]["listed"]) == (run, len(OBJECTS))
    assert sorted(keys(system.report(bucket), "objects")) == sorted(OBJECTS)
    assert silent != "sqs" or (last["hashing"]["pending"], last["hashing"]["queued"]) == (0, len(OBJECTS))


def test_function_killed_in_mid_run_is_told_and_the_next_night_finishes_the_run(
    make: Make, deployment: Deployment, bucket: str
) -> None:
    killed: list[str] = []
    with Silencing(deployment.url) as server:
        system = system_behind(make, deployment, server)

        def kill(method: str, target: str, headers: Mapping[str, str]) -> bool:
            """Kill the function at the HEAD of one object. The server is never silent."""
            if method == "HEAD" and target.endswith(f"/{LAST_BEFORE}") and not killed:
                killed.append(target)
                system.local.kill(bucket)
            return False

        server.silent = kill
        system.put(bucket, OBJECTS)
        system.fire({"bucket": bucket})
        assert killed
        (letter,) = letters(system)
        assert "Runtime exited" in letter["responsePayload"]["errorMessage"]
        begun = {name.partition("/")[0] for name in system.report(bucket) if name.startswith("run=")}
        assert not any(name.endswith("summary.json") for name in system.report(bucket))
        system.local.invoked.clear()
        system.fire(letter["requestPayload"])
    (last,) = [summary for one in system.local.invoked for summary in told(one.answer)["runs"] if summary["complete"]]
    assert begun == {f"run={last['run']}"}
    assert last["coverage"]["listed"] == last["coverage"]["audited"] == len(OBJECTS)
    assert sorted(keys(system.report(bucket), "objects")) == sorted(OBJECTS)
    assert letters(system) == []
