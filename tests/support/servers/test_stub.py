"""The stub answers as S3 does, where the engines' suite, which compares it with other servers, does not look."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from auditor.model.bucket import Encryption, PublicAccessBlock
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, Acl, Grant
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET, client, raw, refusal
from tests.support.servers.samples import SAMPLES, generated_world, sample_bucket, sample_kind
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_calls import Logged
from tests.support.servers.world import ACCOUNT, OWNER, STRANGER, Odd, StubBucket

Requests = list[tuple[Any, dict[str, Any]]]

SUB_RESOURCES: Final = {
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


def test_odd_keys_and_samples_are_what_their_names_say() -> None:
    assert len(set(ODD_KEYS.values())) == len(ODD_KEYS) >= 24
    assert len(ODD_KEYS["longest"].encode()) == max(len(key.encode()) for key in ODD_KEYS.values()) == 1024
    assert unicodedata.normalize("NFC", ODD_KEYS["nfd"]) == ODD_KEYS["nfc"]
    assert {sample_kind(number) for number in range(100)} == set(SAMPLES)
    assert set(ODD_KEYS.values()) <= set(sample_bucket(100).objects.keys)


class TestObjects:
    def test_path_is_decoded_once_and_never_normalised(self, stub: StubServer) -> None:
        targets = {"//leading": "/leading", "/a/../b": "a/../b", "/..": "..", "/a+b": "a+b", "/%2541": "%41"}
        for target, key in (targets | {"/%2e%2e%2fup": "../up"}).items():
            stub.put(BUCKET, key, key.encode())
            assert raw(stub.url, f"/audited{target}") == (200, key.encode())

    def test_listing_writes_a_space_as_plus_and_a_plus_as_percent(self, stub: StubServer) -> None:
        stub.put(BUCKET, "a b+c/\n")
        for listing in ("list-type=2", "versions"):
            assert b"<Key>a+b%2Bc/%0A</Key>" in raw(stub.url, f"/audited?{listing}&encoding-type=url")[1]
            assert b"<Key>a b+c/&#xa;</Key>" in raw(stub.url, f"/audited?{listing}")[1]

    def test_listing_has_owner_checksum_and_restoration_as_asked(self, stub: StubServer, s3: Any) -> None:
        for key in ("p/1", "p/2"):
            stub.put(BUCKET, key, owner=STRANGER, checksums={"SHA256": "AA=="}, checksum_type="FULL_OBJECT")
        stub.put(BUCKET, "p/3", storage_class="GLACIER", restored=True)
        page = s3.list_objects_v2(Bucket=BUCKET, Prefix="p/", StartAfter="p/1", MaxKeys=1, FetchOwner=True)
        entry = page["Contents"][0]
        assert (entry["Key"], entry["Owner"], page["IsTruncated"]) == ("p/2", {"ID": STRANGER}, True)
        assert (entry["ChecksumAlgorithm"], entry["ChecksumType"]) == (["SHA256"], "FULL_OBJECT")
        later = {"Bucket": BUCKET, "ContinuationToken": page["NextContinuationToken"]}
        (rest,) = s3.list_objects_v2(**later)["Contents"]
        assert (rest["Key"], "Owner" in rest, "RestoreStatus" in rest) == ("p/3", False, False)
        (rest,) = s3.list_objects_v2(**later, OptionalObjectAttributes=["RestoreStatus"])["Contents"]
        assert rest["RestoreStatus"]["IsRestoreInProgress"] is False
        assert refusal(s3.list_objects_v2, ContinuationToken="none of ours")[:2] == (400, "InvalidArgument")

    def test_delete_marker_is_404_as_current_and_405_when_named(self, s3: Any, bucket: StubBucket) -> None:
        bucket.versioning = "Enabled"
        first = bucket.put("k", b"1").version_id
        marker = bucket.delete("k")
        assert marker is not None
        for call, code in ((s3.head_object, "404"), (s3.get_object, "NoSuchKey"), (s3.get_object_acl, "NoSuchKey")):
            status, found, headers = refusal(call, Key="k")
            assert (status, found, headers["x-amz-delete-marker"]) == (404, code, "true")
        for call, code in ((s3.head_object, "405"), (s3.get_object, "MethodNotAllowed")):
            status, found, headers = refusal(call, Key="k", VersionId=marker.version_id)
            assert (status, found, headers["x-amz-delete-marker"]) == (405, code, "true")
            assert headers["last-modified"] == "Fri, 02 Jan 2026 03:04:05 GMT"
        assert s3.head_object(Bucket=BUCKET, Key="k", VersionId=first)["VersionId"] == first
        assert refusal(s3.get_object_acl, Key="k", VersionId="none")[:2] == (404, "NoSuchVersion")

    def test_head_has_encryption_and_other_headers(self, stub: StubServer, s3: Any) -> None:
        key = "arn:aws:kms:us-east-1:111122223333:key/1"
        lock = {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-tagging-count": "2"}
        stub.put(BUCKET, "k", b"abc", sse="aws:kms", kms_key=key, bucket_key=True, headers=lock, metadata={"a": "b"})
        head = s3.head_object(Bucket=BUCKET, Key="k")
        assert (head["ETag"], head["ContentLength"]) == ('"900150983cd24fb0d6963f7d28e17f72"', 3)
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"], head["BucketKeyEnabled"]) == ("aws:kms", key, True)
        assert (head["ObjectLockMode"], head["TagCount"], head["Metadata"]) == ("GOVERNANCE", 2, {"a": "b"})

    def test_each_reason_not_to_read_an_object_has_its_own_answer(self, stub: StubServer, s3: Any) -> None:
        stub.put(BUCKET, "customer key", sse_c=True)
        stub.put(BUCKET, "archived", storage_class="DEEP_ARCHIVE")
        stub.put(BUCKET, "denied", deny={"acl", "head", "get"})
        stub.put(BUCKET, "no decrypt", deny={"checksum"})
        assert refusal(s3.head_object, Key="customer key")[:2] == (400, "400")
        assert refusal(s3.get_object, Key="customer key")[:2] == (400, "InvalidRequest")
        assert s3.get_object_acl(Bucket=BUCKET, Key="customer key")["Owner"] == {"ID": OWNER}
        assert refusal(s3.get_object, Key="archived")[:2] == (403, "InvalidObjectState")
        assert refusal(s3.head_object, Key="denied")[:2] == (403, "403")
        assert refusal(s3.get_object_acl, Key="denied")[:2] == (403, "AccessDenied")
        assert refusal(s3.get_object, Key="denied")[:2] == (403, "AccessDenied")
        assert refusal(s3.head_object, Key="no decrypt", ChecksumMode="ENABLED")[:2] == (403, "403")
        assert s3.head_object(Bucket=BUCKET, Key="no decrypt")["ContentLength"] == 0

    def test_acl_is_returned_as_it_takes_effect(self, stub: StubServer, s3: Any, bucket: StubBucket) -> None:
        grants = (Grant(ALL_USERS, "READ"), Grant(AUTHENTICATED_USERS, "WRITE_ACP"), Grant(STRANGER, "READ_ACP"))
        bucket.acl = Acl(OWNER, grants)
        stub.put(BUCKET, "k", owner=STRANGER, grants=grants)

        def seen(answer: dict[str, Any]) -> list[tuple[str, str]]:
            return [(g["Grantee"].get("URI") or g["Grantee"]["ID"], g["Permission"]) for g in answer["Grants"]]

        plain = [(grant.grantee, grant.permission) for grant in grants]
        assert seen(s3.get_object_acl(Bucket=BUCKET, Key="k")) == seen(s3.get_bucket_acl(Bucket=BUCKET)) == plain
        for level in (bucket, stub.world):
            level.public_access_block = PublicAccessBlock(ignore_public_acls=True)
            masked = seen(s3.get_object_acl(Bucket=BUCKET, Key="k"))
            assert masked == seen(s3.get_bucket_acl(Bucket=BUCKET)) == plain[2:]
            level.public_access_block = None
        bucket.ownership = "BucketOwnerEnforced"
        enforced = s3.get_object_acl(Bucket=BUCKET, Key="k")
        assert (enforced["Owner"]["ID"], seen(enforced)) == (OWNER, [(OWNER, "FULL_CONTROL")])

    def test_computed_bucket_is_in_order_and_any_key_can_be_read(self, stub: StubServer, s3: Any) -> None:
        stub.world.buckets = generated_world(1_000_000).buckets
        page = s3.list_objects_v2(Bucket=BUCKET, StartAfter="data/000499/000499999.bin")
        keys = [entry["Key"] for entry in page["Contents"]]
        assert (keys[0], keys[-1]) == ("data/000500/000500000.bin", "data/000500/000500999.bin")
        assert all(left < right for left, right in pairwise(keys))
        assert len(s3.get_object_acl(Bucket=BUCKET, Key=keys[0])["Grants"]) == 2
        assert refusal(s3.head_object, Key="data/000500/000500000.bim")[:2] == (404, "404")


class TestBuckets:
    def test_sub_resources_configured_denied_and_odd(self, bucket: StubBucket, s3: Any) -> None:
        bucket.region, bucket.versioning, bucket.request_payer = "eu-west-1", "Enabled", "Requester"
        bucket.public_access_block = PublicAccessBlock(True, False, True, False)
        bucket.policy, bucket.policy_is_public = '{"Statement": []}', True
        bucket.encryption = Encryption("aws:kms", "arn:aws:kms:eu-west-1:111122223333:key/1", True)
        facts = {name: getattr(s3, method)(Bucket=BUCKET)[member] for name, (method, member) in SUB_RESOURCES.items()}
        blocks = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
        (rule,) = facts.pop("GetBucketEncryption")["Rules"]
        assert rule["ApplyServerSideEncryptionByDefault"]["KMSMasterKeyID"][-5:] == "key/1"
        assert rule["BucketKeyEnabled"] is True
        assert facts == {
            "GetBucketOwnershipControls": {"Rules": [{"ObjectOwnership": "ObjectWriter"}]},
            "GetPublicAccessBlock": dict(zip(blocks, (True, False, True, False), strict=True)),
            "GetBucketAcl": {"ID": OWNER},
            "GetBucketPolicyStatus": {"IsPublic": True},
            "GetBucketVersioning": "Enabled",
            "GetBucketRequestPayment": "Requester",
            "GetBucketLocation": "eu-west-1",
            "GetBucketPolicy": '{"Statement": []}',
        }
        for operation, (method, member) in SUB_RESOURCES.items():
            bucket.odd[operation] = Odd.DENIED
            assert refusal(getattr(s3, method))[:2] == (403, "AccessDenied")
            for odd in () if operation in {"GetBucketPolicy", "GetBucketLocation"} else (Odd.EMPTY, Odd.MALFORMED):
                bucket.odd[operation] = odd
                assert not getattr(s3, method)(Bucket=BUCKET).get(member), operation
        bucket.odd["GetBucketPolicy"] = Odd.MALFORMED
        assert s3.get_bucket_policy(Bucket=BUCKET)["Policy"] == "{"

    def test_sub_resources_that_were_never_configured(self, bucket: StubBucket, s3: Any) -> None:
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

    def test_bucket_of_another_region(self, bucket: StubBucket, stub: StubServer, s3: Any) -> None:
        bucket.region, bucket.wrong_region = "eu-west-1", "signature"
        assert s3.head_bucket(Bucket=BUCKET)["BucketRegion"] == "eu-west-1"
        assert stub.count("HeadBucket") == 2, "botocore follows the redirect by signing for the other region"
        bucket.wrong_region = "always"
        status, code, headers = refusal(s3.get_bucket_acl)
        assert (status, code, headers["x-amz-bucket-region"]) == (301, "PermanentRedirect", "eu-west-1")
        assert refusal(s3.head_bucket)[:2] == (301, "301")

    def test_bucket_that_is_not_there_or_of_another_owner(self, stub: StubServer, s3: Any, bucket: StubBucket) -> None:
        bucket.put("k")
        calls: Requests = [(s3.list_objects_v2, {}), (s3.get_object_acl, {"Key": "k"}), (s3.get_bucket_acl, {})]
        for call, arguments in calls:
            assert refusal(call, ExpectedBucketOwner="999999999999", **arguments)[:2] == (403, "AccessDenied")
            call(Bucket=BUCKET, ExpectedBucketOwner=ACCOUNT, **arguments)
        del stub.world.buckets[BUCKET]
        for call, arguments in calls:
            assert refusal(call, **arguments)[:2] == (404, "NoSuchBucket")

    def test_requester_pays_bucket_wants_it_agreed(self, s3: Any, bucket: StubBucket) -> None:
        bucket.put("k")
        bucket.request_payer = "Requester"
        one = {"Key": "k"}
        calls: Requests = [
            *((call, {}) for call in (s3.list_objects_v2, s3.list_object_versions)),
            *((call, one) for call in (s3.get_object_acl, s3.get_object)),
        ]
        for call, arguments in calls:
            assert refusal(call, **arguments)[:2] == (403, "AccessDenied")
            call(Bucket=BUCKET, RequestPayer="requester", **arguments)


def test_caller_and_account(stub: StubServer) -> None:
    sts, control = (client(service, stub.url) for service in ("sts", "s3control"))
    answer = sts.get_caller_identity()
    assert (answer["Account"], answer["Arn"]) == (ACCOUNT, stub.world.arn)
    stub.world.odd["GetCallerIdentity"] = Odd.DENIED
    with pytest.raises(ClientError, match="AccessDenied"):
        sts.get_caller_identity()
    member = "PublicAccessBlockConfiguration"
    with pytest.raises(ClientError, match="NoSuchPublicAccessBlockConfiguration"):
        control.get_public_access_block(AccountId=ACCOUNT)
    stub.world.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    on = control.get_public_access_block(AccountId=ACCOUNT)[member]
    assert [name for name, value in on.items() if value] == ["IgnorePublicAcls"]
    stub.world.odd["GetAccountPublicAccessBlock"] = Odd.MALFORMED
    assert "IgnorePublicAcls" not in control.get_public_access_block(AccountId=ACCOUNT).get(member, {})
    sts.close()
    control.close()


def test_log_names_operation_bucket_key_and_version(stub: StubServer, s3: Any) -> None:
    stub.put(BUCKET, "k")
    s3.list_buckets()
    s3.get_object_acl(Bucket=BUCKET, Key="k", VersionId="null", ExpectedBucketOwner=ACCOUNT)
    assert stub.requests == [Logged("ListBuckets", "", "", None), Logged("GetObjectAcl", BUCKET, "k", "null")]
    assert stub.calls[1].headers["x-amz-expected-bucket-owner"] == ACCOUNT
    stub.forget()
    stub.record = False
    s3.head_object(Bucket=BUCKET, Key="k")
    assert (stub.requests, stub.count("HeadObject")) == ([], 0)


def test_a_call_that_the_stub_does_not_know_is_no_empty_success(stub: StubServer) -> None:
    status, body = raw(stub.url, "/audited?replication")
    assert (status, b"<Code>NotImplemented</Code>" in body) == (501, True)
    assert raw(stub.url, "/audited/%ff")[0] == 400
