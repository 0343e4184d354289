"""The facts under a change, and the objects whose ACL nobody has read then."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, PublicAccessBlock, Semantics
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, Acl, Grant, ObjectRef, Skipped, Unread
from auditor.verdict.change import BucketChange, ChangedObjects, switches
from auditor.verdict.judge import VerdictJudge
from tests.support.samples.bucket import CLOSED, OWNER, facts

FOREIGN = "b1" * 32
OPEN = PublicAccessBlock()
PUBLIC = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
FOREIGN_ACL = Acl(FOREIGN, (Grant(FOREIGN, "FULL_CONTROL"),))
ALLOW = (
    '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",'
    ' "Resource": "arn:aws:s3:::audited/*"}}'
)


def ref(owner: str | None = OWNER) -> ObjectRef:
    return ObjectRef("a", "e", 1, "2026-01-02T03:04:05Z", owner=owner)


def verdict(change: BucketChange, acl: Acl | Unread | Skipped, owner: str | None = OWNER, **bucket: Any) -> Verdict:
    before = facts(**{"public_access_block": OPEN, **bucket})
    after, seen = ChangedObjects(before, change).object(ref(owner), acl)
    return VerdictJudge(change.facts(before), change.trusted).access(after, seen, Skipped("not asked")).verdict


def test_nothing_changes_nothing() -> None:
    change, before = BucketChange(), facts()
    assert change.nothing
    assert change.facts(before) == before
    assert ChangedObjects(before, change).object(ref(), PUBLIC) == (ref(), PUBLIC)


def test_acls_off_close_a_public_object() -> None:
    assert verdict(BucketChange(), PUBLIC) == Verdict.EXPOSED
    assert verdict(BucketChange(acls=False), PUBLIC) == Verdict.PRIVATE


def test_switches_on_acls_close_a_public_object_but_no_policy() -> None:
    acls, policies = switches(acls=True, policies=False), switches(acls=False, policies=True)
    assert verdict(BucketChange(switches=acls), PUBLIC) == Verdict.MASKED
    assert verdict(BucketChange(switches=policies), PUBLIC) == Verdict.EXPOSED
    private = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
    by_policy: dict[str, Any] = {"policy": ALLOW, "policy_is_public": True}
    assert verdict(BucketChange(switches=acls), private, **by_policy) == Verdict.EXPOSED
    assert verdict(BucketChange(switches=policies), private, **by_policy) == Verdict.MASKED
    assert BucketChange(switches=acls).facts(facts(public_access_block=OPEN)).public_access_block == PublicAccessBlock(
        block_public_acls=True, ignore_public_acls=True
    )


def test_acls_off_bring_a_foreign_object_under_the_policy() -> None:
    assert verdict(BucketChange(acls=False), FOREIGN_ACL, FOREIGN) == Verdict.PRIVATE
    assert verdict(BucketChange(acls=False), FOREIGN_ACL, FOREIGN, policy=ALLOW, policy_is_public=True) == (
        Verdict.EXPOSED
    )


def test_acls_off_need_no_acl() -> None:
    assert verdict(BucketChange(acls=False), Unread("GetObjectAcl", "AccessDenied")) == Verdict.PRIVATE


@pytest.mark.parametrize("acl", [PUBLIC, Skipped("ACLs are disabled")])
def test_acls_that_come_back_were_never_read(acl: Acl | Skipped) -> None:
    """S3 answers with the owner's full control while ACLs are off; the old ACLs come back."""
    assert verdict(BucketChange(acls=True), acl, ownership=BUCKET_OWNER_ENFORCED) == Verdict.UNKNOWN


def test_the_owner_that_comes_back_is_not_known() -> None:
    before = facts(ownership=BUCKET_OWNER_ENFORCED)
    after, acl = ChangedObjects(before, BucketChange(acls=True)).object(ref(), PUBLIC)
    assert after.owner is None
    assert isinstance(acl, Skipped)


def test_acls_on_change_nothing_where_they_count() -> None:
    before = facts(ownership="BucketOwnerPreferred")
    assert BucketChange(acls=True).facts(before) == before
    assert ChangedObjects(before, BucketChange(acls=True)).object(ref(), PUBLIC) == (ref(), PUBLIC)


def test_a_new_policy_is_judged_without_s3s_word_on_the_old_one() -> None:
    after = BucketChange(policy=ALLOW).facts(facts())
    assert (after.policy, isinstance(after.policy_is_public, Skipped)) == (ALLOW, True)
    assert verdict(BucketChange(policy=ALLOW), Acl(OWNER, ())) == Verdict.EXPOSED


def test_the_policy_that_is_there_keeps_s3s_word() -> None:
    before = facts(policy=ALLOW, policy_is_public=True)
    assert BucketChange(policy=ALLOW).facts(before) == before


def test_no_policy() -> None:
    after = BucketChange(policy="").facts(facts(policy=ALLOW, policy_is_public=True))
    assert (after.policy, after.policy_is_public) == ("", False)
    assert verdict(BucketChange(policy=""), Acl(OWNER, ()), policy=ALLOW) == Verdict.PRIVATE


