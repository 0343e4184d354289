"""The stub answers as S3 does, where the engines' suite, which compares it with other servers, does not look."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from auditor.model.bucket import PublicAccessBlock
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, Acl, Grant
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET, client, raw, refusal
from tests.support.servers.samples import SAMPLES, sample_bucket, sample_kind
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import STALL
from tests.support.servers.world import OWNER, STRANGER, StubBucket


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


def test_stalled_body_stops_half_way(stub: StubServer) -> None:
    stub.put(BUCKET, "k", None, size=1000)
    stub.faults = [STALL]
    impatient = client("s3", stub.url, read_timeout=0.2)
    body = impatient.get_object(Bucket=BUCKET, Key="k")["Body"]
    assert len(body.read(500)) == 500
    with pytest.raises(ReadTimeoutError):
        body.read(1)
    body.close()
    impatient.close()


def test_a_call_that_the_stub_does_not_know_is_no_empty_success(stub: StubServer) -> None:
    status, body = raw(stub.url, "/audited?replication")
    assert (status, b"<Code>NotImplemented</Code>" in body) == (501, True)
    assert raw(stub.url, "/audited/%ff")[0] == 400
