"""How the server answers the calls that an audit makes: listings, bucket facts, and reads of an object.

Where Ceph RGW 16.2 differs from S3, a test says so: those are the answers that the product must live with.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import unquote

import pytest

from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.rgw import RgwServer
from tests.system.real.oracle import answer, status
from tests.system.real.world import ACLS, FOREIGN, ODD, VERSIONS

ORDERED = sorted(ODD_KEYS.values(), key=str.encode)


def test_listing_names_the_foreign_owner(rgw: RgwServer, owner: Any) -> None:
    listed = owner.list_objects_v2(Bucket=FOREIGN, FetchOwner=True)["Contents"]
    owners = {entry["Key"]: entry["Owner"]["ID"] for entry in listed}
    assert {key for key, name in owners.items() if name == rgw.owner.canonical_id} == {"own/private"}
    assert set(owners.values()) == {rgw.owner.canonical_id, rgw.other.canonical_id}


@pytest.mark.parametrize(
    ("operation", "entries"), [("list_objects_v2", "Contents"), ("list_object_versions", "Versions")]
)
def test_listing_returns_every_odd_key_in_byte_order(owner: Any, operation: str, entries: str) -> None:
    """With an explicit EncodingType botocore leaves decoding to us; a space comes as %20, a slash as %2F."""
    listed = [entry["Key"] for entry in getattr(owner, operation)(Bucket=ODD, EncodingType="url")[entries]]
    assert [unquote(key) for key in listed] == ORDERED
    assert "a%20key%20with%20spaces" in listed
    assert not [key for key in listed if "+" in key or "/" in key]


def test_listing_goes_on_after_any_key(owner: Any) -> None:
    """But for one: an answer repeats the key it began after, and with control characters that is not XML."""
    for number, key in enumerate(ORDERED):
        if key != ODD_KEYS["control"]:
            listed = owner.list_objects_v2(Bucket=ODD, StartAfter=key).get("Contents", [])
            assert [entry["Key"] for entry in listed] == ORDERED[number + 1 :]


def test_page_that_ends_at_a_control_character_cannot_be_parsed(owner: Any) -> None:
    """RGW writes the token of the next page as `&#x01;`, which XML 1.0 forbids; S3's tokens are opaque."""
    number = ORDERED.index(ODD_KEYS["control"])
    assert status(owner.list_objects_v2, Bucket=ODD, MaxKeys=number + 1) == 500
    assert status(owner.list_object_versions, Bucket=ODD, MaxKeys=number + 1) == 500
    assert status(owner.list_objects_v2, Bucket=ODD, MaxKeys=number + 2) == 200


def test_key_marker_without_a_version_returns_that_key_again(owner: Any) -> None:
    """S3 begins after the key."""
    listed = owner.list_object_versions(Bucket=VERSIONS, KeyMarker="private-then-public", MaxKeys=1)
    assert [entry["Key"] for entry in listed["Versions"]] == ["private-then-public"]


UNCONFIGURED = [
    ("get_bucket_ownership_controls", {"OwnershipControls": {}}),
    ("get_bucket_encryption", {"ServerSideEncryptionConfiguration": {}}),
    ("get_bucket_policy_status", {"PolicyStatus": {"IsPublic": False}}),
    ("get_bucket_request_payment", {"Payer": "BucketOwner"}),
    ("get_bucket_versioning", {}),
    ("get_bucket_location", {"LocationConstraint": "default"}),
]


@pytest.mark.parametrize(("operation", "expected"), UNCONFIGURED)
def test_bucket_without_configuration_answers(owner: Any, operation: str, expected: Mapping[str, Any]) -> None:
    """RGW knows no ownership controls and no default encryption: it lists the bucket, and botocore finds no rules."""
    assert answer(getattr(owner, operation), Bucket=ACLS) == (200, "", expected)


