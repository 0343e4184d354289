"""Every rule against its own case file, and nothing but that rule."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from auditor.model.object import Head, ObjectRef, Unread
from auditor.rules import RULES
from auditor.rules.base import Hit, Rule
from tests.rules.case_files import HALVES, Case, read_cases

CASES = [
    pytest.param(rule, case, id=f"{rule.id} {half.replace('_', ' ')}: {case.name}")
    for rule in RULES
    for half in HALVES
    for case in read_cases(rule, half)
]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_rule_finds_what_its_case_file_says(rule: Rule, case: Case) -> None:
    for hit, expected in zip_longest(rule.check(*case.facts), case.hits):
        assert hit is not None, f"missed: {expected}"
        assert expected is not None, f"false alarm: {hit}"
        if isinstance(hit, Unread) or expected.undecided is not None:
            assert isinstance(hit, Unread)
            assert (hit.action, hit.code) == (expected.undecided, "Unknown")
            continue
        got = (hit.severity or rule.severity, hit.grantee, hit.permission)
        assert got == (expected.severity, expected.grantee, expected.permission)
        assert expected.says in hit.message


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_message_is_one_phrase_that_gives_nothing_away(rule: Rule, case: Case) -> None:
    for hit in _hits(rule, case):
        assert _is_a_phrase(hit)
        for secret in _secrets(case):
            assert secret not in hit.message


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_no_two_hits_share_a_fingerprint(rule: Rule, case: Case) -> None:
    """A finding is known again by its rule, grantee and permission; two alike would be one."""
    marks = [(hit.grantee, hit.permission) for hit in _hits(rule, case)]
    assert len(marks) == len(set(marks))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize("half", HALVES)
def test_case_file_has_both_halves_and_no_name_twice(rule: Rule, half: str) -> None:
    names = [case.name for case in read_cases(rule, half)]
    assert names
    assert len(names) == len(set(names))


def _hits(rule: Rule, case: Case) -> list[Hit]:
    return [hit for hit in rule.check(*case.facts) if isinstance(hit, Hit)]


def _is_a_phrase(hit: Hit) -> bool:
    return hit.message.isprintable() and hit.message == hit.message.strip(" .") and hit.message[:1].islower()


def _secrets(case: Case) -> list[str]:
    """Keys and metadata values, which a message never holds."""
    secrets = [fact.key for fact in case.facts if isinstance(fact, ObjectRef)]
    for fact in case.facts:
        if isinstance(fact, Head):
            secrets.extend(value for value in fact.metadata.values() if value)
    return secrets
