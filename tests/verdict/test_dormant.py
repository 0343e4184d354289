"""The verdict dormant: a private object whose hidden stored ACL lets an outsider in once ACLs count."""

from __future__ import annotations

from typing import Final

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, PublicAccessBlock
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    AUTHENTICATED_USERS,
    LOG_DELIVERY,
    Acl,
    DormantAcl,
    Grant,
    ObjectRef,
    Skipped,
    Unread,
)
from auditor.verdict.change import BucketChange, ChangedObjects
from auditor.verdict.dormant import with_dormant
from auditor.verdict.judge import VerdictJudge
from auditor.verdict.trust import Trust
from tests.support.samples.bucket import CLOSED, OWNER, facts

STRANGER: Final = "b1" * 32
PARTNER: Final = "c2" * 32
NOBODY: Final = Trust.of(())
PRIVATE: Final = ObjectAccess(Verdict.PRIVATE)
AT: Final = "2026-01-02T00:00:00Z"
REF: Final = ObjectRef("a", "e", 1, "2026-01-02T03:04:05Z", owner=OWNER)
OWN: Final = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))


def stored(*grantees: str, owner: str = OWNER) -> Acl:
    return Acl(owner, tuple(Grant(one, "READ") for one in grantees))


def reasons(access: ObjectAccess) -> list[tuple[ReasonCode, str | None]]:
    return [(one.code, one.cause) for one in access.reasons]


GRANT, THEIRS = ReasonCode.STORED_GRANT, ReasonCode.STORED_OWNER
NAMELESS: Final = Acl("", (Grant("", "READ"), Grant(LOG_DELIVERY, "WRITE"), Grant(OWNER, "FULL_CONTROL")))
DORMANT: Final[list[tuple[str, Acl, str | None, list[tuple[ReasonCode, str]]]]] = [
    ("a grant to an outsider", stored(STRANGER), OWNER, [(GRANT, f"{STRANGER} READ")]),
    ("a foreign owner, once and without its own grants", stored(STRANGER, owner=STRANGER), OWNER, [(THEIRS, STRANGER)]),
    (
        "an owner beside a grant to another",
        stored(ALL_USERS, owner=STRANGER),
        OWNER,
        [(THEIRS, STRANGER), (GRANT, f"{ALL_USERS} READ")],
    ),
    (
        "equal grants are one reason",
        stored(STRANGER, STRANGER, PARTNER),
        OWNER,
        [(GRANT, f"{STRANGER} READ"), (GRANT, f"{PARTNER} READ")],
    ),
    ("everybody, of an owner who is not known", stored(ALL_USERS), None, [(GRANT, f"{ALL_USERS} READ")]),
    ("all accounts, likewise", stored(AUTHENTICATED_USERS), None, [(GRANT, f"{AUTHENTICATED_USERS} READ")]),
    ("an anonymous owner, likewise", stored(owner=ANONYMOUS_OWNER), None, [(THEIRS, ANONYMOUS_OWNER)]),
    ("an ID that may be the owner's, likewise", stored(STRANGER, owner=STRANGER), None, []),
    ("nothing", stored(), OWNER, []),
    ("the owner", stored(OWNER), OWNER, []),
    ("log delivery", stored(LOG_DELIVERY), OWNER, []),
    ("no ID", stored("", owner=""), OWNER, []),
    ("all of them", NAMELESS, OWNER, []),
]
"""A hidden ACL, the owner of the bucket, and the reasons why a private object is dormant; none if it stays private."""


def test_a_private_object_is_dormant_by_what_its_hidden_acl_opens() -> None:
    for name, hidden, owner, expected in DORMANT:
        found = with_dormant(PRIVATE, hidden, owner, NOBODY)
        assert found.verdict is (Verdict.DORMANT if expected else Verdict.PRIVATE), name
        assert (reasons(found), found.audience) == (expected, ()), name
    today = ObjectAccess(Verdict.PRIVATE, reasons=(Reason(THEIRS, PARTNER),))
    found = with_dormant(today, stored(STRANGER), OWNER, NOBODY)
    assert reasons(found) == [(THEIRS, PARTNER), (GRANT, f"{STRANGER} READ")], "the reasons of today stay first"


