"""Failures beside the audit of a start: of channels, of one run among several, of the files that say who works."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import RunError, RunStopped
from auditor.lambdas.start import FunctionStart
from tests.lambdas.test_stall import OBJECTS, audited, ended, fill, function, near, silence_from
from tests.lambdas.test_steps import free, handler
from tests.support.deadline import Deadline
from tests.support.function_account import Account
from tests.support.servers.stub import StubServer
from tests.support.state_machine import audit_range, begin, conclude, pairs_of, run_machine


class RefusedBus(Account):
    """An account whose event bus takes no event."""

    async def put(self, source: str, kind: str, detail: Mapping[str, Any]) -> None:
        raise RunError("events:PutEvents is denied")


@pytest.mark.parametrize("machine", [False, True])
async def test_a_refused_event_stops_no_target_and_is_told_once(
    stub: StubServer, tmp_path: Path, machine: bool
) -> None:
    stub.world.add("second")
    stub.put("audited", "open", b"x", acl="public-read")
    account = RefusedBus()
    service = function(stub, tmp_path, "audited,second", AUDITOR_FAIL_ON="high")
    if machine:
        done = await run_machine(handler(service, account), {})
        assert (done["next"], len(done["runs"])) == ("complete", 2)
    else:
        assert len((await service.handle({}, account.around()))["runs"]) == 2
    (message,) = account.messages
    assert "1 object exposed" in message
    assert message.count("events:PutEvents is denied") == 1


async def test_a_run_that_cannot_be_concluded_keeps_up_no_other(stub: StubServer, tmp_path: Path) -> None:
    stub.world.add("second")
    stub.put("second", "key", b"x")
    fill(stub, "audited")
    account, service = Account(), function(stub, tmp_path, "audited,second")
    begun = await begin(handler(service, account), {})
    for pair in pairs_of(begun):
        await audit_range(handler(service, account), begun, pair)
    damaged, good = pairs_of(begun)
    (tmp_path / f"bucket=audited/run={damaged['run']}/checkpoint/00000.json").write_text("{")
    done = await conclude(handler(service, account), begun)
    assert (done["next"], [one["run"] for one in done["runs"]]) == ("incomplete", [good["run"]])
    again = json.loads(done["left"][0].rpartition("the event ")[2])
    assert again == {"bucket": "audited", "prefix": "", "versions": False, "run": damaged["run"]}
    assert json.loads((tmp_path / "bucket=audited/lease.json").read_text())["until"] == 0
    assert (account.metric("RunsFailed"), len(account.messages)) == (1, 1)
    assert (await conclude(handler(service, account), begun))["next"] == "incomplete", "it stays what it was"


def free_start(out: Path) -> None:
    """End the claim on the start, as its time does."""
    (path,) = (out / "starts").glob("*-state.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"until": 0}))


async def test_an_alert_that_the_deadline_cuts_off_is_a_failure(stub: StubServer, tmp_path: Path) -> None:
    class Silent(Account):
        async def publish(self, subject: str, message: str) -> None:
            self.deadline.come()
            await asyncio.Event().wait()

    stub.put("audited", "open", b"x", acl="public-read")
    account = Silent(deadline=Deadline(1.0))
    service = function(stub, tmp_path, AUDITOR_FAIL_ON="high")
    with pytest.raises(RunStopped, match="was not told before the deadline: send the event"):
        await service.handle({}, account.around(request="one"))
    free_start(tmp_path)
    retry = Account()
    await service.handle({}, retry.around(request="one"))
    assert (len(retry.messages), stub.count("ListObjectsV2")) == (1, 2), "told by the retry, and not audited again"


async def test_a_range_of_keys_whose_invocation_was_killed_is_continued(
    stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(stub, "audited")
    account, service = near(), function(stub, tmp_path)
    event = {"bucket": "audited", "start_after": "009", "stop_at": "049"}
    stub.faults = [silence_from(account, "030")]
    with monkeypatch.context() as patch:
        usual = FunctionStart.save

        def killed(start: FunctionStart, **how: Any) -> None:
            if how.get("machine") or how.get("free"):
                raise RunError("killed")
            usual(start, **how)

        patch.setattr(FunctionStart, "save", killed)
        with pytest.raises(RunError):
            await service.handle(event, account.around(request="one"))
    stub.faults = []
    free_start(tmp_path)
    free(tmp_path)
    (summary,) = (await service.handle(event, Account().around(request="one")))["runs"]
    assert (summary["complete"], summary["coverage"]["listed"]) == (True, 40)
    assert audited(tmp_path, summary["run"]) == [f"{number:03}" for number in range(10, 50)]


async def test_an_older_run_that_a_person_names_is_handed_on(stub: StubServer, tmp_path: Path) -> None:
    fill(stub, "audited")
    account, service = near(), function(stub, tmp_path)
    stub.faults = [silence_from(account, "030")]
    (first,) = (await service.handle({}, account.around(request="one")))["runs"]
    account.events.clear()
    free(tmp_path)
    lease = json.loads((tmp_path / "bucket=audited/lease.json").read_text())
    newest = {"newest": {"": "29990102T030405Z-0a1b2c"}, "start": "29990102T030405Z-0a1b2c"}
    (tmp_path / "bucket=audited/lease.json").write_text(json.dumps(lease | newest))
    stub.faults = [silence_from(account, "050")]
    await service.handle({"bucket": "audited", "run": first["run"]}, account.around(request="two"))
    stub.faults = []
    last = await ended(account, service)
    assert (last["run"], last["complete"], last["coverage"]["listed"]) == (first["run"], True, OBJECTS)


async def test_a_damaged_lease_is_one_sentence_and_a_wrong_clock_ends(stub: StubServer, tmp_path: Path) -> None:
    stub.put("audited", "key", b"x")
    account, service = Account(), function(stub, tmp_path)
    path = tmp_path / "bucket=audited" / "lease.json"
    path.parent.mkdir()
    no_day = '{"newest": {"": "20260230T010203Z-0a1b2c"}}'
    texts = ('{"newest": {"": "x"}}', no_day, '{"until": "soon"}', '{"run": "../x"}', '{"newest": []}')
    for number, text in enumerate(texts):
        path.write_text(f'{{"format": 1, {text[1:]}')
        with pytest.raises(RunError, match=r"lease\.json is damaged .*: move it away"):
            await service.handle({}, account.around(request=f"{number}"))
    run = "20260102T030405Z-0a1b2c"
    path.write_text(json.dumps({"format": 1, "run": run, "start": run, "until": 1e15, "newest": {}}))
    with pytest.raises(RunError, match=f"run {run} has the bucket, until 20"):
        await service.handle({}, account.around(machine=False, request="wrong clock"))
