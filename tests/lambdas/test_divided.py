"""The steps of the state machine: plan, range until it is complete, summarize. Together they are one audit."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.audit.audit_run import RangeAudit
from auditor.config.settings import Settings
from auditor.errors import RunError, RunTaken, UsageError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.divided import DividedFunction
from auditor.lambdas.handover import MOST_FRUITLESS
from auditor.model.target import Target
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from tests.lambdas.test_handover import Account
from tests.support.schemas import valid
from tests.support.servers.stub import StubServer

OBJECTS = 90
RANGES = 4
ODD = ("a\nb", "a//b", "a%2Fb", "café", "ünder", "\U0001f600", " lead", "z+z", "..")


def environ_of(stub: StubServer, out: Path, **more: str) -> dict[str, str]:
    return {
        "AUDITOR_BUCKETS": "audited",
        "AUDITOR_ENDPOINT_URL": stub.url,
        "AUDITOR_OUT": str(out),
        "AUDITOR_CONCURRENCY": "1",
        "AUDITOR_MAP_RANGES": str(RANGES),
        "AUDITOR_MAP_CONCURRENCY": "2",
        **more,
    }


@pytest.fixture
def filled(stub: StubServer) -> StubServer:
    for number in range(OBJECTS):
        stub.put("audited", f"{number:03}", b"x", acl="public-read" if number == 7 else "private")
    for key in ODD:
        stub.put("audited", key, b"x")
    return stub


@pytest.fixture
def service(filled: StubServer, tmp_path: Path) -> AuditFunction:
    return AuditFunction(environ_of(filled, tmp_path / "divided"))


async def planned(service: AuditFunction, **more: Any) -> dict[str, Any]:
    event = {"action": "plan", "event": {"bucket": "audited", **more}}
    answer = dict(json.loads(json.dumps(await service.handle(event, Account().around()))))
    valid("audit-event", event)
    valid("audit-step-result", answer)
    return answer


def step(plan: dict[str, Any], action: str, **more: Any) -> dict[str, Any]:
    return {"action": action, "event": plan["event"], "claim": plan["claim"], **more}


async def ranged(
    service: AuditFunction | DividedFunction, plan: dict[str, Any], range_id: str, account: Account
) -> list[dict[str, Any]]:
    """The answers of the invocations until the range is complete."""
    answers: list[dict[str, Any]] = []
    fruitless = 0
    while not answers or not answers[-1]["complete"]:
        event = step(plan, "range", range=range_id, at_once=plan["at_once"], fruitless=fruitless)
        answers.append(await service.handle(event, account.around()))
        valid("audit-event", event)
        valid("audit-step-result", answers[-1])
        fruitless = answers[-1]["fruitless"]
    return answers


async def whole(service: AuditFunction, account: Account) -> dict[str, Any]:
    """The summary of a whole divided audit."""
    plan = await planned(service)
    for range_id in plan["ranges"]:
        await ranged(service, plan, range_id, account)
    answer = await service.handle(step(plan, "summarize"), account.around())
    assert answer["complete"]
    valid("audit-step-result", json.loads(json.dumps(answer)))
    (summary,) = answer["runs"]
    return dict(summary)


def lines(out: Path, run: str) -> Iterator[tuple[str, str | None, str]]:
    """Key, ETag and verdict of each object of a run."""
    with open_store(str(out)) as store:
        for line in RunReader(store, "audited", run).objects():
            yield line.key, line.etag, str(line.verdict)


async def test_the_steps_add_up_to_what_one_function_finds(
    service: AuditFunction, filled: StubServer, tmp_path: Path
) -> None:
    account = Account()
    divided = await whole(service, account)
    alone = AuditFunction(environ_of(filled, tmp_path / "alone"))
    (single,) = (await alone.handle({}, Account().around()))["runs"]
    for name in ("coverage", "verdicts", "findings", "rules_undecided"):
        assert divided[name] == single[name], name
    assert [*lines(tmp_path / "divided", divided["run"])] == [*lines(tmp_path / "alone", single["run"])]
    latest = json.loads((tmp_path / "divided" / "bucket=audited" / "latest.json").read_text())
    assert latest["runs"]["current"] == {"": divided["run"]}
    assert account.metric("RunsComplete") == 1
    assert account.metric("Objects") == OBJECTS + len(ODD)
    assert len(account.messages) == 1  # the public object is told once
    running = json.loads((tmp_path / "divided" / "bucket=audited" / "running.json").read_text())
    assert running["holder"] is None
    assert (running["runs"][""]["run"], running["runs"][""]["ended"]) == (divided["run"], True)


async def test_a_range_goes_on_over_invocations_and_only_its_last_one_says_complete(
    service: AuditFunction, filled: StubServer
) -> None:
    plan = await planned(service)
    account = Account()
    filled.faults = [account.deadline.at("003", "006", "009")]
    answers = [answer for one in plan["ranges"] for answer in await ranged(service, plan, one, account)]
    assert [answer["complete"] for answer in answers].count(True) == RANGES
    assert len(answers) == RANGES + 3
    assert account.events == []  # the state machine sends the event again, the function does not
    answer = await service.handle(step(plan, "summarize"), account.around())
    assert answer["runs"][0]["coverage"]["listed"] == OBJECTS + len(ODD)


async def test_a_range_that_never_comes_further_fails(service: AuditFunction, filled: StubServer) -> None:
    plan, account = await planned(service), Account()

    def at_each_call(operation: str, key: str, nth: int) -> None:
        account.deadline.come()

    filled.faults = [at_each_call]
    event, fruitless = step(plan, "range", range="00000", at_once=2), []
    for number in range(MOST_FRUITLESS):
        answer = await service.handle({**event, "fruitless": number}, account.around())
        fruitless.append((answer["complete"], answer["fruitless"]))
    assert fruitless == [(False, number + 1) for number in range(MOST_FRUITLESS)]
    with pytest.raises(RunError, match=rf"made no progress in {MOST_FRUITLESS + 1} invocations"):
        await service.handle({**event, "fruitless": MOST_FRUITLESS}, account.around())
    assert account.messages


async def test_a_range_that_is_missing_is_a_hole_and_the_next_start_goes_on_with_the_run(
    service: AuditFunction, tmp_path: Path
) -> None:
    plan, account = await planned(service), Account()
    for range_id in plan["ranges"][:-1]:
        await ranged(service, plan, range_id, account)
    answer = await service.handle(step(plan, "summarize"), account.around())
    assert not answer["complete"]
    (summary,) = answer["runs"]
    assert (summary["complete"], summary["run"]) == (False, plan["event"]["run"])
    assert not (tmp_path / "divided" / "bucket=audited" / "latest.json").exists()
    assert account.metric("RunsIncomplete") == 1
    assert account.messages, "a hole is told"
    again = await planned(service)
    assert again["event"]["run"] == plan["event"]["run"]
    assert again["ranges"] == plan["ranges"][-1:]
    await ranged(service, again, again["ranges"][0], account)
    answer = await service.handle(step(again, "summarize"), account.around())
    assert answer["complete"]
    assert answer["runs"][0]["coverage"]["listed"] == OBJECTS + len(ODD)


async def test_answers_that_are_lost_are_given_again(service: AuditFunction) -> None:
    plan, account = await planned(service), Account()
    for range_id in plan["ranges"]:
        await ranged(service, plan, range_id, account)
        (again,) = await ranged(service, plan, range_id, account)
        assert again["complete"]
    first = await service.handle(step(plan, "summarize"), account.around())
    told = len(account.messages)
    second = await service.handle(step(plan, "summarize"), account.around())
    assert second["runs"] == json.loads(json.dumps(first["runs"]))
    assert len(account.messages) == told, "one end is told once"


async def test_no_start_gets_the_bucket_while_a_function_may_be_at_work_on_a_range(
    service: AuditFunction, tmp_path: Path
) -> None:
    plan, account = await planned(service), Account()
    run = plan["event"]["run"]
    await ranged(service, plan, "00000", account)
    for more in ({"run": run}, {"run": run, "hop": 1}, {}):  # each range at work has a share of the one ceiling
        with pytest.raises(RunError, match=rf"did not start: run {run} has the bucket, until"):
            await planned(service, **more)
    await ranged(service, plan, "00001", account)
    place = tmp_path / "divided" / "bucket=audited" / "running.json"
    running = json.loads(place.read_text())
    running["holder"]["until"] = 0  # the deadline of each function has passed
    place.write_text(json.dumps(running))
    newer = await planned(service, run=run)
    assert newer["ranges"] == plan["ranges"][2:]
    with pytest.raises(RunTaken, match="has the bucket"):
        await service.handle(step(plan, "range", range="00002", at_once=2), account.around())


async def test_a_redriven_range_waits_for_a_function_of_the_failed_attempt(
    service: AuditFunction, filled: StubServer
) -> None:
    plan, account = await planned(service, max_rate=300), Account()
    loop, came, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold(operation: str, key: str, nth: int) -> None:
        loop.call_soon_threadsafe(came.set)
        go_on.wait(60)

    filled.faults = [hold]
    first, redriven = (
        step(plan, "range", range="00000", at_once=2, attempt=attempt) for attempt in ("first", "first, redrive 1")
    )
    valid("audit-event", redriven)
    at_work = asyncio.create_task(service.handle(first, account.around()))
    await came.wait()
    before = len(filled.calls)
    with pytest.raises(RunTaken, match="may be working on range 00000"):
        await service.handle(redriven, account.around())
    with pytest.raises(RunTaken, match="range 00001 waits, because functions may be working on 1 others, of 1"):
        await service.handle({**redriven, "range": "00001", "at_once": 1}, account.around())
    assert len(filled.calls) == before
    assert account.messages == []
    filled.faults = []
    go_on.set()
    assert (await at_work)["complete"]
    assert (await service.handle(redriven, account.around()))["complete"]


async def test_the_shares_of_a_ceiling_never_exceed_it(
    filled: StubServer, service: AuditFunction, tmp_path: Path
) -> None:
    seen: list[float | None] = []

    def noted(run: str, range_id: str, target: Target, settings: Settings, *rest: Any, **more: Any) -> RangeAudit:
        seen.append(settings.max_rate)
        return RangeAudit(run, range_id, target, settings, *rest, **more)

    plan = await planned(service, max_rate=300)
    noting = DividedFunction(environ_of(filled, tmp_path / "divided"), audit_range=noted)
    for range_id in plan["ranges"]:
        await ranged(noting, plan, range_id, Account())
    *two_at_once, alone = (share for share in seen if share is not None)
    assert len(two_at_once) == RANGES - 1
    assert all(0 < 2 * share <= 300 for share in two_at_once)
    assert alone == 300, "the last range has the whole ceiling"


async def test_a_wrong_step_is_refused_in_a_sentence(service: AuditFunction) -> None:
    audited = {"bucket": "audited"}

    async def check(*wrong: tuple[dict[str, Any], str]) -> None:
        for event, word in wrong:
            account = Account()
            with pytest.raises(UsageError, match=word) as refused:
                await service.handle(event, account.around())
            assert (len(str(refused.value)) < 300, account.metric("RunsFailed")) == (True, 1), word

    await check(
        ({"action": "plan"}, "lacks the event of its audit"),
        ({"action": "run", "event": audited}, "give plan, range, summarize"),
        ({"action": "plan", "event": audited, "hop": 1}, "'hop' is not allowed together with an action"),
        ({"action": "plan", "event": {**audited, "start_after": "a"}}, "one whole bucket or prefix"),
        ({"action": "plan", "event": {**audited, "max_calls": 9}}, "max_calls cannot be combined with ranges"),
        ({"action": "range", "event": audited, "range": "00000"}, "names no run"),
        ({"action": "summarize", "event": audited}, "names no run"),
        ({"action": "range", "event": {**audited, "run": "x"}}, "belongs to the action range alone"),
        ({"action": "plan", "event": audited, "at_once": 0}, "not a whole number"),
        ({"action": "plan", "event": audited, "claim": 7}, "not a string"),
        ({"action": "plan", "event": audited, "attempt": 1}, "not a string"),
        ({"action": "range", "event": {"bucket": "another-bucket", "run": "x"}, "range": "../x"}, "is not a run ID"),
    )
    plan = await planned(service)
    known = step(plan, "range", range="00000", at_once=2)
    await check(
        ({**known, "range": "../x"}, r"has no range '\.\./x': give 00000 to 00003"),
        ({**known, "range": "1" * 5000}, "has no range"),
        ({**known, "event": {**plan["event"], "bucket": "b" * 5000}}, "bucket"),
    )


async def test_the_plan_says_how_many_ranges_the_events_ceiling_takes(filled: StubServer, tmp_path: Path) -> None:
    for setting, max_rate, at_once in (("auto", 100.0, 2), ("auto", 8_534.0, 3), ("auto", 30_000, 8), ("7", 2_000, 7)):
        environ = environ_of(filled, tmp_path / f"{setting} {max_rate}", AUDITOR_MAP_CONCURRENCY=setting)
        plan = await planned(AuditFunction(environ), max_rate=max_rate)
        assert plan["at_once"] == at_once, (setting, max_rate)
