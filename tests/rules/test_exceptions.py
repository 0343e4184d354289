"""Exceptions cover what they name, and nothing wider, nothing unread, and nothing after their last day."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from auditor.model.access import Audience, ObjectAccess, Reason, Verdict, contains, widest
from auditor.model.exception import ExceptionEntry, ExceptionState, covers_key, holes_of
from auditor.model.finding import Finding, Judgement, RuleUndecided, Severity
from auditor.model.object import ALL_USERS, Acl, Evidence, Head, ObjectRef, Unread
from auditor.rules.exceptions import Exceptions

TODAY = "2026-03-01"
CANONICAL = "b1" * 32
PUBLIC = "acl-grant: " + ALL_USERS + " READ"


def entry(**members: Any) -> ExceptionEntry:
    return ExceptionEntry(**{"reason": "r", "owner": "o", "until": "2026-12-31", **members})


def website(**members: Any) -> ExceptionEntry:
    return entry(**{"verdict": Verdict.EXPOSED, "prefix": "site/", **members})


def finding(key: str | None, rule: str = "O02", grantee: str | None = ALL_USERS, permission: str = "READ") -> Finding:
    return Finding("f" * 32, rule, Severity.HIGH, key, None, grantee, permission, "m")


def judged(
    key: str,
    audience: str = "anyone",
    verdict: Verdict = Verdict.EXPOSED,
    reasons: tuple[str, ...] = (PUBLIC,),
    findings: tuple[Finding, ...] | None = None,
    unread: Unread | None = None,
) -> Judgement:
    acl = unread or Acl("owner", ())
    evidence = Evidence(ObjectRef(key, "e", 1, "2026-01-01T00:00:00Z"), acl, Head(etag="e", content_length=1))
    audiences = tuple(Audience.parse(one) for one in audience.split(", ") if one)
    access = ObjectAccess(verdict, audiences, tuple(map(Reason.parse, reasons)))
    return Judgement(evidence, access, (finding(key),) if findings is None else findings, ())


def covered(judgement: Judgement, *entries: ExceptionEntry) -> tuple[bool, tuple[bool, ...]]:
    """Return if the verdict is covered, and which findings are."""
    found = Exceptions(entries, "bucket", TODAY).of_object(judgement)
    findings = found.findings or (None,) * len(judgement.findings)
    return found.verdict is not None, tuple(name is not None for name in findings)


class TestVerdict:
    def test_public_website_is_covered_with_its_grants_of_read(self) -> None:
        assert covered(judged("site/index.html"), website()) == (True, (True,))

    def test_is_not_covered(self) -> None:
        for judgement, why in (
            (judged("site", findings=()), "another prefix"),
            (judged("other/site/x", findings=()), "another prefix"),
            (judged("site/x", verdict=Verdict.SHARED, findings=()), "another verdict"),
            (judged("site/x", reasons=(PUBLIC, "acl-unread: AccessDenied"), findings=()), "the ACL is not known"),
            (judged("site/x", reasons=(f"acl-grant: {ALL_USERS} WRITE_ACP",), findings=()), "control, not reading"),
            (judged("site/x", unread=Unread("GetObjectAcl", "AccessDenied"), findings=()), "unread"),
        ):
            assert covered(judgement, website()) == (False, ()), why

    def test_all_audiences_must_be_covered(self) -> None:
        one, two = (
            entry(verdict=Verdict.SHARED, audience=f"account {account}") for account in ("444455556666", "777788889999")
        )
        both = judged("k", "account 444455556666, account 777788889999", Verdict.SHARED, ("policy-allow: P",), ())
        assert not covered(both, one)[0]
        assert covered(both, one, two)[0]
        assert not covered(both, one, entry(verdict=Verdict.SHARED, audience=two.audience, until="2026-02-28"))[0]

    def test_masked_grant_to_everyone_is_not_covered_by_an_exception_for_one_account(self) -> None:
        shared = judged("k", "account 444455556666", Verdict.SHARED, ("policy-allow: P",), (finding("k"),))
        assert covered(shared, entry(verdict=Verdict.SHARED)) == (True, (False,))

    def test_other_findings_on_the_object_stay(self) -> None:
        others = (finding("site/a", "E01", None, ""), finding("site/a", "O01", ALL_USERS, "WRITE_ACP"))
        assert covered(judged("site/a", findings=others), website()) == (True, (False, False))

    def test_ends_after_its_last_day(self) -> None:
        assert covered(judged("site/a"), website(until=TODAY)) == (True, (True,))
        assert covered(judged("site/a"), website(until="2026-02-28")) == (False, (False,))


class TestFinding:
    def test_rule_and_grantee(self) -> None:
        theirs = (finding("p/a", "O08", CANONICAL), finding("p/a", "O08", "c2" * 32), finding("p/a", "O07", CANONICAL))
        partner = entry(rule="O08", prefix="p/", grantee=CANONICAL)
        assert covered(judged("p/a", findings=theirs), partner) == (False, (True, False, False))

    def test_audience_of_the_object_must_be_covered_too(self) -> None:
        partner = entry(rule="O08", audience=f"canonical-id {CANONICAL}")
        theirs = (finding("a", "O08", CANONICAL),)
        assert covered(judged("a", f"canonical-id {CANONICAL}", Verdict.SHARED, (), theirs), partner)[1] == (True,)
        assert covered(judged("a", "anyone", findings=theirs), partner)[1] == (False,)

    def test_finding_on_the_bucket(self) -> None:
        public = Exceptions([entry(rule="B04", id="site")], "bucket", TODAY)
        found = public.of_bucket([finding(None, "B04", None), finding(None, "B05", None)])
        assert (found.findings, found.used) == (("site", None), ("site",))

    def test_finding_on_an_object_that_is_partly_unread_is_a_fact(self) -> None:
        unread = judged("a", unread=Unread("GetObjectAcl", "AccessDenied"))
        assert covered(unread, entry(rule="O02")) == (False, (True,))

    def test_other_bucket(self) -> None:
        assert covered(judged("a"), entry(rule="O02", bucket="other")) == (False, (False,))
        assert covered(judged("a"), entry(rule="O02", bucket="bucket")) == (False, (True,))


class TestHole:
    UNREAD = judged("vault/a", unread=Unread("GetObjectAcl", "AccessDenied"), findings=())

    def test_only_an_entry_for_holes_accepts_one(self) -> None:
        vault = entry(prefix="vault/", code="AccessDenied", id="vault")
        assert Exceptions([vault], "bucket", TODAY).of_object(self.UNREAD).hole == "vault"
        for other in (website(prefix="vault/"), entry(rule="O02", prefix="vault/")):
            assert Exceptions([other], "bucket", TODAY).of_object(self.UNREAD).hole is None

    def test_expired_hole_counts_again(self) -> None:
        vault = entry(prefix="vault/", code="AccessDenied", until="2026-02-28", id="vault")
        found = Exceptions([vault], "bucket", TODAY).of_object(self.UNREAD)
        assert (found.hole, found.used, found.expired) == (None, (), ("vault",))
        assert holes_of([vault], "bucket", TODAY) == ()
        assert holes_of([vault], "bucket", "2026-02-28") == (vault,)

    def test_undecided_rule_needs_an_entry_for_holes(self) -> None:
        undecided = [RuleUndecided("B01", "GetBucketOwnershipControls", "AccessDenied")]
        for accepting, number in ((entry(rule="B01"), 0), (entry(rule="B01", code="AccessDenied"), 1)):
            assert len(Exceptions([accepting], "bucket", TODAY).of_rules(undecided).used) == number


def states(judgement: Judgement, *entries: ExceptionEntry) -> dict[str, tuple[str, int]]:
    exceptions = Exceptions(entries, "bucket", TODAY)
    found = exceptions.of_object(judgement)
    used, shadowed = [*found.used, *found.expired], list(found.shadowed)
    return {one.id: (one.state.value, one.matched) for one in exceptions.states(used.count, shadowed.count)}


def test_states_of_entries() -> None:
    entries = [
        entry(rule="O02", id="old", until="2026-01-01"),
        entry(rule="O02", id="first"),
        entry(rule="O02", id="second", prefix="site/"),
        entry(rule="O02", id="elsewhere", prefix="other/"),
    ]
    assert states(judged("site/a"), *entries) == {
        "old": (ExceptionState.EXPIRED, 1),
        "first": (ExceptionState.ACTIVE, 1),
        "second": (ExceptionState.SHADOWED, 0),
        "elsewhere": (ExceptionState.UNUSED, 0),
    }


def test_finding_covered_by_the_verdict_shadows_the_rule() -> None:
    found = states(judged("site/a"), website(id="site"), entry(rule="O02", id="rule"))
    assert found == {"site": ("active", 1), "rule": ("shadowed", 0)}


def test_pattern() -> None:
    for pattern, key, matched in (
        ("a*b*c", "a-b-c", True),
        ("plain", "plain2", False),
        ("*", "", True),
        ("[a]?", "[a]?", True),
    ):
        assert covers_key(entry(pattern=pattern), key) is matched, (pattern, key)


TABLES = tomllib.loads((Path(__file__).parent / "tables" / "audiences.toml").read_text(encoding="utf-8"))


def test_audience_inside_another() -> None:
    failures = []
    for wide, narrow, inside in TABLES["inside"]:
        outer, inner = Audience.parse(wide), Audience.parse(narrow)
        if contains(outer, inner) is not inside or (inner in widest([inner, outer])) is inside:
            failures.append((wide, narrow))
    assert not failures, failures


def test_entry_for_a_wide_audience_covers_a_narrower_one_and_not_the_other_way_round() -> None:
    for one, other in (
        ("any-account", f"canonical-id {CANONICAL}"),
        ("organization o-1", "organization o-1/r-1/*"),
        ("network 203.0.113.0/24", "account 444455556666 through network 203.0.113.0/25"),
        ("account arn:aws:iam::444455556666:role/*", "account arn:aws:iam::444455556666:role/x"),
    ):
        for wide, narrow, expected in ((one, other, True), (other, one, False)):
            shared = judged("a", narrow, Verdict.SHARED, reasons=("policy-allow: S",), findings=())
            found = covered(shared, website(verdict=Verdict.SHARED, prefix=None, audience=wide))
            assert found == (expected, ()), (wide, narrow)


def test_id_stays_when_the_entry_is_renewed() -> None:
    old, new = entry(rule="O02"), entry(rule="O02", until="2027-01-01", reason="still so", owner="p")
    assert old.name == new.name
    assert len({old.name, entry(rule="O04").name, entry(rule="O02", prefix="a").name}) == 3
