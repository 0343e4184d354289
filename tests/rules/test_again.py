"""Every rule that is judged again from an object's line finds the same, or says that a value is not stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from msgspec.structs import fields

from auditor.errors import NotStored
from auditor.model.access import ObjectAccess, Verdict
from auditor.model.finding import Judgement
from auditor.model.line_records import read_line
from auditor.model.object import Acl, Evidence, Head, ObjectRef, Skipped
from auditor.model.run_lines import ObjectLine
from auditor.rules import RULES
from auditor.rules.base import Rule
from tests.rules.case_files import HALVES, Case, read_cases
from tests.support.encoded_lines import encode_object

CASES: Final = [
    pytest.param(rule, case, id=f"{rule.id} {half.replace('_', ' ')}: {case.name}")
    for rule in RULES
    for half in HALVES
    for case in read_cases(rule, half)
    if rule.per_object
]
NEED_VALUES: Final = {"I03", "M02", "O15", "E08", "M04"}
"""The rules that may ask for a value that a run folder does not have."""
REF: Final = ObjectRef("k", "e", 1, "2026-01-02T03:04:05Z")


def stored(rule: Rule, case: Case, *, values: bool) -> Mapping[str, Any]:
    """The facts of the case after they were written into a line, and read back. values: metadata values are kept."""
    given = dict(zip(rule.reads, case.facts, strict=True))
    ref = given.get("ref", REF)
    evidence = Evidence(
        ref,
        given.get("acl", Acl("owner", ())),
        given.get("head", Head("e", 1)),
        digests=given.get("digests", Skipped("no ledger")),
    )
    hashed = True if "digests" in given else None
    judgement = Judgement(evidence, ObjectAccess(Verdict.PRIVATE), (), ())
    read = read_line(ObjectLine, encode_object(judgement, hashed, values)).evidence
    back = {"ref": read.ref, "acl": read.acl, "head": read.head, "digests": read.digests}
    return {**given, **{name: fact for name, fact in back.items() if name in given}}


@pytest.mark.parametrize("values", [True, False], ids=["values kept", "names only"])
@pytest.mark.parametrize(("rule", "case"), CASES)
def test_the_same_hits_from_the_line(rule: Rule, case: Case, values: bool) -> None:
    facts = stored(rule, case, values=values)
    try:
        found = tuple(rule.check(*(facts[name] for name in rule.reads)))
    except NotStored:
        assert rule.id in NEED_VALUES
        assert not (values and rule.id != "I03")
    else:
        assert found == tuple(rule.check(*case.facts))


def test_a_line_has_what_rules_read_of_the_listing() -> None:
    """Members of the listing's entry that no line has: a rule that reads one of them cannot be judged again."""
    lacking = {"checksum_algorithms", "checksum_type", "restored"}
    names = {one.name for one in fields(ObjectRef)} - lacking
    read = {name for rule in RULES if "ref" in rule.reads for name in rule.check.__code__.co_names}
    assert not read & lacking
    assert {"key", "size"} <= names
