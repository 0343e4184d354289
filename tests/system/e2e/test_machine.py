"""The state machine, run for real with the packaged functions: ranges side by side, one run folder at the end."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.schemas import valid
from tests.support.servers.arrivals import Arrival, StampingStub, most_in_a_second
from tests.system.e2e.deployment import Deployment
from tests.system.e2e.system import AUDIT, Make, System, keys, told

RANGES: Final = int(os.environ.get("E2E_MAP_RANGES", "64"))
AT_ONCE: Final = int(os.environ.get("E2E_MAP_AT_ONCE", "4"))
OBJECTS: Final = int(os.environ.get("E2E_MAP_OBJECTS", "2000"))
RATE: Final = int(os.environ.get("E2E_MAP_RATE", "200"))
SECONDS: Final = 600.0 + 4 * OBJECTS / RATE
TIMEOUT: Final = 30.0
PLAIN: Final = {"AUDITOR_LEDGER": "", "AUDITOR_QUEUE": "", "AUDITOR_LEVEL": "metadata"}
"""Without the ledger, whose server here is slow."""
CALLS: Final = 2
"""Calls for each object at this level."""
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


def dividing(make: Make, objects: int, ranges: int, timeout: float = 60.0, **variables: str) -> System:
    """A target of so many objects has so many ranges."""
    calls = str(math.ceil(CALLS * objects / ranges))
    given = {"AUDITOR_RANGE_CALLS": calls, "AUDITOR_MAP_CONCURRENCY": str(AT_ONCE), **PLAIN}
    return make(audit={"timeout": timeout, "variables": given | variables})


def on_disk(deployment: Deployment, folder: Path) -> dict[str, str]:
    """Variables of the functions with run folders on a shared file system."""
    machine = deployment.machine(shared=True)
    return {"AUDITOR_OUT": str(folder), "AUDITOR_STATE_MACHINE": machine}


def files_in(folder: Path, bucket: str) -> dict[str, bytes]:
    """The same as report() of a shared file system."""
    place = folder / f"bucket={bucket}"
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def lines(files: dict[str, bytes], run: str, kind: str) -> list[dict[str, Any]]:
    """The lines of a run, by key, without the time at which each was read."""
    parts = [gzip.decompress(data) for name, data in files.items() if f"run={run}/{kind}/" in name]
    found = [json.loads(line) for part in parts for line in part.splitlines()]
    for one in found:
        one.pop("read_at", None)
    return sorted(found, key=lambda one: (one["key"] or "", one.get("fingerprint", "")))


def same(divided: dict[str, Any], alone: dict[str, Any], files: dict[str, bytes]) -> None:
    for name in ("complete", "coverage", "verdicts", "audiences", "findings", "rules", "rules_undecided", "hashing"):
        assert divided[name] == alone[name], name
    for kind in ("objects", "findings", "undecided"):
        assert lines(files, divided["run"], kind) == lines(files, alone["run"], kind)


def output(ended: dict[str, Any]) -> dict[str, Any]:
    """What an execution that succeeded ended with."""
    assert ended["status"] == "SUCCEEDED", (ended.get("error"), ended.get("cause"))
    found: dict[str, Any] = json.loads(ended["output"])
    return found


def until(done: Callable[[], bool], seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("shared", [False, True])
def test_the_machine_comes_to_what_one_function_does(
    make: Make, deployment: Deployment, bucket: str, tmp_path: Path, shared: bool
) -> None:
    folder = tmp_path / "shared"
    variables = on_disk(deployment, folder) if shared else {}
    system = dividing(make, 302, 8, 60.0, **variables)
    system.put(bucket, {f"{number % 7}/{number:03}": b"" for number in range(300)} | {"café/a b": b"x", "a//b": b""})
    (end,) = system.fire({"bucket": bucket})
    answer = output(end)
    assert (answer["next"], answer["left"]) == ("complete", [])
    (divided,) = answer["runs"]
    steps = [one for action in ("begin", "range", "conclude") for one in system.steps(action)]
    assert len(system.local.invoked) == 1 + len(steps)
    valid("audit-event", *(one.event for one in system.local.invoked))
    valid("audit-step-result", *(told(one.answer) for one in steps))
    assert sorted({name for name, _ in system.ranges()}) == [f"{number:05}" for number in range(8)]
    files = files_in(folder, bucket) if shared else system.report(bucket)
    assert json.loads(files["latest.json"])["runs"]["current"] == {"": divided["run"]}
    assert json.loads(files[f"run={divided['run']}/summary.json"]) == divided
    assert b"<html" in files[f"run={divided['run']}/report.html"]
    system = make(audit={"timeout": 60.0, "variables": PLAIN | variables})
    assert system.fire({"bucket": bucket}) == []
    (alone,) = system.summaries()
    same(divided, alone, files_in(folder, bucket) if shared else system.report(bucket))


def test_a_fifth_killed_and_stopped_in_mid_map_a_redrive_completes_it_and_it_adds_up(
    make: Make, deployment: Deployment, bucket_of_many: StampingStub, tmp_path: Path
) -> None:
    folder = tmp_path / "shared"
    variables = {"AUDITOR_ENDPOINT_URL": bucket_of_many.url, "AUDITOR_MAX_RATE": str(RATE)}
    variables |= on_disk(deployment, folder)
    system = dividing(make, OBJECTS + len(ODD), RANGES, TIMEOUT, **variables)
    chance, lock, kills = random.Random(17), threading.Lock(), Counter[str]()

    def doom(payload: bytes) -> float | None:
        """Kill a fifth of the invocations on ranges, and none so often that its range is given up."""
        pair = json.loads(payload).get("pair")
        with lock:
            if pair is None or kills[pair["range"]] == 2 or chance.random() >= 0.2:
                return None
            kills[pair["range"]] += 1
            return chance.uniform(0.05, 0.5)

    system.local.doom = doom
    execution = deployment.start({"bucket": "many"}, shared=True)
    until(lambda: len(completed(system)) >= RANGES // 3)
    deployment.stop(execution)
    stopped, complete, first = time.monotonic(), completed(system), len(system.local.invoked)
    assert deployment.ended(execution)["status"] == "ABORTED"
    redriven = time.monotonic()  # while functions that worked when the map was stopped are still at work
    (divided,) = output(deployment.redrive(execution, SECONDS))["runs"]
    assert divided["complete"]
    assert divided["coverage"]["listed"] == divided["coverage"]["audited"] == OBJECTS + len(ODD)
    ranges = {name for name, _ in system.ranges()}
    assert ranges == {f"{number:05}" for number in range(len(ranges))}, "their number follows from an estimate"
    assert len([one for one in system.steps("begin") if not one.answer.error]) == 1, "a redrive begins nothing anew"
    again = [one.event["pair"]["range"] for one in system.local.invoked[first:] if one.event["action"] == "range"]
    # At most those in flight at the stop are asked once more whether they are complete.
    assert len(complete.intersection(again)) < AT_ONCE
    killed = [error for _, error in system.ranges() if error is not None]
    assert len(killed) > RANGES // 16
    parts: dict[bool, list[Arrival]] = {True: [], False: []}
    for one in bucket_of_many.arrivals:
        parts[one[1] < stopped or one[0] > redriven + TIMEOUT].append(one)
    busiest, during = most_in_a_second(parts[True]), most_in_a_second(parts[False])
    print(f"{len(killed)} of {len(system.ranges())} killed, {busiest} calls in a second, {during} at the redrive")
    assert busiest <= 1.02 * RATE
    files = files_in(folder, "many")
    listed = [one["key"] for one in lines(files, divided["run"], "objects")]
    assert len(listed) == len(set(listed)) == OBJECTS + len(ODD)
    system = make(audit={"timeout": 900.0, "variables": PLAIN | variables})
    system.fire({"bucket": "many", "max_rate": "unlimited"})
    same(divided, system.summaries()[-1], files_in(folder, "many"))


def completed(system: System) -> set[str]:
    """The ranges of which an invocation said that nothing is left."""
    answers = {one.event["pair"]["range"]: one.answer for one in system.steps("range") if one.answer.error is None}
    return {name for name, answer in answers.items() if not told(answer)["again"]}


@pytest.mark.parametrize("ranges", [1, 4])
def test_an_event_of_a_schedule_delivered_four_times_makes_one_run(make: Make, audited: str, ranges: int) -> None:
    system = dividing(make, 60, ranges)
    system.put(audited, {f"{number:02}": b"" for number in range(60)})
    before, event = system.runs(audited), system.deployment.schedules_input()
    system.fire(event, times=2)
    system.fire(event)
    (first,) = system.runs(audited) - before
    system.fire({"bucket": audited})
    (second,) = system.runs(audited) - before - {first}
    for end in system.fire(event):
        assert end["status"] == "SUCCEEDED"
    assert system.runs(audited) - before == {first, second}
    assert system.local.failed == []
    report = system.report(audited)
    assert all(json.loads(report[f"run={run}/summary.json"])["complete"] for run in (first, second))


def test_of_two_starts_on_one_bucket_the_second_waits_and_runs(make: Make, deployment: Deployment, bucket: str) -> None:
    system = dividing(make, 120, 4, AUDITOR_MAX_RATE="30")
    system.put(bucket, {f"{number:03}": b"" for number in range(120)})
    first = deployment.start({"bucket": bucket})
    until(lambda: bool(system.steps("begin")))
    (second,) = system.fire({"bucket": bucket})
    (earlier,), (later,) = output(deployment.ended(first))["runs"], output(second)["runs"]
    assert earlier["run"] < later["run"]
    assert earlier["complete"]
    assert later["complete"]
    assert len([one for one in system.steps("conclude") if told(one.answer)["next"] == "wait"]) > 0
    assert system.runs(bucket) == {earlier["run"], later["run"]}
    for run in (earlier, later):
        assert run["coverage"]["listed"] == run["coverage"]["audited"] == 120


def test_the_unfinished_run_of_an_earlier_start_is_taken_up(make: Make, deployment: Deployment, bucket: str) -> None:
    system = dividing(make, 120, 8, AUDITOR_MAX_RATE="30")
    objects = {f"{number:03}": b"" for number in range(120)}
    system.put(bucket, objects)
    execution = deployment.start({"bucket": bucket})
    until(lambda: len(completed(system)) >= 2)
    deployment.stop(execution)
    complete, first = completed(system), len(system.local.invoked)
    until(lambda: len(system.local.invoked) > first and not system.local.busy)
    system.end_lease(bucket)
    (begun,) = system.runs(bucket)
    system.local.invoked.clear()
    (end,) = system.fire({"bucket": bucket})
    (run,) = output(end)["runs"]
    assert (run["run"], run["complete"], run["coverage"]["audited"]) == (begun, True, 120)
    assert complete.isdisjoint({name for name, _ in system.ranges()})
    assert sorted(keys(system.report(bucket), "objects")) == sorted(objects)
    assert system.runs(bucket) == {begun}


def test_a_target_that_takes_one_function_more_than_an_hour_is_left_to_the_machine(
    make: Make, deployment: Deployment, bucket: str
) -> None:
    system = make(audit={"variables": PLAIN})
    system.put(bucket, {f"{number:02}": b"" for number in range(30)})
    # So few calls a second that the estimate is hours: the machine is started, and nothing of it is waited for.
    answer = told(system.local.invoke(AUDIT, {"bucket": bucket, "max_rate": 0.005}))
    assert answer["runs"] == []
    (arn,) = answer["executions"]
    client = deployment.client("stepfunctions")
    found = json.loads(client.describe_execution(executionArn=arn)["input"])
    assert (found["bucket"], found["max_rate"]) == (bucket, 0.005)
    assert found["start"] in arn
    deployment.stop(arn)
