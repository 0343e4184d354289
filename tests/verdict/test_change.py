"""The facts under a change, and the objects whose ACL nobody has read then."""

from __future__ import annotations

from typing import Any

from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, PublicAccessBlock, Semantics
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, Acl, Grant, ObjectRef, Skipped, Unread
from auditor.verdict.change import BucketChange, ChangedObjects, switches
from auditor.verdict.judge import VerdictJudge
from tests.support.samples.bucket import CLOSED, OWNER, facts

FOREIGN = "b1" * 32
OPEN = PublicAccessBlock()
PUBLIC = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
ANONYMOUS = Acl(ANONYMOUS_OWNER, (Grant(ANONYMOUS_OWNER, "FULL_CONTROL"),))
FOREIGN_ACL = Acl(FOREIGN, (Grant(FOREIGN, "FULL_CONTROL"),))
OWN = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
ALLOW = (
    '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",'
    ' "Resource": "arn:aws:s3:::audited/*"}}'
)
TO_ACCOUNT = ALLOW.replace('"*"', '{"AWS": "444455556666"}', 1)
TAGGED = ALLOW.replace('"Resource"', '"Condition": {"StringEquals": {"s3:ExistingObjectTag/a": "b"}}, "Resource"')
DENIED = Unread("Operation", "AccessDenied")
EXPOSED, UNKNOWN, SHARED, MASKED, _, PRIVATE = Verdict
PUBLIC_POLICY: dict[str, Any] = {"policy": ALLOW, "policy_is_public": True}
ENFORCED = {"ownership": BUCKET_OWNER_ENFORCED}
HIDDEN: dict[str, Any] = {"public_access_block": CLOSED}
ACLS, POLICIES = switches(acls=True, policies=False), switches(acls=False, policies=True)


def ref(owner: str | None = OWNER) -> ObjectRef:
    return ObjectRef("a", "e", 1, "2026-01-02T03:04:05Z", owner=owner)


def verdict(change: BucketChange, acl: Acl | Unread | Skipped, owner: str | None = OWNER, **bucket: Any) -> Verdict:
    before = facts(**{"public_access_block": OPEN, **bucket})
    after, seen = ChangedObjects(before, change).object(ref(owner), acl)
    return VerdictJudge(change.facts(before), change.trusted).access(after, seen, Skipped("not asked")).verdict


