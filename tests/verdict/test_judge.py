"""The verdict of one object: grants that expose it, settings that mask it, and facts that are never private."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, Encryption, PublicAccessBlock, Semantics
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    AUTHENTICATED_USERS,
    LOG_DELIVERY,
    Acl,
    Grant,
    Head,
    ObjectRef,
    Skipped,
    Unread,
)
from auditor.verdict.judge import VerdictJudge, verdict_of

OWNER, OTHER, FRIEND = "a" * 64, "b" * 64, "c" * 64
OURS, THEIRS, FRIENDS = "111122223333", "444455556666", "777788889999"
TRUSTED = frozenset({FRIEND, FRIENDS})
DENIED = Unread("Operation", "AccessDenied")
UNASKED = Skipped("no selected rule needs it")
EXPOSED, UNKNOWN, SHARED, MASKED, _, PRIVATE = Verdict

CURRENT = ObjectRef("dir/key", "e", 1, "2026-01-02T03:04:05Z", owner=OWNER)
NONCURRENT = replace(CURRENT, version_id="v1", is_latest=False)
PLAIN = Head(etag="e", content_length=1, server_side_encryption="AES256")
KMS, DSSE = (replace(PLAIN, server_side_encryption=name) for name in ("aws:kms", "aws:kms:dsse"))
OPEN_BLOCK = PublicAccessBlock()
IGNORES = PublicAccessBlock(ignore_public_acls=True)
RESTRICTS = PublicAccessBlock(restrict_public_buckets=True)


def facts(**changes: Any) -> BucketFacts:
    """A bucket of ours with ACLs in use, and neither a policy nor a public access block."""
    values: dict[str, Any] = {
        "region": "eu-central-1",
        "owner": OWNER,
        "own_id": OWNER,
        "account": OURS,
        "ownership": "ObjectWriter",
        "public_access_block": OPEN_BLOCK,
        "account_public_access_block": OPEN_BLOCK,
        "acl": Acl(OWNER, ()),
        "policy_is_public": UNASKED,  # False would settle each statement with a condition
        "policy": "",
        "versioning": "Enabled",
        "encryption": Encryption("AES256"),
        "request_payer": "BucketOwner",
    }
    return BucketFacts(bucket="bucket", **(values | changes))


def acl(*grants: tuple[str, str], owner: str = OWNER) -> Acl:
    """An ACL with the owner's own grant first, as S3 writes it."""
    return Acl(owner, (Grant(owner, "FULL_CONTROL"), *(Grant(*grant) for grant in grants)))


def allow(**fields: Any) -> dict[str, Any]:
    whole = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    return whole | fields


def deny(**fields: Any) -> dict[str, Any]:
    return allow(**({"Effect": "Deny", "Action": "s3:*"} | fields))


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def judged(
    object_acl: Acl | Unread | Skipped,
    head: Head | Unread | Skipped = UNASKED,
    ref: ObjectRef = CURRENT,
    **changes: Any,
) -> Verdict:
    """The object's verdict; the run lists versions if the object is not the latest."""
    return VerdictJudge(facts(**changes), TRUSTED, versions=not ref.is_latest).access(ref, object_acl, head).verdict


OWN = acl()
PUBLIC_READ = acl((ALL_USERS, "READ"))
CROSS = {"AWS": f"arn:aws:iam::{THEIRS}:root"}
UNSIGNED = {"StringEquals": {"aws:PrincipalType": "Anonymous"}}
ONE_DEFAULT = "arn:aws:s3:::bucket/${aws:username, 'dir'}/*"
TWO_DEFAULTS = "arn:aws:s3:::bucket/${aws:username, 'dir'}/${aws:userid, 'key'}"
ADDRESS = {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}


# ---- the ACL


