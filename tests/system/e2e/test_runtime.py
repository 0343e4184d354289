"""What was deployed, run as Lambda runs it: the schedule's event, the worker, a deadline."""

from __future__ import annotations

import json

from tests.system.e2e.shares import needs_groups
from tests.system.e2e.system import RENEW, VERIFY, Make, expected, keys

NIGHT = {"a.txt": b"a", "b/c d+%41.txt": b"c", "empty": b""}


def test_the_schedules_event_audits_the_configured_bucket_and_the_worker_fills_the_ledger(
    make: Make, audited: str
) -> None:
    system = make()
    system.put(audited, NIGHT)
    system.fire(system.deployment.schedules_input())
    (first,) = system.summaries()
    assert first["complete"]
    assert first["coverage"]["audited"] == len(NIGHT)
    assert first["hashing"]["queued"] == len(NIGHT)
    system.poller.drain()
    assert system.digests(audited) == expected(NIGHT)
    assert system.letters() == []
    report = system.report(audited)
    assert json.loads(report[f"run={first['run']}/summary.json"]) == first
    assert b"<html" in report[f"run={first['run']}/report.html"]
    assert '"RunsComplete"' in system.local.logs()

    system.fire(system.deployment.schedules_input())
    second = system.summaries()[1]
    assert second["hashing"]["known"] == len(NIGHT)
    assert second["hashing"]["queued"] == 0
    assert json.loads(system.report(audited)["latest.json"])["runs"]["current"] == {"": second["run"]}


@needs_groups
def test_the_memory_of_each_function_and_the_cpu_that_it_buys_are_enough(make: Make, bucket: str) -> None:
    system = make(shared=True)
    objects = {"large": bytes(50_000_000)} | {f"key-{number:02}": b"small" for number in range(20)}
    system.put(bucket, objects)
    system.fire({"bucket": bucket})
    system.poller.drain()
    assert system.summaries()[0]["complete"]
    assert system.digests(bucket) == expected(objects)
    system.fire({"bucket": bucket, "max_age": "1d"}, VERIFY)
    assert system.summaries(VERIFY)[0]["outcomes"]["match"] == len(objects)
    memory = {function.name: function.memory for function in system.deployment.functions().values()}
    assert {name for name, _ in system.local.peaks()} == memory.keys() - {RENEW}, "nothing is renewed here"
    assert all(0 < peak <= memory[name] for name, peak in system.local.peaks()), system.local.peaks()


def test_out_of_time_in_mid_audit_the_run_goes_on_and_adds_up(make: Make, bucket: str) -> None:
    system = make(audit={"timeout": 6.0, "variables": {"AUDITOR_MAX_RATE": "30"}})
    objects = {f"key-{number:03}": b"" for number in range(150)}
    system.put(bucket, objects)
    (end,) = system.fire({"bucket": bucket})
    assert end["status"] == "SUCCEEDED", (end.get("error"), end.get("cause"))
    assert system.local.failed == []
    *parts, last = system.summaries()
    assert not any(part["complete"] for part in parts)
    assert {part["run"] for part in parts} == {last["run"]}
    assert last["complete"]
    assert json.loads(end["output"])["runs"] == [last]
    assert last["coverage"]["listed"] == last["coverage"]["audited"] == len(objects)
    assert last["hashing"]["queued"] == len(objects)
    report = system.report(bucket)
    assert [name for name in report if name.endswith("summary.json")] == [f"run={last['run']}/summary.json"]
    assert json.loads(report[f"run={last['run']}/summary.json"]) == last
    assert sorted(keys(report, "objects")) == sorted(objects)
    system.poller.drain()
    assert system.digests(bucket) == expected(objects)
