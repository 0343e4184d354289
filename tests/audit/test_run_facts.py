"""What a whole audit makes of the bucket's own facts, read or not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from auditor.errors import BucketError
from tests.support.audit_runs import audit
from tests.support.loop_blocking import free_loop as free_loop
from tests.support.servers.stub import StubServer
from tests.support.servers.world import STRANGER, Odd, StubBucket

CALLS_OF_FACTS: Final = {
    "GetBucketOwnershipControls": ("B01",),
    "GetPublicAccessBlock": ("B02",),
    "GetBucketAcl": ("B03", "B05"),
    "GetBucketPolicyStatus": ("B04",),
    "GetBucketEncryption": ("B07", "B08", "E07"),
}
"""A call about the bucket, and the rules that are left undecided when it fails."""


async def test_facts_that_cannot_be_read_leave_their_rules_undecided(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k")
    for odd, code in ((Odd.DENIED, "AccessDenied"), (Odd.EMPTY, "Malformed"), (Odd.MALFORMED, "Malformed")):
        for operation in CALLS_OF_FACTS:
            bucket.odd[operation] = odd
        result = await audit(stub, tmp_path)
        undecided = {item["rule"]: (item["action"], item["code"]) for item in result.summary["rules_undecided"]}
        assert undecided == {rule: (operation, code) for operation, rules in CALLS_OF_FACTS.items() for rule in rules}
        assert (result.coverage["audited"], result.code) == (1, 4)


async def test_owner_that_nobody_names_leaves_its_rules_undecided(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k")
    bucket.odd["GetBucketAcl"] = stub.world.odd["ListBuckets"] = Odd.DENIED
    result = await audit(stub, tmp_path)
    undecided = {item["rule"] for item in result.summary["rules_undecided"]}
    assert undecided == {"B03", "B05", "E04", "O07", "O08", "O09", "O11", "O13"}
    assert result.code == 4


async def test_owner_is_still_known_of_a_bucket_of_ones_own_whose_acl_is_denied(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k", owner=STRANGER)
    bucket.odd["GetBucketAcl"] = Odd.DENIED
    result = await audit(stub, tmp_path)
    assert "O09" in result.line("k")["rules"]


async def test_requester_pays_bucket_of_another_is_paid_for_when_that_was_agreed_to(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k", owner=STRANGER)
    bucket.owner, bucket.request_payer = STRANGER, "Requester"
    await audit(stub, tmp_path, requester_pays=True)
    reads = [call for call in stub.calls if call.key or call.operation == "ListObjectsV2"]
    assert len(reads) == 3
    assert {call.headers.get("x-amz-request-payer") for call in reads} == {"requester"}


async def test_nobody_pays_for_a_bucket_of_another_unasked(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.owner, bucket.request_payer = STRANGER, "Requester"
    with pytest.raises(BucketError, match="--requester-pays"):
        await audit(stub, tmp_path)
    assert stub.count("ListObjectsV2") == 0


async def test_expected_owner_goes_with_every_call_of_the_bucket(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k")
    await audit(stub, tmp_path, expected_owner=bucket.account)
    of_bucket = [call for call in stub.calls if call.bucket]
    assert len(of_bucket) >= 11
    assert {call.headers.get("x-amz-expected-bucket-owner") for call in of_bucket} == {bucket.account}
