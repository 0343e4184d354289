"""An audit with --key-policies: the policy of each object's KMS key decides who can read the object."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from auditor import check_run, judge_run
from auditor.errors import RunChanged, RunDamaged
from auditor.model.object import Unread
from auditor.offline.library.audits import explain_async
from auditor.runs.key_file import KeyFile, StoredPolicies
from auditor.runs.run_files import RunPlan
from tests.support.audit_runs import Result, audit, check, read_back
from tests.support.divided_runs import Divided
from tests.support.schemas import check_folder
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


def policies(result: Result) -> StoredPolicies:
    """The policies in the run folder, whose run.json has none: they are read with the objects."""
    assert RunPlan.from_json((result.folder / "run.json").read_bytes()).facts.key_policies == {}
    return KeyFile.from_json((result.folder / "keys.json").read_bytes()).policies


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
    read = policies(result)
    assert read.keys() == {*keys.values()}
    assert read[MISSING] == Unread("GetKeyPolicy", "NotFoundException")


async def test_a_run_that_goes_on_keeps_the_policies_that_it_has(
    stub: StubServer, keys: dict[str, str], tmp_path: Path
) -> None:
    first = await audit(stub, tmp_path, key_policies=True, max_calls=19, part_lines=1)
    assert not first.summary["complete"]
    known = policies(first)
    assert known
    whole = await audit(stub, tmp_path, key_policies=True, part_lines=1, resume=first.summary["run"])
    assert whole.summary["complete"]
    assert seen(whole) == seen(await audit(stub, tmp_path, key_policies=True))
    found = policies(whole)
    assert found.keys() == {*keys.values()}
    assert known.items() <= found.items()


async def test_ranges_read_the_policies_of_their_keys_and_the_run_has_all(
    stub: StubServer, keys: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("closed", "opened", "unread"):  # in further ranges too
        stub.world.buckets["audited"].put(f"z/{name}", sse="aws:kms", kms_key=keys[name])
    plain = await audit(stub, tmp_path / "plain", key_policies=True)
    run = Divided(stub, tmp_path / "divided", key_policies=True)
    ids = [one.id for one in (await run.begin(3)).ranges]
    await run.ranges(ids[:1], part_lines=1)
    assert not (await run.combine()).complete
    await run.ranges(ids[1:], part_lines=1)
    files = [KeyFile.from_json(file.read_bytes()) for file in run.folder.glob("checkpoint/keys-*.json")]
    assert len(files) == 3
    result = check(read_back((await run.combine()).to_dict()))
    assert seen(result) == seen(plain)
    assert [line["reasons"] for line in result.objects] == [line["reasons"] for line in plain.objects]
    assert result.summary["not_looked_at"] == plain.summary["not_looked_at"]
    assert policies(result) == policies(plain)
    met = sum(len(file.policies) for file in files)
    asked_of_kms = sum(record.name == "werkzeug" for record in caplog.records)  # moto logs each request
    assert asked_of_kms == len(keys) + met > 2 * len(keys)
    assert check_folder(result.folder)["keys.json"] == 1
    assert check_run(result.folder).exit_code == 0
    again = await asyncio.to_thread(judge_run, result.folder, out=str(tmp_path / "again"))
    assert {line.key: (line.verdict, list(line.audience)) for line in again.objects()} == seen(plain)


async def test_divided_run_is_resumed_as_it_was_begun(stub: StubServer, keys: dict[str, str], tmp_path: Path) -> None:
    run = Divided(stub, tmp_path)
    await run.begin(2)
    run.settings = replace(run.settings, key_policies=True)
    with pytest.raises(RunChanged, match="was begun without --key-policies: leave that out"):
        await run.audit("00000")
    with pytest.raises(RunChanged, match="was begun without --key-policies"):
        await run.begin(2, run.run_id)
    begun = Divided(stub, tmp_path, key_policies=True)
    await begun.begin(1)
    begun.settings = replace(begun.settings, key_policies=False)
    assert await begun.audit("00000") is None
    (file,) = begun.folder.glob("checkpoint/keys-*.json")
    file.write_bytes(b'{"format": 1}')
    with pytest.raises(RunDamaged, match=f"{file.name} is damaged"):
        await begun.combine()


async def test_one_object_is_explained_by_the_policy_of_its_key(stub: StubServer, keys: dict[str, str]) -> None:
    uri = "s3://audited/opened"
    (without,) = await explain_async(uri, endpoint_url=stub.url)
    (found,) = await explain_async(uri, endpoint_url=stub.url, key_policies=True)
    assert [audience.text for audience in found.access.audience] == [f"account {THEIRS}"]
    assert (without.access.verdict, without.access.audience) == ("masked", ())
    assert f"kms-key: {keys['opened']}" in [reason.text for reason in without.access.reasons]
