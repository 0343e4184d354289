"""An audit of a bucket whose policy asks for a tag of the bucket: the verdicts, and all that a folder gives again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from auditor import judge_run
from auditor.cli.main import main
from auditor.model.object import Unread
from auditor.runs.run_files import RunPlan
from tests.support.audit_runs import Result, audit
from tests.support.schemas import check_folder
from tests.support.servers.stub import StubServer
from tests.support.servers.world import Odd, StubBucket

ENGINES = ("direct", "boto3", "aioboto3")
CALLS = ("GetBucketAbac", "GetBucketTagging")


def policy(key: str, value: str) -> str:
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::audited/*"}
    condition = {"Condition": {"StringEquals": {key: value}}}
    return json.dumps({"Version": "2012-10-17", "Statement": [{**statement, **condition}]})


@pytest.fixture
def tagged(bucket: StubBucket) -> StubBucket:
    bucket.policy, bucket.policy_is_public = policy("aws:ResourceTag/team", "red"), True
    bucket.abac, bucket.tags = "Enabled", {"team": "red", "cost-center": "4711 is nobody's business"}
    bucket.put("a")
    return bucket


def seen(result: Result) -> list[tuple[str, list[str], list[str]]]:
    return [(line["verdict"], line["audience"], line["reasons"]) for line in result.objects]


async def test_every_engine_reads_the_tags_alike(stub: StubServer, tagged: StubBucket, tmp_path: Path) -> None:
    for engine in ENGINES:
        stub.forget()
        result = await audit(stub, tmp_path / engine, engine=engine)
        assert seen(result) == [("exposed", ["anyone"], ["policy-allow: #1"])]
        assert [stub.count(call) for call in CALLS] == [1, 1]
        written = (result.folder / "run.json").read_text()
        facts = RunPlan.from_json(written.encode()).facts
        assert (facts.abac, facts.tags) == (True, {"team": "red"})
        assert "4711" not in written
        assert check_folder(result.folder)["run.json"] == 1
    stub.forget()
    made = await asyncio.to_thread(judge_run, result.folder, out=str(tmp_path / "again"))
    assert [(line.verdict, list(line.audience)) for line in made.objects()] == [("exposed", ["anyone"])]
    assert stub.requests == []


async def test_without_abac_or_without_an_answer_the_same_policy_opens_nothing(
    stub: StubServer, tagged: StubBucket, tmp_path: Path
) -> None:
    tagged.abac = "Disabled"
    result = await audit(stub, tmp_path)
    assert seen(result) == [("private", [], [])]
    assert not [text for text in result.summary["not_looked_at"] if "ABAC" in text or "tags of the bucket" in text]
    tagged.odd["GetBucketAbac"] = Odd.DENIED
    for engine in ENGINES:
        result = await audit(stub, tmp_path, engine=engine)
        assert seen(result) == [("unknown", [], ["bucket-tags-unread: AccessDenied"])]
        facts = RunPlan.from_json((result.folder / "run.json").read_bytes()).facts
        assert facts.abac == Unread("GetBucketAbac", "AccessDenied")
        text = "ABAC of the bucket, which could not be read: GetBucketAbac AccessDenied"
        assert text in result.summary["not_looked_at"]


async def test_the_last_run_names_changed_tags_as_the_cause(
    stub: StubServer, tagged: StubBucket, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = await audit(stub, tmp_path)
    tagged.tags = {"team": "blue"}
    second = await audit(stub, tmp_path)
    assert seen(second) == [("private", [], [])]
    await asyncio.to_thread(main, ["diff", str(first.folder), str(second.folder)])
    assert "the bucket's tags, or its ABAC, changed" in capfd.readouterr().out
