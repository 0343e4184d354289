"""The judge gives rules the facts that they declare, and never a pass where a fact is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.access import ObjectAccess, Verdict
from auditor.model.finding import Finding, RuleUndecided, Severity, fingerprint
from auditor.model.object import (
    ALL_USERS,
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
from auditor.rules.base import Hit, Rule, rule
from auditor.rules.judge import CACHED_ANSWERS, Judge
from auditor.rules.judge import judge as judged_of
from auditor.rules.plan import Plan, make_plan
from tests.support.samples.bucket import OWNER, facts

REF = ObjectRef("k", "e", 1, "2026-01-02T03:04:05Z", owner=OWNER)
PUBLIC = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
HEAD = Head(etag="e", content_length=1)
DENIED = Unread("GetObjectAcl", "AccessDenied")
SKIPPED = Skipped("not asked")


@rule("T01", "by-acl", Severity.HIGH, reads=("acl",))
def by_acl(acl: Acl) -> Iterator[Hit]:
    yield from (Hit("granted", grant.grantee, grant.permission) for grant in acl.grants)


@rule("T02", "by-both", Severity.LOW, reads=("acl", "head"), head=("content",))
def by_both(acl: Acl, head: Head) -> Iterator[Hit]:
    yield Hit("both", severity=Severity.CRITICAL)


@rule("T03", "by-listing", Severity.LOW, reads=("ref",))
def by_listing(ref: ObjectRef) -> Iterator[Hit]:
    yield Hit(f"listed {ref.key}")


@rule("T04", "by-fixed", Severity.INFO, reads=("ref", "bucket.owner", "trusted", "config.word"), options={"word": str})
def by_fixed(ref: ObjectRef, bucket_owner: str, trusted: frozenset[str], word: str) -> Iterator[Hit]:
    yield Hit(f"{ref.key} {bucket_owner[:2]} {sorted(trusted)} {word}")


@rule("T05", "by-bucket", Severity.MEDIUM, reads=("bucket.ownership",))
def by_bucket(ownership: str) -> Iterator[Hit]:
    yield Hit(ownership)


@rule("T06", "by-owner", Severity.LOW, reads=("owner",))
def by_owner(owner: str) -> Iterator[Hit]:
    yield Hit(owner)


@rule("T08", "by-access", Severity.HIGH, reads=("ref", "access"))
def by_access(ref: ObjectRef, access: ObjectAccess) -> Iterator[Hit]:
    if ref.key == "k":
        yield Hit(access.verdict)


@rule("T09", "by-part-of-head", Severity.LOW, reads=("head.sse_customer_algorithm", "head.replication_status"))
def by_part_of_head(algorithm: str | None, status: str | None) -> Iterator[Hit]:
    yield Hit(f"{algorithm} {status}")


@rule("T10", "by-customer-key", Severity.LOW, reads=("head.sse_customer_algorithm",))
def by_customer_key(algorithm: str | None) -> Iterator[Hit]:
    yield Hit(f"{algorithm}")


@rule("T11", "by-what-is-shown", Severity.LOW, reads=("head.object_lock_mode",))
def by_what_is_shown(mode: str | None) -> Iterator[Hit | Unread]:
    yield Hit("seen first")
    if mode is None:
        yield Unread("GetObjectRetention", "Unknown")


def judge(*rules: Rule, versions: bool = False, **changes: Any) -> Judge:
    options: Mapping[str, Mapping[str, Any]] = {"T04": {"word": "hello"}}
    found = facts(**changes)
    return Judge(make_plan(rules, found), found, trusted=frozenset({"friend"}), options=options, versions=versions)


def rules_of(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.rule for finding in findings]


def test_each_rule_gets_the_facts_it_declared() -> None:
    judgement = judge(by_acl, by_both, by_listing, by_fixed).object(Evidence(REF, PUBLIC, HEAD))
    assert rules_of(judgement.findings) == ["T01", "T01", "T02", "T03", "T04"]
    assert [finding.message for finding in judgement.findings][-2:] == ["listed k", "k a0 ['friend'] hello"]
    assert judgement.undecided == ()


def test_finding_names_rule_severity_grantee_and_fingerprint() -> None:
    found = judge(by_acl, by_both).object(Evidence(REF, PUBLIC, HEAD)).findings
    assert found[1] == Finding(
        fingerprint("audited", "k", "T01", ALL_USERS, "READ"),
        "T01",
        Severity.HIGH,
        "k",
        None,
        ALL_USERS,
        "READ",
        "granted",
    )
    assert found[2].severity is Severity.CRITICAL  # the hit's own word


def test_version_is_part_of_the_fingerprint_only_where_versions_are_audited() -> None:
    ref = ObjectRef("k", "e", 1, "2026-01-02T03:04:05Z", "v1")
    (plain,) = judge(by_listing).object(Evidence(ref, PUBLIC, HEAD)).findings
    (versioned,) = judge(by_listing, versions=True).object(Evidence(ref, PUBLIC, HEAD)).findings
    assert plain.fingerprint == fingerprint("audited", "k", "T03", None, None)
    assert versioned.fingerprint == fingerprint("audited", "k", "T03", None, None, "v1")
    assert plain.version_id == versioned.version_id == "v1"


def test_version_that_is_not_the_latest_is_judged_by_its_own_ways_where_versions_are_audited() -> None:
    older = Evidence(ObjectRef("k", "e", 1, "2026-01-02T03:04:05Z", "v1", is_latest=False), Acl(OWNER, ()), HEAD)
    other = '"AWS": "444455556666"'
    policy = (
        f'{{"Statement": {{"Effect": "Allow", "Principal": {{{other}}}, "Action": "s3:GetObject", "Resource": "*"}}}}'
    )
    assert judge(versions=True, policy=policy).object(older).verdict is Verdict.PRIVATE
    assert judge(policy=policy).object(older).verdict is Verdict.SHARED


def test_unread_fact_leaves_its_rules_undecided_and_the_others_judged() -> None:
    judgement = judge(by_acl, by_both, by_listing).object(Evidence(REF, DENIED, HEAD))
    assert judgement.undecided == ("T01", "T02")
    assert rules_of(judgement.findings) == ["T03"]
    assert judgement.verdict is Verdict.UNKNOWN


def test_everything_denied_leaves_what_the_listing_tells() -> None:
    judgement = judge(by_acl, by_both, by_listing, by_owner).object(Evidence(REF, DENIED, Unread("HeadObject", "403")))
    assert rules_of(judgement.findings) == ["T03", "T06"]
    assert judgement.undecided == ("T01", "T02")


def test_skipped_fact_means_that_the_rule_does_not_apply() -> None:
    judgement = judge(by_acl, by_both, by_listing).object(Evidence(REF, SKIPPED, HEAD))
    assert judgement.undecided == ()
    assert rules_of(judgement.findings) == ["T03"]


@pytest.mark.parametrize(("acl", "head"), [(DENIED, SKIPPED), (SKIPPED, Unread("HeadObject", "403"))])
def test_rule_that_lacks_one_fact_and_was_denied_another_does_not_apply(
    acl: Unread | Skipped, head: Unread | Skipped
) -> None:
    assert judge(by_both).object(Evidence(REF, acl, head)).undecided == ()


def test_owner_that_neither_listing_nor_acl_gives_is_undecided() -> None:
    ref = ObjectRef("k", "e", 1, "2026-01-02T03:04:05Z")
    assert judge(by_owner).object(Evidence(ref, DENIED, HEAD)).undecided == ("T06",)


def test_nothing_is_said_of_what_vanished() -> None:
    judgement = judge(by_acl, by_listing).object(Evidence(REF, SKIPPED, SKIPPED, vanished=True))
    assert (judgement.verdict, judgement.findings, judgement.undecided) == (None, (), ())


def test_bucket_rules_are_judged_once_and_name_no_key() -> None:
    judging = judge(by_bucket, by_listing)
    assert [(finding.rule, finding.key, finding.message) for finding in judging.bucket()] == [
        ("T05", None, "ObjectWriter")
    ]
    assert rules_of(judging.object(Evidence(REF, PUBLIC, HEAD)).findings) == ["T03"]


def test_rule_whose_bucket_fact_is_unread_is_never_run() -> None:
    judging = judge(by_bucket, by_fixed, ownership=DENIED, owner=DENIED)
    assert judging.bucket() == []
    assert judging.object(Evidence(REF, PUBLIC, HEAD)).findings == ()


def test_same_facts_same_judgement() -> None:
    evidence = Evidence(REF, PUBLIC, HEAD)
    assert judge(by_acl, by_both).object(evidence) == judge(by_acl, by_both).object(evidence)


def test_verdict_is_given_without_any_rule() -> None:
    empty = Judge(Plan((), (), (), Ask()), facts(public_access_block=SKIPPED))
    assert empty.object(Evidence(REF, PUBLIC, HEAD)).verdict is Verdict.EXPOSED


def counting(*reads: str) -> tuple[Rule, list[tuple[Any, ...]]]:
    """A rule of these facts without hits, and the arguments of its calls."""
    asked: list[tuple[Any, ...]] = []

    def check(*facts: Any) -> Iterator[Hit]:
        asked.append(facts)
        return iter(())

    return Rule("T07", "counting", Severity.LOW, reads, check), asked


def test_rule_of_the_acl_alone_is_asked_once_for_equal_acls() -> None:
    for reads in (("acl",), ("owner", "trusted"), ("bucket.owner", "owner", "acl")):
        counted, asked = counting(*reads)
        judging = judge(counted)
        for number in range(10):
            ref = ObjectRef(f"k{number}", "e", 1, "2026-01-02T03:04:05Z", owner=OWNER)
            judging.object(Evidence(ref, Acl(OWNER, (Grant(OWNER, "READ"),)), HEAD))
        assert len(asked) == 1
        judging.object(Evidence(REF, Acl(OWNER, (Grant(OWNER, "WRITE"),)), HEAD))
        assert len(asked) == 2


@pytest.mark.parametrize("reads", [("ref",), ("head",), ("acl", "head"), ("acl", "ref"), ("owner", "head")])
def test_rule_of_what_an_object_has_for_itself_is_asked_for_each(reads: tuple[str, ...]) -> None:
    counted, asked = counting(*reads)
    judging = judge(counted)
    for _ in range(10):
        judging.object(Evidence(REF, PUBLIC, HEAD))
    assert len(asked) == 10


def various() -> Iterator[Evidence]:
    """Every mixture of facts that are read, denied or skipped, and of owners in the listing."""
    acls = (PUBLIC, Acl("other", PUBLIC.grants), Acl(OWNER, ()), DENIED, Unread("GetObjectAcl", "500"), SKIPPED)
    heads = (HEAD, Unread("HeadObject", "403"), SKIPPED)
    for listed in (OWNER, "other", None):
        ref = ObjectRef("k", "e", 1, "2026-01-02T03:04:05Z", owner=listed)
        yield from (Evidence(ref, acl, head) for acl in acls for head in heads)


def test_what_is_remembered_never_changes_a_judgement() -> None:
    rules = (by_both, by_owner, by_acl, by_fixed, by_listing)
    remembering = judge(*rules)
    cases = [*various()] * 3
    assert [remembering.object(evidence) for evidence in cases] == [judge(*rules).object(case) for case in cases]


def test_findings_and_undecided_rules_stand_in_the_order_of_the_rules() -> None:
    judgement = judge(by_listing, by_acl, by_both, by_owner).object(Evidence(REF, PUBLIC, HEAD))
    assert rules_of(judgement.findings) == ["T03", "T01", "T01", "T02", "T06"]
    undecided = judge(by_both, by_acl).object(Evidence(REF, DENIED, HEAD)).undecided
    assert undecided == ("T02", "T01")


def test_more_acls_than_are_remembered_are_judged_all_the_same() -> None:
    judging = judge(by_acl)
    for number in (*range(CACHED_ANSWERS + 10), 0, 1):
        judgement = judging.object(Evidence(REF, Acl(OWNER, (Grant(f"g{number}", "READ"),)), HEAD))
        assert [finding.grantee for finding in judgement.findings] == [f"g{number}"]


def test_rule_never_gets_a_bucket_fact_that_is_missing_whatever_the_plan_says() -> None:
    for missing, undecided in ((DENIED, ("T04",)), (SKIPPED, ())):
        found = facts(owner=missing)
        judging = Judge(Plan((), (by_fixed,), (), Ask()), found, options={"T04": {"word": "hello"}})
        judgement = judging.object(Evidence(REF, PUBLIC, HEAD))
        assert (judgement.findings, judgement.undecided) == ((), undecided)


OPEN: dict[str, Any] = {"public_access_block": SKIPPED}


def test_rule_on_exposed_objects_is_asked_about_no_other() -> None:
    assert rules_of(judge(by_access, **OPEN).object(Evidence(REF, PUBLIC, HEAD)).findings) == ["T08"]
    private = judge(by_access, **OPEN).object(Evidence(REF, Acl(OWNER, ()), HEAD))
    assert (private.findings, private.undecided) == ((), ())


def test_rule_on_exposed_objects_is_undecided_where_an_unknown_verdict_decides() -> None:
    judging = judge(by_access, policy=DENIED)
    judgement = judging.object(Evidence(REF, Acl(OWNER, ()), HEAD))
    assert (judgement.verdict, judgement.findings, judgement.undecided) == (Verdict.UNKNOWN, (), ("T08",))
    assert judgement.unanswered == (RuleUndecided("T08", "Verdict", "Unknown"),)
    harmless = judging.object(Evidence(replace(REF, key="harmless"), Acl(OWNER, ()), HEAD))
    assert (harmless.verdict, harmless.undecided, harmless.unanswered) == (Verdict.UNKNOWN, (), ())


def test_rule_on_exposed_objects_that_lacks_another_fact_is_undecided_for_that() -> None:
    counted, asked = counting("head", "access")
    judgement = judge(counted, policy=DENIED).object(Evidence(REF, PUBLIC, Unread("HeadObject", "403")))
    assert (judgement.undecided, judgement.unanswered, asked) == (("T07",), (), [])


@pytest.mark.parametrize(
    ("head", "said", "undecided"),
    [
        (
            replace(HEAD, sse_customer_algorithm="AES256", replication_status="PENDING"),
            ["AES256 PENDING", "AES256"],
            (),
        ),
        (HEAD, ["None None", "None"], ()),
        (CUSTOMER_KEY, ["AES256"], ("T09",)),
        (Unread("HeadObject", "403"), [], ("T09", "T10")),
        (SKIPPED, [], ()),
    ],
)
def test_rule_of_a_part_of_the_head(head: Head | Unread | Skipped, said: list[str], undecided: tuple[str, ...]) -> None:
    judgement = judge(by_part_of_head, by_customer_key).object(Evidence(REF, PUBLIC, head))
    assert [finding.message for finding in judgement.findings] == said
    assert judgement.undecided == undecided


def test_rule_of_a_part_of_the_head_is_asked_once_for_all_that_are_alike_in_it() -> None:
    counted, asked = counting("acl", "head.replication_status")
    judging = judge(counted)
    for number in range(10):
        judging.object(Evidence(REF, PUBLIC, replace(HEAD, etag=f"e{number}")))
    assert len(asked) == 1
    judging.object(Evidence(REF, PUBLIC, replace(HEAD, replication_status="FAILED")))
    assert asked[1:] == [(PUBLIC, "FAILED")]


def test_rule_that_says_what_s3_does_not_show_is_undecided() -> None:
    judgement = judge(by_what_is_shown).object(Evidence(REF, PUBLIC, HEAD))
    assert (judgement.findings, judgement.undecided) == ((), ("T11",))
    assert judgement.unanswered == (RuleUndecided("T11", "GetObjectRetention", "Unknown"),)
    shown = judge(by_what_is_shown).object(Evidence(REF, PUBLIC, replace(HEAD, object_lock_mode="GOVERNANCE")))
    assert (rules_of(shown.findings), shown.undecided, shown.unanswered) == (["T11"], (), ())


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
