"""Conditions as a Ceph object gateway 16.2.15 answered unsigned GET requests under a policy with this condition."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize(
    ("operator", "values", "answers"),
    [
        # A 1 for each request that was answered with 200, a 0 for 403.
        ("StringEquals", ["a"], "0100000"),
        ("StringEquals", [], "0000000"),
        ("StringNotEquals", ["a"], "0011111"),
        ("StringNotEquals", ["a", "b"], "0111111"),
        ("StringEqualsIfExists", ["a"], "1100000"),
        ("StringNotEqualsIfExists", ["a"], "1011111"),
        ("Null", ["true"], "1000000"),
        ("Null", ["false"], "1000000"),
        ("NullIfExists", ["true"], "1000000"),
        ("ForAllValues:StringEquals", ["a"], "1100000"),
        ("ForAllValues:StringEqualsIgnoreCase", ["A"], "1100000"),
        ("ForAllValues:StringLike", ["a"], "1100000"),
        ("ForAnyValue:StringEquals", ["a"], "0100000"),
        ("ForAnyValue:StringEqualsIfExists", ["a"], "1100000"),
        ("StringLike", ["*"], "0111111"),
        ("StringLike", ["${*}"], "0000000"),
        ("StringLike", ["x-${aws:Referer}"], "0000001"),
        ("StringNotLike", ["a*"], "0011111"),
        ("StringNotLike", ["a*", "c"], "0111111"),
        ("StringEqualsIgnoreCase", ["A"], "0100000"),
        ("StringNotEqualsIgnoreCase", ["A"], "0011111"),
        ("StringEquals", ["a", "${aws:username}"], "0000000"),
        ("StringNotEquals", ["${aws:username}"], "0111111"),
        ("NumericEquals", ["1"], "0000100"),
        ("NumericNotEquals", ["1"], "0000000"),
        ("BinaryEquals", ["YQ=="], "0000000"),
    ],
)
def test_operator_as_the_gateway_answered(operator: str, values: list[str], answers: str) -> None:
    test = ceph(operator, *values)
    outcomes = [test.outcome(None if referer is None else (referer,)) for referer in REFERERS]
    assert outcomes == [answer == "1" for answer in answers]


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


@pytest.mark.parametrize(
    ("operator", "values", "holds"),
    [
        ("IpAddress", ["127.0.0.0/8"], True),
        ("IpAddress", ["127.0.0.9/8"], True),
        ("IpAddress", ["0.0.0.0/0"], True),
        ("IpAddress", ["::/0"], True),
        ("IpAddress", ["junk"], False),
        ("NotIpAddress", ["junk"], True),
        ("NotIpAddress", ["127.0.0.0/8"], False),
        ("NotIpAddress", ["10.0.0.0/8"], True),
        ("NotIpAddress", ["10.0.0.0/8", "127.0.0.1"], False),
        ("IpAddress", ["2001:db8::/32"], False),
        ("IpAddress", ["::1:0:0/97"], False),
    ],
)
def test_address_as_the_gateway_answered_127_0_0_1(operator: str, values: list[str], holds: bool) -> None:
    test = compile_test(operator, "aws:SourceIp", values, variables=True, semantics=Semantics.CEPH)
    assert test.outcome(("127.0.0.1",)) is holds
    assert test.outcome(()) is False


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


def test_negated_numbers_of_which_nothing_is_known() -> None:
    tests = [ceph("NumericNotEquals", "1", "2"), ceph("NumericNotEquals", "1")]
    assert truth_vectors(tests, Texts()) == {(True, True), (True, False), (False, False)}
