"""Every case file against the judge: verdict, audience and reasons."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.model.access import Audience, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.object import Acl, Unread
from auditor.verdict.judge import VerdictJudge
from tests.verdict.case_files import Case, read_cases

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CASES: Final = read_cases()
LISTED: Final = {"situation": 10, "idiom": 40, "sight": 15, "key": 8}
"""The situations, idioms, sights and condition keys that the verdict was built from."""

UNREAD: Final = Unread("Operation", "AccessDenied")
BUCKET_FACTS: Final = (
    *("owner", "own_id", "account", "ownership", "public_access_block", "account_public_access_block"),
    *("policy_is_public", "policy", "request_payer", "access_points", "abac", "tags"),
)
REACHED: Final = frozenset({Verdict.EXPOSED, Verdict.SHARED})
HIDDEN: Final = frozenset({Verdict.MASKED, Verdict.PRIVATE})
OPENS: Final = {
    ReasonCode.ACL_GRANT,
    ReasonCode.OBJECT_OWNER,
    ReasonCode.POLICY_ALLOW,
    ReasonCode.ACCESS_POINT,
    ReasonCode.ACCESS_GRANT,
}
LEAVES_OPEN: Final = {
    ReasonCode.ACL_UNREAD,
    ReasonCode.POLICY_UNREAD,
    ReasonCode.KEY_UNKNOWN,
    ReasonCode.ACCESS_POINTS_UNREAD,
    ReasonCode.BUCKET_TAGS_UNREAD,
    ReasonCode.KMS_KEY_UNREAD,
    ReasonCode.OWNER_UNKNOWN,
    ReasonCode.TOO_COMPLEX,
}


def access(case: Case) -> ObjectAccess:
    judge = VerdictJudge(case.bucket, case.trusted, versions=case.versions, now=NOW)
    return judge.access(case.ref, case.acl, case.head)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.of}: {case.title}")
def test_a_case_comes_to_its_verdict(case: Case) -> None:
    found = access(case)
    assert found.verdict in case.verdicts
    if case.audience is not None:
        assert {audience.text for audience in found.audience} == case.audience
    said = {reason.text for reason in found.reasons} | {reason.code.value for reason in found.reasons}
    assert set(case.reasons) <= said
    _fits(found)
    for reason in found.reasons:
        assert reason.code not in CAUSES or reason.cause in CAUSES[reason.code](case), reason.text


def _fits(found: ObjectAccess) -> None:
    """An object that others reach names them and the way; one that is not known names the fact that is missing."""
    codes = {reason.code for reason in found.reasons}
    assert bool(found.audience) == (found.verdict in REACHED)
    if found.verdict in REACHED:
        assert codes & OPENS
    if found.verdict is Verdict.UNKNOWN:
        assert codes & LEAVES_OPEN
    if found.verdict is Verdict.MASKED:
        assert found.reasons
    assert [Audience.parse(audience.text) for audience in found.audience] == list(found.audience)
    assert [Reason.parse(reason.text) for reason in found.reasons] == list(found.reasons)


def _statements(effect: str, case: Case) -> set[str]:
    """The causes that stand for the statements of that effect; one that ends says until when."""
    if not isinstance(case.bucket.policy, str) or not case.bucket.policy.startswith('{"Version'):
        return set()
    listed = enumerate(json.loads(case.bucket.policy)["Statement"], 1)
    causes = {statement.get("Sid", f"#{number}") for number, statement in listed if statement["Effect"] == effect}
    return causes | {f"{cause} until 2999-01-01T00:00:00Z" for cause in causes}


CAUSES: Final[Mapping[ReasonCode, Callable[[Case], Collection[str | None]]]] = {
    ReasonCode.ACL_GRANT: lambda case: (
        {f"{grant.grantee} {grant.permission}" for grant in case.acl.grants} if isinstance(case.acl, Acl) else ()
    ),
    ReasonCode.OBJECT_OWNER: lambda case: (case.ref.owner,),
    ReasonCode.POLICY_ALLOW: lambda case: _statements("Allow", case),
    ReasonCode.POLICY_DENY: lambda case: _statements("Deny", case),
    ReasonCode.NOT_BUCKET_OWNED: lambda case: _statements("Allow", case),
    ReasonCode.ENDED: lambda case: _statements("Allow", case),
    ReasonCode.TRUSTED: lambda case: case.trusted,
    ReasonCode.ACLS_DISABLED: lambda case: (None,) if case.bucket.ownership == BUCKET_OWNER_ENFORCED else (),
    ReasonCode.ACL_UNREAD: lambda case: () if isinstance(case.acl, Acl) else ("AccessDenied", "skipped"),
}
"""The causes that a reason may have, by its code: facts of the case. The judge tries every value of a fact that was not
read; none of those is a reason.
"""


def test_a_fact_that_is_not_read_hides_no_object() -> None:
    """An object that others reach is never private or masked for want of a fact."""
    reached = [case for case in CASES if access(case).verdict in REACHED]
    lacking = [(name, _without(name, case)) for case in reached for name in BUCKET_FACTS]
    lacking += [("acl", dataclasses.replace(case, acl=UNREAD)) for case in reached]
    lacking += [("head", dataclasses.replace(case, head=UNREAD)) for case in reached]
    assert [f"{name}: {case.title}" for name, case in lacking if access(case).verdict in HIDDEN] == []


def test_the_servers_word_for_the_policy_changes_no_verdict() -> None:
    """Without RestrictPublicBuckets: S3's IsPublic only confirms what the statements say."""
    asked = [case for case in CASES if not case.bucket.restricts_public_policy]
    differ = (case for case in asked if access(_without("policy_is_public", case)).verdict is not access(case).verdict)
    assert [case.title for case in differ] == []


def _without(name: str, case: Case) -> Case:
    """The case with a bucket fact that could not be read."""
    changes: dict[str, Any] = {name: UNREAD}
    return dataclasses.replace(case, bucket=replace(case.bucket, **changes))


def test_a_case_says_whom_it_lets_in() -> None:
    """A case that is exposed or shared names an audience or leaves it open; the others name none."""
    for case in CASES:
        assert case.audience is None or bool(case.audience) == bool(case.verdicts & REACHED), case.title


def test_no_title_is_given_twice() -> None:
    assert [name for name, times in Counter((case.of, case.title) for case in CASES).items() if times > 1] == []


def test_every_situation_has_cases() -> None:
    wanted = {f"{kind} {number}" for kind, last in LISTED.items() for number in range(1, last + 1)}
    assert {case.of for case in CASES} == wanted | {"grants"}
