"""What the verdicts rest on, asked of a server that enforces ACLs and policies.

Where Ceph RGW 16.2 differs from S3, a test says so, so that a difference in a verdict is understood and not excused.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import unquote

import pytest

from auditor.models import ALL_USERS
from tests.odd_keys import ODD_KEYS
from tests.real.oracle import Reach, Truth, answer, status
from tests.real.world import ACLS, FOREIGN, IGNORED, ODD, POLICY, RESTRICTED, VERSIONS, Place, World
from tests.servers.rgw import RgwServer

Truths = Mapping[Place, Truth]

ALLOWS = {
    "READ": {"read"},
    "READ_ACP": {"read_acl"},
    "WRITE_ACP": {"write_acl"},
    "FULL_CONTROL": {"read", "read_acl", "write_acl"},
}
GRANTED_TO = {
    "everyone": {"anonymous", "stranger", "other"},
    "authenticated": {"stranger", "other"},
    "other": {"other"},
}
NOTHING: set[str] = set()
READ_OF_A_VERSION_ONLY = Reach(status=403, read=True, read_acl=False, write_acl=False)
ORDERED = sorted(ODD_KEYS.values(), key=str.encode)


def can(reach: Reach) -> set[str]:
    return {name for name in ("read", "read_acl", "write_acl") if getattr(reach, name)}


@pytest.mark.parametrize("grantee", GRANTED_TO)
@pytest.mark.parametrize("permission", ALLOWS)
def test_grant_allows_its_permission_to_its_grantee_and_nothing_else(
    world: World, truth: Truths, grantee: str, permission: str
) -> None:
    seen = truth[world.at(ACLS, f"grant/{grantee}/{permission}")]
    for identity in ("anonymous", "stranger", "other"):
        expected = ALLOWS[permission] if identity in GRANTED_TO[grantee] else NOTHING
        assert can(getattr(seen, identity)) == expected, identity


@pytest.mark.parametrize(
    ("canned", "readers"),
    [
        ("private", set()),
        ("bucket-owner-read", set()),
        ("bucket-owner-full-control", set()),
        ("authenticated-read", {"stranger", "other"}),
        ("public-read", {"anonymous", "stranger", "other"}),
        ("public-read-write", {"anonymous", "stranger", "other"}),
    ],
)
def test_canned_acl_lets_these_read(world: World, truth: Truths, canned: str, readers: set[str]) -> None:
    seen = truth[world.at(ACLS, f"canned/{canned}")]
    identities = ("anonymous", "stranger", "other")
    assert {identity for identity in identities if getattr(seen, identity).anything} == readers


def test_odd_key_is_read_by_everyone_exactly_where_its_acl_is_public(world: World, truth: Truths) -> None:
    public = [place.key for place in world.of(ODD) if truth[place].anonymous.read]
    assert public == list(ODD_KEYS.values())[1::2]


def test_deny_of_get_object_leaves_the_version_readable(world: World, truth: Truths) -> None:
    """s3:GetObject is not s3:GetObjectVersion: ?versionId=null still reads a public object of an unversioned bucket."""
    assert truth[world.at(POLICY, "deny-get/public-read")].anonymous == READ_OF_A_VERSION_ONLY
    assert not truth[world.at(POLICY, "deny-get/private")].public


def test_allow_of_get_object_version_exposes_by_version_id(world: World, truth: Truths) -> None:
    assert truth[world.at(POLICY, "allow-everyone-version/private")].anonymous == READ_OF_A_VERSION_ONLY


@pytest.mark.parametrize("prefix", ["deny-get-star", "deny-all"])
def test_deny_of_every_get_shuts_out_the_owner_too(world: World, truth: Truths, prefix: str) -> None:
    seen = truth[world.at(POLICY, f"{prefix}/public-read")]
    assert not seen.public
    assert (seen.acl, seen.head) == (403, 403)


@pytest.mark.parametrize(
    ("prefix", "allowed"),
    [
        ("no-statement", NOTHING),
        ("allow-everyone", {"read"}),
        ("allow-everyone-acl", {"read_acl"}),
        ("allow-everyone-put-acl", {"write_acl"}),
        ("allow-everyone-tagging", NOTHING),
        ("allow-other", NOTHING),
        ("allow-here", {"read"}),
        ("allow-elsewhere", NOTHING),
    ],
)
def test_policy_allows_everyone_this_on_a_private_object(
    world: World, truth: Truths, prefix: str, allowed: set[str]
) -> None:
    seen = truth[world.at(POLICY, f"{prefix}/private")]
    assert can(seen.anonymous) == can(seen.stranger) == allowed


def test_policy_for_one_account_shares_with_that_account_only(world: World, truth: Truths) -> None:
    seen = truth[world.at(POLICY, "allow-other/private")]
    assert (seen.other.read, seen.public) == (True, False)


@pytest.mark.parametrize("prefix", ["deny-other", "deny-elsewhere", "deny-here"])
def test_narrow_deny_leaves_a_public_object_public(world: World, truth: Truths, prefix: str) -> None:
    assert truth[world.at(POLICY, f"{prefix}/public-read")].anonymous.read


def test_each_version_has_its_own_acl(world: World, truth: Truths) -> None:
    def public(key: str) -> list[bool]:
        return [truth[place].anonymous.read for place in world.of(VERSIONS, key)]

    assert public("public-then-private") == [True, False]
    assert public("private-then-public") == [False, True]
    assert public("null-public-then-private") == [True, False]
    assert public("acl-set-on-the-old-version") == [True, False]
    assert public("public-then-deleted") == [True]


def test_policy_for_get_object_reaches_the_latest_version_only(world: World, truth: Truths) -> None:
    reads = {place.latest: truth[place].anonymous.read for place in world.of(VERSIONS, "allow-everyone/private")}
    assert reads == {False: False, True: True}


def test_delete_marker_is_not_there_for_anyone(world: World, truth: Truths) -> None:
    """S3 answers 405 to a GET of the marker itself, RGW 404."""
    assert {(truth[marker].acl, truth[marker].head) for marker in world.markers} == {(404, 404)}
    assert not any(truth[marker].public for marker in world.markers)


def test_ignore_public_acls_masks_groups_but_neither_accounts_nor_policies(world: World, truth: Truths) -> None:
    reached = {place.key for place in world.of(IGNORED) if truth[place].public}
    assert reached == {"allow-everyone/private"}
    shared = {place.key for place in world.of(IGNORED, "grant/") if truth[place].other.anything}
    assert shared == {f"grant/other/{permission}" for permission in ALLOWS}


def test_ignore_public_acls_still_shows_the_masked_grants(owner: Any) -> None:
    """S3 documents that GetObjectAcl then leaves them out; RGW shows what is stored."""
    acl = owner.get_object_acl(Bucket=IGNORED, Key="canned/public-read")
    assert ALL_USERS in [grant["Grantee"].get("URI") for grant in acl["Grants"]]


def test_restrict_public_buckets_is_stored_but_not_enforced(world: World, truth: Truths, owner: Any) -> None:
    """S3 would refuse; on RGW 16.2 the public statement still works, so a masked verdict differs from the server."""
    block = owner.get_public_access_block(Bucket=RESTRICTED)["PublicAccessBlockConfiguration"]
    assert block["RestrictPublicBuckets"]
    assert truth[world.at(RESTRICTED, "allow-everyone/private")].anonymous.read


@pytest.mark.parametrize(
    ("key", "acl", "head"),
    [
        ("canned/private", 403, 403),
        ("canned/public-read", 403, 200),
        ("canned/authenticated-read", 403, 200),
        ("canned/bucket-owner-read", 403, 200),
        ("canned/bucket-owner-full-control", 200, 200),
        ("grant/owner/READ", 403, 200),
        ("grant/owner/READ_ACP", 200, 403),
        ("grant/owner/WRITE_ACP", 403, 403),
        ("grant/owner/FULL_CONTROL", 200, 200),
        ("own/private", 200, 200),
    ],
)
def test_bucket_owner_reads_of_a_foreign_object_what_it_is_granted(
    world: World, truth: Truths, key: str, acl: int, head: int
) -> None:
    seen = truth[world.at(FOREIGN, key)]
    assert (seen.acl, seen.head) == (acl, head)


def test_grant_by_header_takes_the_owner_its_own_full_control(world: World, truth: Truths) -> None:
    """The owner can still read the ACL, but not the object."""
    seen = truth[world.at(ACLS, "grant-alone/other/READ")]
    assert (seen.acl, seen.head, seen.other.read) == (200, 403, True)


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
    """RGW knows no ownership controls and no default encryption: 200 and an element without its rules."""
    assert answer(getattr(owner, operation), Bucket=ACLS) == (200, "", expected)


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
