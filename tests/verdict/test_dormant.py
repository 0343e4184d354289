"""The verdict dormant: a private object whose hidden stored ACL lets an outsider in once ACLs count."""

from __future__ import annotations

from typing import Final

import pytest

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


def test_a_hidden_grant_to_an_outsider() -> None:
    found = with_dormant(PRIVATE, stored(STRANGER), OWNER, NOBODY)
    assert found.verdict is Verdict.DORMANT
    assert reasons(found) == [(ReasonCode.STORED_GRANT, f"{STRANGER} READ")]
    assert found.audience == (), "nobody gets in today"


def test_a_hidden_owner_is_told_once_and_its_own_grants_are_not() -> None:
    found = with_dormant(PRIVATE, stored(STRANGER, owner=STRANGER), OWNER, NOBODY)
    assert reasons(found) == [(ReasonCode.STORED_OWNER, STRANGER)]


def test_an_owner_beside_a_grant_to_another() -> None:
    found = with_dormant(PRIVATE, stored(ALL_USERS, owner=STRANGER), OWNER, NOBODY)
    assert reasons(found) == [(ReasonCode.STORED_OWNER, STRANGER), (ReasonCode.STORED_GRANT, f"{ALL_USERS} READ")]


@pytest.mark.parametrize(
    "hidden",
    [
        stored(),
        stored(OWNER),
        stored(LOG_DELIVERY),
        stored("", owner=""),
        Acl("", (Grant("", "READ"), Grant(LOG_DELIVERY, "WRITE"), Grant(OWNER, "FULL_CONTROL"))),
    ],
    ids=["nothing", "the owner", "log delivery", "no IDs", "all of them"],
)
def test_nothing_that_opens_the_object(hidden: Acl) -> None:
    assert with_dormant(PRIVATE, hidden, OWNER, NOBODY) is PRIVATE


def test_equal_grants_are_one_reason() -> None:
    found = with_dormant(PRIVATE, stored(STRANGER, STRANGER, PARTNER), OWNER, NOBODY)
    assert reasons(found) == [
        (ReasonCode.STORED_GRANT, f"{STRANGER} READ"),
        (ReasonCode.STORED_GRANT, f"{PARTNER} READ"),
    ]


def test_the_reasons_of_today_stay_first() -> None:
    today = ObjectAccess(Verdict.PRIVATE, reasons=(Reason(ReasonCode.STORED_OWNER, PARTNER),))
    found = with_dormant(today, stored(STRANGER), OWNER, NOBODY)
    assert reasons(found) == [(ReasonCode.STORED_OWNER, PARTNER), (ReasonCode.STORED_GRANT, f"{STRANGER} READ")]


def test_a_trusted_party_opens_nothing_and_counts_as_used() -> None:
    trust = Trust.of([PARTNER])
    assert with_dormant(PRIVATE, stored(PARTNER, owner=PARTNER), OWNER, trust) is PRIVATE
    assert trust.used == {PARTNER}
    assert with_dormant(PRIVATE, stored(PARTNER, STRANGER), OWNER, trust).verdict is Verdict.DORMANT


@pytest.mark.parametrize("everybody", [ALL_USERS, AUTHENTICATED_USERS])
def test_everybody_is_an_outsider_of_a_bucket_whose_owner_is_not_known(everybody: str) -> None:
    assert with_dormant(PRIVATE, stored(everybody), None, NOBODY).verdict is Verdict.DORMANT


def test_an_anonymous_owner_of_a_bucket_whose_owner_is_not_known() -> None:
    found = with_dormant(PRIVATE, stored(owner=ANONYMOUS_OWNER), None, NOBODY)
    assert reasons(found) == [(ReasonCode.STORED_OWNER, ANONYMOUS_OWNER)]


def test_an_id_may_be_that_of_a_bucket_owner_who_is_not_known() -> None:
    assert with_dormant(PRIVATE, stored(STRANGER, owner=STRANGER), None, NOBODY) is PRIVATE


@pytest.mark.parametrize("verdict", [one for one in Verdict if one is not Verdict.PRIVATE])
def test_only_a_private_object_becomes_dormant(verdict: Verdict) -> None:
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


@pytest.mark.parametrize(
    ("hidden", "verdict"),
    [
        (stored(ALL_USERS), Verdict.EXPOSED),
        (stored(STRANGER), Verdict.SHARED),
        (stored(STRANGER, owner=STRANGER), Verdict.SHARED),
        (stored(OWNER), Verdict.PRIVATE),
        (stored(ALL_USERS, owner=""), Verdict.UNKNOWN),
    ],
    ids=["public", "shared", "foreign", "own", "no owner in the report"],
)
def test_what_is_stored_counts_once_acls_are_on(hidden: Acl, verdict: Verdict) -> None:
    told = DormantAcl(hidden, AT)
    assert changed(BucketChange(acls=True), OFF, told, ownership=BUCKET_OWNER_ENFORCED) is verdict


def test_acls_on_without_a_report_leave_the_object_unknown() -> None:
    assert changed(BucketChange(acls=True), OFF, None, ownership=BUCKET_OWNER_ENFORCED) is Verdict.UNKNOWN


def test_what_is_stored_stays_dormant_under_a_change_of_something_else() -> None:
    told = DormantAcl(stored(ALL_USERS), AT)
    change = BucketChange(requester_pays=True)
    assert changed(change, OFF, told, ownership=BUCKET_OWNER_ENFORCED) is Verdict.DORMANT


def test_the_block_goes_and_hidden_grants_count_beside_the_others() -> None:
    told = DormantAcl(Acl("", (Grant(ALL_USERS, "READ"),)), AT)
    hides = {"public_access_block": CLOSED}
    assert changed(BucketChange(), OWN, told, **hides) is Verdict.DORMANT
    assert changed(BucketChange(block=False), OWN, told, **hides) is Verdict.EXPOSED
    assert changed(BucketChange(block=False), OWN, None, **hides) is Verdict.UNKNOWN


def test_the_block_comes_over_what_acls_off_hide() -> None:
    """Public grants that come back behind a block stay masked, in the verdict of the stored ACL."""
    told = DormantAcl(stored(ALL_USERS), AT)
    bucket: dict[str, object] = {"ownership": BUCKET_OWNER_ENFORCED, "public_access_block": CLOSED}
    assert changed(BucketChange(acls=True), OFF, told, **bucket) is Verdict.MASKED