TABLE: list[tuple[str, BucketChange, Acl | Unread | Skipped, dict[str, Any], Verdict]] = [
    ("nothing changes", BucketChange(), PUBLIC, {}, EXPOSED),
    ("ACLs off close a public object", BucketChange(acls=False), PUBLIC, {}, PRIVATE),
    ("ACLs off need no ACL", BucketChange(acls=False), DENIED, {}, PRIVATE),
    ("switches on ACLs close a public object", BucketChange(switches=ACLS), PUBLIC, {}, MASKED),
    ("switches on policies do not", BucketChange(switches=POLICIES), PUBLIC, {}, EXPOSED),
    ("switches on ACLs close no policy", BucketChange(switches=ACLS), OWN, PUBLIC_POLICY, EXPOSED),
    ("switches on policies do", BucketChange(switches=POLICIES), OWN, PUBLIC_POLICY, MASKED),
    ("ACLs off bring a foreign object in", BucketChange(acls=False), FOREIGN_ACL, {}, PRIVATE),
    ("ACLs off bring it under the policy", BucketChange(acls=False), FOREIGN_ACL, PUBLIC_POLICY, EXPOSED),
    ("ACLs that come back were never read", BucketChange(acls=True), PUBLIC, ENFORCED, UNKNOWN),
    ("nor were those that were skipped", BucketChange(acls=True), Skipped("ACLs are disabled"), ENFORCED, UNKNOWN),
    ("a new policy", BucketChange(policy=ALLOW), OWN, {}, EXPOSED),
    ("no policy", BucketChange(policy=""), OWN, {"policy": ALLOW}, PRIVATE),
    ("an unread policy stays", BucketChange(), OWN, {"policy": DENIED}, UNKNOWN),
    ("an unread policy is replaced", BucketChange(policy=""), OWN, {"policy": DENIED}, PRIVATE),
    ("a tag that a new policy asks for", BucketChange(policy=TAGGED), OWN, {}, UNKNOWN),
    ("the block hides public grants", BucketChange(block=True), PUBLIC, {}, MASKED),
    ("the block hides public policies", BucketChange(block=True), OWN, PUBLIC_POLICY, MASKED),
    # GetObjectAcl gives effective permissions: without the block, public grants may come back.
    ("the block goes, AWS did not show the grants", BucketChange(block=False), OWN, HIDDEN, UNKNOWN),
    ("there is no block to go", BucketChange(block=False), OWN, {}, PRIVATE),
    (
        "the account's block stays",
        BucketChange(block=False),
        OWN,
        {**HIDDEN, "account_public_access_block": CLOSED},
        PRIVATE,
    ),
    ("Ceph shows them", BucketChange(block=False), PUBLIC, {**HIDDEN, "semantics": Semantics.CEPH}, EXPOSED),
    ("a foreign object", BucketChange(), FOREIGN_ACL, {}, SHARED),
    ("its owner is trusted", BucketChange(trusted=frozenset({FOREIGN})), FOREIGN_ACL, {}, PRIVATE),
    # Without S3's word on the policy, its own text says whether it is public. Ceph does not act on the switch.
    *(
        (
            f"a new policy behind the block, {one}",
            BucketChange(block=True, policy=policy),
            OWN,
            {"semantics": one},
            seen,
        )
        for one in Semantics
        for policy, seen in ((ALLOW, EXPOSED if one is Semantics.CEPH else MASKED), (TO_ACCOUNT, SHARED))
    ),
    ("an anonymous owner", BucketChange(), ANONYMOUS, {}, EXPOSED),
    ("an anonymous owner loses its object", BucketChange(acls=False), ANONYMOUS, {}, PRIVATE),
]


def test_verdicts_under_a_change() -> None:
    failures = []
    for name, change, acl, bucket, expected in TABLE:
        if (found := verdict(change, acl, acl.owner if isinstance(acl, Acl) else OWNER, **bucket)) is not expected:
            failures.append(f"{name}: {found}")
    assert not failures, failures


def test_facts_that_stay() -> None:
    for change, before in (
        (BucketChange(), facts()),
        (BucketChange(acls=True), facts(ownership="BucketOwnerPreferred")),
        (BucketChange(policy=ALLOW), facts(**PUBLIC_POLICY)),
    ):
        assert change.facts(before) == before
        assert ChangedObjects(before, change).object(ref(), PUBLIC) == (ref(), PUBLIC)
    assert BucketChange().nothing


def test_facts_that_follow() -> None:
    after, acl = ChangedObjects(facts(**ENFORCED), BucketChange(acls=True)).object(ref(), PUBLIC)
    assert (after.owner, isinstance(acl, Skipped)) == (None, True), "the owner that comes back is not known"
    assert isinstance(BucketChange(policy=ALLOW).facts(facts()).policy_is_public, Skipped)
    removed = BucketChange(policy="").facts(facts(**PUBLIC_POLICY))
    assert (removed.policy, removed.policy_is_public) == ("", False)
    opened = facts(public_access_block=OPEN)
    assert BucketChange(block=True).facts(opened).public_access_block == CLOSED
    assert BucketChange(switches=ACLS).facts(opened).public_access_block == PublicAccessBlock(
        block_public_acls=True, ignore_public_acls=True
    )


def test_requester_pays_keeps_unsigned_requests_out() -> None:
    """What AllUsers may read, any AWS account may still read: it pays."""
    change, before = BucketChange(requester_pays=True), facts(public_access_block=OPEN)
    assert change.facts(before).request_payer == "Requester"
    access = VerdictJudge(change.facts(before), frozenset()).access(ref(), PUBLIC, Skipped("not asked"))
    assert [audience.text for audience in access.audience] == ["any-account"]


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