@pytest.mark.usefixtures("world")
def test_unknown_subresource_is_answered_with_a_listing(rgw: RgwServer) -> None:
    """Which is why a key with control characters makes such an answer unreadable, where another bucket's is empty."""
    with closing(rgw.client(rgw.owner)) as client:
        seen: list[bytes] = []
        client.meta.events.register("before-parse.s3", lambda response_dict, **_: seen.append(response_dict["body"]))
        assert status(client.get_bucket_ownership_controls, Bucket=ACLS) == 200
        assert status(client.get_bucket_ownership_controls, Bucket=ODD) == 500
    assert all(b"<ListBucketResult" in body for body in seen)


def test_bucket_without_configuration_lacks_policy_and_access_block(owner: Any) -> None:
    """S3 answers 404 NoSuchPublicAccessBlockConfiguration, RGW four times false."""
    assert answer(owner.get_bucket_policy, Bucket=ACLS)[:2] == (404, "NoSuchBucketPolicy")
    block = owner.get_public_access_block(Bucket=ACLS)["PublicAccessBlockConfiguration"]
    assert set(block.values()) == {False}


def test_bucket_facts_are_denied_to_the_other_account(other: Any) -> None:
    for operation in (*(name for name, _ in UNCONFIGURED), "get_bucket_acl", "get_public_access_block"):
        assert answer(getattr(other, operation), Bucket=ACLS)[:2] == (403, "AccessDenied"), operation


def test_every_policy_for_a_named_account_counts_as_public(rgw: RgwServer, owner: Any) -> None:
    owner.create_bucket(Bucket="named-account")
    principal, resource = f'{{"AWS": "{rgw.other.arn}"}}', "arn:aws:s3:::named-account/*"
    allow = f'{{"Effect": "Allow", "Principal": {principal}, "Action": "s3:GetObject", "Resource": "{resource}"}}'
    owner.put_bucket_policy(Bucket="named-account", Policy=f'{{"Version": "2012-10-17", "Statement": [{allow}]}}')
    assert owner.get_bucket_policy_status(Bucket="named-account")["PolicyStatus"]["IsPublic"]


def test_caller_is_known_by_list_buckets_and_not_by_sts(rgw: RgwServer, owner: Any) -> None:
    """The answer of STS has no Error element at all: a code must be looked for, not taken."""
    assert owner.list_buckets()["Owner"]["ID"] == rgw.owner.canonical_id
    with closing(rgw.client(rgw.owner, "sts")) as sts:
        assert answer(sts.get_caller_identity)[:2] == (405, "")


def test_expected_bucket_owner_is_ignored(owner: Any) -> None:
    assert status(owner.head_bucket, Bucket=ACLS, ExpectedBucketOwner="123456789012") == 200


def test_conditional_partial_and_versioned_reads(owner: Any) -> None:
    here = {"Bucket": ACLS, "Key": "canned/private"}
    etag = owner.head_object(**here)["ETag"]
    assert answer(owner.get_object, **here, IfMatch=etag)[2]["Body"] == b"body of canned/private"
    assert answer(owner.get_object, **here, IfMatch='"0"')[:2] == (412, "PreconditionFailed")
    assert answer(owner.get_object, **here, Range="bytes=0-3", IfMatch=etag)[2]["Body"] == b"body"
    assert answer(owner.get_object, **here, VersionId="null")[0] == 200
    assert answer(owner.get_object, **here, VersionId="nosuch")[:2] == (404, "NoSuchKey")


def test_missing_object_and_missing_bucket(owner: Any, other: Any) -> None:
    """Without the right to list, a missing object is 403."""
    assert answer(owner.get_object_acl, Bucket=ACLS, Key="nowhere")[:2] == (404, "NoSuchKey")
    assert answer(owner.head_object, Bucket=ACLS, Key="nowhere")[:2] == (404, "404")
    assert answer(other.head_object, Bucket=ACLS, Key="nowhere")[:2] == (403, "403")
    assert answer(owner.list_objects_v2, Bucket="nowhere")[:2] == (404, "NoSuchBucket")
