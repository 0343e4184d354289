"""An audit with --key-policies: the policy of each object's KMS key decides who can read the object."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from auditor import judge_run
from auditor.audit.library import explain_async
from auditor.model.object import Skipped, Unread
from auditor.runs.bucket_file import BucketFile
from tests.support.audit_runs import Result, audit
from tests.support.servers.clients import client
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

THEIRS = "444455556666"
MISSING = "arn:aws:kms:us-east-1:123456789012:key/missing"


def policy(**fields: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*"} | fields]})


@pytest.fixture
def keys(moto_url: str, bucket: StubBucket, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """By name the ARN of a key. An object of each name is encrypted under it; the bucket policy opens each."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", moto_url)
    kms = client("kms", moto_url)
    admits = policy(Principal={"AWS": THEIRS}, Action="kms:*")
    found = {
        "closed": kms.create_key(Policy=json.dumps({"Version": "2012-10-17", "Statement": []})),
        "opened": kms.create_key(Policy=admits),
    }
    made = {name: key["KeyMetadata"]["Arn"] for name, key in found.items()} | {"unread": MISSING}
    for name, arn in made.items():
        bucket.put(name, sse="aws:kms", kms_key=arn)
    bucket.put("plain")
    bucket.policy = policy(Principal="*", Action="s3:GetObject", Resource=f"arn:aws:s3:::{bucket.name}/*")
    return made


def seen(result: Result) -> dict[str, tuple[str, list[str]]]:
    return {line["key"]: (line["verdict"], line["audience"]) for line in result.objects}


def described(result: Result) -> BucketFile:
    return BucketFile.from_json((result.folder / "bucket.json").read_bytes())


async def test_the_keys_policy_names_the_audience(stub: StubServer, keys: dict[str, str], tmp_path: Path) -> None:
    result = await audit(stub, tmp_path, key_policies=True, part_lines=1)
    assert seen(result) == {
        "closed": ("masked", []),
        "opened": ("shared", [f"account {THEIRS}"]),
        "plain": ("exposed", ["anyone"]),
        "unread": ("masked", []),
    }
    assert f"kms-key-unread: {MISSING}" in result.line("unread")["reasons"]
    assert f"kms-key: {keys['closed']}" in result.line("closed")["reasons"]
    assert "grants of KMS keys" in result.summary["not_looked_at"]
    read = described(result).facts.key_policies
    assert isinstance(read, dict)
    assert read.keys() == {*keys.values()}
    assert read[MISSING] == Unread("GetKeyPolicy", "NotFoundException")


async def test_the_run_is_judged_again_by_the_policies_that_it_kept(
    stub: StubServer, keys: dict[str, str], tmp_path: Path
) -> None:
    result = await audit(stub, tmp_path, key_policies=True, part_lines=1)
    made = await asyncio.to_thread(judge_run, result.folder, out=str(tmp_path / "again"))
    assert {line.key: (line.verdict, list(line.audience)) for line in made.objects()} == seen(result)


async def test_without_the_setting_no_key_is_asked_for(stub: StubServer, keys: dict[str, str], tmp_path: Path) -> None:
    result = await audit(stub, tmp_path)
    assert seen(result)["opened"] == ("masked", [])
    assert f"kms-key: {keys['opened']}" in result.line("opened")["reasons"]
    assert "policies and grants of KMS keys" in result.summary["not_looked_at"]
    assert isinstance(described(result).facts.key_policies, Skipped)


async def test_a_run_that_goes_on_keeps_the_policies_that_it_has(
    stub: StubServer, keys: dict[str, str], tmp_path: Path
) -> None:
    first = await audit(stub, tmp_path, key_policies=True, max_calls=19, part_lines=1)
    assert not first.summary["complete"]
    known = described(first).facts.key_policies
    whole = await audit(stub, tmp_path, key_policies=True, part_lines=1, resume=first.summary["run"])
    assert whole.summary["complete"]
    assert seen(whole) == seen(await audit(stub, tmp_path, key_policies=True))
    found = described(whole)
    assert isinstance(known, dict)
    assert isinstance(found.facts.key_policies, dict)
    assert found.facts.key_policies.keys() == {*keys.values()}
    assert known.items() <= found.facts.key_policies.items()


async def test_one_object_is_explained_by_the_policy_of_its_key(stub: StubServer, keys: dict[str, str]) -> None:
    uri = "s3://audited/opened"
    (without,) = await explain_async(uri, endpoint_url=stub.url)
    (found,) = await explain_async(uri, endpoint_url=stub.url, key_policies=True)
    assert [audience.text for audience in found.access.audience] == [f"account {THEIRS}"]
    assert (without.access.verdict, without.access.audience) == ("masked", ())
    assert f"kms-key: {keys['opened']}" in [reason.text for reason in without.access.reasons]
