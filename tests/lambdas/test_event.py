"""The audit as a function: its events and its deadline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from auditor.config.settings import event_settings
from auditor.errors import BucketError, RunError, UsageError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.event import EVENT_TARGET, read_event
from auditor.lambdas.invocation_frame import FunctionContext
from auditor.model.target import Target
from auditor.runs.reading import last_run
from auditor.runs.stores import open_store
from tests.support.deadline import Deadline
from tests.support.log_lines import logged
from tests.support.servers.stub import StubServer

SCHEDULE = {
    "version": "0",
    "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "account": "123456789012",
    "time": "2026-01-02T03:04:05Z",
    "region": "eu-west-1",
    "resources": [],
    "detail": {},
}


def environ(stub: StubServer, out: Path, **more: str) -> Mapping[str, str]:
    return {
        "AUDITOR_BUCKETS": "audited",
        "AUDITOR_ENDPOINT_URL": stub.url,
        "AUDITOR_OUT": str(out),
        "AUDITOR_FAIL_ON": "never",
        **more,
    }


def test_an_empty_event_and_a_schedule_mean_every_configured_bucket() -> None:
    for event in ({}, SCHEDULE, SCHEDULE | {"source": "aws.scheduler", "detail": "{}"}):
        invocation = read_event(event, {"AUDITOR_BUCKETS": "one,s3://two/prefix/"})
        assert [target.uri for target in invocation.targets] == ["s3://one", "s3://two/prefix/"]
    changes: tuple[dict[str, Any], ...] = (
        {"source": "aws.s3", "detail-type": "Object Created", "detail": {"bucket": {"name": "one"}}},
        {"source": "aws.s3"},
        {"source": "my.application"},
        {"source": "aws.events\n"},
        {"source": ["aws.events"]},
        {"source": None},
        {"detail-type": "AWS API Call via CloudTrail"},
    )
    for changed in changes:
        for function in ("audit", "verify"):
            with pytest.raises(UsageError, match=r"only schedules \(aws\.events, aws\.scheduler\)"):
                read_event(SCHEDULE | changed, {"AUDITOR_BUCKETS": "one"}, function)


def test_an_event_that_means_nothing_is_refused_by_name() -> None:
    wrong: tuple[tuple[Any, str], ...] = (
        ({"bukket": "b"}, "bukket"),
        ({"bucket": "b", "out": "s3://elsewhere"}, "out"),
        ({"bucket": "b", "endpoint_url": "http://127.0.0.1:1"}, "endpoint_url"),
        ({"prefix": "p/"}, "prefix"),
        ({"bucket": 7}, "bucket"),
        ({"bucket": ""}, "the event's bucket is empty"),
        ({"bucket": None}, "the event's bucket is empty"),
        ({"bucket": "", "prefix": "p/"}, "the event's bucket is empty"),
        ({"bucket": "s3://x"}, "the event's bucket is 's3://x': give the name alone, and a prefix of its keys as"),
        ({"bucket": "my-bucket/p"}, "the event's bucket is 'my-bucket/p': give the name alone"),
        ({"bucket": "arn:aws:s3:::my-bucket"}, "the event's bucket is 'arn:aws:s3:::my-bucket': give the name alone"),
        ({"bucket": "b" * 5_000_000}, "(it has 5,000,000 characters, and a bucket name has 3 to 63)"),
        ({"bucket": "my-bucket", "prefix": "p" * 5_000_000}, "no key has more than 1,024: shorten it"),
        ({"bucket": "my-bucket", "start_after": "p" * 5_000_000}, "no key has more than 1,024: shorten it"),
        ({"bucket": "bbb", "prefix": ["p"]}, "prefix"),
        ({"bucket": "bbb", "engine": "warp"}, "engine"),
        ({"bucket": "bbb", "engine": {"a": 1}}, "engine"),
        ({"bucket": "bbb", "hop": 1}, "hop"),
        ({"bucket": "bbb", "run": 5}, "run"),
        ({"bucket": "bbb", "start": 5}, "start"),
        ({"bucket": "bbb", "start": "../x"}, "is not a run ID"),
        ({"bucket": "bbb", "verification": "20260102T030405Z-0a1b2c"}, "verification"),
        ({"run": "20260102T030405Z-0a1b2c"}, "bucket"),
        ([], "object"),
        ({}, "AUDITOR_BUCKETS"),
    )
    for event, named in wrong:
        with pytest.raises(UsageError, match=named):
            read_event(event, {})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)
events = st.dictionaries(
    st.sampled_from(sorted(event_settings("audit") | EVENT_TARGET)) | st.text(max_size=10),
    json_values | st.sampled_from(["bbb", "sha256", "O01", "direct", "high"]),
    max_size=6,
)


@settings(max_examples=30)
@given(events | json_values)
def test_any_event_is_an_invocation_or_an_error_of_its_sender(event: Any) -> None:
    try:
        invocation = read_event(event, {"AUDITOR_BUCKETS": "one"})
    except UsageError:
        return
    assert invocation.targets


async def test_a_run_that_is_none_and_an_empty_bucket_are_refused_and_nothing_is_listed(
    stub: StubServer, tmp_path: Path
) -> None:
    runs = ("x", "../../x", "20260102T030405Z-0a1b2c\n", "20260102T030405Z-0a1b2c", "")
    events: list[dict[str, str | None]] = [{"bucket": "audited", "run": run} for run in runs]
    events += [{"bucket": ""}, {"bucket": None}]
    for event in events:
        with pytest.raises(UsageError, match=r"is not a run ID|there is no run|bucket is empty"):
            await AuditFunction(environ(stub, tmp_path)).handle(event, FunctionContext(seconds_left=900.0))
    assert stub.count("ListObjectsV2") == 0


async def test_a_bucket_that_fails_is_raised_after_the_others_were_audited(stub: StubServer, tmp_path: Path) -> None:
    service = AuditFunction(environ(stub, tmp_path, AUDITOR_BUCKETS="no-such-bucket,audited"))
    with pytest.raises(BucketError, match="no-such-bucket"):
        await service.handle({}, FunctionContext(seconds_left=900.0))
    with open_store(str(tmp_path)) as store:
        before = last_run(store, Target("audited"))
    assert before is not None


async def test_buckets_that_the_deadline_comes_before_are_named(stub: StubServer, tmp_path: Path) -> None:
    for number in range(30):
        stub.put("audited", f"{number:03}", b"x")
    deadline = Deadline()
    stub.faults = [deadline.at("020")]
    buckets = {"AUDITOR_CONCURRENCY": "1", "AUDITOR_BUCKETS": "audited,other-bucket,third-bucket"}
    around = FunctionContext(seconds_left=900.0, stopping=deadline)
    with pytest.raises(RunError, match=r"s3://other-bucket did not start: the deadline.*s3://third-bucket did not"):
        await AuditFunction(environ(stub, tmp_path, **buckets)).handle({}, around)


async def test_what_is_logged_and_measured_names_run_bucket_request_and_start(stub: StubServer, tmp_path: Path) -> None:
    stub.put("audited", "secret-name", b"x", metadata={"secret": "value"})
    metrics: list[str] = []
    around = FunctionContext(seconds_left=900.0, emit=metrics.append, request="request-1")
    with logged() as lines:
        (summary,) = (await AuditFunction(environ(stub, tmp_path)).handle({}, around))["runs"]
        other = replace(around, request="request-2")
        with pytest.raises(BucketError):
            await AuditFunction(environ(stub, tmp_path)).handle({"bucket": "not-there"}, other)
    begun, ended, *failed = lines
    expected = {"run": summary["run"], "bucket": "audited", "start": begun["start"], "requestId": "request-1"}
    assert expected.items() <= begun.items()
    assert expected.items() <= ended.items()
    assert ended["message"] == (
        "complete: listed 1, audited 1, vanished 0, undecided 0, exposed 0, findings"
        f" {sum(summary['findings'].values())}"
    )
    assert expected.items() <= json.loads(metrics[0]).items()
    assert [one["level"] for one in failed] == ["INFO", "ERROR", "ERROR"]
    assert {one["requestId"] for one in failed} == {"request-2"}
    assert failed[1]["bucket"] == "not-there"
    assert "secret" not in json.dumps([lines, metrics])
