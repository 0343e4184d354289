"""The rules of a run, and the calls for them."""

from __future__ import annotations

import pytest

from auditor.errors import UsageError
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.finding import RuleUndecided
from auditor.model.object import Ask, Skipped, Unread
from auditor.rules import RULES
from auditor.rules.base import ACLS_DISABLED, NOT_NEEDED, Plan, make_plan
from auditor.rules.judge import select
from tests.support.samples.bucket import facts

NEEDS_OPTIONS = [rule.id for rule in RULES if rule.options]
READY = [rule.id for rule in RULES if not rule.options]


def ids(rules: object) -> list[str]:
    return [rule.id for rule in rules]  # type: ignore[attr-defined]


def plan_of(*only: str, **changes: object) -> Plan:
    return make_plan(select(RULES, {}, only, ()), facts(**changes))


class TestSelect:
    def test_all_that_are_configured_in_the_registrys_order(self) -> None:
        assert NEEDS_OPTIONS
        assert ids(select(RULES, {}, (), ())) == READY
        assert "M01" in ids(select(RULES, {"M01": {"required": ["a"]}}, (), ()))

    def test_only_and_ignore(self) -> None:
        assert ids(select(RULES, {}, ("O02", "B01"), ())) == [name for name in READY if name in {"O02", "B01"}]
        assert ids(select(RULES, {}, (), ("O02",))) == [name for name in READY if name != "O02"]
        assert ids(select(RULES, {}, ("O02", "O04"), ("O02",))) == ["O04"]

    def test_id_that_does_not_exist_or_lacks_its_options_or_leaves_nothing(self) -> None:
        for only, ignore, says in (
            (("O99",), (), "O99"),
            ((), ("O99",), "O99"),
            (("M01",), (), r"M01 needs its options: add \[rules\.M01\]"),
            (("O02",), ("O02",), "no rule is selected"),
        ):
            with pytest.raises(UsageError, match=says):
                select(RULES, {}, only, ignore)

    def test_level_of_exposure_leaves_out_what_needs_a_head(self) -> None:
        without_head = [rule.id for rule in RULES if not rule.options and not rule.needs("head")]
        assert ids(select(RULES, {}, (), (), "exposure")) == without_head != READY
        assert ids(select(RULES, {}, (), (), "fixity")) == READY

    def test_without_a_ledger_no_rule_compares_digests(self) -> None:
        without_digests = [rule.id for rule in RULES if not rule.options and "digests" not in rule.reads]
        assert ids(select(RULES, {}, (), (), ledger=False)) == without_digests != READY
        assert ids(select(RULES, {}, ("O02",), (), ledger=False)) == ["O02"]
        with pytest.raises(UsageError, match="I03 compares with a ledger"):
            select(RULES, {}, ("O02", "I03"), (), ledger=False)


class TestWhatIsAsked:
    def test_everything_for_all_rules(self) -> None:
        plan = plan_of()
        assert (plan.ask.acl, plan.ask.head, plan.undecided) == (None, None, ())
        assert ids((*plan.bucket_rules, *plan.object_rules)) != []

    def test_only_what_a_selected_rule_reads(self) -> None:
        no = Skipped(NOT_NEEDED)
        for only, acl, head in (
            (("O02",), None, no),
            (("E01",), no, None),
            (("K01",), no, no),
            (("B01",), no, no),
            (("O02", "E01"), None, None),
        ):
            plan = plan_of(*only)
            assert (plan.ask.acl, plan.ask.head) == (acl, head), only

    def test_no_acl_where_acls_are_disabled(self) -> None:
        plan = plan_of(ownership=BUCKET_OWNER_ENFORCED)
        assert plan.ask.acl == Skipped(ACLS_DISABLED)
        assert plan.ask.head is None
        assert not plan.ask.acl_for_owner
        about_acls = {rule.id for rule in RULES if {"acl", "owner"} & set(rule.reads)}
        assert about_acls
        assert not about_acls & set(ids(plan.object_rules))
        plan = plan_of("O02", "O10", "E01", "B01", ownership=BUCKET_OWNER_ENFORCED)
        assert (ids(plan.bucket_rules), ids(plan.object_rules)) == (["B01"], ["E01"])

    def test_acl_is_asked_where_ownership_is_not_known(self) -> None:
        assert plan_of(ownership=Unread("GetBucketOwnershipControls", "AccessDenied")).ask.acl is None

    def test_rule_on_the_owner_takes_the_acl_only_where_the_listing_is_silent(self) -> None:
        plan = plan_of("O10")
        assert plan.ask.acl == Skipped(NOT_NEEDED)
        assert plan.ask.acl_for_owner
        assert not plan_of("O02").ask.acl_for_owner


def test_rule_on_exposed_objects_takes_the_acl_and_stays_where_acls_are_disabled() -> None:
    assert plan_of("K02").ask == Ask(head=Skipped(NOT_NEEDED))
    assert ids(plan_of("K02", ownership=BUCKET_OWNER_ENFORCED).object_rules) == ["K02"]


class TestBucketFactsThatAreMissing:
    def test_unread_leaves_its_rules_undecided_once_and_drops_them(self) -> None:
        unread = Unread("GetBucketAcl", "AccessDenied")
        plan = plan_of(owner=unread)
        assert plan.undecided == tuple(
            RuleUndecided(rule.id, "GetBucketAcl", "AccessDenied")
            for rule in RULES
            if {"bucket.owner", "bucket.owner_account"} & set(rule.reads) and not rule.options
        )
        assert not set(ids(plan.object_rules)) & {item.rule for item in plan.undecided}

    def test_skipped_drops_its_rules_without_a_word(self) -> None:
        plan = plan_of(policy_is_public=Skipped("there is none"))
        assert plan.undecided == ()
        assert "B04" not in ids(plan.bucket_rules)

    def test_nothing_is_asked_for_rules_that_were_dropped(self) -> None:
        plan = plan_of("O11", owner=Unread("GetBucketAcl", "AccessDenied"))
        assert plan.ask.acl == Skipped(NOT_NEEDED)

    def test_unread_access_block_is_undecided_unless_the_other_level_closes_everything(self) -> None:
        unread = Unread("GetPublicAccessBlock", "AccessDenied")
        assert [item.rule for item in plan_of("B02", public_access_block=unread).undecided] == ["B02"]
        assert plan_of("B02", account_public_access_block=unread).undecided == ()
