"""The steps of the state machine: begin, each range until it has ended, conclude. Together they are one audit."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.audit.limits import rate_share
from auditor.errors import RunError, RunTaken, UsageError
from auditor.lambdas import audit_steps
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.invocation_frame import MOST_FRUITLESS
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from tests.support.function_account import Account
from tests.support.servers.stub import StubServer
from tests.support.state_machine import audit_range, begin, conclude, pairs_of, run_machine, step

OBJECTS = 90
RANGES = 4
ODD = ("a\nb", "a//b", "a%2Fb", "café", "ünder", "\U0001f600", " lead", "z+z", "..")
ALL = OBJECTS + len(ODD)


def environ_of(stub: StubServer, out: Path, **more: str) -> dict[str, str]:
    return {
        "AUDITOR_BUCKETS": "audited",
        "AUDITOR_ENDPOINT_URL": stub.url,
        "AUDITOR_OUT": str(out),
        "AUDITOR_CONCURRENCY": "1",
        "AUDITOR_RANGE_CALLS": str(2 * ALL // RANGES + 1),
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
    return AuditFunction(environ_of(filled, tmp_path / "ranges"))


def handler(service: AuditFunction, account: Account) -> Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]:
    return lambda event: service.handle(event, account.around())


def lines(out: Path, run: str) -> Iterator[tuple[str, str | None, str]]:
    """Key, ETag and verdict of each object of a run."""
    with open_store(str(out)) as store:
        for line in RunReader(store, "audited", run).objects():
            yield line.key, line.etag, str(line.verdict)


def free(out: Path) -> None:
    """End the lease of the bucket, as its time does."""
    place = out / "bucket=audited" / "lease.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"until": 0}))


async def test_the_steps_add_up_to_the_findings_of_one_function(
    service: AuditFunction, filled: StubServer, tmp_path: Path
) -> None:
    account = Account()
    begun = await begin(handler(service, account), {"bucket": "audited"})
    assert [pair["range"] for pair in pairs_of(begun)] == [f"{number:05}" for number in range(RANGES)]
    for pair in pairs_of(begun):
        await audit_range(handler(service, account), begun, pair)
    (divided,) = (await conclude(handler(service, account), begun))["runs"]
    alone = AuditFunction(environ_of(filled, tmp_path / "alone", AUDITOR_RANGE_CALLS=""))
    (single,) = (await alone.handle({}, Account().around()))["runs"]
    for name in ("coverage", "verdicts", "findings", "rules_undecided"):
        assert divided[name] == single[name], name
    assert [*lines(tmp_path / "ranges", divided["run"])] == [*lines(tmp_path / "alone", single["run"])]
    latest = json.loads((tmp_path / "ranges" / "bucket=audited" / "latest.json").read_text())
    assert latest["runs"]["current"] == {"": divided["run"]}
    assert account.metric("RunsComplete") == 1
    assert account.metric("Objects") == ALL
    assert len(account.messages) == 1  # the public object is told once
    assert [kind for kind, _ in account.finished] == ["S3 Audit Finished"]


async def test_a_large_target_is_left_to_the_machine_and_nothing_of_it_is_read(
    service: AuditFunction, filled: StubServer
) -> None:
    account = Account()
    answer = await service.handle({}, account.around(request="one"))
    assert (answer["runs"], len(answer["executions"])) == ([], 1)
    assert (filled.count("GetObjectAcl"), filled.count("HeadObject")) == (0, 0)
    assert account.metric("RunsHandedOn") == 1
    done = await run_machine(handler(service, account), account.events[0])
    (first,) = done["runs"]
    filled.forget()
    await service.handle({}, account.around(request="two"))
    assert filled.requests == [], "the last run says how large the target is"
    done = await run_machine(handler(service, account), account.events[1])
    assert done["runs"][0]["run"] != first["run"]
    assert done["runs"][0]["complete"]


async def test_a_target_of_ranges_is_audited_by_one_function_if_there_is_no_machine(
    service: AuditFunction, filled: StubServer, tmp_path: Path
) -> None:
    account = Account()
    begun = await begin(handler(service, account), {})
    run = pairs_of(begun)[0]["run"]
    free(tmp_path / "ranges")
    (summary,) = (await service.handle({"bucket": "audited", "run": run}, account.around(machine=False)))["runs"]
    assert (summary["run"], summary["complete"], summary["coverage"]["listed"]) == (run, True, ALL)
    with open_store(str(tmp_path / "ranges")) as store:
        assert len(RunReader(store, "audited", run).by_part()) >= RANGES


async def test_a_range_continues_over_invocations_from_its_checkpoint(
    service: AuditFunction, filled: StubServer
) -> None:
    account = Account()
    begun = await begin(handler(service, account), {})
    filled.faults = [account.deadline.at("010", "020")]
    answers = [await audit_range(handler(service, account), begun, pair) for pair in pairs_of(begun)]
    assert max(map(len, answers)) == 3
    assert (await conclude(handler(service, account), begun))["runs"][0]["coverage"]["listed"] == ALL


async def test_a_range_without_progress_fails_after_some_invocations(
    service: AuditFunction, filled: StubServer
) -> None:
    account = Account()
    begun = await begin(handler(service, account), {})
    pair = pairs_of(begun)[0]
    event = {"action": "range", "event": begun["event"], "pair": pair, "at_once": 2}

    def at_once(operation: str, key: str, nth: int) -> None:
        account.deadline.come()

    filled.faults = [at_once]
    for fruitless in range(1, MOST_FRUITLESS + 1):
        answer = await step(handler(service, account), event | {"fruitless": fruitless - 1})
        assert answer == {"again": True, "fruitless": fruitless}
    with pytest.raises(RunError, match="made no progress in 3 invocations"):
        await service.handle(event | {"fruitless": MOST_FRUITLESS}, account.around())
    assert len(account.messages) == 1


async def test_a_range_that_nobody_ended_is_a_hole_and_the_next_start_takes_it_up(
    service: AuditFunction, tmp_path: Path
) -> None:
    account = Account()
    begun = await begin(handler(service, account), {})
    *most, last = pairs_of(begun)
    for pair in most:
        await audit_range(handler(service, account), begun, pair)
    done = await conclude(handler(service, account), begun)
    (summary,) = done["runs"]
    assert (done["next"], summary["complete"], summary["run"]) == ("incomplete", False, last["run"])
    assert not (tmp_path / "ranges" / "bucket=audited" / "latest.json").exists()
    assert account.metric("RunsIncomplete") == 1
    assert account.messages, "a hole is told"
    again = await begin(handler(service, account), {})
    assert again["event"] != begun["event"]
    assert pairs_of(again) == [last]
    await audit_range(handler(service, account), again, last)
    done = await conclude(handler(service, account), again)
    assert (done["next"], done["runs"][0]["coverage"]["listed"]) == ("complete", ALL)


async def test_answers_that_are_lost_are_given_again(service: AuditFunction, tmp_path: Path) -> None:
    account = Account()
    begun = await begin(handler(service, account), {})
    pairs = pairs_of(begun)
    assert pairs_of(await begin(handler(service, account), begun["event"])) == pairs
    for pair in pairs:
        await audit_range(handler(service, account), begun, pair)
        (again,) = await audit_range(handler(service, account), begun, pair)
        assert not again["again"]
    first = await conclude(handler(service, account), begun)
    told = len(account.messages)
    assert await conclude(handler(service, account), begun) == first
    assert not (await audit_range(handler(service, account), begun, pairs[0]))[0]["again"]
    lease = json.loads((tmp_path / "ranges" / "bucket=audited" / "lease.json").read_text())
    assert lease["until"] == 0, "a late range leaves the bucket free"
    assert (await begin(handler(service, account), begun["event"]))["next"] == "conclude"
    assert len(account.messages) == told, "one end is told once"


async def test_no_other_start_gets_the_bucket_while_a_range_may_be_at_work(
    service: AuditFunction, tmp_path: Path
) -> None:
    account = Account()
    begun = await begin(handler(service, account), {})
    first, second, *_ = pairs_of(begun)
    await audit_range(handler(service, account), begun, first)
    other = await begin(handler(service, account), {"bucket": "audited", "run": first["run"]})
    assert (other["next"], other["pairs"]) == ("conclude", [])
    waits = await conclude(handler(service, account), other)
    assert waits["next"] == "wait"
    assert f"run {first['run']} has the bucket, until" in waits["left"][0]
    lease = json.loads((tmp_path / "ranges" / "bucket=audited" / "lease.json").read_text())
    assert set(lease) == {"format", "run", "start", "until", "newest"}
    free(tmp_path / "ranges")  # the deadline of each function has passed
    taken = await begin(handler(service, account), other["event"])
    assert len(pairs_of(taken)) == RANGES - 1
    with pytest.raises(RunTaken, match="has the bucket"):
        await audit_range(handler(service, account), begun, second)


async def test_the_shares_of_a_ceiling_never_exceed_it(filled: StubServer, tmp_path: Path) -> None:
    seen: list[float | None] = []
    service, account = AuditFunction(environ_of(filled, tmp_path / "ranges")), Account()
    begun = await begin(handler(service, account), {"max_rate": 300})
    usual = rate_share

    def noted(max_rate: float | None, active: int) -> float | None:
        seen.append(usual(max_rate, active))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_steps, "rate_share", noted)
        for pair in pairs_of(begun):
            await audit_range(handler(service, account), begun, pair)
    *two_at_once, alone = (share for share in seen if share is not None)
    assert len(two_at_once) == RANGES - 1
    assert all(0 < 2 * share <= 300 for share in two_at_once)
    assert alone == 300, "the last range has the whole ceiling"


async def test_two_invocations_of_a_range_at_once_write_each_key_once(
    service: AuditFunction, filled: StubServer, tmp_path: Path
) -> None:
    account = Account()
    begun = await begin(handler(service, account), {})
    pair, *others = pairs_of(begun)
    loop, came, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold(operation: str, key: str, nth: int) -> None:
        loop.call_soon_threadsafe(came.set)
        go_on.wait(60)

    filled.faults = [hold]
    first = asyncio.create_task(audit_range(handler(service, account), begun, pair))
    await came.wait()
    filled.faults = []
    late = asyncio.create_task(audit_range(handler(service, Account()), begun, pair))
    await asyncio.sleep(0.2)
    go_on.set()
    await asyncio.gather(first, late, return_exceptions=True)
    for one in (pair, *others):
        await audit_range(handler(service, account), begun, one)
    (summary,) = (await conclude(handler(service, account), begun))["runs"]
    assert summary["coverage"]["listed"] == ALL
    keys = [key for key, _, _ in lines(tmp_path / "ranges", summary["run"])]
    assert len(keys) == len(set(keys)) == ALL


async def test_a_wrong_step_is_refused_in_a_sentence(service: AuditFunction) -> None:
    audited = {"bucket": "audited"}
    started = {**audited, "start": "20260102T030405Z-0a1b2c"}
    pair = {"bucket": "audited", "run": "20260102T030405Z-0a1b2c", "range": "00000"}

    async def check(*wrong: tuple[dict[str, Any], str]) -> None:
        for event, word in wrong:
            account = Account()
            with pytest.raises(UsageError, match=word) as refused:
                await service.handle(event, account.around())
            assert (len(str(refused.value)) < 400, account.metric("RunsFailed")) == (True, 1), word

    await check(
        ({"action": "begin"}, "event is missing: a step of the state machine has the form"),
        ({"action": "run", "event": audited}, "action is not a known word: .*begin|range|conclude"),
        ({"action": "begin", "event": audited, "hop": 1}, "'hop' is not allowed together with an action"),
        ({"action": "range", "event": audited, "pair": pair}, "names no start"),
        ({"action": "conclude", "event": audited}, "names no start"),
        ({"action": "conclude", "event": started, "pair": pair}, "belongs to the action range alone"),
        ({"action": "range", "event": started}, "belongs to the action range alone"),
        ({"action": "begin", "event": audited, "at_once": 0}, "at_once is negative or too large"),
        ({"action": "begin", "event": audited, "fruitless": -1}, "fruitless is negative or too large"),
        ({"action": "range", "event": started, "pair": {**pair, "run": 7}}, "pair.run is not text"),
        ({"action": "range", "event": started, "pair": {**pair, "more": 7}}, "pair has other members"),
        ({"action": "range", "event": started, "pair": {**pair, "run": "x"}}, "is not a run ID"),
        ({"action": "range", "event": started, "pair": {**pair, "bucket": "../x"}}, "is not a bucket name"),
        ({"action": "range", "event": started, "pair": pair}, "has no plan"),
        ({"action": "conclude", "event": {**audited, "start": "../x"}}, "is not a run ID"),
    )
    account = Account()
    begun = await begin(handler(service, account), {})
    known = pairs_of(begun)[0]
    await check(
        (
            {"action": "range", "event": begun["event"], "pair": {**known, "range": "../x"}, "at_once": 2},
            r"has no range '\.\./x': give 00000 to 00003",
        ),
        ({"action": "range", "event": begun["event"], "pair": {**known, "range": "1" * 5000}}, "has no range"),
    )


async def test_how_many_functions_work_at_once_follows_from_the_ceiling(filled: StubServer, tmp_path: Path) -> None:
    for setting, max_rate, at_once in (("auto", 100.0, 2), ("auto", 8_534.0, 3), ("auto", 30_000, 8), ("7", 2_000, 7)):
        environ = environ_of(filled, tmp_path / f"{setting} {max_rate}", AUDITOR_MAP_CONCURRENCY=setting)
        begun = await begin(handler(AuditFunction(environ), Account()), {"max_rate": max_rate})
        assert begun["at_once"] == at_once, (setting, max_rate)


async def test_a_part_of_a_target_or_a_limited_run_has_one_range(service: AuditFunction) -> None:
    for event in ({"max_calls": 500}, {"bucket": "audited", "start_after": "5"}, {"bucket": "audited", "stop_at": "5"}):
        account = Account()
        answer = await service.handle(event, account.around())
        assert (account.events, answer["runs"][0]["complete"]) == ([], True), event


async def test_the_deployments_numbers_are_read_or_refused(filled: StubServer, tmp_path: Path) -> None:
    wrong = [("AUDITOR_MAP_CONCURRENCY", one, "1 to 1,000") for one in ("0", "1001", "Auto", "2 ", "\u0661")]
    wrong += [("AUDITOR_RANGE_CALLS", one, "1 to 1,000,000,000") for one in ("0", "-1", "1.5", "x")]
    for name, value, numbers in wrong:
        environ = environ_of(filled, tmp_path, **{name: value})
        with pytest.raises(UsageError, match=rf"{name} is .*give a whole number from {numbers}"):
            await AuditFunction(environ).handle({"bucket": "audited"}, Account().around())