def test_a_trusted_party_opens_nothing_and_counts_as_used() -> None:
    trust = Trust.of([PARTNER])
    assert with_dormant(PRIVATE, stored(PARTNER, owner=PARTNER), OWNER, trust) is PRIVATE
    assert trust.used == {PARTNER}
    assert with_dormant(PRIVATE, stored(PARTNER, STRANGER), OWNER, trust).verdict is Verdict.DORMANT


def test_only_a_private_object_becomes_dormant() -> None:
    for verdict in (one for one in Verdict if one is not Verdict.PRIVATE):
        today = ObjectAccess(verdict, (Audience(AudienceKind.ANYONE),))
        assert with_dormant(today, stored(ALL_USERS), OWNER, NOBODY) is today


def test_an_unread_policy_leaves_the_object_unknown() -> None:
    bucket = facts(policy=Unread("GetBucketPolicy", "AccessDenied"), ownership=BUCKET_OWNER_ENFORCED)
    hidden = DormantAcl(stored(ALL_USERS), AT)
    found = VerdictJudge(bucket, ()).access(REF, Skipped("ACLs are disabled"), Skipped("not asked"), hidden)
    assert found.verdict is Verdict.UNKNOWN


def test_objects_of_one_kind_with_and_without_a_hidden_part() -> None:
    judge, off = VerdictJudge(facts(ownership=BUCKET_OWNER_ENFORCED), ()), Skipped("ACLs are disabled")
    verdicts = [
        judge.access(REF, off, Skipped("not asked"), hidden).verdict
        for hidden in (None, DormantAcl(stored(STRANGER), AT), DormantAcl(stored(), AT), None)
    ]
    assert verdicts == [Verdict.PRIVATE, Verdict.DORMANT, Verdict.PRIVATE, Verdict.PRIVATE]


def changed(change: BucketChange, acl: Acl | Skipped, hidden: DormantAcl | None, **bucket: object) -> Verdict:
    """The verdict under a change of a bucket, whose own block is off."""
    before = facts(**{"public_access_block": PublicAccessBlock(), **bucket})
    objects = ChangedObjects(before, change)
    ref, seen = objects.object(REF, acl, hidden)
    judge = VerdictJudge(change.facts(before), change.trusted)
    return judge.access(ref, seen, Skipped("not asked"), objects.hidden(hidden)).verdict


OFF: Final = Skipped("ACLs are disabled")


def test_what_is_stored_counts_once_acls_are_on_or_the_block_goes() -> None:
    enforced: dict[str, object] = {"ownership": BUCKET_OWNER_ENFORCED}
    hides: dict[str, object] = {"public_access_block": CLOSED}
    on, off = BucketChange(acls=True), BucketChange(block=False)
    grants = Acl("", (Grant(ALL_USERS, "READ"),))
    for name, change, acl, hidden, bucket, expected in (
        ("public", on, OFF, stored(ALL_USERS), enforced, Verdict.EXPOSED),
        ("shared", on, OFF, stored(STRANGER), enforced, Verdict.SHARED),
        ("foreign", on, OFF, stored(STRANGER, owner=STRANGER), enforced, Verdict.SHARED),
        ("own", on, OFF, stored(OWNER), enforced, Verdict.PRIVATE),
        ("no owner in the report", on, OFF, stored(ALL_USERS, owner=""), enforced, Verdict.UNKNOWN),
        ("no report", on, OFF, None, enforced, Verdict.UNKNOWN),
        ("behind a block", on, OFF, stored(ALL_USERS), {**enforced, **hides}, Verdict.MASKED),
        ("another change", BucketChange(requester_pays=True), OFF, stored(ALL_USERS), enforced, Verdict.DORMANT),
        ("the block stays", BucketChange(), OWN, grants, hides, Verdict.DORMANT),
        ("the block goes", off, OWN, grants, hides, Verdict.EXPOSED),
        ("the block goes, no report", off, OWN, None, hides, Verdict.UNKNOWN),
    ):
        told = None if hidden is None else DormantAcl(hidden, AT)
        assert changed(change, acl, told, **bucket) is expected, name
