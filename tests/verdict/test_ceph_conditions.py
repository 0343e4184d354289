"""Conditions as a Ceph object gateway 16.2.15 answered unsigned GET requests under a policy with this condition."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from auditor.model.bucket import Semantics
from auditor.verdict.conditions import ConditionTest, compile_test
from auditor.verdict.domains import FixedValues, Texts
from auditor.verdict.values import truth_vectors, witnesses

REFERERS = (None, "a", "b", "", "1", "${*}", "x-${aws:Referer}")
"""The header that each request sent; None: it sent none."""


def ceph(operator: str, *values: str) -> ConditionTest:
    test = compile_test(operator, "aws:Referer", values, variables=True, semantics=Semantics.CEPH)
    return test.bind({"aws:username": FixedValues(("anonymous",)), "aws:referer": Texts(may_be_absent=True)})


TABLES = tomllib.loads((Path(__file__).parent / "tables" / "ceph.toml").read_text(encoding="utf-8"))


def test_operators_as_the_gateway_answered() -> None:
    failures: list[object] = []
    for operator, values, answers in TABLES["referers"]:
        test = ceph(operator, *values)
        outcomes = [test.outcome(None if referer is None else (referer,)) for referer in REFERERS]
        if outcomes != [answer == "1" for answer in answers]:
            failures.append((operator, values, outcomes))
    for operator, values, holds in TABLES["addresses"]:
        test = compile_test(operator, "aws:SourceIp", values, variables=True, semantics=Semantics.CEPH)
        if (test.outcome(("127.0.0.1",)), test.outcome(())) != (holds, False):
            failures.append((operator, values))
    assert not failures, failures


def test_operators_on_arns_are_left_open_because_versions_differ() -> None:
    assert [ceph("ArnLike", "a").outcome(values) for values in ((), ("a",))] == [False, None]
    assert [ceph("ArnNotLike", "*").outcome(values) for values in ((), ("a",))] == [False, None]
    assert ceph("ArnLikeIfExists", "a").outcome(()) is True


def test_variable_that_the_requester_chooses() -> None:
    assert ceph("StringEquals", "${aws:Referer}").outcome(("a",)) is None
    assert ceph("StringNotEquals", "${aws:Referer}").outcome(("a",)) is None
    assert ceph("StringEquals", "${aws:PrincipalTag/x}").outcome(("a",)) is False
    assert ceph("StringNotEquals", "${aws:PrincipalTag/x}").outcome(("a",)) is False
    assert ceph("StringNotEquals", "${aws:username}").outcome(("anonymous",)) is False


def test_other_servers_evaluate_as_aws_does() -> None:
    for semantics in (Semantics.AWS, Semantics.OTHER):
        test = compile_test("StringNotEquals", "aws:x", ("a", "b"), variables=True, semantics=semantics)
        assert [test.outcome(values) for values in ((), ("a",), ("c",))] == [True, False, True]


TESTS = st.lists(
    st.builds(
        lambda quantifier, operator, values: ceph(quantifier + operator, *values),
        st.sampled_from(["", "", "ForAllValues:", "ForAnyValue:"]),
        st.sampled_from(["StringEquals", "StringNotEquals", "StringNotLike", "StringLikeIfExists"]),
        st.lists(st.sampled_from(["a", "b", "a*", "*b", "?", ""]), max_size=3),
    ),
    max_size=4,
)


@given(TESTS, st.booleans())
def test_text_that_the_requester_chooses(tests: list[ConditionTest], many: bool) -> None:
    domain = Texts(may_be_absent=True, many=many)
    for expected, values in witnesses(tests, domain).items():
        assert tuple(test.outcome(values) for test in tests) == expected
    requests = [(), *((text,) for text in ("a", "b", "ab", "aa", "bb", "x", "ax", "xb", "xx"))]
    requests += [("",)] if not many else [("a", "b"), ("a", "xx")]
    by_force = {tuple(test.outcome(values) for test in tests) for values in requests}
    assert by_force <= truth_vectors(tests, domain)