def test_an_unread_policy_does_not_matter_if_it_is_replaced() -> None:
    unread = Unread("GetBucketPolicy", "AccessDenied")
    assert verdict(BucketChange(), Acl(OWNER, ()), policy=unread) == Verdict.UNKNOWN
    assert verdict(BucketChange(policy=""), Acl(OWNER, ()), policy=unread) == Verdict.PRIVATE


def test_the_block_hides_public_grants_and_public_policies() -> None:
    assert BucketChange(block=True).facts(facts(public_access_block=OPEN)).public_access_block == CLOSED
    assert verdict(BucketChange(block=True), PUBLIC) == Verdict.MASKED
    assert verdict(BucketChange(block=True), Acl(OWNER, ()), policy=ALLOW, policy_is_public=True) == Verdict.MASKED


def test_grants_behind_a_block_are_not_in_the_answers_of_aws() -> None:
    """GetObjectAcl gives effective permissions: without the block, public grants may come back."""
    own = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
    assert verdict(BucketChange(block=False), own, public_access_block=CLOSED) == Verdict.UNKNOWN
    assert verdict(BucketChange(block=False), own, public_access_block=OPEN) == Verdict.PRIVATE
    account: dict[str, Any] = {"public_access_block": CLOSED, "account_public_access_block": CLOSED}
    assert verdict(BucketChange(block=False), own, **account) == Verdict.PRIVATE


def test_ceph_shows_the_grants_behind_a_block() -> None:
    ceph: dict[str, Any] = {"public_access_block": CLOSED, "semantics": Semantics.CEPH}
    assert verdict(BucketChange(block=False), PUBLIC, **ceph) == Verdict.EXPOSED


def test_trusted() -> None:
    change = BucketChange(trusted=frozenset({FOREIGN}))
    assert verdict(BucketChange(), FOREIGN_ACL, FOREIGN) == Verdict.SHARED
    assert verdict(change, FOREIGN_ACL, FOREIGN) in (Verdict.PRIVATE, Verdict.MASKED)


def test_requester_pays() -> None:
    assert BucketChange(requester_pays=True).facts(facts()).request_payer == "Requester"


def test_remarks() -> None:
    granted = facts(acl=PUBLIC)
    assert list(BucketChange(acls=True, policy="", block=True).remarks(granted)) == []
    assert list(BucketChange(acls=False).remarks(facts())) == []
    (said,) = BucketChange(acls=False).remarks(granted)
    assert "InvalidBucketAclWithObjectOwnership" in said
    (said,) = BucketChange(policy=ALLOW).remarks(facts())
    assert "BlockPublicPolicy" in said
    assert list(BucketChange(policy=ALLOW).remarks(facts(public_access_block=OPEN))) == []
    assert list(BucketChange(policy=ALLOW, block=False).remarks(facts())) == []
    (said,) = BucketChange(policy=ALLOW + " " * 20_480).remarks(facts(public_access_block=OPEN))
    assert "20,480 bytes" in said


TO_ACCOUNT = (
    '{"Statement": {"Effect": "Allow", "Principal": {"AWS": "444455556666"}, "Action": "s3:GetObject",'
    ' "Resource": "arn:aws:s3:::audited/*"}}'
)


@pytest.mark.parametrize("semantics", Semantics)
def test_a_new_policy_behind_the_block(semantics: Semantics) -> None:
    """Without S3's word on the policy, its own text says whether it is public. Ceph does not act on the switch."""
    own, public = Acl(OWNER, ()), Verdict.EXPOSED if semantics is Semantics.CEPH else Verdict.MASKED
    assert verdict(BucketChange(block=True, policy=ALLOW), own, semantics=semantics) == public
    assert verdict(BucketChange(block=True, policy=TO_ACCOUNT), own, semantics=semantics) == Verdict.SHARED


def test_an_anonymous_owner_loses_its_object() -> None:
    owned = Acl(ANONYMOUS_OWNER, (Grant(ANONYMOUS_OWNER, "FULL_CONTROL"),))
    assert verdict(BucketChange(), owned, ANONYMOUS_OWNER) == Verdict.EXPOSED
    assert verdict(BucketChange(acls=False), owned, ANONYMOUS_OWNER) == Verdict.PRIVATE


def test_requester_pays_keeps_unsigned_requests_out() -> None:
    """What AllUsers may read, any AWS account may still read: it pays."""
    change, before = BucketChange(requester_pays=True), facts(public_access_block=OPEN)
    access = VerdictJudge(change.facts(before), frozenset()).access(ref(), PUBLIC, Skipped("not asked"))
    assert [audience.text for audience in access.audience] == ["any-account"]


def test_the_tag_that_a_policy_asks_for_is_not_known() -> None:
    tagged = ALLOW.replace('"Resource"', '"Condition": {"StringEquals": {"s3:ExistingObjectTag/a": "b"}}, "Resource"')
    assert verdict(BucketChange(policy=tagged), Acl(OWNER, ())) == Verdict.UNKNOWN