@pytest.mark.parametrize("group", [ALL_USERS, AUTHENTICATED_USERS])
@pytest.mark.parametrize("permission", ["READ", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"])
def test_a_grant_to_a_public_group(group: str, permission: str) -> None:
    given = acl((group, permission))
    assert judged(given) is EXPOSED
    assert judged(given, public_access_block=IGNORES) is MASKED
    assert judged(given, account_public_access_block=IGNORES) is MASKED
    assert judged(given, public_access_block=DENIED, account_public_access_block=IGNORES) is MASKED
    assert judged(given, public_access_block=RESTRICTS) is EXPOSED
    assert judged(given, public_access_block=DENIED) is EXPOSED
    assert judged(given, ownership=BUCKET_OWNER_ENFORCED) is PRIVATE
    assert judged(given, policy=policy(deny())) is MASKED
    assert judged(given, policy=DENIED) is EXPOSED
    assert judged(given, owner=DENIED) is EXPOSED


@pytest.mark.parametrize(
    ("situation", "given", "expected"),
    [
        ("the owner alone", OWN, PRIVATE),
        ("no grant at all", Acl(OWNER, ()), PRIVATE),
        ("WRITE, which means nothing", acl((ALL_USERS, "WRITE")), PRIVATE),
        ("WRITE for another account", acl((OTHER, "WRITE")), PRIVATE),
        ("another account reads", acl((OTHER, "READ")), SHARED),
        ("another account reads the ACL", acl((OTHER, "READ_ACP")), SHARED),
        ("another account controls", acl((OTHER, "FULL_CONTROL")), SHARED),
        ("a trusted account reads", acl((FRIEND, "READ")), PRIVATE),
        ("a trusted and another account", acl((FRIEND, "READ"), (OTHER, "READ")), SHARED),
        ("another account and the world", acl((OTHER, "READ"), (ALL_USERS, "READ")), EXPOSED),
        ("the log delivery group", acl((LOG_DELIVERY, "READ")), SHARED),
        ("a group that we do not know", acl(("http://example.com/groups/new", "READ")), SHARED),
        ("a permission that we do not know", acl((OTHER, "READ_EVERYTHING")), UNKNOWN),
        ("another owner", acl(owner=OTHER), SHARED),
        ("another owner without a grant", Acl(OTHER, ()), SHARED),
        ("another owner, the bucket's owner in control", acl((OWNER, "FULL_CONTROL"), owner=OTHER), SHARED),
        ("a trusted owner", acl(owner=FRIEND), PRIVATE),
        ("a trusted owner who lets another read", acl((OTHER, "READ"), owner=FRIEND), SHARED),
        # The anonymous user is every unsigned request (S3 User Guide, acl-overview).
        ("an anonymous owner", acl(owner=ANONYMOUS_OWNER), EXPOSED),
        ("the world reads another owner's object", acl((ALL_USERS, "READ"), owner=OTHER), EXPOSED),
    ],
)
def test_what_an_acl_comes_to(situation: str, given: Acl, expected: Verdict) -> None:
    assert judged(given) is expected, situation
    assert judged(given, ownership=BUCKET_OWNER_ENFORCED) is PRIVATE, f"{situation}, ACLs disabled"


def test_an_acl_without_an_owner_leaves_the_listing_to_name_one() -> None:
    assert judged(Acl("", ())) is PRIVATE
    assert judged(Acl("", ()), ref=replace(CURRENT, owner=OTHER)) is SHARED
    assert judged(Acl("", ()), ref=replace(CURRENT, owner=None)) is UNKNOWN  # the owner may be the bucket's


@pytest.mark.parametrize("unknown", [DENIED, UNASKED])
def test_the_buckets_owner_is_not_known(unknown: Unread | Skipped) -> None:
    assert judged(OWN, owner=unknown) is UNKNOWN
    assert judged(acl((OTHER, "READ")), owner=unknown) is SHARED  # one of the two does not own the bucket
    assert judged(acl(owner=FRIEND), owner=unknown) is PRIVATE
    assert judged(acl((LOG_DELIVERY, "READ"), owner=FRIEND), owner=unknown) is SHARED
    assert judged(Acl("", ()), ref=replace(CURRENT, owner=None), owner=unknown) is UNKNOWN
    assert judged(PUBLIC_READ, owner=unknown) is EXPOSED
    assert judged(OWN, owner=unknown, ownership=BUCKET_OWNER_ENFORCED) is PRIVATE


def test_a_trusted_group_is_no_way_to_hide_a_public_grant() -> None:
    judge = VerdictJudge(facts(), frozenset({ALL_USERS, "*"}), versions=False)
    assert judge.access(CURRENT, PUBLIC_READ, PLAIN).verdict is EXPOSED


def test_a_public_access_block_does_not_mask_other_accounts() -> None:
    block = PublicAccessBlock(True, True, True, True)
    assert judged(acl((OTHER, "READ")), public_access_block=block) is SHARED
    assert judged(OWN, public_access_block=block, policy=policy(allow(Principal=CROSS))) is SHARED


# ---- facts that are not there


@pytest.mark.parametrize(
    ("situation", "given", "changes", "expected"),
    [
        ("ACL denied", DENIED, {}, UNKNOWN),
        ("ACL denied, the policy exposes", DENIED, {"policy": policy(allow())}, EXPOSED),
        # Whatever the ACL says, a Deny for everyone comes first.
        ("ACL denied, the policy's exposure is masked", DENIED, {"policy": policy(allow(), deny())}, MASKED),
        ("ACL denied, the policy shares", DENIED, {"policy": policy(allow(Principal=CROSS))}, UNKNOWN),
        ("ACL denied though none counts", DENIED, {"ownership": BUCKET_OWNER_ENFORCED}, PRIVATE),
        ("ACL skipped, ACLs disabled", UNASKED, {"ownership": BUCKET_OWNER_ENFORCED}, PRIVATE),
        ("ACL skipped for another reason", UNASKED, {}, UNKNOWN),
        ("ACL skipped, the reason claims what the bucket does not", Skipped(BUCKET_OWNER_ENFORCED), {}, UNKNOWN),
        ("ACL skipped, ownership unread", UNASKED, {"ownership": DENIED}, UNKNOWN),
        ("ACL read, ownership unread", OWN, {"ownership": DENIED}, PRIVATE),
        ("ACL skipped, the policy exposes", UNASKED, {"policy": policy(allow())}, EXPOSED),
        ("policy denied", OWN, {"policy": DENIED}, UNKNOWN),
        ("policy skipped", OWN, {"policy": UNASKED}, UNKNOWN),
        ("policy no policy", OWN, {"policy": "{}"}, UNKNOWN),
        ("policy denied, another account reads", acl((OTHER, "READ")), {"policy": DENIED}, UNKNOWN),
        ("policy denied, ACLs disabled", UNASKED, {"policy": DENIED, "ownership": BUCKET_OWNER_ENFORCED}, UNKNOWN),
        ("block denied", OWN, {"public_access_block": DENIED}, PRIVATE),
        ("account denied, no policy", OWN, {"account": DENIED}, PRIVATE),
    ],
)
def test_facts_that_are_not_there(
    situation: str, given: Acl | Unread | Skipped, changes: dict[str, Any], expected: Verdict
) -> None:
    assert judged(given, **changes) is expected, situation


def test_a_foreign_owner_in_the_listing_does_not_count_where_acls_are_disabled() -> None:
    foreign = replace(CURRENT, owner=OTHER)
    assert judged(UNASKED, ref=foreign, ownership=BUCKET_OWNER_ENFORCED) is PRIVATE
    assert judged(UNASKED, ref=foreign) is UNKNOWN


# ---- the bucket policy


@pytest.mark.parametrize(
    ("situation", "statements", "expected"),
    [
        ("everyone reads", [allow()], EXPOSED),
        ("everyone reads versions", [allow(Action="s3:GetObjectVersion")], EXPOSED),
        ("everyone reads the ACL", [allow(Action="s3:GetObjectAcl")], EXPOSED),
        ("everyone writes the ACL", [allow(Action="s3:PutObjectAcl")], EXPOSED),
        ("everyone lists", [allow(Action="s3:ListBucket", Resource="arn:aws:s3:::bucket")], PRIVATE),
        ("everyone reads other keys", [allow(Resource="arn:aws:s3:::bucket/public/*")], PRIVATE),
        ("everyone over TLS", [allow(Condition={"Bool": {"aws:SecureTransport": "true"}})], EXPOSED),
        ("everyone from an address", [allow(Condition=ADDRESS)], SHARED),
        ("everyone from an address, and everyone", [allow(Condition=ADDRESS), allow()], EXPOSED),
        ("our role", [allow(Principal={"AWS": f"arn:aws:iam::{OURS}:role/r"})], PRIVATE),
        ("our role from an address", [allow(Principal={"AWS": OURS}, Condition=ADDRESS)], PRIVATE),
        ("another account", [allow(Principal=CROSS)], SHARED),
        ("another account from an address", [allow(Principal=CROSS, Condition=ADDRESS)], SHARED),
        ("a trusted account", [allow(Principal={"AWS": FRIENDS})], PRIVATE),
        ("a trusted canonical ID", [allow(Principal={"CanonicalUser": FRIEND})], PRIVATE),
        ("a service", [allow(Principal={"Service": "cloudfront.amazonaws.com"})], SHARED),
        ("everyone, then denied", [allow(), deny()], MASKED),
        ("everyone, denied first", [deny(), allow()], MASKED),
        ("another account, then denied", [allow(Principal=CROSS), deny()], MASKED),
        ("undecidable, then denied", [allow(Condition=ADDRESS), deny()], MASKED),
        ("everyone, denied another way", [allow(), deny(Action="s3:GetObjectVersion")], EXPOSED),
        ("everyone, denied on other keys", [allow(), deny(Resource="arn:aws:s3:::bucket/x/*")], EXPOSED),
        ("everyone, denied to an account", [allow(), deny(Principal=CROSS)], EXPOSED),
        ("everyone, denied from an address", [allow(), deny(Condition=ADDRESS)], EXPOSED),
        ("everyone reads all, one way denied", [allow(Action="s3:Get*"), deny(Action="s3:GetObject")], EXPOSED),
        ("all denied, nothing allowed", [deny()], PRIVATE),
    ],
)
def test_what_a_policy_comes_to(situation: str, statements: list[dict[str, Any]], expected: Verdict) -> None:
    assert judged(OWN, policy=policy(*statements)) is expected, situation


def test_the_policy_of_an_objects_own_key_is_the_only_one_that_matters_to_it() -> None:
    admits = {"Effect": "Allow", "Principal": {"AWS": THEIRS}, "Action": "kms:Decrypt", "Resource": "*"}
    policies: dict[str, str | Unread] = {"open": policy(admits), "closed": policy(), "unread": DENIED}
    judge = VerdictJudge(facts(policy=policy(allow()), key_policies=policies), (), versions=False)

    def seen(key: str) -> tuple[Verdict, list[str]]:
        head = replace(KMS, sse_kms_key_id=key)
        found = judge.access(CURRENT, OWN, head)
        alone = VerdictJudge(facts(policy=policy(allow()), key_policies={key: policies[key]}), (), versions=False)
        assert found == alone.access(CURRENT, OWN, head)
        return found.verdict, [reason.text for reason in found.reasons]

    assert seen("open")[0] is SHARED
    assert seen("closed") == (MASKED, ["policy-allow: #1", "kms-key: closed"])
    assert "kms-key-unread: unread" in seen("unread")[1]
    policies["later"] = policy(admits)
    assert seen("later")[0] is SHARED
    assert judge.access(CURRENT, OWN, PLAIN).verdict is EXPOSED


def test_ceph_stores_restrict_public_buckets_and_lets_everyone_in() -> None:
    opened = policy(allow(), allow(Principal={"AWS": THEIRS}))
    changes: dict[str, Any] = {"policy": opened, "public_access_block": RESTRICTS}
    assert judged(OWN, semantics=Semantics.CEPH, **changes) is EXPOSED
    assert judged(OWN, semantics=Semantics.OTHER, **changes) is MASKED


def test_restrict_public_buckets_masks_what_a_public_policy_allows() -> None:
    """It cuts off other accounts, too, if the policy is public (S3 User Guide, access-control-block-public-access)."""
    public, cross = allow(), allow(Principal=CROSS)
    assert judged(OWN, policy=policy(public), public_access_block=RESTRICTS) is MASKED
    assert judged(OWN, policy=policy(public), account_public_access_block=RESTRICTS) is MASKED
    assert judged(OWN, policy=policy(public), public_access_block=IGNORES) is EXPOSED
    assert judged(OWN, policy=policy(public), public_access_block=DENIED) is EXPOSED
    assert judged(OWN, policy=policy(public, cross), public_access_block=RESTRICTS) is MASKED
    assert judged(OWN, policy=policy(allow(Principal={"AWS": ["*", THEIRS]})), public_access_block=RESTRICTS) is MASKED
    assert judged(OWN, policy=policy(cross), public_access_block=RESTRICTS) is SHARED
    assert judged(OWN, policy=policy(cross), public_access_block=RESTRICTS, policy_is_public=True) is MASKED


@pytest.mark.parametrize("name", ["AROAEXAMPLE:*", "AROAEXAMPLE:session"])
def test_restrict_public_buckets_does_not_surely_hide_what_one_role_is_allowed(name: str) -> None:
    """The guide leaves open if all sessions of a role make a policy public; S3's own word decides, if it was read."""
    text = policy(allow(Condition={"StringLike": {"aws:userid": name}}))
    assert judged(OWN, policy=text, public_access_block=RESTRICTS) is UNKNOWN
    assert judged(OWN, policy=text, public_access_block=RESTRICTS, policy_is_public=True) is MASKED


def test_account_unread_leaves_a_policy_for_accounts_undecided() -> None:
    assert judged(OWN, policy=policy(allow(Principal={"AWS": OURS})), account=DENIED) is UNKNOWN


# ---- denies against grants


@pytest.mark.parametrize(
    ("situation", "permission", "denied", "expected"),
    [
        ("the plain way denied, ?versionId=null is left", "READ", "s3:GetObject", EXPOSED),
        ("the other way denied", "READ", "s3:GetObjectVersion", EXPOSED),
        ("both ways denied", "READ", ["s3:GetObject", "s3:GetObjectVersion"], MASKED),
        ("every way of reading denied", "READ", "s3:GetObject*", MASKED),
        ("the ACL's ways denied, reading is left", "READ", "s3:*Acl", EXPOSED),
        ("reading denied, its ACL is left", "READ_ACP", ["s3:GetObject", "s3:GetObjectVersion"], EXPOSED),
        ("reading and its ACL denied", "READ_ACP", "s3:Get*", MASKED),
        ("reading denied, writing the ACL is left", "FULL_CONTROL", "s3:Get*", EXPOSED),
        ("writing the ACL denied one way", "WRITE_ACP", "s3:PutObjectAcl", EXPOSED),
        ("writing the ACL denied", "WRITE_ACP", "s3:Put*", MASKED),
        ("everything denied", "FULL_CONTROL", "s3:*", MASKED),
    ],
)
def test_a_deny_masks_the_ways_that_it_covers(
    situation: str, permission: str, denied: str | list[str], expected: Verdict
) -> None:
    text = policy(deny(Action=denied))
    assert judged(acl((ALL_USERS, permission)), policy=text) is expected, situation
    shared = SHARED if expected is EXPOSED else MASKED
    assert judged(acl((OTHER, permission)), policy=text) is shared, f"{situation}, another account"
    assert judged(acl((LOG_DELIVERY, permission)), policy=text) is shared, f"{situation}, another group"


def test_a_foreign_owner_is_masked_only_when_every_way_is_denied() -> None:
    assert judged(acl(owner=OTHER), policy=policy(deny(Action="s3:Get*"))) is SHARED
    assert judged(acl(owner=OTHER), policy=policy(deny())) is MASKED


def test_a_noncurrent_version_is_reached_by_version_only() -> None:
    by_version, plain = deny(Action="s3:GetObjectVersion"), deny(Action="s3:GetObject")
    assert judged(PUBLIC_READ, ref=NONCURRENT) is EXPOSED
    assert judged(PUBLIC_READ, ref=NONCURRENT, policy=policy(by_version)) is MASKED
    assert judged(PUBLIC_READ, ref=NONCURRENT, policy=policy(plain)) is EXPOSED
    assert judged(OWN, ref=NONCURRENT, policy=policy(allow())) is PRIVATE
    assert judged(OWN, ref=NONCURRENT, policy=policy(allow(Action="s3:GetObjectVersion"))) is EXPOSED
    assert judged(OWN, ref=NONCURRENT, policy=policy(allow(Principal=CROSS))) is PRIVATE
    assert judged(acl(owner=OTHER), ref=NONCURRENT, policy=policy(deny(Action="s3:*Version*"))) is MASKED


def test_the_latest_version_in_a_run_over_versions_is_reached_both_ways() -> None:
    judge = VerdictJudge(facts(policy=policy(allow())), TRUSTED, versions=True)
    assert judge.access(replace(CURRENT, version_id="v2"), OWN, PLAIN).verdict is EXPOSED


def test_a_run_that_lists_no_versions_takes_every_object_for_the_latest() -> None:
    judge = VerdictJudge(facts(policy=policy(allow())), TRUSTED)
    assert judge.access(NONCURRENT, OWN, PLAIN).verdict is EXPOSED


def test_objects_of_one_kind_have_the_same_access() -> None:
    judge = VerdictJudge(facts(), TRUSTED)
    other = replace(CURRENT, key="dir/other", etag="f", size=2)
    assert judge.kind(CURRENT, PUBLIC_READ, PLAIN) == judge.kind(other, PUBLIC_READ, replace(PLAIN, content_length=2))
    assert judge.kind(CURRENT, PUBLIC_READ, PLAIN) != judge.kind(CURRENT, OWN, PLAIN)
    assert judge.kind(CURRENT, PUBLIC_READ, PLAIN) != judge.kind(CURRENT, PUBLIC_READ, KMS)


# ---- KMS


@pytest.mark.parametrize("head", [KMS, DSSE])
@pytest.mark.parametrize(
    ("group", "permission", "expected"),
    [
        (ALL_USERS, "READ", MASKED),
        (ALL_USERS, "READ_ACP", EXPOSED),
        (ALL_USERS, "WRITE_ACP", EXPOSED),
        (ALL_USERS, "FULL_CONTROL", EXPOSED),
        (AUTHENTICATED_USERS, "READ", MASKED),  # AllUsers contains them: the key decides for both
        (OTHER, "READ", SHARED),
    ],
)
def test_an_object_under_a_kms_key(head: Head, group: str, permission: str, expected: Verdict) -> None:
    assert judged(acl((group, permission)), head) is expected


def test_a_kms_key_masks_a_policy_for_everyone_as_it_masks_a_grant() -> None:
    assert judged(OWN, KMS, policy=policy(allow())) is MASKED
    assert judged(OWN, KMS, policy=policy(allow(Action="s3:GetObjectAcl"))) is EXPOSED


def test_a_kms_key_masks_reading_and_a_deny_masks_the_rest_of_full_control() -> None:
    assert judged(acl((ALL_USERS, "FULL_CONTROL")), KMS, policy=policy(deny(Action="s3:*Acl"))) is MASKED


@pytest.mark.parametrize("head", [DENIED, UNASKED, PLAIN, replace(PLAIN, server_side_encryption=None)])
def test_encryption_not_known_to_be_kms_masks_nothing(head: Head | Unread | Skipped) -> None:
    assert judged(PUBLIC_READ, head, encryption=Encryption("aws:kms")) is EXPOSED


# ---- one object's facts, given by a Python program


def test_facts_that_a_program_gives() -> None:
    crossing, public = policy(allow(Principal=CROSS)), policy(allow(Resource="arn:aws:s3:::bucket/public/*"))
    assert verdict_of(facts(), acl=OWN) is PRIVATE
    assert verdict_of(facts()) is UNKNOWN
    assert verdict_of(facts(), acl=Acl("", ()), owner=OTHER) is SHARED
    assert verdict_of(facts(), acl=Acl("", ()), owner=OWNER) is PRIVATE
    assert verdict_of(facts(policy=crossing), acl=OWN) is SHARED
    assert verdict_of(facts(policy=crossing), acl=OWN, policy="") is PRIVATE
    assert verdict_of(facts(policy=crossing), acl=OWN, trusted=[THEIRS]) is PRIVATE
    assert verdict_of(facts(), acl=OWN, policy=public, key="public/a") is EXPOSED
    assert verdict_of(facts(), acl=OWN, policy=public, key="a") is PRIVATE
    assert verdict_of(facts(), acl=OWN, policy=policy(allow(Resource="arn:aws:s3:::bucket/?*"))) is PRIVATE
    assert verdict_of(facts(), acl=PUBLIC_READ, head=KMS) is MASKED
    assert verdict_of(facts(), acl=PUBLIC_READ) is EXPOSED


# ---- what holds whatever the facts

# Shared and unknown are equal here: of two accounts one of which owns the bucket, the other is an outsider for sure.
STRENGTH = {EXPOSED: 3, UNKNOWN: 2, SHARED: 2, MASKED: 1, PRIVATE: 0}


@pytest.mark.parametrize(
    ("resource", "semantics", "verdict"),
    [
        (ONE_DEFAULT, Semantics.AWS, EXPOSED),
        (ONE_DEFAULT.replace("'dir'", "'other'"), Semantics.AWS, PRIVATE),
        (TWO_DEFAULTS, Semantics.AWS, UNKNOWN),
        (ONE_DEFAULT, Semantics.CEPH, UNKNOWN),
    ],
)
def test_the_default_of_a_variable_lets_in_who_has_no_value(
    resource: str, semantics: Semantics, verdict: Verdict
) -> None:
    text = policy(allow(Resource=resource, Condition=UNSIGNED))
    assert judged(OWN, PLAIN, policy=text, semantics=semantics) is verdict


grants = st.builds(
    Grant,
    st.sampled_from([OWNER, OTHER, FRIEND, ALL_USERS, AUTHENTICATED_USERS, LOG_DELIVERY]),
    st.sampled_from(["READ", "READ_ACP", "WRITE", "WRITE_ACP", "FULL_CONTROL"]),
)
acls = st.builds(Acl, st.sampled_from([OWNER, OWNER, OTHER, FRIEND]), st.lists(grants, max_size=3).map(tuple))
statements = st.fixed_dictionaries(
    {
        "Effect": st.just("Allow"),
        "Principal": st.sampled_from(
            ["*", {"AWS": OURS}, {"AWS": THEIRS}, {"AWS": FRIENDS}, {"CanonicalUser": OTHER}, {"AWS": "AIDAX"}]
        ),
        "Action": st.sampled_from(["s3:*", "s3:GetObject", "s3:GetObject*", "s3:GetObjectVersion", "s3:*Acl", "x:*"]),
        "Resource": st.sampled_from(
            [
                "arn:aws:s3:::bucket/*",
                "arn:aws:s3:::bucket/dir/*",
                "arn:aws:s3:::bucket/x/*",
                "arn:aws:s3:::bucket",
                "arn:aws:s3:::bucket/${aws:username}/*",
            ]
        ),
    },
    optional={"Condition": st.sampled_from([ADDRESS, {"Bool": {"aws:SecureTransport": "true"}}])},
)
denies = statements.map(lambda statement: statement | {"Effect": "Deny"})
blocks = st.builds(PublicAccessBlock, ignore_public_acls=st.booleans(), restrict_public_buckets=st.booleans())
heads = st.sampled_from([PLAIN, KMS, DENIED, UNASKED])
refs = st.sampled_from([CURRENT, NONCURRENT])
policies = st.lists(statements | denies, max_size=3)
whole_facts = st.fixed_dictionaries(
    {
        "owner": st.sampled_from([OWNER, OWNER, OTHER, DENIED]),
        "own_id": st.sampled_from([OWNER, OWNER, DENIED]),
        "account": st.sampled_from([OURS, OURS, DENIED, UNASKED]),
        "ownership": st.sampled_from(["ObjectWriter", BUCKET_OWNER_ENFORCED, DENIED]),
        "public_access_block": blocks | st.just(DENIED),
        "account_public_access_block": blocks | st.just(UNASKED),
    }
)
object_acls = acls | st.sampled_from([DENIED, UNASKED])
losses = st.sampled_from(
    [
        "owner",
        "own_id",
        "account",
        "ownership",
        "public_access_block",
        "account_public_access_block",
        "policy",
        "acl",
        "head",
    ]
)


@given(object_acls, heads, refs, whole_facts, policies.map(lambda some: policy(*some)) | st.sampled_from([DENIED, ""]))
def test_private_means_that_it_was_looked_at(
    object_acl: Acl | Unread | Skipped, head: Any, ref: ObjectRef, changes: dict[str, Any], text: Any
) -> None:
    verdict = judged(object_acl, head, ref, policy=text, **changes)
    assume(verdict in (PRIVATE, MASKED))
    # An Allow does not reach the object of another owner, so that its policy decides nothing there.
    foreign = isinstance(object_acl, Acl) and object_acl.owner != changes["owner"]
    assert isinstance(text, str) or foreign
    counts = changes["ownership"] != BUCKET_OWNER_ENFORCED
    assert isinstance(object_acl, Acl) or not counts or verdict is MASKED


@given(object_acls, heads, refs, whole_facts, policies, losses)
@example(
    Acl(FRIEND, ()),
    PLAIN,
    CURRENT,
    {
        "owner": OWNER,
        "own_id": OWNER,
        "account": OURS,
        "ownership": BUCKET_OWNER_ENFORCED,
        "public_access_block": DENIED,
        "account_public_access_block": UNASKED,
    },
    [allow(Action="s3:*")],
    "ownership",
)
def test_a_fact_unread_never_makes_an_object_look_better(
    object_acl: Acl | Unread | Skipped,
    head: Any,
    ref: ObjectRef,
    changes: dict[str, Any],
    some: list[Any],
    lost: str,
) -> None:
    changes = changes | {"policy": policy(*some)}
    if lost == "ownership" and changes["ownership"] == BUCKET_OWNER_ENFORCED and isinstance(object_acl, Acl):
        # Under this setting S3 answers with an ACL of the bucket's owner alone. Another ACL shows that ACLs count.
        object_acl = acl(owner=object_acl.owner if changes["owner"] == DENIED else changes["owner"])
    before = judged(object_acl, head, ref, **changes)
    if lost == "acl":
        after = judged(DENIED, head, ref, **changes)
    elif lost == "head":
        after = judged(object_acl, DENIED, ref, **changes)
    else:
        after = judged(object_acl, head, ref, **(changes | {lost: DENIED}))
    # The lost fact may be the one that exposed the object; then the verdict is unknown, and nothing less.
    least = min(STRENGTH[before], STRENGTH[UNKNOWN])
    assert STRENGTH[after] >= least


@given(acls, heads, refs, whole_facts, policies)
def test_an_acl_that_was_read_shows_that_acls_count(
    object_acl: Acl, head: Any, ref: ObjectRef, changes: dict[str, Any], some: list[Any]
) -> None:
    changes = changes | {"policy": policy(*some)}
    unread = judged(object_acl, head, ref, **(changes | {"ownership": DENIED}))
    assert unread is judged(object_acl, head, ref, **(changes | {"ownership": "ObjectWriter"}))


@given(object_acls, heads, refs, whole_facts, policies, denies, st.integers(0, 3))
def test_another_deny_never_makes_it_worse(
    object_acl: Any, head: Any, ref: ObjectRef, changes: dict[str, Any], some: list[Any], another: Any, place: int
) -> None:
    more = [*some[:place], another, *some[place:]]
    before = judged(object_acl, head, ref, policy=policy(*some), **changes)
    # A Deny may name an account that the policy of a KMS key, which was not read, perhaps admits.
    assume(head != KMS)
    assert STRENGTH[judged(object_acl, head, ref, policy=policy(*more), **changes)] <= STRENGTH[before]


@given(object_acls, heads, refs, whole_facts, policies, statements)
def test_another_allow_never_makes_it_better(
    object_acl: Any, head: Any, ref: ObjectRef, changes: dict[str, Any], some: list[Any], another: Any
) -> None:
    before = judged(object_acl, head, ref, policy=policy(*some), **changes)
    # Another Allow may make the policy public, and RestrictPublicBuckets then cuts off the others that it names.
    after = judged(object_acl, head, ref, policy=policy(*some, another), **changes)
    assert STRENGTH[after] >= STRENGTH[before] or (after is MASKED and facts(**changes).restricts_public_policy)


@given(acls, grants, heads, refs, whole_facts, policies)
def test_another_grant_never_makes_it_better(
    object_acl: Acl, another: Grant, head: Any, ref: ObjectRef, changes: dict[str, Any], some: list[Any]
) -> None:
    text = policy(*some)
    more = Acl(object_acl.owner, (*object_acl.grants, another))
    before = judged(object_acl, head, ref, policy=text, **changes)
    assert STRENGTH[judged(more, head, ref, policy=text, **changes)] >= STRENGTH[before]


@given(object_acls, heads, refs, whole_facts, policies)
def test_more_trust_never_makes_it_worse_and_never_hides_an_exposure(
    object_acl: Any, head: Any, ref: ObjectRef, changes: dict[str, Any], some: list[Any]
) -> None:
    whole = facts(policy=policy(*some), **changes)
    less = VerdictJudge(whole, frozenset(), versions=True).access(ref, object_acl, head).verdict
    more = (
        VerdictJudge(whole, frozenset({OTHER, FRIEND, THEIRS, FRIENDS}), versions=True)
        .access(ref, object_acl, head)
        .verdict
    )
    assert STRENGTH[more] <= STRENGTH[less]
    assert (more is EXPOSED) == (less is EXPOSED)
