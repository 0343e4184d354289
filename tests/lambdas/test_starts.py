"""Start events that come more than once, starts at the same time, and runs that an earlier start left unfinished."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import RunChanged, RunError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.claims import OLDEST
from auditor.lambdas.event import read_event
from auditor.model.target import Target
from auditor.runs.paths import new_run_id
from auditor.runs.stores.local import LocalStore
from tests.lambdas.test_event import SCHEDULE
from tests.lambdas.test_handover import Account
from tests.lambdas.test_stall import OBJECTS, audited, ended, fill, function, near, silence_from
from tests.support.log_lines import logged
from tests.support.servers.stub import StubServer

NIGHT = {**SCHEDULE, "time": "2026-01-02T03:04:05Z"}
RUN = "20260102T030405Z-0a1b2c"


def runs(out: Path) -> list[str]:
    return sorted(folder.name.removeprefix("run=") for folder in (out / "bucket=audited").glob("run=*"))


@pytest.mark.parametrize("event", [{}, NIGHT], ids=["request", "schedule"])
async def test_event_that_comes_four_times_makes_one_run(
    stub: StubServer, tmp_path: Path, event: Mapping[str, Any]
) -> None:
    fill(stub, "audited")
    me, service = Account(900.0), function(stub, tmp_path)
    around = me.around(request="request-1")
    answers = await asyncio.gather(*(service.handle(event, around) for _ in range(3)))
    answers.append(await service.handle(event, around))
    (summary,) = [summary for answer in answers for summary in answer["runs"]]
    assert (summary["complete"], summary["coverage"]["listed"]) == (True, OBJECTS)
    assert runs(tmp_path) == [summary["run"]]
    left = [sentence for answer in answers for sentence in answer.get("left", [])]
    assert [sentence.rpartition(": ")[2] for sentence in left] == ["this one stops"] * 2 + [
        "there is nothing to resume"
    ]
    assert stub.count("GetObjectAcl") == OBJECTS
    assert (me.metric("RunsComplete"), me.metric("RunsFailed"), me.messages) == (1, 0, [])
    other = {**NIGHT, "time": "2026-01-03T03:04:05Z"} if event else {}
    (next_night,) = (await service.handle(other, me.around(request="request-2")))["runs"]
    assert next_night["run"] != summary["run"]
    again = await service.handle(event, around)
    assert again == {"runs": [], "left": [f"run {summary['run']} is complete: there is nothing to resume"]}


def test_run_of_a_schedule_has_its_time_whoever_delivers_it() -> None:
    target, environ = Target("audited"), {"AUDITOR_BUCKETS": "audited"}
    first, second = (read_event({**NIGHT, "id": name}, environ, request=name).run_id(target) for name in ("1", "2"))
    assert first == second
    assert first.startswith("20260102T030405Z-")
    assert read_event(NIGHT, environ).run_id(Target("other")) != first
    assert read_event({**NIGHT, "resources": ["another schedule"]}, environ).run_id(target) != first


def claim(out: Path, run: str, seconds: float, *, hop: int = 0, passed: bool = False, prefix: str = "") -> None:
    """Leave the claim of another invocation, which ends after so many seconds, on a run that has not ended."""
    holder = {"run": run, "hop": hop, "request": "another", "until": time.time() + seconds}
    running = {
        "format": 1,
        "holder": holder | ({"passed": True, "fruitless": 0} if passed else {}),
        "runs": {prefix: {"run": run, "ended": False}},
    }
    LocalStore(out).put("bucket=audited/running.json", json.dumps(running).encode())


async def test_second_start_waits_until_the_first_has_ended(stub: StubServer, tmp_path: Path) -> None:
    fill(stub, "audited")
    claim(tmp_path, RUN, 900.0, prefix="other/")
    me, service = Account(900.0, poll=0.05), function(stub, tmp_path)
    asked: list[object] = []

    def end() -> None:
        asked.extend(stub.calls)
        claim(tmp_path, RUN, -1.0, prefix="other/")

    asyncio.get_running_loop().call_later(0.5, end)
    with logged() as lines:
        (summary,) = (await service.handle({}, me.around()))["runs"]
    assert summary["complete"]
    assert asked == []
    assert f"s3://audited waits: run {RUN} has the bucket" in lines[0]["message"]


async def test_start_that_waited_its_whole_time_is_handed_on_as_the_same_start(
    stub: StubServer, tmp_path: Path
) -> None:
    fill(stub, "audited")
    claim(tmp_path, RUN, 900.0, prefix="other/")
    me, service = replace(near(), poll=0.05), function(stub, tmp_path)
    asyncio.get_running_loop().call_later(0.5, me.deadline.come)
    assert await service.handle(NIGHT, me.around()) == {"runs": []}
    (event,) = me.events
    assert event["run"].startswith("20260102T030405Z-")
    assert me.metric("RunsHandedOn") == 0
    asyncio.get_running_loop().call_later(0.5, me.deadline.come)
    with pytest.raises(RunError, match="s3://audited did not start: "):
        await service.handle(NIGHT, me.around(hands_on=False))
    claim(tmp_path, RUN, -1.0, prefix="other/")
    summary = await ended(me, service)
    assert (summary["run"], summary["complete"]) == (event["run"], True)


async def test_run_of_a_killed_invocation_is_taken_up_unless_it_is_too_old(stub: StubServer, tmp_path: Path) -> None:
    """Its claim ends with its time. A run that was passed on is taken up too if the hop never came."""
    _, _, before = await first_hop(stub, tmp_path / "first")
    for age, passed, taken in ((60.0, False, True), (60.0, True, True), (OLDEST + 60.0, False, False)):
        out, run = tmp_path / f"{age} {passed}", new_run_id(datetime.now(UTC) - timedelta(seconds=age), b"abc")
        folder = out / "bucket=audited" / f"run={run}"
        shutil.copytree(tmp_path / "first" / "bucket=audited" / f"run={before}", folder)
        for file in folder.rglob("*.json"):
            file.write_text(file.read_text().replace(before, run))
        claim(out, run, -1.0, passed=passed)
        (summary,) = (await function(stub, out).handle({}, Account(900.0).around()))["runs"]
        assert (summary["complete"], summary["run"] == run) == (True, taken), (age, passed)


async def test_second_start_within_a_second_is_finished_by_its_hop(stub: StubServer, tmp_path: Path) -> None:
    newest = new_run_id(datetime.now(UTC) + timedelta(seconds=60), b"0" * 3)
    running = {"format": 1, "runs": {"": {"run": newest, "ended": True}}}
    LocalStore(tmp_path).put("bucket=audited/running.json", json.dumps(running).encode())
    me, service, run = await first_hop(stub, tmp_path)
    assert run > newest
    (last,) = (await service.handle(me.events[-1], Account(900.0).around()))["runs"]
    assert (last["run"], last["complete"], last["coverage"]["listed"]) == (run, True, OBJECTS)
    assert runs(tmp_path) == [run]


async def first_hop(stub: StubServer, out: Path) -> tuple[Account, AuditFunction, str]:
    fill(stub, "audited")
    me, service = near(), function(stub, out)
    stub.faults = [silence_from(me, "030")]
    (first,) = (await service.handle({}, me.around()))["runs"]
    assert first["coverage"]["listed"] == 30
    stub.faults = []
    return me, service, first["run"]


async def test_hop_under_other_rules_ends_the_run_with_a_sentence_and_begins_anew(
    stub: StubServer, tmp_path: Path
) -> None:
    me, service, run = await first_hop(stub, tmp_path)
    newer = AuditFunction({**service._environ, "AUDITOR_TRUSTED": "f" * 64})
    event = me.events.pop()
    with logged() as lines:
        (summary,) = (await newer.handle(event, me.around()))["runs"]
    assert summary["run"] != run
    assert (summary["complete"], summary["coverage"]["listed"]) == (True, OBJECTS)
    assert audited(tmp_path, summary["run"]) == [f"{number:03}" for number in range(OBJECTS)]
    (warning,) = [line["message"] for line in lines if line["level"] == "WARNING"]
    assert f"run {run} ends unfinished, and a new run begins: run {run} began with other rules" in warning
    again = await newer.handle(event, me.around())
    assert again["runs"] == []
    assert runs(tmp_path) == sorted([run, summary["run"]])
    with pytest.raises(RunChanged, match="start a new run"):  # a person named the run
        await newer.handle({"bucket": "audited", "run": run}, me.around())


async def test_run_with_a_damaged_checkpoint_is_not_taken_up_for_ever(stub: StubServer, tmp_path: Path) -> None:
    me, service, run = await first_hop(stub, tmp_path)
    (tmp_path / "bucket=audited" / f"run={run}" / "checkpoint/00000.json").write_text("{")
    (summary,) = (await service.handle(me.events.pop(), me.around()))["runs"]
    assert summary["run"] != run
    assert summary["coverage"]["listed"] == OBJECTS


async def test_end_that_nobody_told_is_told_by_the_next_hop_once(stub: StubServer, tmp_path: Path) -> None:
    me, service, run = await first_hop(stub, tmp_path)
    stub.put("audited", "key", b"x", deny={"acl"})
    event = me.events.pop()
    (summary,) = (await service.handle(event, me.around()))["runs"]
    assert (me.metric("RunsComplete"), len(me.messages)) == (1, 1)
    # As if the invocation had been killed between the summary and the alert.
    path = tmp_path / "bucket=audited" / "running.json"
    found = json.loads(path.read_text())
    found["runs"][""]["ended"] = False
    path.write_text(json.dumps(found))
    for _ in range(2):
        left = await service.handle(event, me.around())
        assert left == {"runs": [], "left": [f"run {run} is complete: there is nothing to resume"]}
        assert (me.metric("RunsComplete"), len(me.messages)) == (2, 2)
    assert summary["run"] == run


async def test_hop_that_is_delivered_twice_at_once_is_worked_on_once(stub: StubServer, tmp_path: Path) -> None:
    me, service, run = await first_hop(stub, tmp_path)
    event, asked = me.events.pop(), stub.count("GetObjectAcl")
    answers = await asyncio.gather(*(service.handle(event, Account(900.0).around()) for _ in range(2)))
    ended_one, left = sorted(answers, key=lambda answer: -len(answer["runs"]))
    (summary,) = ended_one["runs"]
    assert (summary["run"], summary["complete"], summary["coverage"]["listed"]) == (run, True, OBJECTS)
    assert (left["runs"], "another process" in left["left"][0]) == ([], True)
    assert stub.count("GetObjectAcl") - asked == OBJECTS - 30
    assert audited(tmp_path, run) == [f"{number:03}" for number in range(OBJECTS)]
