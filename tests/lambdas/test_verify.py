"""Verifying as a function: events, the deadline, the hand-over, alerts and metrics."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import RunError, UsageError
from auditor.lambdas.metrics import UNITS
from auditor.lambdas.verify import VerifyFunction
from tests.support.function_account import Account
from tests.support.schemas import valid
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault, latency
from tests.support.verification import LONG_AGO, days_ago, make_bench, read_documents

OBJECTS = 60
Service = Callable[..., VerifyFunction]


@pytest.fixture
def service(stub: StubServer, tmp_path: Path) -> Service:
    def make(**more: str) -> VerifyFunction:
        return VerifyFunction(
            {
                "AUDITOR_BUCKETS": BUCKET,
                "AUDITOR_ENDPOINT_URL": stub.url,
                "AUDITOR_OUT": str(tmp_path / "reports"),
                "AUDITOR_LEDGER": f"sqlite:{tmp_path / 'digests.db'}",
                "AUDITOR_CONCURRENCY": "1",
                **more,
            }
        )

    return make


async def fill(stub: StubServer, folder: Path, hashed_at: str = LONG_AGO) -> None:
    async with make_bench(stub, folder) as bench:
        items = [bench.put(f"{number:03}", b"x" * (number + 1)) for number in range(OBJECTS)]
        await bench.recorded(*items, hashed_at=hashed_at)


async def machine(service: VerifyFunction, account: Account, event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The answers of the machine's steps until the verification has ended. event: the machine's input."""
    answers: list[dict[str, Any]] = []
    while not answers or answers[-1]["again"]:
        valid("verify-event", event)
        answers.append(await service.handle(event, account.around()))
        event = json.loads(json.dumps(answers[-1]["event"]))
    return answers


async def test_invocations_are_one_verification_with_one_alert(
    service: Service, stub: StubServer, tmp_path: Path
) -> None:
    await fill(stub, tmp_path)
    objects = stub.world.buckets[BUCKET].objects
    objects.versions("007")[0].body = b"y" * 8
    objects.remove("031")
    account = Account()
    stub.faults = [account.deadline.at("015", "030", "045")]
    verifying = service()
    answer = await verifying.handle({}, account.around())
    (summary,), (arn,) = answer["runs"], answer["executions"]
    assert not summary["complete"]
    (event,) = account.events
    assert event == {"bucket": BUCKET, "prefix": "", "verification": summary["verify"]}
    assert arn.endswith(summary["verify"])
    assert not account.messages
    answers = await machine(verifying, account, event)
    assert [len(one["runs"]) for one in answers] == [0, 0, 1]
    (summary,) = answers[-1]["runs"]
    assert {name: count for name, count in summary["outcomes"].items() if count} == {
        "match": OBJECTS - 2,
        "mismatch": 1,
        "missing": 1,
    }
    documents = read_documents(Path(summary["out"]))
    assert [one["key"] for one in documents] == [f"{number:03}" for number in range(OBJECTS)]
    (message,) = account.messages
    assert "found 1 mismatch, 1 missing." in message
    assert "007" not in message.replace(summary["verify"], "")
    assert (account.metric("Mismatches"), account.metric("Missing"), account.metric("Verified")) == (1, 1, OBJECTS - 1)
    assert account.metric("VerificationsHandedOn") == 1
    ((kind, detail),) = account.finished
    assert (kind, detail["run"], detail["alert"]) == ("S3 Verification Finished", summary["verify"], True)
    assert (detail["reasons"], detail["exit_code"]) == (["1 mismatch", "1 missing"], 3)
    assert (detail["outcomes"]["mismatch"], detail["listed"]) == (1, OBJECTS - 1)
    assert {name for line in account.lines for name in line if name in UNITS} >= {"VerificationsComplete"}
    (lost,) = await machine(verifying, account, event)
    assert (lost["again"], lost["runs"], len(account.messages)) == (False, [], 1)


