"""The stub answers as S3 does, as boto3 understands it and as it looks on the wire."""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Any

import pytest

from auditor.model.bucket import PublicAccessBlock
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, Acl, Grant
from tests.support.odd_keys import MOTO_LISTS_NO_VERSIONS, MOTO_SERVES, ODD_KEYS
from tests.support.servers.clients import BUCKET, listed, raw, refusal
from tests.support.servers.samples import SAMPLES, generated_world, sample_bucket, sample_kind
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_calls import Logged
from tests.support.servers.world import ACCOUNT, OWNER, STRANGER, StubBucket


def test_odd_keys_are_what_their_names_say() -> None:
    assert len(set(ODD_KEYS.values())) == len(ODD_KEYS) >= 24
    assert len(ODD_KEYS["longest"].encode()) == max(len(key.encode()) for key in ODD_KEYS.values()) == 1024
    assert unicodedata.normalize("NFC", ODD_KEYS["nfd"]) == ODD_KEYS["nfc"]
    assert set(ODD_KEYS) >= MOTO_LISTS_NO_VERSIONS > ODD_KEYS.keys() - MOTO_SERVES.keys()


@pytest.mark.parametrize(
    ("operation", "member"), [("list_objects_v2", "Contents"), ("list_object_versions", "Versions")]
)
def test_odd_keys_come_back_in_utf8_order_page_by_page(stub: StubServer, s3: Any, operation: str, member: str) -> None:
    for key in ODD_KEYS.values():
        stub.put(BUCKET, key)
    keys = [entry["Key"] for entry in listed(s3, operation, member, PaginationConfig={"PageSize": 3})]
    assert keys == sorted(ODD_KEYS.values(), key=str.encode)
    assert len(stub.requests) == -(-len(ODD_KEYS) // 3)


@pytest.mark.parametrize("name", ODD_KEYS)
def test_odd_key_reaches_its_object(stub: StubServer, s3: Any, name: str) -> None:
    key = ODD_KEYS[name]
    stub.put(BUCKET, key, name.encode(), acl="public-read")
    assert s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"] == len(name)
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == name.encode()
    assert len(s3.get_object_acl(Bucket=BUCKET, Key=key)["Grants"]) == 2
    assert {(logged.bucket, logged.key) for logged in stub.requests} == {(BUCKET, key)}


@pytest.mark.parametrize(
    ("target", "key"),
    [
        ("/audited//leading", "/leading"),
        ("/audited/a/../b", "a/../b"),
        ("/audited/..", ".."),
        ("/audited/a+b", "a+b"),
        ("/audited/%2541", "%41"),
        ("/audited/%2e%2e%2fup", "../up"),
    ],
)
def test_path_is_decoded_once_and_never_normalised(stub: StubServer, target: str, key: str) -> None:
    stub.put(BUCKET, key, b"here")
    assert raw(stub.url, target) == (200, b"here")


def test_listing_writes_a_space_as_plus_and_a_plus_as_percent(stub: StubServer) -> None:
    stub.put(BUCKET, "a b+c/\n")
    for listing in ("list-type=2", "versions"):
        assert b"<Key>a+b%2Bc/%0A</Key>" in raw(stub.url, f"/audited?{listing}&encoding-type=url")[1]
        assert b"<Key>a b+c/&#xa;</Key>" in raw(stub.url, f"/audited?{listing}")[1]


def test_listing_starts_after_a_key_within_a_prefix(stub: StubServer, s3: Any, bucket: StubBucket) -> None:
    for key in ("a", "p/1", "p/2", "p/3", "q"):
        stub.put(BUCKET, key, owner=STRANGER, checksums={"SHA256": "AA=="}, checksum_type="FULL_OBJECT")
    page = s3.list_objects_v2(Bucket=BUCKET, Prefix="p/", StartAfter="p/1", MaxKeys=1, FetchOwner=True)
    entry = page["Contents"][0]
    assert (entry["Key"], entry["Owner"], page["IsTruncated"]) == ("p/2", {"ID": STRANGER}, True)
    assert (entry["ChecksumAlgorithm"], entry["ChecksumType"]) == (["SHA256"], "FULL_OBJECT")
    rest = s3.list_objects_v2(Bucket=BUCKET, Prefix="p/", ContinuationToken=page["NextContinuationToken"])
    assert [(one["Key"], "Owner" in one) for one in rest["Contents"]] == [("p/3", False)]
    assert refusal(s3.list_objects_v2, ContinuationToken="none of ours")[:2] == (400, "InvalidArgument")


def test_restore_status_is_listed_when_asked_for(stub: StubServer, s3: Any) -> None:
    stub.put(BUCKET, "k", storage_class="GLACIER", restored=True)
    asked = s3.list_objects_v2(Bucket=BUCKET, OptionalObjectAttributes=["RestoreStatus"])["Contents"][0]
    assert asked["RestoreStatus"]["IsRestoreInProgress"] is False
    assert "RestoreStatus" not in s3.list_objects_v2(Bucket=BUCKET)["Contents"][0]


@pytest.mark.parametrize("page_size", [1, 2, 3, 1000])
def test_versions_are_listed_newest_first_on_pages_of_any_size(
    stub: StubServer, s3: Any, bucket: StubBucket, page_size: int
) -> None:
    bucket.put("k", b"before versioning")
    bucket.versioning = "Enabled"
    ids = [bucket.put("k", str(number).encode()).version_id for number in range(3)]
    bucket.delete("k")
    bucket.put("l", b"")
    arguments = {"PaginationConfig": {"PageSize": page_size}}
    versions = listed(s3, "list_object_versions", "Versions", **arguments)
    assert [(v["Key"], v["VersionId"]) for v in versions[:4]] == [("k", i) for i in (*reversed(ids), "null")]
    assert [v["IsLatest"] for v in versions] == [False, False, False, False, True]
    markers = listed(s3, "list_object_versions", "DeleteMarkers", **arguments)
    assert [(m["Key"], m["IsLatest"], m["Owner"]["ID"]) for m in markers] == [("k", True, OWNER)]
    assert [entry["Key"] for entry in listed(s3, "list_objects_v2", "Contents")] == ["l"]


def test_key_marker_alone_passes_over_the_whole_key(stub: StubServer, s3: Any, bucket: StubBucket) -> None:
    bucket.versioning = "Enabled"
    for key in ("k", "k", "l"):
        bucket.put(key)
    assert [v["Key"] for v in s3.list_object_versions(Bucket=BUCKET, KeyMarker="k")["Versions"]] == ["l"]


def test_delete_marker_is_404_as_current_and_405_when_named(s3: Any, bucket: StubBucket) -> None:
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


def test_null_version_is_replaced_where_versioning_is_suspended(s3: Any, bucket: StubBucket) -> None:
    bucket.put("k", b"never versioned")
    bucket.versioning = "Suspended"
    bucket.put("k", b"null again")
    assert s3.get_object(Bucket=BUCKET, Key="k", VersionId="null")["Body"].read() == b"null again"
    assert len(s3.list_object_versions(Bucket=BUCKET)["Versions"]) == 1


def test_head_tells_all_that_the_object_has(stub: StubServer, s3: Any) -> None:
    stub.put(
        BUCKET,
        "k",
        b"abc",
        metadata={"team": "films"},
        sse="aws:kms",
        kms_key="arn:aws:kms:us-east-1:111122223333:key/1",
        bucket_key=True,
        storage_class="STANDARD_IA",
        checksums={"SHA256": "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
        checksum_type="FULL_OBJECT",
        headers={
            "x-amz-object-lock-mode": "GOVERNANCE",
            "x-amz-tagging-count": "2",
            "x-amz-replication-status": "FAILED",
        },
    )
    head = s3.head_object(Bucket=BUCKET, Key="k")
    assert (head["ETag"], head["ContentLength"]) == ('"900150983cd24fb0d6963f7d28e17f72"', 3)
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"][-1], head["BucketKeyEnabled"]) == ("aws:kms", "1", True)
    assert (head["ObjectLockMode"], head["TagCount"], head["ReplicationStatus"]) == ("GOVERNANCE", 2, "FAILED")
    assert (head["Metadata"], head["StorageClass"]) == ({"team": "films"}, "STANDARD_IA")
    assert "ChecksumSHA256" not in head
    asked = s3.head_object(Bucket=BUCKET, Key="k", ChecksumMode="ENABLED")
    assert (asked["ChecksumSHA256"][:6], asked["ChecksumType"]) == ("ungWv4", "FULL_OBJECT")


def test_get_serves_ranges_and_the_version_that_was_meant(stub: StubServer, s3: Any) -> None:
    item = stub.put(BUCKET, "computed", None, size=1_000_003)
    whole = s3.get_object(Bucket=BUCKET, Key="computed", IfMatch=item.etag)["Body"].read()
    assert (len(whole), whole[500_001:500_101]) == (1_000_003, item.read(500_001, 100))
    part = s3.get_object(Bucket=BUCKET, Key="computed", Range="bytes=999990-")
    assert (part["Body"].read(), part["ContentRange"]) == (whole[-13:], "bytes 999990-1000002/1000003")
    assert s3.get_object(Bucket=BUCKET, Key="computed", Range="bytes=-5")["Body"].read() == whole[-5:]
    assert refusal(s3.get_object, Key="computed", Range="bytes=1000003-")[:2] == (416, "InvalidRange")
    assert refusal(s3.get_object, Key="computed", IfMatch='"other"')[:2] == (412, "PreconditionFailed")


def test_each_reason_not_to_read_an_object_has_its_own_answer(stub: StubServer, s3: Any) -> None:
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
    assert refusal(s3.get_object_acl, Key="absent")[:2] == (404, "NoSuchKey")


def test_acl_is_returned_as_it_takes_effect(stub: StubServer, s3: Any, bucket: StubBucket) -> None:
    grants = (Grant(ALL_USERS, "READ"), Grant(AUTHENTICATED_USERS, "WRITE_ACP"), Grant(STRANGER, "READ_ACP"))
    bucket.acl = Acl(OWNER, grants)
    stub.put(BUCKET, "k", owner=STRANGER, grants=grants)

    def seen(answer: dict[str, Any]) -> list[tuple[str, str]]:
        return [(g["Grantee"].get("URI") or g["Grantee"]["ID"], g["Permission"]) for g in answer["Grants"]]

    plain = [(grant.grantee, grant.permission) for grant in grants]
    assert seen(s3.get_object_acl(Bucket=BUCKET, Key="k")) == seen(s3.get_bucket_acl(Bucket=BUCKET)) == plain
    for level in (bucket, stub.world):
        level.public_access_block = PublicAccessBlock(ignore_public_acls=True)
        assert seen(s3.get_object_acl(Bucket=BUCKET, Key="k")) == seen(s3.get_bucket_acl(Bucket=BUCKET)) == plain[2:]
        level.public_access_block = None
    bucket.ownership = "BucketOwnerEnforced"
    enforced = s3.get_object_acl(Bucket=BUCKET, Key="k")
    assert (enforced["Owner"]["ID"], seen(enforced)) == (OWNER, [(OWNER, "FULL_CONTROL")])


def test_samples_hold_every_kind_and_every_odd_key(stub: StubServer, s3: Any) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(100)
    assert {sample_kind(number) for number in range(100)} == set(SAMPLES)
    keys = [entry["Key"] for entry in listed(s3, "list_objects_v2", "Contents")]
    assert len(keys) == 100
    assert set(ODD_KEYS.values()) <= set(keys)


def test_computed_bucket_is_in_order_and_any_key_can_be_read(stub: StubServer, s3: Any) -> None:
    stub.world.buckets = generated_world(1_000_000).buckets
    page = s3.list_objects_v2(Bucket=BUCKET, StartAfter="data/000499/000499999.bin")
    keys = [entry["Key"] for entry in page["Contents"]]
    assert (keys[0], keys[-1]) == ("data/000500/000500000.bin", "data/000500/000500999.bin")
    assert all(left < right for left, right in pairwise(keys))
    assert len(s3.get_object_acl(Bucket=BUCKET, Key=keys[0])["Grants"]) == 2
    assert refusal(s3.head_object, Key="data/000500/000500000.bim")[:2] == (404, "404")


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
