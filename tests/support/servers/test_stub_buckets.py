"""The stub's bucket and account calls, as boto3 understands them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from auditor.model.bucket import Encryption, PublicAccessBlock
from tests.support.servers.clients import BUCKET, client, raw, refusal
from tests.support.servers.stub import StubServer
from tests.support.servers.world import ACCOUNT, OWNER, Odd, StubBucket

SUB_RESOURCES = {
    "GetBucketOwnershipControls": ("get_bucket_ownership_controls", "OwnershipControls"),
    "GetPublicAccessBlock": ("get_public_access_block", "PublicAccessBlockConfiguration"),
    "GetBucketAcl": ("get_bucket_acl", "Owner"),
    "GetBucketPolicyStatus": ("get_bucket_policy_status", "PolicyStatus"),
    "GetBucketVersioning": ("get_bucket_versioning", "Status"),
    "GetBucketEncryption": ("get_bucket_encryption", "ServerSideEncryptionConfiguration"),
    "GetBucketRequestPayment": ("get_bucket_request_payment", "Payer"),
    "GetBucketLocation": ("get_bucket_location", "LocationConstraint"),
    "GetBucketPolicy": ("get_bucket_policy", "Policy"),
}


@pytest.fixture
def full(bucket: StubBucket) -> StubBucket:
    """The bucket with every sub-resource configured."""
    bucket.region = "eu-west-1"
    bucket.ownership = "BucketOwnerPreferred"
    bucket.public_access_block = PublicAccessBlock(True, False, True, False)
    bucket.policy, bucket.policy_is_public = '{"Statement": []}', True
    bucket.versioning = "Enabled"
    bucket.encryption = Encryption("aws:kms", "arn:aws:kms:eu-west-1:111122223333:key/1", True)
    bucket.request_payer = "Requester"
    return bucket


def test_configured_sub_resources_are_told(full: StubBucket, s3: Any) -> None:
    facts = {name: getattr(s3, method)(Bucket=BUCKET)[member] for name, (method, member) in SUB_RESOURCES.items()}
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "arn:aws:kms:eu-west-1:111122223333:key/1"}
    assert facts == {
        "GetBucketOwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerPreferred"}]},
        "GetPublicAccessBlock": {
            "BlockPublicAcls": True,
            "IgnorePublicAcls": False,
            "BlockPublicPolicy": True,
            "RestrictPublicBuckets": False,
        },
        "GetBucketAcl": {"ID": OWNER},
        "GetBucketPolicyStatus": {"IsPublic": True},
        "GetBucketVersioning": "Enabled",
        "GetBucketEncryption": {"Rules": [{"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": True}]},
        "GetBucketRequestPayment": "Requester",
        "GetBucketLocation": "eu-west-1",
        "GetBucketPolicy": '{"Statement": []}',
    }


def test_sub_resources_that_were_never_configured(bucket: StubBucket, s3: Any) -> None:
    bucket.ownership = bucket.encryption = None
    absent = {
        s3.get_bucket_ownership_controls: "OwnershipControlsNotFoundError",
        s3.get_public_access_block: "NoSuchPublicAccessBlockConfiguration",
        s3.get_bucket_policy: "NoSuchBucketPolicy",
        s3.get_bucket_policy_status: "NoSuchBucketPolicy",
        s3.get_bucket_encryption: "ServerSideEncryptionConfigurationNotFoundError",
    }
    for call, code in absent.items():
        assert refusal(call)[:2] == (404, code)
    assert "Status" not in s3.get_bucket_versioning(Bucket=BUCKET)
    assert s3.get_bucket_location(Bucket=BUCKET)["LocationConstraint"] is None


@pytest.mark.parametrize("operation", SUB_RESOURCES)
def test_sub_resource_that_is_denied(full: StubBucket, s3: Any, operation: str) -> None:
    full.odd[operation] = Odd.DENIED
    assert refusal(getattr(s3, SUB_RESOURCES[operation][0]))[:2] == (403, "AccessDenied")


@pytest.mark.parametrize("odd", [Odd.EMPTY, Odd.MALFORMED])
@pytest.mark.parametrize("operation", sorted(SUB_RESOURCES.keys() - {"GetBucketPolicy", "GetBucketLocation"}))
def test_sub_resource_without_its_required_element(full: StubBucket, s3: Any, operation: str, odd: Odd) -> None:
    full.odd[operation] = odd
    method, member = SUB_RESOURCES[operation]
    answer = getattr(s3, method)(Bucket=BUCKET)
    assert not answer.get(member)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_policy_that_is_no_json(full: StubBucket, s3: Any) -> None:
    full.odd["GetBucketPolicy"] = Odd.MALFORMED
    assert s3.get_bucket_policy(Bucket=BUCKET)["Policy"] == "{"


def test_bucket_of_another_region_redirects(bucket: StubBucket, stub: StubServer, s3: Any) -> None:
    bucket.region, bucket.wrong_region = "eu-west-1", "always"
    status, code, headers = refusal(s3.get_bucket_acl)
    assert (status, code, headers["x-amz-bucket-region"]) == (301, "PermanentRedirect", "eu-west-1")
    assert refusal(s3.head_bucket)[:2] == (301, "301")


def test_bucket_takes_only_signatures_for_its_own_region(bucket: StubBucket, stub: StubServer, s3: Any) -> None:
    bucket.region, bucket.wrong_region = "eu-west-1", "signature"
    at_home = client("s3", stub.url, "eu-west-1")
    assert at_home.head_bucket(Bucket=BUCKET)["BucketRegion"] == "eu-west-1"
    assert stub.count("HeadBucket") == 1
    at_home.close()
    assert s3.head_bucket(Bucket=BUCKET)["BucketRegion"] == "eu-west-1"
    assert stub.count("HeadBucket") == 3, "botocore follows the redirect by signing for the other region"


@pytest.mark.parametrize(
    "call", ["head_bucket", "list_objects_v2", "list_object_versions", "get_bucket_acl", "get_bucket_policy"]
)
def test_calls_of_a_bucket_that_is_not_there(stub: StubServer, s3: Any, call: str) -> None:
    del stub.world.buckets[BUCKET]
    code = "404" if call == "head_bucket" else "NoSuchBucket"
    assert refusal(getattr(s3, call))[:2] == (404, code)


def test_bucket_of_another_owner_than_expected(s3: Any, bucket: StubBucket) -> None:
    bucket.put("k")
    for call, arguments in ((s3.list_objects_v2, {}), (s3.get_object_acl, {"Key": "k"}), (s3.get_bucket_acl, {})):
        assert refusal(call, ExpectedBucketOwner="999999999999", **arguments)[:2] == (403, "AccessDenied")
        call(Bucket=BUCKET, ExpectedBucketOwner=ACCOUNT, **arguments)


def test_requester_pays_bucket_wants_it_agreed(s3: Any, bucket: StubBucket) -> None:
    bucket.put("k")
    bucket.request_payer = "Requester"
    calls: list[tuple[Callable[..., Any], dict[str, str]]] = [
        (s3.list_objects_v2, {}),
        (s3.list_object_versions, {}),
        (s3.get_object_acl, {"Key": "k"}),
        (s3.get_object, {"Key": "k"}),
    ]
    for call, arguments in calls:
        assert refusal(call, **arguments)[:2] == (403, "AccessDenied")
        call(Bucket=BUCKET, RequestPayer="requester", **arguments)


def test_listing_that_is_denied(s3: Any, bucket: StubBucket) -> None:
    bucket.odd["ListObjectsV2"] = Odd.DENIED
    assert refusal(s3.list_objects_v2)[:2] == (403, "AccessDenied")


def test_buckets_are_listed_with_their_owner(stub: StubServer, s3: Any) -> None:
    stub.world.add("other", region="eu-west-1")
    answer = s3.list_buckets(Prefix="oth")
    assert (answer["Owner"], answer["Prefix"]) == ({"ID": OWNER}, "oth")
    assert [(found["Name"], found["BucketRegion"]) for found in answer["Buckets"]] == [("other", "eu-west-1")]
    assert len(s3.list_buckets()["Buckets"]) == 2


def test_caller_identity(stub: StubServer) -> None:
    sts = client("sts", stub.url)
    answer = sts.get_caller_identity()
    assert (answer["Account"], answer["Arn"]) == (ACCOUNT, stub.world.arn)
    stub.world.odd["GetCallerIdentity"] = Odd.DENIED
    with pytest.raises(ClientError, match="AccessDenied"):
        sts.get_caller_identity()
    sts.close()


def test_account_level_access_block(stub: StubServer) -> None:
    control = client("s3control", stub.url)
    with pytest.raises(ClientError, match="NoSuchPublicAccessBlockConfiguration"):
        control.get_public_access_block(AccountId=ACCOUNT)
    stub.world.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    answer = control.get_public_access_block(AccountId=ACCOUNT)["PublicAccessBlockConfiguration"]
    assert [name for name, on in answer.items() if on] == ["IgnorePublicAcls"]
    stub.world.odd["GetAccountPublicAccessBlock"] = Odd.MALFORMED
    assert "IgnorePublicAcls" not in control.get_public_access_block(AccountId=ACCOUNT).get(
        "PublicAccessBlockConfiguration", {}
    )
    assert {logged.operation for logged in stub.requests} == {"GetAccountPublicAccessBlock"}
    control.close()


def test_what_the_stub_does_not_know_is_no_empty_success(stub: StubServer) -> None:
    status, body = raw(stub.url, "/audited?replication")
    assert (status, b"<Code>NotImplemented</Code>" in body) == (501, True)
    assert raw(stub.url, "/audited/%ff")[0] == 400
