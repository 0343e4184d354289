"""Every rule against its own case file, from the facts as they are read and as a run's line has them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

import pytest
from msgspec.structs import fields

from auditor.errors import NotStored
from auditor.model.access import ObjectAccess, Verdict
from auditor.model.finding import Judgement
from auditor.model.line_records import read_line
from auditor.model.object import Acl, Evidence, Head, ObjectRef, Skipped, Unread
from auditor.model.run_lines import ObjectLine
from auditor.rules import RULES
from auditor.rules.base import Rule
from tests.rules.case_files import HALVES, Case, Expected, read_cases
from tests.support.encoded_lines import encode_object

NEED_VALUES: Final = {"I03", "M02", "O15", "E08", "M04"}
"""The rules that may ask for a value that a run folder does not have."""

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)


@each_rule
def test_rule_finds_what_its_case_file_says(rule: Rule) -> None:
    failures = []
    for half in HALVES:
        cases = read_cases(rule, half)
        names = [case.name for case in cases]
        assert names, half
        assert len(names) == len(set(names)), half
        failures += [f"{half}, {case.name}: {wrong}" for case in cases for wrong in _wrong(rule, case)]
    assert not failures, failures


def _wrong(rule: Rule, case: Case) -> Iterator[str]:
    hits = list(rule.check(*case.facts))
    for hit, expected in zip_longest(hits, case.hits):
        if hit is None or expected is None:
            yield f"missed: {expected}" if hit is None else f"false alarm: {hit}"
        elif isinstance(hit, Unread):
            if (hit.code, Expected(undecided=hit.action)) != ("Unknown", expected):
                yield f"{hit}, not {expected}"
        elif Expected(hit.severity or rule.severity, hit.grantee, hit.permission, expected.says) != expected:
            yield f"{hit}, not {expected}"
        else:
            phrase = hit.message.isprintable() and hit.message == hit.message.strip(" .") and hit.message[:1].islower()
            if not phrase or expected.says not in hit.message or any(one in hit.message for one in _secrets(case)):
                yield f"the message is no phrase, or gives something away: {hit.message!r}"
    # A finding is known again by its rule, grantee and permission; two alike would be one.
    marks = [(hit.grantee, hit.permission) for hit in hits if not isinstance(hit, Unread)]
    if len(marks) != len(set(marks)):
        yield f"two hits share a fingerprint: {marks}"


def _secrets(case: Case) -> list[str]:
    """Keys and metadata values, which a message never holds."""
    secrets = [fact.key for fact in case.facts if isinstance(fact, ObjectRef)]
    for fact in case.facts:
        if isinstance(fact, Head):
            secrets.extend(value for value in fact.metadata.values() if value)
    return secrets


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.per_object], ids=lambda rule: rule.id)
def test_the_same_hits_from_a_line_or_a_value_that_is_not_stored(rule: Rule) -> None:
    failures = []
    for case in (case for half in HALVES for case in read_cases(rule, half)):
        for values in (True, False):
            try:
                found = tuple(rule.check(*_stored(rule, case, values=values)))
            except NotStored:
                fine = rule.id in NEED_VALUES and not (values and rule.id != "I03")
            else:
                fine = found == tuple(rule.check(*case.facts))
            failures += [] if fine else [f"{case.name}, {'with' if values else 'without'} values"]
    assert not failures, failures


def _stored(rule: Rule, case: Case, *, values: bool) -> list[Any]:
    """The facts of the case after they were written into a line, and read back. values: metadata values are kept."""
    given = dict(zip(rule.reads, case.facts, strict=True))
    evidence = Evidence(
        given.get("ref", ObjectRef("k", "e", 1, "2026-01-02T03:04:05Z")),
        given.get("acl", Acl("owner", ())),
        given.get("head", Head("e", 1)),
        digests=given.get("digests", Skipped("no ledger")),
    )
    judgement = Judgement(evidence, ObjectAccess(Verdict.PRIVATE), (), ())
    line = encode_object(judgement, True if "digests" in given else None, values)
    read = read_line(ObjectLine, line).evidence
    back = {"ref": read.ref, "acl": read.acl, "head": read.head, "digests": read.digests}
    return [back.get(name, fact) for name, fact in given.items()]


def test_a_line_has_what_rules_read_of_the_listing() -> None:
    """Members of the listing's entry that no line has: a rule that reads one of them cannot be judged again."""
    lacking = {"checksum_algorithms", "checksum_type", "restored"}
    assert lacking < {one.name for one in fields(ObjectRef)}
    read = {name for rule in RULES if "ref" in rule.reads for name in rule.check.__code__.co_names}
    assert not read & lacking
