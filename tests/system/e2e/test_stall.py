"""A server stops answering in mid-run: before Lambda's deadline the run is left to the machine, or its end is told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.support.servers.forwarding import Silencing
from tests.system.e2e.deployment import Deployment
from tests.system.e2e.system import Make, System, heard, keys

OBJECTS = {f"key-{number:03}": b"" for number in range(60)}
LAST_BEFORE = "key-030"
SECONDS = 30.0
OUT_OF_TIME = "5"
"""Calls in a second with which the objects take more than one invocation."""


class Silence(Silencing):
    """What is silent, from the HEAD of an object on: a service, and a part of the request's target.

    refuses: True to answer what would be silent with a refusal.
    """

    def __init__(self, behind: str, service: str, part: str, *, refuses: bool = False) -> None:
        super().__init__(behind)
        self.over = False
        self._begun = False
        self._what = service, part
        self._refuses = refuses
        self.silent = lambda method, target, headers: not refuses and self._meant(method, target, headers)

    def refused(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes] | None:
        if not self._refuses or not self._meant(method, target, headers):
            return None
        return 400, json.dumps({"__type": "AccessDeniedException", "message": "not authorized"}).encode()

    def _meant(self, method: str, target: str, headers: Mapping[str, str]) -> bool:
        self._begun |= method == "HEAD" and target.endswith(f"/{LAST_BEFORE}")
        service = headers["authorization"].split("/")[3]
        return self._begun and not self.over and service == self._what[0] and self._what[1] in target


def letters(system: System) -> list[dict[str, Any]]:
    return [json.loads(body) for body in system.queues.taken(system.deployment.failure_queue())]


def system_behind(make: Make, deployment: Deployment, server: Silencing, **variables: str) -> System:
    """The functions reach everything through this server."""
    deployed = deployment.functions()["audit"].variables
    moved = {name: value.replace(deployment.url, server.url) for name, value in deployed.items()}
    moved |= {"AWS_ENDPOINT_URL": server.url, "AUDITOR_MAX_RATE": "60", **variables}
    return make(audit={"timeout": SECONDS, "variables": moved})


def finish(system: System, bucket: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """The run that the next start takes up, or one with the event of an alert, when all is well again."""
    (begun,) = system.runs(bucket)
    system.end_lease(bucket)
    system.local.invoked.clear()
    for end in system.fire(event):
        assert end["status"] == "SUCCEEDED", (end.get("error"), end.get("cause"))
    last = system.summaries()[-1]
    assert (last["run"], last["complete"]) == (begun, True)
    assert last["coverage"]["listed"] == last["coverage"]["audited"] == len(OBJECTS)
    assert sorted(keys(system.report(bucket), "objects")) == sorted(OBJECTS)
    assert letters(system) == []
    return last


@pytest.mark.parametrize("silent", ["objects", "reports", "dynamodb", "sqs"])
def test_the_end_of_a_run_is_told_and_the_next_night_finishes_it(
    make: Make, deployment: Deployment, bucket: str, alerts: str, silent: str
) -> None:
    reports = deployment.outputs()["Reports"].removeprefix("s3://").partition("/")[0]
    service, part = {"objects": ("s3", bucket + "/key-"), "reports": ("s3", reports)}.get(silent, (silent, ""))
    with Silence(deployment.url, service, part) as server:
        system = system_behind(make, deployment, server)
        system.put(bucket, OBJECTS)
        ends = system.fire({"bucket": bucket}, seconds=900.0)
        assert "Task timed out" not in repr(system.local.invoked)
        assert [end["status"] for end in ends] in ([], ["FAILED"])
        (run,) = system.runs(bucket)
        told = [letter["responsePayload"]["errorMessage"] for letter in letters(system)]
        assert ends or told, "a function that cannot leave the run to the machine fails"
        assert any(bucket in words and run in words for words in [*heard(system, alerts), *told])
        server.over = True
        last = finish(system, bucket, {"bucket": bucket})
    assert silent != "sqs" or (last["hashing"]["pending"], last["hashing"]["queued"]) == (0, len(OBJECTS))


@pytest.mark.parametrize("refuses", [False, True])
def test_the_alert_has_the_event_that_goes_on_if_the_machine_cannot_be_started(
    make: Make, deployment: Deployment, bucket: str, alerts: str, refuses: bool
) -> None:
    with Silence(deployment.url, "states", "", refuses=refuses) as server:
        system = system_behind(make, deployment, server, AUDITOR_MAX_RATE=OUT_OF_TIME)
        system.put(bucket, OBJECTS)
        assert system.fire({"bucket": bucket}) == []
        assert "Task timed out" not in repr(system.local.invoked)
        (run,) = system.runs(bucket)
        (letter,) = letters(system)
        (alert,) = heard(system, alerts)
        for words in (letter["responsePayload"]["errorMessage"], alert):
            (event,) = events_in(words)
            assert (event["bucket"], event["run"]) == (bucket, run)
        server.over = True
        finish(system, bucket, {**event, "max_rate": 60})


def events_in(words: str) -> Iterator[dict[str, Any]]:
    for found in re.finditer(r"the event (?=\{)", words):
        yield json.JSONDecoder().raw_decode(words[found.end() :])[0]


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
        assert not any(name.endswith("summary.json") for name in system.report(bucket))
        finish(system, bucket, letter["requestPayload"])
