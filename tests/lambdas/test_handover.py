"""An audit that reaches its deadline is continued by the state machine until it is complete; its alerts and metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import RunError, UsageError
from auditor.lambdas.audit import AuditFunction
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from tests.support.function_account import Account
from tests.support.servers.stub import StubServer
from tests.support.state_machine import audit_range, begin, conclude, pairs_of, run_machine

OBJECTS = 60


@pytest.fixture
def service(stub: StubServer, tmp_path: Path) -> AuditFunction:
    for number in range(OBJECTS):
        stub.put("audited", f"{number:03}", b"x", acl="public-read" if number == 7 else "private")
    return AuditFunction(
        {
            "AUDITOR_BUCKETS": "audited",
            "AUDITOR_ENDPOINT_URL": stub.url,
            "AUDITOR_OUT": str(tmp_path),
            "AUDITOR_CONCURRENCY": "1",
            "AUDITOR_FAIL_ON": "never",
        }
    )


async def test_invocations_add_up_to_one_run_and_the_last_one_writes_the_summary(
    service: AuditFunction, stub: StubServer, tmp_path: Path
) -> None:
    account = Account()
    stub.faults = [account.deadline.at("010", "020", "030", "040")]
    answer = await service.handle({}, account.around())
    (first,), (arn,) = answer["runs"], answer["executions"]
    assert not first["complete"]
    run = tmp_path / "bucket=audited" / f"run={first['run']}"
    assert not (run / "summary.json").exists()
    assert not (tmp_path / "bucket=audited" / "latest.json").exists()
    (event,) = account.events
    assert event == {"start": event["start"]}
    assert arn.endswith(event["start"])
    handle = lambda given: service.handle(given, account.around())  # noqa: E731 - each invocation has a context
    begun = await begin(handle, event)
    (pair,) = pairs_of(begun)
    assert pair == {"bucket": "audited", "run": first["run"], "range": "00000"}
    invocations = await audit_range(handle, begun, pair)
    assert [one["again"] for one in invocations] == [True, True, True, False]
    done = await conclude(handle, begun)
    (summary,) = done["runs"]
    assert (done["next"], summary["complete"], summary["coverage"]["listed"]) == ("complete", True, OBJECTS)
    assert summary["findings"]["high"] == 2
    assert (run / "summary.json").exists()
    with open_store(str(tmp_path)) as store:
        keys = [line.key for line in RunReader(store, "audited", first["run"]).objects()]
    assert keys == [f"{number:03}" for number in range(OBJECTS)]
    assert (account.metric("RunsComplete"), account.metric("RunsHandedOn")) == (1, 1)
    assert account.metric("Objects") == OBJECTS
    assert account.lines[-1]["Target"] == "audited"
    assert account.messages == []
    ((kind, detail),) = account.finished
    assert (kind, detail["run"], detail["alert"], detail["exit_code"]) == ("S3 Audit Finished", first["run"], False, 0)
    assert detail["coverage"]["listed"] == OBJECTS
    assert await conclude(handle, begun) == done, "an answer that is lost is given again"
    assert (len(account.finished), account.metric("RunsComplete")) == (1, 1)


async def test_a_key_range_goes_on_as_the_range_that_it_was(
    service: AuditFunction, stub: StubServer, tmp_path: Path
) -> None:
    account = Account()
    stub.faults = [account.deadline.at("020")]
    await service.handle({"bucket": "audited", "start_after": "009", "stop_at": "049"}, account.around())
    stub.faults = []
    done = await run_machine(lambda event: service.handle(event, account.around()), account.events.pop())
    (summary,) = done["runs"]
    assert summary["complete"]
    assert summary["coverage"]["listed"] == 40
    assert "Target" not in account.lines[-1], "a part of a target says nothing of it"
    assert (summary["target"]["start_after"], summary["target"]["stop_at"]) == ("009", "049")
    assert not (tmp_path / "bucket=audited" / "latest.json").exists()


async def test_a_start_of_several_buckets_has_one_index_page_and_one_alert(
    service: AuditFunction, stub: StubServer, tmp_path: Path
) -> None:
    stub.world.add("second")
    service = AuditFunction(
        {**service._environ, "AUDITOR_BUCKETS": "audited,s3://second/prefix/,gone", "AUDITOR_FAIL_ON": "high"}
    )
    account, index = Account(), tmp_path / "index.html"
    stub.faults = [account.deadline.at("020")]
    answer = await service.handle({}, account.around())
    assert len(answer["executions"]) == 1
    assert (index.exists(), account.messages) == (False, []), "the start has not ended"
    done = await run_machine(lambda event: service.handle(event, account.around()), account.events.pop())
    assert (done["next"], len(done["runs"])) == ("incomplete", 2)
    assert "no bucket named 'gone'" in done["left"][0]
    page = index.read_text()
    assert "no bucket named &#39;gone&#39;" in page
    assert "Strangers can get at <em>1 object</em>" in page
    assert page.count('href="bucket=') == 2
    assert account.metric("RunsComplete") == 2
    (message,) = account.messages
    assert message.startswith("S3 audit of 3 targets: 1 failure; 2 runs to look at\n")
    for words in ("no bucket named 'gone'", "The audit of s3://audited/: 1 object exposed", "nothing is listed"):
        assert words in message, words


async def test_buckets_that_are_done_at_the_deadline_stay_done(service: AuditFunction, stub: StubServer) -> None:
    stub.world.add("second")
    stub.put("second", "key", b"x")
    service = AuditFunction({**service._environ, "AUDITOR_BUCKETS": "second,audited,s3://audited/01"})
    account = Account()
    stub.faults = [account.deadline.at("020")]
    first, second = (await service.handle({}, account.around()))["runs"]
    assert (first["complete"], second["complete"]) == (True, False)
    stub.forget()
    handle = lambda event: service.handle(event, account.around())  # noqa: E731 - each invocation has a context
    done = await run_machine(handle, account.events[0])
    assert done["next"] == "wait", "two runs of a bucket have one ceiling of calls"
    assert "has the bucket, until" in done["left"][0]
    done = await run_machine(handle, account.events[0])
    assert done["next"] == "complete"
    assert [one["coverage"]["listed"] for one in done["runs"]] == [1, OBJECTS, 10]
    assert not [call for call in stub.calls if call.bucket == "second"]


async def test_a_run_that_its_own_budget_ends_is_not_handed_on(service: AuditFunction) -> None:
    account = Account(900.0)
    (summary,) = (await service.handle({"max_calls": 40}, account.around()))["runs"]
    assert not summary["complete"]
    assert account.events == []
    assert account.metric("RunsIncomplete") == 1
    assert "did not reach its end" in account.messages[0]
    done = await run_machine(lambda event: service.handle(event, account.around()), {"max_calls": 20})
    assert (done["next"], done["runs"][0]["complete"]) == ("incomplete", False)


async def test_a_hole_is_told_with_counts_and_never_with_a_key(service: AuditFunction, stub: StubServer) -> None:
    stub.put("audited", "secret-name", b"x", deny={"acl"})
    account = Account(900.0)
    await service.handle({}, account.around())
    (message,) = account.messages
    assert "1 object could not be checked" in message
    assert "- 1 object: GetObjectAcl AccessDenied, in the bucket\n" in message
    assert "secret-name" not in message


async def test_a_failure_is_measured_told_and_raised(service: AuditFunction) -> None:
    account = Account(900.0)
    with pytest.raises(RunError, match="no bucket"):
        await service.handle({"bucket": "not-there"}, account.around())
    with pytest.raises(UsageError):
        await service.handle({"bukket": "audited"}, account.around())
    assert account.metric("RunsFailed") == 2
    assert len(account.messages) == 2
