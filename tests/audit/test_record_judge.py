"""A rule that lacks a value of an earlier run is undecided, with a ledger and without one."""

from __future__ import annotations

from auditor.audit.record import RecordJudge
from auditor.hashing.status import HashStatus
from auditor.model.bucket import PublicAccessBlock
from auditor.model.finding import RuleUndecided
from auditor.model.object import ALL_USERS, Acl, Evidence, Grant, Head, ObjectRef
from auditor.model.reuse import NamesOnly
from auditor.rules import RULES
from auditor.rules.base import make_plan
from auditor.rules.judge import Judge, select
from auditor.runs.tally import Tally
from tests.support.samples.bucket import OWNER, facts


def test_rule_that_lacks_a_value_of_an_earlier_run_is_undecided() -> None:
    none = PublicAccessBlock()
    bucket = facts(public_access_block=none, account_public_access_block=none)
    judge = RecordJudge(Judge(make_plan(select(RULES, {}, (), ()), bucket), bucket), Tally())
    ref = ObjectRef("k", "e", 7, "2026-01-02T03:04:05Z", owner=OWNER)
    head = Head(etag="e", content_length=7, metadata=NamesOnly(["password"]))
    evidence = Evidence(ref, Acl(OWNER, (Grant(ALL_USERS, "READ"),)), head)
    for looked in (None, HashStatus("known")):
        judgement, _, _ = judge.object(evidence, looked)
        assert "O15" in judgement.undecided
        assert RuleUndecided("O15", "HeadObject", "NotStored") in judgement.unanswered