@pytest.mark.parametrize("named", [False, True])
async def test_outcome_that_the_event_names_is_an_alert(
    service: Service, stub: StubServer, tmp_path: Path, named: bool
) -> None:
    await fill(stub, tmp_path)
    stub.put(BUCKET, "new", b"data")
    account = Account(60)
    await service().handle({"fail_on_outcomes": ["new", "changed"]} if named else {}, account.around())
    assert ["found 1 new." in message for message in account.messages] == [True] * named
    assert (account.metric("New"), account.metric("Changed"), account.metric("Deleted")) == (1, 0, 0)


async def test_verification_that_comes_no_further_is_a_failure_not_a_loop(
    service: Service, stub: StubServer, tmp_path: Path
) -> None:
    await fill(stub, tmp_path)
    account = Account()

    def listing_is_late(operation: str, key: str, nth: int) -> Fault | None:
        if operation == "ListObjectsV2":
            account.deadline.come()
            return latency(30)
        return None

    stub.faults = [listing_is_late]
    await service().handle({}, account.around())
    with pytest.raises(RunError, match="made no progress in 3 invocations"):
        await machine(service(), account, account.events[0])
    assert len(account.messages) == 1
    assert account.metric("VerificationsFailed") == 1


async def test_targets_that_the_deadline_comes_before_are_left_to_the_machine(
    service: Service, stub: StubServer, tmp_path: Path
) -> None:
    await fill(stub, tmp_path)
    account, verifying = Account(), service(AUDITOR_BUCKETS=f"{BUCKET},s3://{BUCKET}/01")
    stub.faults = [account.deadline.at("015")]
    await verifying.handle({}, account.around())
    assert [event["prefix"] for event in account.events] == ["", "01"]
    stub.faults = []
    for event in account.events:
        (summary,) = (await machine(verifying, account, event))[-1]["runs"]
        assert summary["complete"]


async def test_event_cannot_say_what_the_deployment_says(service: Service) -> None:
    for event, named in (
        ({"bucket": BUCKET, "record": True}, "record"),
        ({"bucket": BUCKET, "accept_cost": True}, "accept_cost"),
        ({"max_age": "x"}, "max_age"),
    ):
        with pytest.raises(UsageError, match=named):
            await service().handle(event, Account(60).around())
    with pytest.raises(UsageError, match="AUDITOR_LEDGER"):
        await service(AUDITOR_LEDGER="").handle({}, Account(60).around())


async def test_deployment_says_what_is_due(service: Service, stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, days_ago(1))
    (summary,) = (await service(AUDITOR_PERCENT="10").handle({}, Account(60).around()))["runs"]
    assert summary["due"].startswith("10 percent")
    assert 0 < summary["outcomes"]["match"] < OBJECTS / 2
    assert summary["outcomes"]["match"] + summary["outcomes"]["not_due"] == OBJECTS
    (summary,) = (await service(AUDITOR_MAX_AGE="90d").handle({"percent": 100}, Account(60).around()))["runs"]
    assert summary["outcomes"]["match"] == OBJECTS


def event_of(error: BaseException) -> Any:
    """The event in the sentence of a failure."""
    return json.JSONDecoder().raw_decode(str(error).partition("the event ")[2])[0]


async def test_event_of_a_failed_verification_reads_what_it_did_not(
    service: Service, stub: StubServer, tmp_path: Path
) -> None:
    await fill(stub, tmp_path)
    account = Account()
    stub.faults = [account.deadline.at("020", "040")]
    (summary,) = (await service().handle({"bucket": BUCKET, "max_age": "90d"}, account.around()))["runs"]
    (tmp_path / "reports" / f"bucket={BUCKET}" / f"verify={summary['verify']}" / "state.json").write_text("{")
    with pytest.raises(
        RunError, match=f"verification of s3://{BUCKET}, .* damaged .*; to read the rest, send the event"
    ) as failed:
        await service().handle(account.events[0], account.around())
    stub.faults = []
    (again,) = (await service().handle(event_of(failed.value), Account().around()))["runs"]
    assert again["verify"] != summary["verify"]
    assert again["outcomes"]["not_due"] == summary["outcomes"]["match"] > 0
    assert again["outcomes"]["match"] == OBJECTS - summary["outcomes"]["match"]
