"""The judge gives rules the facts that they declare, and never a pass where a fact is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.finding import Finding, RuleUndecided, Severity, fingerprint
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    CUSTOMER_KEY,
    Acl,
    Ask,
    DigestSources,
    Evidence,
    Grant,
    Head,
    ObjectRef,
    Skipped,
    Unread,
)
from auditor.rules import RULES
from auditor.rules.base import Plan, Rule, make_plan
from auditor.rules.judge import CACHED_ANSWERS, Judge
from auditor.rules.judge import judge as judged_of
from tests.support.samples.bucket import OWNER, facts

REF: Final = ObjectRef(".env", "e", 1, "2026-01-02T03:04:05Z", owner=OWNER)
RISKY: Final = replace(REF, key="../k")
PUBLIC: Final = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
PRIVATE: Final = Acl(OWNER, ())
HEAD: Final = Head(etag="e", content_length=1)
DENIED: Final = Unread("GetObjectAcl", "AccessDenied")
NO_HEAD: Final = Unread("HeadObject", "403")
SKIPPED: Final = Skipped("not asked")
BY_ID: Final = {rule.id: rule for rule in RULES}
OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "M01": {"required": ["origin"]},
    "L01": {"mode": "COMPLIANCE", "retention_readable": False},
}


def judge(*rules: str | Rule, versions: bool = False, **changes: Any) -> Judge:
    chosen = tuple(BY_ID[one] if isinstance(one, str) else one for one in rules)
    found = {"public_access_block": SKIPPED, **changes}
    bucket = facts(**found)
    return Judge(make_plan(chosen, bucket), bucket, trusted=frozenset({"friend"}), options=OPTIONS, versions=versions)


def rules_of(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.rule for finding in findings]


def test_findings_stand_in_the_order_of_the_rules_and_each_names_its_own() -> None:
    owned = Acl("friend", PUBLIC.grants)
    judgement = judge("K01", "O02", "M01", "O09", "E01").object(Evidence(RISKY, owned, HEAD))
    assert rules_of(judgement.findings) == ["K01", "O02", "M01", "O09", "E01"]
    assert judgement.undecided == ()
    _, read, option, owner, _ = judgement.findings
    mark = fingerprint("audited", "../k", "O02", ALL_USERS, "READ")
    assert read == Finding(mark, "O02", Severity.HIGH, "../k", None, ALL_USERS, "READ", read.message)
    assert "origin" in option.message
    assert owner.severity is Severity.MEDIUM, "the hit's own word: the owner is trusted"
    denied = judge("E01", "O02").object(Evidence(REF, DENIED, NO_HEAD))
    assert denied.undecided == ("E01", "O02")


def test_version_is_part_of_the_fingerprint_only_where_versions_are_audited() -> None:
    evidence = Evidence(replace(RISKY, version_id="v1"), PUBLIC, HEAD)
    (plain,) = judge("K01").object(evidence).findings
    (versioned,) = judge("K01", versions=True).object(evidence).findings
    assert plain.fingerprint == fingerprint("audited", "../k", "K01", None, None)
    assert versioned.fingerprint == fingerprint("audited", "../k", "K01", None, None, "v1")
    assert plain.version_id == versioned.version_id == "v1"


def test_version_that_is_not_the_latest_is_judged_by_its_own_ways_where_versions_are_audited() -> None:
    older = Evidence(replace(REF, version_id="v1", is_latest=False), PRIVATE, HEAD)
    other = '"Principal": {"AWS": "444455556666"}, "Action": "s3:GetObject", "Resource": "*"'
    policy = f'{{"Statement": {{"Effect": "Allow", {other}}}}}'
    assert judge(versions=True, policy=policy).object(older).verdict is Verdict.PRIVATE
    assert judge(policy=policy).object(older).verdict is Verdict.SHARED


def test_a_missing_fact_leaves_its_rules_undecided_and_the_others_judged() -> None:
    anonymous, unnamed = replace(RISKY, owner=ANONYMOUS_OWNER), replace(RISKY, owner=None)
    customer = replace(HEAD, sse_customer_algorithm="AES256", replication_status="FAILED")
    digests = DigestSources(stored={"sha256": "aa"}, recorded={"sha256": "bb"})
    for situation, rules, evidence, found, undecided in (
        ("the ACL is denied", "O02 E01 K01", Evidence(RISKY, DENIED, HEAD), ["E01", "K01"], ("O02",)),
        ("all is denied", "O10 O02 E01 K01", Evidence(anonymous, DENIED, NO_HEAD), ["O10", "K01"], ("O02", "E01")),
        ("the ACL is skipped", "O02 E01 K01", Evidence(RISKY, SKIPPED, HEAD), ["E01", "K01"], ()),
        ("nobody names the owner", "O10 K01", Evidence(unnamed, DENIED, HEAD), ["K01"], ("O10",)),
        ("both facts", "I03", Evidence(REF, PUBLIC, HEAD, digests=digests), ["I03"], ()),
        ("one is denied", "I03", Evidence(REF, PUBLIC, NO_HEAD, digests=digests), [], ("I03",)),
        ("one is denied, one skipped", "I03", Evidence(REF, PUBLIC, NO_HEAD, digests=SKIPPED), [], ()),
        ("members of a HEAD", "R01 E06", Evidence(REF, PUBLIC, customer), ["R01", "E06"], ()),
        ("the customer's key is all that is known", "R01 E06", Evidence(REF, PUBLIC, CUSTOMER_KEY), ["E06"], ("R01",)),
        ("a HEAD that is denied", "R01 E06", Evidence(REF, PUBLIC, NO_HEAD), [], ("R01", "E06")),
        ("a HEAD that is skipped", "R01 E06", Evidence(REF, PUBLIC, SKIPPED), [], ()),
    ):
        judgement = judge(*rules.split()).object(evidence)
        assert (rules_of(judgement.findings), judgement.undecided) == (found, undecided), situation
    assert judge().object(Evidence(REF, DENIED, HEAD)).verdict is Verdict.UNKNOWN
    gone = judge("O02", "K01").object(Evidence(RISKY, SKIPPED, SKIPPED, vanished=True))
    assert (gone.verdict, gone.findings, gone.undecided) == (None, (), ())


def test_bucket_rules_are_judged_once_and_name_no_key() -> None:
    judging = judge("B01", "K01")
    assert [(finding.rule, finding.key) for finding in judging.bucket()] == [("B01", None)]
    assert rules_of(judging.object(Evidence(RISKY, PUBLIC, HEAD)).findings) == ["K01"]
    unread = judge("B01", "O09", ownership=DENIED, owner=DENIED)
    assert (unread.bucket(), unread.object(Evidence(REF, PUBLIC, HEAD)).findings) == ([], ())


def test_rule_never_gets_a_bucket_fact_that_is_missing_whatever_the_plan_says() -> None:
    for missing, undecided in ((DENIED, ("O09",)), (SKIPPED, ())):
        judging = Judge(Plan((), (BY_ID["O09"],), (), Ask()), facts(owner=missing))
        judgement = judging.object(Evidence(REF, Acl("friend", ()), HEAD))
        assert (judgement.findings, judgement.undecided) == ((), undecided)


def counting(*reads: str) -> tuple[Rule, list[tuple[Any, ...]]]:
    """A rule of these facts without hits, and the arguments of its calls."""
    asked: list[tuple[Any, ...]] = []

    def check(*facts: Any) -> Iterator[Any]:
        asked.append(facts)
        return iter(())

    return Rule("T07", "counting", Severity.LOW, reads, check), asked


def test_rule_of_what_objects_share_is_asked_once_for_all_that_are_alike() -> None:
    for reads in (("acl",), ("owner", "trusted"), ("bucket.owner", "owner", "acl"), ("acl", "head.replication_status")):
        counted, asked = counting(*reads)
        judging = judge(counted)
        for number in range(10):
            ref, head = replace(REF, key=f"k{number}"), replace(HEAD, etag=f"e{number}")
            judging.object(Evidence(ref, Acl(OWNER, (Grant(OWNER, "READ"),)), head))
        assert len(asked) == 1, reads
        judging.object(Evidence(REF, Acl(OWNER, (Grant(OWNER, "WRITE"),)), replace(HEAD, replication_status="FAILED")))
        assert len(asked) == 2, reads
    assert asked[1][1] == "FAILED"


def test_rule_of_what_an_object_has_for_itself_is_asked_for_each() -> None:
    for reads in (("ref",), ("head",), ("acl", "head"), ("acl", "ref"), ("owner", "head")):
        counted, asked = counting(*reads)
        judging = judge(counted)
        for _ in range(10):
            judging.object(Evidence(REF, PUBLIC, HEAD))
        assert len(asked) == 10, reads


def various() -> Iterator[Evidence]:
    """Every mixture of facts that are read, denied or skipped, and of owners in the listing."""
    acls = (PUBLIC, Acl("other", PUBLIC.grants), PRIVATE, DENIED, Unread("GetObjectAcl", "500"), SKIPPED)
    for listed in (OWNER, "other", None):
        ref = replace(RISKY, owner=listed)
        yield from (Evidence(ref, acl, head) for acl in acls for head in (HEAD, NO_HEAD, SKIPPED))


def test_what_is_remembered_never_changes_a_judgement() -> None:
    rules = ("E01", "O10", "O02", "O07", "K01", "O15")
    remembering = judge(*rules)
    cases = [*various()] * 3
    assert [remembering.object(evidence) for evidence in cases] == [judge(*rules).object(case) for case in cases]
    for number in (*range(CACHED_ANSWERS + 10), 0, 1):
        acl = Acl(OWNER, (Grant(f"g{number}", "FULL_CONTROL"),))
        assert f"g{number}" in {one.grantee for one in remembering.object(Evidence(REF, acl, HEAD)).findings}


def test_rule_on_exposed_objects_is_asked_about_no_other_and_undecided_where_an_unknown_verdict_decides() -> None:
    assert rules_of(judge("K02").object(Evidence(REF, PUBLIC, HEAD)).findings) == ["K02"]
    private = judge("K02").object(Evidence(REF, PRIVATE, HEAD))
    assert (private.findings, private.undecided) == ((), ())
    unknown = judge("K02", "O15", policy=DENIED)
    judgement = unknown.object(Evidence(REF, PRIVATE, HEAD))
    assert (judgement.verdict, judgement.findings, judgement.undecided) == (Verdict.UNKNOWN, (), ("K02",))
    assert judgement.unanswered == (RuleUndecided("K02", "Verdict", "Unknown"),)
    harmless = unknown.object(Evidence(replace(REF, key="harmless"), PRIVATE, HEAD))
    assert (harmless.undecided, harmless.unanswered) == ((), ())
    lacking = unknown.object(Evidence(replace(REF, key="harmless"), PUBLIC, NO_HEAD))
    assert (lacking.undecided, lacking.unanswered) == (("O15",), ())


def test_rule_that_says_what_s3_does_not_show_is_undecided() -> None:
    judgement = judge("L01").object(Evidence(REF, PUBLIC, HEAD))
    assert (judgement.findings, judgement.undecided) == ((), ("L01",))
    assert judgement.unanswered == (RuleUndecided("L01", "GetObjectRetention", "Unknown"),)
    shown = judge("L01").object(Evidence(REF, PUBLIC, replace(HEAD, object_lock_mode="GOVERNANCE")))
    assert (rules_of(shown.findings), shown.undecided, shown.unanswered) == (["L01"], (), ())


def test_rule_of_the_time_gets_the_runs_or_does_not_apply() -> None:
    counted, asked = counting("ref", "now")
    now = datetime(2026, 1, 2, tzinfo=UTC)
    plan, bucket = make_plan((counted,), facts()), facts()
    Judge(plan, bucket, now=now).object(Evidence(REF, PUBLIC, HEAD))
    assert Judge(plan, bucket).object(Evidence(REF, PUBLIC, HEAD)).undecided == ()
    assert asked == [(REF, now)]


# ---- one object's facts, judged for a Python program

FOREIGN = Evidence(REF, Acl("friend", (Grant("friend", "FULL_CONTROL"),)), HEAD)


@pytest.mark.parametrize(
    ("situation", "evidence", "arguments", "expected"),
    [
        ("all rules", FOREIGN, {}, [("O09", Severity.HIGH), ("O11", Severity.MEDIUM), ("E01", Severity.HIGH)]),
        ("one rule", FOREIGN, {"rules": ["o09"]}, [("O09", Severity.HIGH)]),
        ("a trusted owner", FOREIGN, {"rules": ["O09"], "trusted": ["friend"]}, [("O09", Severity.MEDIUM)]),
        (
            "a rule with its options",
            FOREIGN,
            {"rules": ["M01"], "options": {"M01": {"required": ["origin"]}}},
            [("M01", Severity.MEDIUM)],
        ),
        (
            "digests",
            Evidence(REF, PUBLIC, HEAD, digests=DigestSources(stored={"sha256": "aa"}, recorded={"sha256": "bb"})),
            {"rules": ["I03"]},
            [("I03", Severity.CRITICAL)],
        ),
    ],
)
def test_facts_of_one_object(situation: str, evidence: Evidence, arguments: Any, expected: list[Any]) -> None:
    judgement = judged_of(evidence, facts(), **arguments)
    assert [(finding.rule, finding.severity) for finding in judgement.findings] == expected, situation
    assert judgement.undecided == ()


def test_facts_of_one_object_in_a_bucket_that_was_not_read() -> None:
    judgement = judged_of(Evidence(REF, DENIED, HEAD), facts(owner=DENIED), rules=["O01", "O09"])
    assert judgement.undecided == ("O09", "O01")
    assert judgement.verdict is Verdict.UNKNOWN
    with pytest.raises(UsageError, match="compares with a ledger"):
        judged_of(FOREIGN, facts(), rules=["I03"])
