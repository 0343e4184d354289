"""The changes to make first: the fewest that close most, with the objects that each of them takes from others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from auditor.model.access import Verdict
from auditor.model.bucket import PublicAccessBlock, Semantics
from auditor.model.finding import Judgement
from auditor.model.json_codec import JsonError
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, Acl, Evidence, Grant, Head, ObjectRef, Unread
from auditor.model.rollup import RollUps
from auditor.model.run_lines import Recorded, Standing
from auditor.reports.first_steps import KINDS, JudgedFor
from auditor.reports.rollup import RollUpBuilder
from tests.support.samples.bucket import OWNER, facts
from tests.support.samples.reports import RUN, judged, target

HEAD = Head(etag="e", content_length=1)
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


def counted(objects: Iterable[tuple[str, Acl, int, bool]], **bucket: Any) -> RollUpBuilder:
    """Count objects given as key, ACL, number and "an exception covers it". bucket: fields of BucketFacts."""
    ordinary = {"public_access_block": PublicAccessBlock(), "semantics": Semantics.AWS}
    judged_for = JudgedFor(facts(**ordinary | bucket), frozenset(), False, None)
    builder, judge = RollUpBuilder(), judged_for.judge()
    builder.count_kinds(judged_for)
    for key, acl, number, excepted in objects:
        ref = ObjectRef(key, "e", 1, "2026-01-01T00:00:00Z", owner=OWNER)
        judgement = Judgement(Evidence(ref, acl, HEAD), judge.access(ref, acl, HEAD), (), ())
        for _ in range(number):
            builder.add(Recorded(judgement, Standing(None, None, "website" if excepted else None)))
            builder.upto(key)
    return builder


def deny(builder: RollUpBuilder, action: str, code: str, number: int) -> None:
    """Count objects of which a call was refused."""
    unread: dict[str, Any] = {"acl" if action == "GetObjectAcl" else "head": Unread(action, code)}
    for _ in range(number):
        builder.add(Recorded(judged("zzz", verdict=Verdict.UNKNOWN, **unread), Standing(None, None)))
        builder.upto("zzz")


def found(builder: RollUpBuilder) -> RollUps:
    return builder.rollups(RUN, target(), True)


def steps(builder: RollUpBuilder) -> list[tuple[str, int, int]]:
    return [(step.change, step.closes, step.of) for step in found(builder).first]


def test_the_change_that_closes_most_comes_first() -> None:
    kinds = counted([("a", OPENED, 100, False), ("www/a", PRIVATE, 10, False)], policy=policy(allow("Website", "www/")))
    assert steps(kinds) == [(IGNORE, 100, 110), ("remove the statement Website from the bucket policy", 110, 110)]


def test_flags_predict_all_changes_up_to_theirs() -> None:
    kinds = counted(
        [("a", OPENED, 100, False), ("www/a", PRIVATE, 10, False), ("img/a", PRIVATE, 10, False)],
        policy=policy(allow("Website", "www/"), allow("Pictures", "img/")),
        policy_is_public=True,
    )
    (step,) = found(kinds).first
    assert (step.change, step.how, step.closes) == (ALL_FOUR, "--block-public-access", 120)


def test_an_object_that_is_public_by_intent_counts_against_a_change() -> None:
    kinds = counted([("a", OPENED, 10, False), ("www/a", OPENED, 3, True)])
    listed = found(kinds).first
    assert [(step.change, step.closes, step.of, step.intended) for step in listed] == [(IGNORE, 10, 10, 3)]
    more = counted([("a", OPENED, 3, False), ("www/a", OPENED, 10, True)])
    assert steps(more) == [("give 3 exposed objects a private ACL, with an S3 Batch Operations job", 3, 3)]


def test_a_grant_that_no_switch_hides_needs_acls_off_or_a_private_acl() -> None:
    assert steps(counted([("a", OF_NOBODY, 4, False)])) == [(ACLS_OFF, 4, 4)]
    shared = Acl(OWNER, (Grant("c3" * 32, "READ"),))
    job = "give 4 exposed objects a private ACL, with an S3 Batch Operations job"
    assert steps(counted([("a", OF_NOBODY, 4, False), ("b", shared, 5, False)])) == [(job, 4, 4)]


def test_a_missing_permission_is_a_step_of_its_own() -> None:
    kinds = counted([("a", OPENED, 1, False)])
    deny(kinds, "GetObjectAcl", "AccessDenied", 7)
    deny(kinds, "HeadObject", "AccessDenied", 3)
    deny(kinds, "HeadObject", "503", 9)
    assert [(step.change, step.closes, step.decides) for step in found(kinds).first] == [
        (IGNORE, 1, 0),
        ("let the auditor call s3:GetObjectAcl", 1, 7),
    ]
    unreachable = counted([])
    deny(unreachable, "HeadObject", "503", 9)
    assert found(unreachable).first == ()


def test_kinds_beyond_the_bound_count_as_left_open() -> None:
    many = [
        (f"{number:03}", Acl(OWNER, (*OPENED.grants, Grant(f"{number:064x}", "READ"))), 1, False)
        for number in range(KINDS + 5)
    ]
    kinds = counted([*many, ("zz", OPENED, 100, False)])  # the last kind comes when there is no room
    assert found(kinds).not_predicted == KINDS + 105 - 32
    assert [(step.closes, step.of) for step in found(kinds).first] == [(32, KINDS + 105)]


def test_a_checkpoint_keeps_the_kinds() -> None:
    bucket = {"policy": policy(allow("Website", "www/"))}
    whole = counted([("a", OPENED, 100, False), ("www/a", PRIVATE, 10, True)], **bucket)
    again = RollUpBuilder.restored(json.loads(json.dumps(whole.saved())))
    settings = facts(public_access_block=PublicAccessBlock(), semantics=Semantics.AWS, **bucket)
    again.count_kinds(JudgedFor(settings, frozenset(), False, None))
    assert again.saved() == whole.saved()
    assert found(again) == found(whole)


def test_a_damaged_checkpoint_is_refused() -> None:
    saved = json.loads(json.dumps(counted([("a", OPENED, 2, False)]).saved()))
    others = ([["private", False, 1]], [["exposed", False]], [["exposed", 0, 1]])
    damaged: list[dict[str, Any]] = [
        {"kinds": [[{}, 1]]},
        {"kinds": [["a"]]},
        {"kinds": 3},
        *({"others": other} for other in others),
    ]
    for change in damaged:
        with pytest.raises(JsonError):
            RollUpBuilder.restored({**saved, **change})


def test_a_statement_with_a_hostile_name_is_inert() -> None:
    sid = "<script>\x1b[2J" + "x" * 200
    kinds = counted([("www/a", PRIVATE, 10, False)], policy=policy(allow(sid, "www/")))
    (step,) = found(kinds).first
    assert "\x1b" not in step.change
    assert len(step.change) < 120


def test_a_block_that_takes_more_than_it_closes_is_not_named() -> None:
    everyone = policy(allow("All", ""), allow("Partner", "", "444455556666"))
    kinds = counted([("a", PRIVATE, 10, False)], policy=everyone, policy_is_public=True)
    assert steps(kinds) == [("remove the statement All from the bucket policy", 10, 10)]
    by_acl = counted(
        [("a", OPENED, 2, False), ("partner/a", Acl(OWNER, (Grant("c3" * 32, "READ"),)), 5, False)],
    )
    assert steps(by_acl) == [(IGNORE, 2, 2)]
