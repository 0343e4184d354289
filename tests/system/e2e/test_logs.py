"""The deployed functions' logs: JSON lines and nothing else, whatever happens, and a run is found by its ID."""

from __future__ import annotations

import json
from typing import Any

from tests.system.e2e.deployment import SERVICE
from tests.system.e2e.queues import message
from tests.system.e2e.system import AUDIT, Make, System

HASHING = f"{SERVICE}-hashing"
OBJECTS = {f"secret-key-{number:03}": b"" for number in range(100)}


def lines(system: System, function: str) -> list[dict[str, Any]]:
    """Every line must be one JSON object."""
    found = [json.loads(line) for line in system.local.logs(function).splitlines()]
    assert all(isinstance(line, dict) for line in found)
    return found


def told(logged: list[dict[str, Any]], **labels: Any) -> list[str]:
    """The messages of the lines with these labels."""
    return [line["message"] for line in logged if "message" in line and labels.items() <= line.items()]


def test_a_run_is_found_in_the_logs_of_both_functions_from_its_first_invocation_to_its_last(
    make: Make, bucket: str
) -> None:
    system = make(audit={"timeout": 6.0, "variables": {"AUDITOR_MAX_RATE": "30"}})
    system.put(bucket, OBJECTS)
    (end,) = system.fire({"bucket": bucket})
    assert end["status"] == "SUCCEEDED", (end.get("error"), end.get("cause"))
    run = system.summaries()[-1]["run"]
    system.poller.drain()

    audit, hashing = lines(system, AUDIT), lines(system, HASHING)
    assert any(words.endswith("begins") for words in told(audit, run=run, bucket=bucket))
    requests = {line["requestId"] for line in audit if (line.get("run"), line.get("bucket")) == (run, bucket)}
    assert len(requests) >= 1 + len(system.ranges()) + len(system.steps("conclude"))
    (metrics,) = [line for line in audit if "RunsComplete" in line]
    assert (metrics["run"], metrics["bucket"], metrics["Objects"]) == (run, bucket, len(OBJECTS))
    worked = told(hashing, run=run, bucket=bucket)
    # An invocation that ends before its last part is saved sends these objects, and the next one sends them again.
    assert sum(int(line.partition(" ")[0]) for line in worked) >= len(OBJECTS)
    assert len(system.digests(bucket)) == len(OBJECTS)
    assert "secret-key" not in system.local.logs()


def test_failures_are_json_too_the_runtimes_own_report_included(make: Make, bucket: str) -> None:
    system = make(audit={"variables": {"AUDITOR_LOG_LEVEL": "LOUD"}})
    forged = 'a\n{"level": "ERROR", "message": "forged"}'
    for event in ({forged: 1}, {"bucket": "not-there-at-all"}, {"bucket": bucket, "run": forged}, [1]):
        assert system.local.invoke(AUDIT, event).error == "Unhandled"
    assert system.local.invoke(HASHING, {"no": "records"}).error == "Unhandled"
    system.send("HashQueueUrl", "poison")
    (task,) = system.put(bucket, {"gone": b"data"})
    system.deployment.client("s3").delete_object(Bucket=bucket, Key="gone")
    system.deployment.client("s3").delete_bucket(Bucket=bucket)
    system.send("HashQueueUrl", message(bucket, task, run="run-of-ours"))
    system.poller.poll()
    system.poller.poll()

    audit, hashing = lines(system, AUDIT), lines(system, HASHING)
    assert [line["level"] for line in audit if line.get("logger") == "auditor.lambdas.logs"] == ["WARNING"]
    assert not [line for line in audit if line.get("message") == "forged"]
    for logged, failed in ((audit, 4), (hashing, 1)):
        reports = [line for line in logged if "stackTrace" in line]
        assert len(reports) == failed
        assert {line["requestId"] for line in reports} <= {line.get("requestId") for line in logged if "logger" in line}
    assert any("is malformed" in line for line in told(hashing))
    assert told(hashing, run="run-of-ours", bucket=bucket)

    system.deployment.client("s3").create_bucket(Bucket=bucket)
    system.poller.drain()  # the message that waits for its backoff would come back in another test
    assert system.letters() == ["poison"]
