"""Start events that come more than once, starts at the same time, and runs that an earlier start left unfinished."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import OutputError, RunChanged, RunError, RunTaken
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.claims import FOR_NEXT_HOP, OLDEST, BucketBusy, Claim, Claims
from auditor.lambdas.event import read_event
from auditor.model.target import Target
from auditor.runs.paths import new_run_id
from auditor.runs.stores.base import Change
from auditor.runs.stores.local import LocalStore
from tests.lambdas.test_event import SCHEDULE
from tests.lambdas.test_handover import Account
from tests.lambdas.test_stall import OBJECTS, audited, ended, fill, function, near, silence_from
from tests.lambdas.test_two_deliveries import Account as Aws
from tests.lambdas.test_two_deliveries import account  # noqa: F401 - a fixture
from tests.support.log_lines import logged
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import ACCESS_DENIED

NIGHT = {**SCHEDULE, "time": "2026-01-02T03:04:05Z"}
RUN, OTHER = "20260102T030405Z-0a1b2c", "20260102T030406Z-ffffff"


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


@pytest.mark.parametrize("event", [{}, NIGHT], ids=["request", "schedule"])
@pytest.mark.parametrize("between", [1, 3])
async def test_event_that_comes_again_after_other_runs_of_the_bucket_makes_no_run(
    stub: StubServer, tmp_path: Path, event: Mapping[str, Any], between: int
) -> None:
    fill(stub, "audited")
    me, service = Account(900.0), function(stub, tmp_path)
    (first,) = (await service.handle(event, me.around(request="request-1")))["runs"]
    others = [
        (await service.handle({"bucket": "audited"}, me.around(request=f"other-{number}")))["runs"][0]["run"]
        for number in range(between)
    ]
    again = await service.handle(event, me.around(request="request-1"))
    assert again == {"runs": [], "left": [f"run {first['run']} is complete: there is nothing to resume"]}
    assert runs(tmp_path) == sorted([first["run"], *others])
    tomorrow = {**NIGHT, "time": "2026-01-03T03:04:05Z"} if event else {}
    (following,) = (await service.handle(tomorrow, me.around(request="request-2")))["runs"]
    assert runs(tmp_path) == sorted([first["run"], *others, following["run"]])


async def test_event_that_comes_again_tells_the_untold_end_of_the_run_between_and_makes_no_run(
    stub: StubServer, tmp_path: Path
) -> None:
    fill(stub, "audited")
    me, service = Account(900.0), function(stub, tmp_path)
    (first,) = (await service.handle(NIGHT, me.around(request="request-1")))["runs"]
    (between,) = (await service.handle({}, me.around(request="request-2")))["runs"]
    path = tmp_path / "bucket=audited" / "running.json"
    found = json.loads(path.read_text())
    found["runs"][""]["ended"] = False
    path.write_text(json.dumps(found))
    for _ in range(2):
        again = await service.handle(NIGHT, me.around(request="request-1"))
        assert again["left"] == [f"run {first['run']} is complete: there is nothing to resume"]
        assert me.metric("RunsComplete") == 3
    assert runs(tmp_path) == sorted([first["run"], between["run"]])


async def test_event_that_comes_four_times_at_once_makes_one_run_in_a_real_store(account: Aws) -> None:  # noqa: F811
    event = {"bucket": account.bucket}
    answers = await asyncio.gather(*(account.deliver(event, 900.0, request="request-1") for _ in range(4)))
    (summary,) = [summary for answer in answers for summary in answer["runs"]]
    assert summary["complete"]
    account.check(summary)
    assert account.count("RunsComplete") == 1


def test_run_of_a_schedule_has_its_time_whoever_delivers_it() -> None:
    target, environ = Target("audited"), {"AUDITOR_BUCKETS": "audited"}
    first, second = (read_event({**NIGHT, "id": name}, environ, request=name).run_id(target) for name in ("1", "2"))
    assert first == second
    assert first.startswith("20260102T030405Z-")
    assert read_event(NIGHT, environ).run_id(Target("other")) != first
    assert read_event({**NIGHT, "resources": ["another schedule"]}, environ).run_id(target) != first


async def test_second_start_waits_until_the_first_has_ended(stub: StubServer, tmp_path: Path) -> None:
    fill(stub, "audited")
    store = LocalStore(tmp_path)
    first = Claims(store, Target("audited", "other/"), 0)
    first.take(RUN, follows=False, seconds=900.0)
    me, service = Account(900.0, poll=0.05), function(stub, tmp_path)
    asked: list[object] = []

    def end() -> None:
        asked.extend(stub.calls)
        first.give_back(RUN, ended=True)

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
    first = Claims(LocalStore(tmp_path), Target("audited", "other/"), 0)
    first.take(RUN, follows=False, seconds=900.0)
    me, service = replace(near(), poll=0.05), function(stub, tmp_path)
    asyncio.get_running_loop().call_later(1.0, me.deadline.come)
    assert await service.handle(NIGHT, me.around()) == {"runs": []}
    (event,) = me.events
    assert event["run"].startswith("20260102T030405Z-")
    assert me.metric("RunsHandedOn") == 0
    asyncio.get_running_loop().call_later(1.0, me.deadline.come)
    with pytest.raises(RunError, match="s3://audited did not start: "):
        await service.handle(NIGHT, me.around(hands_on=False))
    first.give_back(RUN, ended=True)
    summary = await ended(me, service)
    assert (summary["run"], summary["complete"]) == (event["run"], True)


class Clock:
    now = 1767323045.0  # 2026-01-02T03:04:05Z

    def __call__(self) -> float:
        return self.now


def test_claim_ends_with_the_time_of_its_invocation(tmp_path: Path) -> None:
    """The invocation was killed: nobody gave the claim back."""
    clock, store, target = Clock(), LocalStore(tmp_path), Target("audited")
    Claims(store, target, 0, clock).take(RUN, follows=False, seconds=900.0)
    later = Claims(store, target, 0, clock)
    with pytest.raises(BucketBusy):
        later.take(OTHER, follows=False, seconds=900.0)
    clock.now += 906
    assert later.take(OTHER, follows=False, seconds=900.0).run == RUN


def test_run_that_is_too_old_is_not_taken_up(tmp_path: Path) -> None:
    clock, store, target = Clock(), LocalStore(tmp_path), Target("audited")
    Claims(store, target, 0, clock).take(RUN, follows=False, seconds=900.0)
    clock.now += OLDEST
    later = Claims(store, target, 0, clock)
    assert later.take(OTHER, follows=False, seconds=900.0).run == RUN
    later.give_back(RUN)
    clock.now += 1
    assert later.take(OTHER, follows=False, seconds=900.0).run == OTHER


def test_run_of_the_same_second_sorts_after_the_one_before_it(tmp_path: Path) -> None:
    """Its hop would otherwise leave it unfinished, in favour of a run that only seems newer."""
    clock, store, target = Clock(), LocalStore(tmp_path), Target("audited")
    first = Claims(store, target, 0, clock)
    first.take(RUN, follows=False, seconds=900.0)
    first.give_back(RUN, ended=True)
    wanted, later = "20260102T030405Z-000001", "20260102T030406Z-000001"
    second = Claims(store, target, 0, clock)
    assert second.take(wanted, follows=False, seconds=900.0) == Claim(later, False)
    second.give_back(later, passed_on=True)
    assert Claims(store, target, 1, clock).take(later, follows=True, seconds=900.0).run == later
    with pytest.raises(RunTaken, match="running in another"):
        Claims(store, target, 0, clock).take(wanted, follows=False, seconds=900.0)  # the event comes again


async def test_second_start_within_a_second_is_finished_by_its_hop(stub: StubServer, tmp_path: Path) -> None:
    newest = new_run_id(datetime.now(UTC) + timedelta(seconds=60), b"0" * 3)
    running = {"format": 1, "runs": {"": {"run": newest, "ended": True}}}
    LocalStore(tmp_path).put("bucket=audited/running.json", json.dumps(running).encode())
    me, service, run = await first_hop(stub, tmp_path)
    assert run > newest
    (last,) = (await service.handle(me.events[-1], Account(900.0).around()))["runs"]
    assert (last["run"], last["complete"], last["coverage"]["listed"]) == (run, True, OBJECTS)
    assert runs(tmp_path) == [run]


def test_next_hop_waits_for_the_one_before_it_and_not_for_its_own_twin(tmp_path: Path) -> None:
    clock, store, target = Clock(), LocalStore(tmp_path), Target("audited")
    Claims(store, target, 0, clock).take(RUN, follows=False, seconds=9.0)  # could not give the claim back
    hop, twin = Claims(store, target, 1, clock), Claims(store, target, 1, clock)
    with pytest.raises(BucketBusy):
        hop.take(RUN, follows=True, seconds=900.0)
    clock.now += 15
    assert hop.take(RUN, follows=True, seconds=900.0).run == RUN
    with pytest.raises(Exception, match="running in another process"):
        twin.take(RUN, follows=True, seconds=900.0)


def test_start_that_waited_for_a_hop_that_never_came_goes_on_with_its_run(tmp_path: Path) -> None:
    clock, store, target = Clock(), LocalStore(tmp_path), Target("audited")
    lost = Claims(store, target, 0, clock)
    lost.take(RUN, follows=False, seconds=900.0)
    lost.give_back(RUN, passed_on=True)
    for hop in (0, 1):
        with pytest.raises(BucketBusy):
            Claims(store, target, hop, clock).take(OTHER, follows=bool(hop), seconds=900.0)
    clock.now += FOR_NEXT_HOP
    waited, hop_after = Claims(store, target, 2, clock), Claims(store, target, 3, clock)
    assert waited.take(OTHER, follows=True, seconds=900.0) == Claim(RUN, True, untold=True)
    waited.give_back(RUN, passed_on=True)
    assert hop_after.take(RUN, follows=True, seconds=900.0).run == RUN
    assert hop_after.take(OTHER, follows=True, seconds=900.0, anew=True).run == OTHER
    hop_after.give_back(OTHER, passed_on=True)
    assert Claims(store, target, 4, clock).take(OTHER, follows=True, seconds=900.0) == Claim(OTHER, True, untold=True)


def test_claim_of_another_is_not_given_back(tmp_path: Path) -> None:
    clock, store, target = Clock(), LocalStore(tmp_path), Target("audited")
    killed, later = Claims(store, target, 0, clock), Claims(store, target, 0, clock)
    killed.take(RUN, follows=False, seconds=1.0)
    clock.now += 10
    later.take(RUN, follows=True, seconds=900.0)
    before = store.get("bucket=audited/running.json")
    killed.give_back(RUN, ended=True)
    assert store.get("bucket=audited/running.json") == before


def test_claim_that_cannot_be_given_back_fails_no_run(tmp_path: Path) -> None:
    class Silent(LocalStore):
        def update_json(self, path: str, change: Change) -> None:
            raise OutputError("the store does not answer")

    clock, target = Clock(), Target("audited")
    mine = Claims(LocalStore(tmp_path), target, 0, clock)
    mine.take(RUN, follows=False, seconds=900.0)
    with logged() as lines:
        Claims(Silent(tmp_path), target, 0, clock, request=mine.request).give_back(RUN, ended=True)
    assert [line["message"] for line in lines] == [
        "the claim on the bucket stays until the deadline: the store does not answer"
    ]
    clock.now += 906.0
    told_again = Claims(LocalStore(tmp_path), target, 0, clock).take(OTHER, follows=False, seconds=900.0)
    assert told_again == Claim(RUN, True, untold=True)


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


async def test_run_stays_the_newest_when_the_next_night_fails_before_it_goes_on(
    stub: StubServer, tmp_path: Path
) -> None:
    me, service, run = await first_hop(stub, tmp_path)
    Claims(LocalStore(tmp_path), Target("audited"), 1).take(run, follows=True, seconds=-10.0)  # that hop was killed
    stub.faults = [ACCESS_DENIED]
    with pytest.raises(RunError, match=f"s3://audited, run {run}: .* the next start resumes it"):
        await service.handle({}, me.around())
    stub.faults = []
    (summary,) = (await service.handle({}, me.around()))["runs"]
    assert (summary["run"], summary["coverage"]["listed"]) == (run, OBJECTS)


async def test_run_with_a_damaged_checkpoint_is_not_taken_up_for_ever(stub: StubServer, tmp_path: Path) -> None:
    me, service, run = await first_hop(stub, tmp_path)
    (tmp_path / "bucket=audited" / f"run={run}" / "state.json").write_text("{")
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
