"""The groups of a HEAD's members: complete, and each rule names those that its check reads."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import fields

from auditor.model.finding import Severity
from auditor.model.object import CONTENT, GROUP_OF, GROUPS, Head
from auditor.rules import RULES
from auditor.rules.base import Rule, head_groups, judges_values, make_plan, rule
from tests.rules.case_files import HALVES, read_cases
from tests.support.samples.bucket import facts as _facts

NEEDS_NO_MEMBER: Final = {"I03"}
"""Rules that take the HEAD only so that it is read: S3's checksums come with it."""


class Watched:
    """A HEAD that notes which of its members are read."""

    def __init__(self, head: Head, seen: set[str]) -> None:
        self._head, self._seen = head, seen

    def __getattr__(self, name: str) -> Any:
        self._seen.add(name)
        return getattr(self._head, name)


def test_each_member_is_in_one_group() -> None:
    members = [member for group in GROUPS.values() for member in group]
    assert sorted(members) == sorted(one.name for one in fields(Head))


def test_rules_read_the_groups_that_they_name() -> None:
    for one in (known for known in RULES if "head" in known.reads):
        seen: set[str] = set()
        for case in (case for half in HALVES for case in read_cases(one, half)):
            list(one.check(*(Watched(fact, seen) if isinstance(fact, Head) else fact for fact in case.facts)))
        read = {GROUP_OF[member] for member in seen}
        assert read == (set() if one.id in NEEDS_NO_MEMBER else set(one.head)), one.id


def test_rule_that_takes_the_whole_head_must_name_groups() -> None:
    def check(head: Head) -> Any:
        yield from ()

    for wrong in ((), ("metadata",)):
        with pytest.raises(TypeError, match="groups of members"):
            rule("T01", "test", Severity.LOW, reads=("head",), head=wrong)(check)
    with pytest.raises(TypeError, match="groups of members"):
        rule("T01", "test", Severity.LOW, reads=("acl",), head=(CONTENT,))(check)
    assert Rule("T01", "test", Severity.LOW, ("head",), check).head_groups == GROUPS.keys()


def test_plan_needs_what_its_rules_read_and_the_encryption() -> None:
    chosen = [one for one in RULES if one.id in ("R01", "L02")]
    plan = make_plan(chosen, _facts())
    assert head_groups(plan) == {"encryption", "lock", "replication"}
    assert not judges_values(plan)
    assert judges_values(make_plan([one for one in RULES if one.id == "O15"], _facts()))
