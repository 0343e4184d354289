"""The state machine, run for real with the packaged functions: a large bucket in ranges, one run folder at the end."""

from __future__ import annotations

import gzip
import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.servers.stub import StubServer
from tests.support.servers.stub_calls import Call
from tests.system.e2e.deployment import Deployment
from tests.system.e2e.system import AUDIT, Make, System, told

RANGES: Final = 8
AT_ONCE: Final = 4
OBJECTS: Final = 2_000
RATE: Final = 800
PLAIN: Final = {"AUDITOR_LEDGER": "", "AUDITOR_QUEUE": "", "AUDITOR_LEVEL": "metadata"}
"""Without the ledger, whose server here is slow."""
ODD: Final = ("a\nb", "a//b", "a%2Fb", "café", "\U0001f600", " lead", "z+z")


class Timed(StubServer):
    """moments: of each call about the audited bucket."""

    def __init__(self) -> None:
        super().__init__(record=False)
        self.moments: list[float] = []

    async def _answer(self, request: Any, call: Call) -> Any:
        self.moments.append(time.monotonic())
        return await super()._answer(request, call)

    def busiest(self) -> int:
        """The largest number of calls in any second."""
        most = first = 0
        for last, moment in enumerate(self.moments):
            while moment - self.moments[first] >= 1.0:
                first += 1
            most = max(most, last - first + 1)
        return most


@pytest.fixture
def bucket_of_many() -> Iterator[Timed]:
    server = Timed()
    with server:
        server.world.add("many")
        for number in range(OBJECTS):
            acl = "public-read" if number % 97 == 0 else "private"
            server.put("many", f"{number % 13:02}/{number:06}", b"x", acl=acl)
        for key in ODD:
            server.put("many", key, b"x")
        yield server


def dividing(make: Make, **variables: str) -> System:
    given = {"AUDITOR_MAP_RANGES": str(RANGES), "AUDITOR_MAP_CONCURRENCY": str(AT_ONCE), **PLAIN}
    return make(audit={"timeout": 60.0, "variables": given | variables})


def lines(files: dict[str, bytes], run: str, kind: str) -> list[dict[str, Any]]:
    """The lines of a run, by key, without the time at which each was read."""
    parts = [gzip.decompress(data) for name, data in files.items() if f"run={run}/{kind}/" in name]
    found = [json.loads(line) for part in parts for line in part.splitlines()]
    for one in found:
        one.pop("read_at", None)
    return sorted(found, key=lambda one: (one["key"] or "", one.get("fingerprint", "")))


def files_in(folder: Path, bucket: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (folder / f"bucket={bucket}").rglob("*") if path.is_file()}


def same(divided: dict[str, Any], alone: dict[str, Any]) -> None:
    for name in ("complete", "coverage", "verdicts", "audiences", "findings", "rules", "rules_undecided", "hashing"):
        assert divided[name] == alone[name], name


def test_the_machine_comes_to_what_one_function_does(make: Make, deployment: Deployment, bucket: str) -> None:
    system = dividing(make)
    system.put(bucket, {f"{number % 7}/{number:03}": b"" for number in range(300)} | {"café/a b": b"x", "a//b": b""})
    done = deployment.execute({"bucket": bucket})
    assert done["status"] == "SUCCEEDED", (done.get("error"), done.get("cause"))
    (divided,) = json.loads(done["output"])["runs"]
    ranges = [one.event["range"] for one in system.local.invoked if one.event.get("action") == "range"]
    assert sorted(set(ranges)) == [f"{number:05}" for number in range(1, RANGES + 1)]
    files = system.report(bucket)
    assert json.loads(files["latest.json"])["runs"] == {"": divided["run"]}
    assert json.loads(files[f"run={divided['run']}/summary.json"]) == divided
    assert b"<html" in files[f"run={divided['run']}/report.html"]
    system.local.invoked.clear()
    system.fire({"bucket": bucket})
    (alone,) = system.summaries()
    same(divided, alone)
    files = system.report(bucket)
    for kind in ("objects", "findings", "undecided"):
        assert lines(files, divided["run"], kind) == lines(files, alone["run"], kind)


def test_with_a_fifth_of_the_invocations_killed_it_adds_up_after_a_redrive(
    make: Make, deployment: Deployment, bucket_of_many: Timed, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    variables = {"AUDITOR_ENDPOINT_URL": bucket_of_many.url, "AUDITOR_OUT": str(shared), "AUDITOR_MAX_RATE": str(RATE)}
    system = dividing(make, **variables)
    chance, lock = random.Random(17), threading.Lock()

    def doom(payload: bytes) -> float | None:
        with lock:
            doomed = b'"range"' in payload and chance.random() < 0.2
            return chance.uniform(0.1, 1.5) if doomed else None

    system.local.doom = doom
    event: dict[str, Any] = {"bucket": "many"}
    began = time.monotonic()
    for _ in range(20):
        done = deployment.execute(event)
        if done["status"] == "SUCCEEDED":
            break
        (running,) = [data for name, data in files_in(shared, "many").items() if name.endswith("running.json")]
        event["run"] = json.loads(running)["runs"][""]["run"]
    seconds = time.monotonic() - began
    assert done["status"] == "SUCCEEDED", (done.get("error"), done.get("cause"))
    (divided,) = json.loads(done["output"])["runs"]
    assert divided["coverage"]["listed"] == divided["coverage"]["audited"] == OBJECTS + len(ODD)
    killed = [one for one in system.local.invoked if one.answer.error is not None]
    assert killed, "nobody was killed"
    invocations = len(system.local.invoked)
    # The ceiling is one: no more calls than it allows in that time, and one more for the begin of each invocation.
    assert len(bucket_of_many.moments) <= RATE * seconds + invocations
    print(f"{len(killed)} of {invocations} killed, {bucket_of_many.busiest()} calls in the busiest second")
    system.local.doom = lambda payload: None
    system.local.invoked.clear()
    system.fire({"bucket": "many", "max_rate": "unlimited"})
    (alone,) = system.summaries()
    same(divided, alone)
    for kind in ("objects", "findings", "undecided"):
        files = files_in(shared, "many")
        assert lines(files, divided["run"], kind) == lines(files, alone["run"], kind)


def test_a_target_that_takes_one_function_more_than_an_hour_is_left_to_the_machine(
    make: Make, deployment: Deployment, bucket: str
) -> None:
    system = dividing(make)
    system.put(bucket, {f"{number:02}": b"" for number in range(30)})
    # So few calls a second that the estimate is hours: the machine is started, and nothing of it is waited for.
    answer = told(system.local.invoke(AUDIT, {"bucket": bucket, "max_rate": 0.005}))
    assert answer["runs"] == []
    (arn,) = answer["executions"]
    client = deployment.client("stepfunctions")
    found = json.loads(client.describe_execution(executionArn=arn)["input"])
    assert (found["bucket"], found["hop"], found["max_rate"]) == (bucket, 1, 0.005)
    assert json.loads(system.report(bucket)["running.json"])["runs"][""] == {"run": found["run"], "ended": False}
    client.stop_execution(executionArn=arn)
