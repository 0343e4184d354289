"""The state machine, run for real with the packaged functions: a large bucket in ranges, one run folder at the end."""

from __future__ import annotations

import gzip
import json
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.schemas import valid
from tests.support.servers.arrivals import StampingStub, most_in_a_second
from tests.system.e2e.deployment import Deployment
from tests.system.e2e.system import AUDIT, Make, System, told

RANGES: Final = int(os.environ.get("E2E_MAP_RANGES", "8"))
AT_ONCE: Final = int(os.environ.get("E2E_MAP_AT_ONCE", "4"))
OBJECTS: Final = int(os.environ.get("E2E_MAP_OBJECTS", "2000"))
RATE: Final = int(os.environ.get("E2E_MAP_RATE", "800"))
SECONDS: Final = 300.0 + 4 * OBJECTS / RATE
PLAIN: Final = {"AUDITOR_LEDGER": "", "AUDITOR_QUEUE": "", "AUDITOR_LEVEL": "metadata"}
"""Without the ledger, whose server here is slow."""
ODD: Final = ("a\nb", "a//b", "a%2Fb", "café", "\U0001f600", " lead", "z+z")


@pytest.fixture
def bucket_of_many() -> Iterator[StampingStub]:
    server = StampingStub()
    with server:
        server.world.add("many")
        for number in range(OBJECTS):
            acl = "public-read" if number % 97 == 0 else "private"
            server.put("many", f"{number % 13:02}/{number:06}", b"x", acl=acl)
        for key in ODD:
            server.put("many", key, b"x")
        yield server


def dividing(make: Make, timeout: float = 60.0, **variables: str) -> System:
    given = {"AUDITOR_MAP_RANGES": str(RANGES), "AUDITOR_MAP_CONCURRENCY": str(AT_ONCE), **PLAIN}
    return make(audit={"timeout": timeout, "variables": given | variables})


def lines(files: dict[str, bytes], run: str, kind: str) -> list[dict[str, Any]]:
    """The lines of a run, by key, without the time at which each was read."""
    parts = [gzip.decompress(data) for name, data in files.items() if f"run={run}/{kind}/" in name]
    found = [json.loads(line) for part in parts for line in part.splitlines()]
    for one in found:
        one.pop("read_at", None)
    return sorted(found, key=lambda one: (one["key"] or "", one.get("fingerprint", "")))


def same(divided: dict[str, Any], alone: dict[str, Any]) -> None:
    for name in ("complete", "coverage", "verdicts", "audiences", "findings", "rules", "rules_undecided", "hashing"):
        assert divided[name] == alone[name], name


def test_the_machine_comes_to_what_one_function_does(make: Make, deployment: Deployment, bucket: str) -> None:
    system = dividing(make)
    system.put(bucket, {f"{number % 7}/{number:03}": b"" for number in range(300)} | {"café/a b": b"x", "a//b": b""})
    done = deployment.execute({"bucket": bucket})
    assert done["status"] == "SUCCEEDED", (done.get("error"), done.get("cause"))
    steps = [one for one in system.local.invoked if "action" in one.event]
    assert {one.event["action"] for one in steps} == {"plan", "range", "summarize"}
    valid("audit-event", *(one.event for one in steps))
    valid("audit-step-result", json.loads(done["output"]), *(told(one.answer) for one in steps))
    (divided,) = json.loads(done["output"])["runs"]
    ranges = [one.event["range"] for one in system.local.invoked if one.event.get("action") == "range"]
    assert sorted(set(ranges)) == [f"{number:05}" for number in range(RANGES)]
    files = system.report(bucket)
    assert json.loads(files["latest.json"])["runs"]["current"] == {"": divided["run"]}
    assert json.loads(files[f"run={divided['run']}/summary.json"]) == divided
    assert b"<html" in files[f"run={divided['run']}/report.html"]
    system.local.invoked.clear()
    system.fire({"bucket": bucket})
    (alone,) = system.summaries()
    same(divided, alone)
    files = system.report(bucket)
    for kind in ("objects", "findings", "undecided"):
        assert lines(files, divided["run"], kind) == lines(files, alone["run"], kind)


