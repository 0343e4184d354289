"""The changes to make first: the fewest that close most, with the objects that each of them takes from others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, PublicAccessBlock, Semantics
from auditor.model.json_codec import JsonError
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, Acl, Grant, Skipped
from auditor.model.rollup import FirstStep, Group, GroupKind
from auditor.reports.first_steps import KINDS, OPEN, JudgedFor, OpenKinds, OpenObject, SavedKinds, first_steps
from tests.support.samples.bucket import OWNER, facts

OPENED = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
PRIVATE = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
OF_NOBODY = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ANONYMOUS_OWNER, "READ")))
IGNORE = "turn on BlockPublicAcls and IgnorePublicAcls on the bucket"
ALL_FOUR = "turn on all four switches of the bucket's public access block"
ACLS_OFF = "turn ACLs off (BucketOwnerEnforced)"


def allow(sid: str, prefix: str, principal: str = "*") -> dict[str, Any]:
    resource = f"arn:aws:s3:::audited/{prefix}*"
    by = "*" if principal == "*" else {"AWS": principal}
    return {"Sid": sid, "Effect": "Allow", "Principal": by, "Action": "s3:GetObject", "Resource": resource}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def counted(objects: Iterable[tuple[str, Acl, int, bool]], trusted: Iterable[str] = (), **bucket: Any) -> OpenKinds:
    """Count objects given as key, ACL, number and "an exception covers it". bucket: fields of BucketFacts."""
    ordinary = {"public_access_block": PublicAccessBlock(), "semantics": Semantics.AWS}
    judged_for = JudgedFor(facts(**ordinary | bucket), frozenset(trusted), False, None)
    kinds, judge = OpenKinds(judged_for), judged_for.judge()
    for key, acl, number, excepted in objects:
        opened = OpenObject(key, OWNER, True, acl, Skipped("not asked"), excepted)
        verdict = judge.access(opened.ref, acl, opened.head).verdict
        assert verdict in OPEN
        kinds.add(verdict, opened, number)
    return kinds


def steps(kinds: OpenKinds, *groups: Group) -> list[tuple[str, int, int]]:
    return [(step.change, step.closes, step.of) for step in first_steps(kinds, groups)[0]]


def undecided(reason: str, count: int) -> Group:
    return Group(
        id="0" * 12,
        kind=GroupKind.UNDECIDED,
        rule=None,
        verdict=None,
        severity=None,
        audience=reason,
        prefix="",
        rest=False,
        count=count,
        bytes=0,
        new=None,
        excepted=0,
        since=None,
    )


def test_the_change_that_closes_most_comes_first() -> None:
    found = counted([("a", OPENED, 100, False), ("www/a", PRIVATE, 10, False)], policy=policy(allow("Website", "www/")))
    assert steps(found) == [(IGNORE, 100, 110), ("remove the statement Website from the bucket policy", 110, 110)]


def test_flags_predict_all_changes_up_to_theirs() -> None:
    found = counted(
        [("a", OPENED, 100, False), ("www/a", PRIVATE, 10, False), ("img/a", PRIVATE, 10, False)],
        policy=policy(allow("Website", "www/"), allow("Pictures", "img/")),
        policy_is_public=True,
    )
    (step,) = first_steps(found, ())[0]
    assert (step.change, step.how, step.closes) == (ALL_FOUR, "--block-public-access", 120)


def test_flags_predict_the_changes_before_theirs_too() -> None:
    found = counted(
        [("a", OPENED, 100, False), ("www/a", PRIVATE, 10, False), ("x/a", OF_NOBODY, 2, False)],
        policy=policy(allow("Website", "www/")),
        policy_is_public=True,
    )
    assert [(step.change, step.how) for step in first_steps(found, ())[0]] == [
        (ALL_FOUR, "--block-public-access"),
        (ACLS_OFF, "--block-public-access --acls-off"),
    ]


def test_a_statement_has_no_flag() -> None:
    found = counted([("www/a", PRIVATE, 10, False)], policy=policy(allow("Website", "www/")))
    assert [step.how for step in first_steps(found, ())[0]] == [None]


def test_a_statement_is_removed_without_those_of_others() -> None:
    found = counted(
        [("www/a", PRIVATE, 10, False), ("data/a", PRIVATE, 3, False)],
        policy=policy(allow("Website", "www/"), allow("Partner", "data/", "444455556666")),
        policy_is_public=True,
        ownership=BUCKET_OWNER_ENFORCED,
    )
    (step,) = first_steps(found, ())[0]
    assert (step.change, step.closes) == ("remove the statement Website from the bucket policy", 10)
    assert (step.breaks, step.intended) == ((), 0)


def test_a_change_names_the_accounts_that_lose_access() -> None:
    found = counted(
        [("a", OF_NOBODY, 10, False), ("b", Acl(OWNER, (Grant("c3" * 32, "READ"),)), 3, False)],
    )
    (step,) = first_steps(found, ())[0]
    assert (step.change, step.breaks) == (ACLS_OFF, ("canonical-id " + "c3" * 32,))


def test_a_block_that_takes_more_than_it_closes_is_not_named() -> None:
    everyone = policy(allow("All", ""), allow("Partner", "", "444455556666"))
    found = counted([("a", PRIVATE, 10, False)], policy=everyone, policy_is_public=True)
    assert steps(found) == [("remove the statement All from the bucket policy", 10, 10)]
    by_acl = counted(
        [("a", OPENED, 2, False), ("partner/a", Acl(OWNER, (Grant("c3" * 32, "READ"),)), 5, False)],
    )
    assert steps(by_acl) == [(IGNORE, 2, 2)]


def test_an_object_that_is_public_by_intent_counts_against_a_change() -> None:
    found = counted([("a", OPENED, 10, False), ("www/a", OPENED, 3, True)])
    listed, _ = first_steps(found, ())
    assert [(step.change, step.closes, step.of, step.intended) for step in listed] == [(IGNORE, 10, 10, 3)]
    more = counted([("a", OPENED, 3, False), ("www/a", OPENED, 10, True)])
    assert steps(more) == [("give 3 exposed objects a private ACL, with an S3 Batch Operations job", 3, 3)]


def test_a_grant_that_no_switch_hides_needs_acls_off_or_a_private_acl() -> None:
    assert steps(counted([("a", OF_NOBODY, 4, False)])) == [(ACLS_OFF, 4, 4)]
    shared = Acl(OWNER, (Grant("c3" * 32, "READ"),))
    job = "give 4 exposed objects a private ACL, with an S3 Batch Operations job"
    assert steps(counted([("a", OF_NOBODY, 4, False), ("b", shared, 5, False)])) == [(job, 4, 4)]


def test_nothing_exposed_needs_no_change() -> None:
    shared = Acl(OWNER, (Grant("c3" * 32, "READ"),))
    assert steps(counted([("a", shared, 4, False)])) == []
    assert steps(counted([("a", OPENED, 4, True)])) == []


def test_a_missing_permission_is_a_step_of_its_own() -> None:
    kinds = counted([("a", OPENED, 1, False)])
    denied = [undecided("GetObjectAcl AccessDenied", 7), undecided("HeadObject AccessDenied", 3)]
    listed, _ = first_steps(kinds, [*denied, undecided("HeadObject 503", 90)])
    assert [(step.change, step.closes, step.decides) for step in listed] == [
        (IGNORE, 1, 0),
        ("let the auditor call s3:GetObjectAcl", 1, 7),
    ]
    assert first_steps(counted([]), [undecided("HeadObject 503", 90)]) == ((), 0)


def test_kinds_beyond_the_bound_count_as_left_open() -> None:
    many = [
        (f"{number:03}", Acl(OWNER, (*OPENED.grants, Grant(f"{number:064x}", "READ"))), 1, False)
        for number in range(KINDS + 5)
    ]
    kinds = counted([*many, ("zz", OPENED, 1000, False)])
    listed, unseen = first_steps(kinds, ())
    assert kinds.others(Verdict.EXPOSED) == 1005  # the last kind came when there was no room
    assert unseen == KINDS + 1005 - 32
    assert [(step.closes, step.of) for step in listed] == [(32, KINDS + 1005)]


def test_a_checkpoint_keeps_the_kinds() -> None:
    objects = [("a", OPENED, 100, False), ("www/a", PRIVATE, 10, True)]
    whole = counted(objects, policy=policy(allow("Website", "www/")))
    saved = json.loads(json.dumps(whole.saved()))
    again = OpenKinds(whole.judged_for, SavedKinds.from_json(saved))
    assert again.saved() == whole.saved()
    assert first_steps(again, ()) == first_steps(whole, ())


@pytest.mark.parametrize(
    "change",
    [
        {"kinds": [[{}, 1]]},
        {"kinds": [["a"]]},
        {"kinds": 3},
        {"others": [["private", False, 1]]},
        {"others": [["exposed", False]]},
        {"others": [["exposed", 0, 1]]},
    ],
)
def test_a_damaged_checkpoint_is_refused(change: dict[str, Any]) -> None:
    saved = json.loads(json.dumps(counted([("a", OPENED, 100, False)]).saved()))
    with pytest.raises(JsonError):
        SavedKinds.from_json({**saved, **change})


def test_a_statement_with_a_hostile_name_is_inert() -> None:
    sid = "<script>\x1b[2J" + "x" * 200
    found = counted([("www/a", PRIVATE, 10, False)], policy=policy(allow(sid, "www/")))
    (step,) = first_steps(found, ())[0]
    assert isinstance(step, FirstStep)
    assert "\x1b" not in step.change
    assert len(step.change) < 120
