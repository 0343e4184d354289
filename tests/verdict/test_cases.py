"""Every case file against the judge, its verdict, audience and reasons, and against the oracle."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.model.access import Audience, ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.object import Acl, Skipped, Unread
from auditor.verdict.judge import VerdictJudge
from tests.verdict.case_files import Case, read_cases
from tests.verdict.oracle import worlds
from tests.verdict.oracle.verdict import judge

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FILES: Final = read_cases()
CASES: Final = [case for cases in FILES.values() for case in cases]
LISTED: Final = {"situation": 10, "idiom": 40, "sight": 15, "key": 8}
"""The situations, idioms, sights and condition keys that the verdict was built from."""
OTHERS: Final = {"audience", "together", "access point", "principal"}
BASIC: Final = [case for case in CASES if case.of not in OTHERS]
UNREAD: Final = Unread("Operation", "AccessDenied")
BUCKET_FACTS: Final = (
    *("owner", "own_id", "account", "ownership", "public_access_block", "account_public_access_block"),
    *("policy_is_public", "policy", "request_payer", "access_points", "abac", "tags"),
)
REACHED: Final = frozenset({Verdict.EXPOSED, Verdict.SHARED})
HIDDEN: Final = frozenset({Verdict.MASKED, Verdict.PRIVATE})
OPENS: Final = {
    *(ReasonCode.ACL_GRANT, ReasonCode.OBJECT_OWNER, ReasonCode.POLICY_ALLOW),
    *(ReasonCode.ACCESS_POINT, ReasonCode.ACCESS_GRANT),
}
LEAVES_OPEN: Final = {
    *(ReasonCode.ACL_UNREAD, ReasonCode.POLICY_UNREAD, ReasonCode.KEY_UNKNOWN, ReasonCode.ACCESS_POINTS_UNREAD),
    *(ReasonCode.BUCKET_TAGS_UNREAD, ReasonCode.KMS_KEY_UNREAD, ReasonCode.OWNER_UNKNOWN, ReasonCode.TOO_COMPLEX),
}
MUST_SAY: Final = {Verdict.EXPOSED: OPENS, Verdict.SHARED: OPENS, Verdict.UNKNOWN: LEAVES_OPEN}


def access(case: Case) -> ObjectAccess:
    judging = VerdictJudge(case.bucket, case.trusted, versions=case.versions, now=NOW)
    return judging.access(case.ref, case.acl, case.head)


each_file = pytest.mark.parametrize("name", FILES)


@each_file
def test_the_cases_of_a_file_come_to_their_verdicts(name: str) -> None:
    failures = [f"{case.name}: {wrong}" for case in FILES[name] for wrong in _wrong(case, access(case))]
    assert not failures, failures


def _wrong(case: Case, found: ObjectAccess) -> Iterator[str]:
    audience = {audience.text for audience in found.audience}
    if found.verdict not in case.verdicts or case.audience not in (None, audience):
        yield f"{found.verdict} {audience}"
    codes = {reason.code for reason in found.reasons}
    said = {*codes, *(reason.text for reason in found.reasons)}
    if not set(case.reasons) <= said:
        yield f"reasons {sorted(said)}"
    # An object that others reach names them and the way; one that is not known names the fact that is missing.
    says = codes & MUST_SAY[found.verdict] if found.verdict in MUST_SAY else True
    if bool(audience) != (found.verdict in REACHED) or not says:
        yield f"audience {audience}, reasons {sorted(said)}"
    if found.verdict is Verdict.MASKED and not codes:
        yield "masked by nothing"
    if [Audience.parse(one.text) for one in found.audience] != list(found.audience):
        yield "an audience is not read back"
    if [Reason.parse(one.text) for one in found.reasons] != list(found.reasons):
        yield "a reason is not read back"
    for reason in found.reasons:
        if reason.code in CAUSES and reason.cause not in CAUSES[reason.code](case):
            yield f"no fact is the cause of {reason.text}"


@each_file
def test_the_oracle_says_the_same(name: str) -> None:
    failures = []
    for case in (one for one in FILES[name] if one.judged_twice):
        facts = worlds.Case(case.bucket, case.acl, case.head, case.ref, tuple(case.trusted), case.versions)
        found = judge(facts)
        named = found.verdict is not Verdict.UNKNOWN and case.audience is not None
        if found.verdict not in case.verdicts or (named and found.audience != case.audience):
            failures.append(f"{case.name}: {found}")
    assert not failures, failures


def _grants(case: Case) -> set[str]:
    return {f"{one.grantee} {one.permission}" for one in case.acl.grants} if isinstance(case.acl, Acl) else set()


def _statements(effect: str, case: Case) -> set[str]:
    """The causes that stand for the statements of that effect; one that ends says until when."""
    if not isinstance(case.bucket.policy, str) or not case.bucket.policy.startswith('{"Version'):
        return set()
    listed = enumerate(json.loads(case.bucket.policy)["Statement"], 1)
    causes = {statement.get("Sid", f"#{number}") for number, statement in listed if statement["Effect"] == effect}
    return causes | {f"{cause} until 2999-01-01T00:00:00Z" for cause in causes}


CAUSES: Final[Mapping[ReasonCode, Callable[[Case], Collection[str | None]]]] = {
    ReasonCode.ACL_GRANT: lambda case: _grants(case),
    ReasonCode.OBJECT_OWNER: lambda case: (case.ref.owner,),
    ReasonCode.POLICY_ALLOW: lambda case: _statements("Allow", case),
    ReasonCode.POLICY_DENY: lambda case: _statements("Deny", case),
    ReasonCode.NOT_BUCKET_OWNED: lambda case: _statements("Allow", case),
    ReasonCode.ENDED: lambda case: _statements("Allow", case),
    ReasonCode.TRUSTED: lambda case: case.trusted,
    ReasonCode.ACLS_DISABLED: lambda case: (None,) if case.bucket.ownership == BUCKET_OWNER_ENFORCED else (),
    ReasonCode.ACL_UNREAD: lambda case: _grants(case) if isinstance(case.acl, Acl) else ("AccessDenied", "skipped"),
}
"""The causes that a reason may have, by its code: facts of the case. The judge tries every value of a fact that was not
read; none of those is a reason.
"""


def test_a_fact_that_is_not_read_hides_no_object() -> None:
    """An object that others reach is never private or masked for want of a fact."""
    reached = [case for case in BASIC if access(case).verdict in REACHED][::3]
    lacking = [(name, _without(name, case)) for case in reached for name in BUCKET_FACTS if _matters(name, case)]
    lacking += [("acl", dataclasses.replace(case, acl=UNREAD)) for case in reached]
    lacking += [("head", dataclasses.replace(case, head=UNREAD)) for case in reached]
    assert [f"{name}: {case.title}" for name, case in lacking if access(case).verdict in HIDDEN] == []


def test_the_servers_word_for_the_policy_changes_no_verdict() -> None:
    """Without RestrictPublicBuckets: S3's IsPublic only confirms what the statements say."""
    asked = [case for case in BASIC if _matters("policy", case) and not case.bucket.restricts_public_policy]
    differ = (case for case in asked if access(_without("policy_is_public", case)).verdict is not access(case).verdict)
    assert [case.name for case in differ] == []


def _matters(name: str, case: Case) -> bool:
    """False for a fact that the run did not ask for, or that is empty."""
    fact = getattr(case.bucket, name)
    return bool(fact) and not isinstance(fact, Unread | Skipped)


def _without(name: str, case: Case) -> Case:
    """The case with a bucket fact that could not be read."""
    changes: dict[str, Any] = {name: UNREAD}
    return dataclasses.replace(case, bucket=replace(case.bucket, **changes))


def test_every_situation_has_cases_that_differ_by_name() -> None:
    assert [name for name, times in Counter(case.name for case in CASES).items() if times > 1] == []
    wanted = {f"{kind} {number}" for kind, last in LISTED.items() for number in range(1, last + 1)}
    assert {case.of for case in CASES} == wanted | OTHERS | {"grants"}
