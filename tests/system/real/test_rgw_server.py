"""What the verdicts rest on, asked of a server that enforces ACLs and policies.

Where Ceph RGW 16.2 differs from S3, a test says so, so that a difference in a verdict is understood and not excused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from auditor.model.object import ALL_USERS
from tests.support.odd_keys import ODD_KEYS
from tests.system.real.oracle import Reach, Truth
from tests.system.real.world import ACLS, FOREIGN, IGNORED, ODD, POLICY, RESTRICTED, VERSIONS, Place, World

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


def test_deny_of_both_gets_leaves_the_owner_the_acl(world: World, truth: Truths) -> None:
    seen = truth[world.at(POLICY, "deny-get-any-version/public-read")]
    assert not seen.public
    assert (seen.acl, seen.head) == (200, 403)


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
