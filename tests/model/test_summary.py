"""The summary is read back as it was written, and a damaged one is refused with the member's name."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from auditor.model.finding import RuleUndecided
from auditor.model.summary import Resume, Summary
from tests.support.samples.reports import RUN, denied, finding, judged, sample_summary, tally_of, target


def full() -> Summary:
    tally = tally_of(judged("a", finding("a")), denied("b"), judged("c"))
    for state in ("known", "pending", "unhashable"):
        tally.hash(state)
    tally.leave("GLACIER_IR", 7)
    tally.route(9)
    tally.accept()
    return sample_summary(
        tally,
        target=target(prefix="p/", stop_at="p/z"),
        algorithms=("sha256", "md5"),
        rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "AccessDenied")],
        resume=Resume(RUN, "p/c", "the deadline is near"),
        complete=False,
    )


def test_the_document_is_that_of_the_contract_to_the_letter() -> None:
    assert json.dumps(full().to_dict()) == (
        f'{{"format": 1, "run": "{RUN}",'
        f' "out": "runs/bucket=audited/run={RUN}", "target": {{"bucket": "audited", "prefix": "p/",'
        ' "versions": false, "start_after": null, "stop_at": "p/z"}, "engine": "boto3", "complete": false,'
        ' "nothing_listed": false, "coverage":'
        ' {"listed": 3, "audited": 2, "vanished": 0, "undecided": 1, "delete_markers": 0}, "verdicts": {"exposed": 0,'
        ' "unknown": 1, "shared": 0, "masked": 0, "dormant": 0, "private": 2}, "audiences": {}, "trust_unused": [],'
        ' "findings": {"critical": 0, "high": 1, "medium": 0,'
        ' "low": 0, "info": 0}, "rules": {"O02": 1}, "rules_undecided": [{"rule": "B01", "action": "GetBucketAcl",'
        ' "code": "AccessDenied"}], "unread": [{"action": "GetObjectAcl", "code": "AccessDenied", "count": 1}],'
        ' "accepted": {"undecided": 1, "rules": 0, "hashing": {}}, "changes": {"against": null,'
        ' "why_not": null, "classes": {},'
        ' "verdicts": {}, "findings": {}, "causes": []}, "excepted": {"verdicts": {"exposed": 0, "unknown": 0,'
        ' "shared": 0, "masked": 0, "dormant": 0, "private": 0}, "findings": {"critical": 0, "high": 0, "medium": 0,'
        ' "low": 0, "info": 0}, "undecided": 1}, "exceptions": [],'
        ' "hashing": {"algorithms": ["sha256", "md5"], "known": 1,'
        ' "hashed_now": 0, "queued": 0, "unhashable": 1, "pending": 1, "left_for_cost": {"GLACIER_IR": {"objects": 1,'
        ' "bytes": 7}}, "routed": {"objects": 1, "bytes": 9}, "failed": {}}, "healed": 0,'
        ' "calls": {"list": 0, "head": 0, "acl": 0, "retried": 0,'
        ' "throttled": 0}, "kept": {"acl": {"run": 0, "inventory": 0, "oldest": null},'
        ' "head": {"run": 0, "inventory": 0, "oldest": null}},'
        f' "not_looked_at": {json.dumps(list(full().not_looked_at))}, "seconds": 12.3, "resume":'
        f' {{"run": "{RUN}", "start_after": "p/c", "reason": "the deadline is near"}}, "sealed": {{}}}}'
    )


def test_read_back() -> None:
    for summary in (full(), sample_summary()):
        assert Summary.from_dict(json.loads(json.dumps(summary.to_dict()))) == summary


def test_members_of_a_later_version_are_ignored_and_none_may_lack() -> None:
    told = full().to_dict()
    assert Summary.from_dict({**told, "later": {"coverage": []}}) == full()
    for name in told.keys() - {"format"}:
        with pytest.raises(ValueError, match=f"^{name} is missing$"):
            Summary.from_dict({key: value for key, value in told.items() if key != name})


TABLES = tomllib.loads((Path(__file__).parent / "tables" / "summary.toml").read_text(encoding="utf-8"))


def test_damage_is_named() -> None:
    told = full().to_dict()
    for changes, sentence in TABLES["damage"]:
        with pytest.raises(ValueError, match=f"^{sentence}"):
            Summary.from_dict({**told, **changes})
    values: list[object] = [None, [], "", {}, {"v": 1}, {"format": 1}, {"format": 2}, {"format": True}]
    for value in values:
        with pytest.raises(ValueError, match=r"is not a JSON object|is missing|a development version|format is not 1"):
            Summary.from_dict(value)
