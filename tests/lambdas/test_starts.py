"""Start events that come more than once, starts at the same time, and runs that an earlier start left unfinished."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import RunChanged, RunError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.event import read_event, run_of
from auditor.lambdas.lease import OLDEST
from auditor.model.target import Target
from auditor.runs.paths import new_run_id
from auditor.runs.stores.local import LocalStore
from tests.lambdas.test_event import SCHEDULE
from tests.lambdas.test_stall import OBJECTS, audited, ended, fill, function, near, silence_from
from tests.support.function_account import Account
from tests.support.log_lines import logged
from tests.support.servers.stub import StubServer
from tests.support.state_machine import run_machine

NIGHT = {**SCHEDULE, "time": "2026-01-02T03:04:05Z"}
RUN = "20260102T030405Z-0a1b2c"


def runs(out: Path) -> list[str]:
    return sorted(folder.name.removeprefix("run=") for folder in (out / "bucket=audited").glob("run=*"))


@pytest.mark.parametrize("event", [{}, NIGHT], ids=["request", "schedule"])
async def test_event_that_comes_four_times_makes_one_run(
    stub: StubServer, tmp_path: Path, event: Mapping[str, Any]
) -> None:
    """Also after another run of the bucket. The state machine waits for the invocation that came first."""
    fill(stub, "audited")
    me, service = Account(900.0), function(stub, tmp_path)
    around = me.around(request="request-1")
    answers = await asyncio.gather(*(service.handle(event, around) for _ in range(3)))
    answers.append(await service.handle(event, around))
    (summary,) = [summary for answer in answers for summary in answer["runs"]]
    assert (summary["complete"], summary["coverage"]["listed"]) == (True, OBJECTS)
    left = [sentence for answer in answers for sentence in answer.get("left", [])]
    assert [sentence.rpartition(": ")[2] for sentence in left] == ["this one stops"] * 2 + [
        "there is nothing to do for this event"
    ]
    assert [given["start"] for given in me.events] == [me.events[0]["start"]] * 2
    other = {**NIGHT, "time": "2026-01-03T03:04:05Z"} if event else {}
    (next_night,) = (await service.handle(other, me.around(request="request-2")))["runs"]
    assert next_night["run"] != summary["run"]
    again = await service.handle(event, around)
    assert (again["runs"], "has ended" in again["left"][0]) == ([], True)
    done = await run_machine(lambda given: service.handle(given, me.around()), me.events[0])
    assert (done["next"], done["runs"][0]["run"]) == ("complete", summary["run"])
    assert runs(tmp_path) == sorted([summary["run"], next_night["run"]])
    assert stub.count("GetObjectAcl") == 2 * OBJECTS
    assert (me.metric("RunsComplete"), me.metric("RunsFailed"), me.messages) == (2, 0, [])


def test_start_of_a_schedule_has_its_time_whoever_delivers_it() -> None:
    target, environ = Target("audited"), {"AUDITOR_BUCKETS": "audited"}
    first, second = (read_event({**NIGHT, "id": name}, environ, request=name).start_id for name in ("1", "2"))
    assert first == second
    assert first.startswith("20260102T030405Z-")
    assert read_event({**NIGHT, "resources": ["another schedule"]}, environ).start_id != first
    assert run_of(first, target).startswith("20260102T030405Z-")
    assert run_of(first, Target("other")) != run_of(first, target)


def lease(out: Path, run: str, seconds: float, *, prefix: str = "") -> None:
    """Leave the lease of another start, which ends after so many seconds, on a run that has not ended."""
    found = {"format": 1, "run": run, "start": RUN, "until": time.time() + seconds, "newest": {prefix: run}}
    LocalStore(out).put("bucket=audited/lease.json", json.dumps(found).encode())


async def test_second_start_on_a_bucket_waits_in_the_machine_and_runs(stub: StubServer, tmp_path: Path) -> None:
    fill(stub, "audited")
    lease(tmp_path, RUN, 900.0, prefix="other/")
    me, service = Account(900.0), function(stub, tmp_path)
    with logged() as lines:
        answer = await service.handle(NIGHT, me.around())
    assert (answer["runs"], len(answer["executions"])) == ([], 1)
    assert f"s3://audited waits: run {RUN} has the bucket" in lines[0]["message"]
    assert stub.calls == []
    handle = lambda given: service.handle(given, me.around())  # noqa: E731 - each invocation has a context
    event = {**me.events[0], "start": new_run_id(datetime.now(UTC), b"abc")}  # a start of today may wait
    done = await run_machine(handle, event)
    assert (done["next"], stub.calls) == ("wait", [])
    assert f"run {RUN} has the bucket" in done["left"][0]
    late = await run_machine(handle, me.events[0])
    assert late["next"] == "incomplete", "a start waits for a day"
    assert "s3://audited was not audited: run" in me.messages[0]
    lease(tmp_path, RUN, -1.0, prefix="other/")
    done = await run_machine(handle, event)
    assert (done["next"], done["runs"][0]["coverage"]["listed"]) == ("complete", OBJECTS)


async def test_run_of_a_killed_invocation_is_taken_up_unless_it_is_too_old(stub: StubServer, tmp_path: Path) -> None:
    _, _, before = await first_invocation(stub, tmp_path / "first")
    for age, taken in ((60.0, True), (OLDEST + 60.0, False)):
        out, run = tmp_path / f"{age}", new_run_id(datetime.now(UTC) - timedelta(seconds=age), b"abc")
        folder = out / "bucket=audited" / f"run={run}"
        shutil.copytree(tmp_path / "first" / "bucket=audited" / f"run={before}", folder)
        for file in folder.rglob("*.json"):
            file.write_text(file.read_text().replace(before, run))
        lease(out, run, -1.0)
        (summary,) = (await function(stub, out).handle({}, Account(900.0).around()))["runs"]
        assert (summary["complete"], summary["run"] == run) == (True, taken), age


async def test_second_start_within_a_second_is_finished_by_the_machine(stub: StubServer, tmp_path: Path) -> None:
    newest = new_run_id(datetime.now(UTC) + timedelta(seconds=60), b"0" * 3)
    lease(tmp_path, newest, -1.0)
    (tmp_path / "bucket=audited" / f"run={newest}").mkdir()
    me, service, run = await first_invocation(stub, tmp_path, {"bucket": "audited", "prefix": "0"})
    last = await ended(me, service)
    assert (last["run"], last["complete"], last["coverage"]["listed"]) == (run, True, OBJECTS)


async def first_invocation(
    stub: StubServer, out: Path, event: Mapping[str, Any] | None = None
) -> tuple[Account, AuditFunction, str]:
    fill(stub, "audited")
    me, service = near(), function(stub, out)
    stub.faults = [silence_from(me, "030")]
    (first,) = (await service.handle(event or {}, me.around()))["runs"]
    assert first["coverage"]["listed"] == 30
    stub.faults = []
    return me, service, first["run"]


async def test_a_change_of_rules_ends_the_run_with_a_sentence_and_a_new_one_begins(
    stub: StubServer, tmp_path: Path
) -> None:
    me, service, run = await first_invocation(stub, tmp_path)
    newer = AuditFunction({**service._environ, "AUDITOR_TRUSTED": "f" * 64})
    with logged() as lines:
        done = await run_machine(lambda given: newer.handle(given, me.around()), me.events.pop())
    (summary,) = done["runs"]
    assert summary["run"] != run
    assert (summary["complete"], summary["coverage"]["listed"]) == (True, OBJECTS)
    assert audited(tmp_path, summary["run"]) == [f"{number:03}" for number in range(OBJECTS)]
    (warning,) = [line["message"] for line in lines if line["level"] == "WARNING"]
    assert f"run {run} ends unfinished, and a new run begins: run {run} began with other rules" in warning
    assert runs(tmp_path) == sorted([run, summary["run"]])
    with pytest.raises(RunChanged, match="start a new run"):  # a person named the run
        await newer.handle({"bucket": "audited", "run": run}, me.around())


async def test_run_with_a_damaged_checkpoint_is_not_taken_up_for_ever(stub: StubServer, tmp_path: Path) -> None:
    me, service, run = await first_invocation(stub, tmp_path)
    (tmp_path / "bucket=audited" / f"run={run}" / "checkpoint/00000.json").write_text("{")
    summary = await ended(me, service)
    assert summary["run"] != run
    assert summary["coverage"]["listed"] == OBJECTS


async def test_end_that_nobody_told_is_told_by_the_retry_once(stub: StubServer, tmp_path: Path) -> None:
    fill(stub, "audited")
    stub.put("audited", "key", b"x", deny={"acl"})
    me, service = Account(900.0), function(stub, tmp_path)
    (summary,) = (await service.handle(NIGHT, me.around()))["runs"]
    assert (me.metric("RunsComplete"), len(me.messages)) == (1, 1)
    # As if the invocation had been killed between the summary and the alert.
    (path,) = (tmp_path / "starts").glob("*-state.json")
    found = json.loads(path.read_text())
    path.write_text(json.dumps(found | {"ended": False, "targets": []}))
    asked = len(stub.calls)
    (again,) = (await service.handle(NIGHT, me.around()))["runs"]
    assert again == summary
    assert (me.metric("RunsComplete"), len(me.messages), len(stub.calls)) == (2, 2, asked)
    left = await service.handle(NIGHT, me.around())
    assert (left["runs"], "has ended" in left["left"][0]) == ([], True)
    assert (me.metric("RunsComplete"), len(me.messages)) == (2, 2)
    named = await service.handle({"bucket": "audited", "run": summary["run"]}, me.around())
    assert named == {"runs": [], "left": [f"run {summary['run']} is complete: there is nothing to resume"]}
    assert len(me.messages) == 2


async def test_damaged_state_of_a_start_is_one_sentence(stub: StubServer, tmp_path: Path) -> None:
    fill(stub, "audited")
    me, service = Account(900.0), function(stub, tmp_path)
    await service.handle(NIGHT, me.around())
    (path,) = (tmp_path / "starts").glob("*-state.json")
    for text in ("{", '{"format": 1, "start": 7}', "[]"):
        path.write_text(text)
        with pytest.raises(RunError, match=r"-state\.json is damaged .*: move it away"):
            await service.handle(NIGHT, me.around())