def invoked_ranges(system: System) -> list[tuple[str, str | None]]:
    """The range of each invocation that worked on one, and its error, but for those that left it to others."""
    found = [one for one in system.local.invoked if one.event.get("action") == "range"]
    return [(one.event["range"], one.answer.error) for one in found if b'"RunTaken"' not in one.answer.payload]


def test_with_a_fifth_of_the_invocations_killed_a_redrive_completes_it_and_it_adds_up(
    make: Make, deployment: Deployment, bucket_of_many: StampingStub, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    variables = {"AUDITOR_ENDPOINT_URL": bucket_of_many.url, "AUDITOR_OUT": str(shared), "AUDITOR_MAX_RATE": str(RATE)}
    system = dividing(make, 30.0, **variables)  # a redriven range waits so long for a killed function
    first_kill = iter([0.2])
    chance, lock = random.Random(17), threading.Lock()
    hopeless = b'"range": "%05d"' % (RANGES // 2)

    def doom(payload: bytes) -> float | None:
        """Kill a fifth of the invocations, and each that works on one range."""
        with lock:
            if hopeless and hopeless in payload:
                return 0.1
            if b'"range": "00000"' in payload and (seconds := next(first_kill, None)) is not None:
                return seconds
            doomed = b'"range"' in payload and chance.random() < 0.2
            return chance.uniform(0.1, 1.5) if doomed else None

    system.local.doom = doom
    done = deployment.execute({"bucket": "many"}, SECONDS)
    assert (done["status"], done["error"]) == ("FAILED", "States.ExceedToleratedFailureThreshold")
    hopeless = b""
    complete = {name for name, error in invoked_ranges(system) if error is None}
    first = len(system.local.invoked)
    redrives = 0  # the first one while functions that worked when the map failed are still at work
    while done["status"] == "FAILED" and redrives < 20:
        redrives += 1
        done = deployment.redrive(done["executionArn"], SECONDS)
    assert done["status"] == "SUCCEEDED", (done.get("error"), done.get("cause"))
    actions = [one.event["action"] for one in system.local.invoked]
    assert actions.count("plan") == 1, "a redrive plans nothing"
    (divided,) = json.loads(done["output"])["runs"]
    assert divided["coverage"]["listed"] == divided["coverage"]["audited"] == OBJECTS + len(ODD)
    killed = [error for _, error in invoked_ranges(system) if error is not None]
    assert len(killed) > 4, "four of one range, and some of others"
    again = [one.event["range"] for one in system.local.invoked[first:] if one.event["action"] == "range"]
    assert f"{RANGES // 2:05}" in again
    # At most those in flight when the map failed are asked once more whether they are complete.
    assert len(complete.intersection(again)) < AT_ONCE
    busiest = most_in_a_second(bucket_of_many.arrivals)
    seen = most_in_a_second([(latest, latest) for _, latest in bucket_of_many.arrivals])
    print(f"{len(killed)} of {len(actions)} killed, {redrives} redrives, {busiest} calls in a second, seen: {seen}")
    assert busiest <= RATE
    system.local.doom = lambda payload: None
    system.local.invoked.clear()
    system.fire({"bucket": "many", "max_rate": "unlimited"})
    *_, alone = system.summaries()  # many objects take it several invocations
    same(divided, alone)
    for kind in ("objects", "findings", "undecided"):
        files = {str(path): path.read_bytes() for path in (shared / "bucket=many").rglob("*") if path.is_file()}
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
    running = json.loads(system.report(bucket)["running.json"])["runs"][""]
    assert (running["run"], running["ended"]) == (found["run"], False)
    client.stop_execution(executionArn=arn)
