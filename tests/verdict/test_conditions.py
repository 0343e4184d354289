"""Each operator, with the values of a request that meet it and those that do not."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from auditor.model.policy import parse
from auditor.verdict.conditions import ConditionTest, compile_test, key_name
from auditor.verdict.domains import ABSENT, UNKNOWN, FixedValues, Texts

KEY = "aws:key"


def compiled(operator: str, *values: str, variables: bool = True) -> ConditionTest:
    return compile_test(operator, KEY, values, variables=variables)


TABLES = tomllib.loads((Path(__file__).parent / "tables" / "operators.toml").read_text(encoding="utf-8"))
TABLE = TABLES["operators"]
NEGATIONS = {
    "StringEquals": "StringNotEquals",
    "StringEqualsIgnoreCase": "StringNotEqualsIgnoreCase",
    "StringLike": "StringNotLike",
    "ArnEquals": "ArnNotEquals",
    "ArnLike": "ArnNotLike",
    "NumericEquals": "NumericNotEquals",
    "DateEquals": "DateNotEquals",
    "IpAddress": "NotIpAddress",
}
POSITIVE = sorted({operator for operator, *_ in TABLE})


def holds(test: ConditionTest, values: tuple[str, ...]) -> bool:
    """True if a request with these values can meet the test."""
    return test.outcome(values) is not False


def test_operators_on_one_value() -> None:
    failures = []
    for operator, policy, met, unmet in TABLE:
        test = compiled(operator, *policy)
        failures += [(operator, value) for value in met if not holds(test, (value,))]
        failures += [(operator, value) for value in unmet if holds(test, (value,))]
        if operator in NEGATIONS:
            opposite = compiled(NEGATIONS[operator], *policy)
            failures += [(NEGATIONS[operator], value) for value in met if holds(opposite, (value,))]
            failures += [(NEGATIONS[operator], value) for value in unmet if not holds(opposite, (value,))]
    assert not failures, failures
    relations = ("Equals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
    ordered = {kind + relation for kind in ("Numeric", "Date") for relation in relations}
    others = {"StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike", "Bool", "BinaryEquals"}
    assert set(POSITIVE) == ordered | others | {"IpAddress"}


def test_absent_key() -> None:
    values = {operator: policy[0] for operator, policy, *_ in TABLE}
    values |= {negated: values[operator] for operator, negated in NEGATIONS.items()}
    for operator, value in values.items():
        plain, negated = compiled(operator, value), operator in NEGATIONS.values()
        assert (plain.outcome(None), plain.outcome(())) == (negated, negated), operator
        assert compiled(f"{operator}IfExists", value).outcome((value,)) == plain.outcome((value,)), operator
        for name, expected in (
            (f"{operator}IfExists", True),
            (f"ForAllValues:{operator}", True),
            (f"ForAnyValue:{operator}", False),
            (f"ForAllValues:{operator}IfExists", True),
            (f"ForAnyValue:{operator}IfExists", False),
        ):
            assert compiled(name, value).outcome(None) is expected, name
    for asked, absent, present in (
        (["true"], True, False),
        (["false"], False, True),
        (["True", "FALSE"], True, True),
        ([], False, False),
    ):
        outcomes = [compiled("Null", *asked).outcome(values) for values in (None, (), ("",), ("x",))]
        assert outcomes == [absent, absent, present, present], asked


def test_key_with_several_values() -> None:
    for operator, values, outcome in TABLES["several"]:
        test = compiled(operator, "a*", "aa")
        assert (test.outcome(values), test.multi) == (outcome, operator.startswith("For")), (operator, values)


def test_texts_without_a_documented_meaning_are_refused() -> None:
    for operator, values in TABLES["refused"].items():
        for value in values:
            with pytest.raises(ValueError, match=r"^the (value|operator) (is|has) "):
                compiled(operator, value)
    with pytest.raises(ValueError, match="no key"):
        compile_test("StringEquals", "", (), variables=True)


def test_spellings() -> None:
    for operator in ("stringlike", "STRINGLIKE", "foranyvalue:stringLike", "ForAllValues:STRINGLIKEIFEXISTS"):
        assert holds(compiled(operator, "a*"), ("ab",)), operator
    for one, other, same in (
        ("aws:SourceIp", "AWS:sourceip", True),
        ("aws:PrincipalTag/Team", "aws:principaltag/team", True),
        ("s3:ExistingObjectTag/Team", "S3:existingobjecttag/Team", True),
        ("s3:ExistingObjectTag/Team", "s3:ExistingObjectTag/team", False),
        ("aws:SourceIp", "aws:VpcSourceIp", False),
    ):
        assert (key_name(one) == key_name(other)) is same, one


def test_json_scalar_as_a_value() -> None:
    for value, operator, met in (
        (True, "StringEquals", "true"),
        (False, "Null", "x"),
        (1.2, "NumericGreaterThanEquals", "1.2"),
        (10, "StringEquals", "10"),
        ([True, 1, "a"], "StringEquals", "1"),
    ):
        plain = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}
        text = json.dumps({"Statement": {**plain, "Condition": {operator: {KEY: value}}}})
        ((name, key, values),) = parse(text).statements[0].conditions
        assert compile_test(name, key, values, variables=False).outcome((met,)) is True, value


# ---- policy variables


def test_variable_has_the_text_of_its_key() -> None:
    domains = {
        "aws:username": FixedValues(("ann",)),
        "aws:star": FixedValues(("a*",)),
        "aws:account": FixedValues(("1",)),
        "aws:arn": FixedValues(("arn:aws:iam::1:user/x",)),
        "aws:many": FixedValues(("a", "b")),
        "aws:gone": ABSENT,
    }
    for operator, value, met, unmet in TABLES["variables"]:
        test = compiled(operator, value).bind(domains)
        assert [text for text in met if test.outcome((text,)) is not True] == [], value
        assert [text for text in unmet if test.outcome((text,)) is not False] == [], value


def test_variable_without_a_value_equals_nothing() -> None:
    assert compiled("StringEquals", "${aws:username}", "b").bind({}).outcome(("",)) is False
    assert compiled("StringLike", "*${aws:username}", "b").bind({}).outcome(("b",)) is True
    assert compiled("StringNotEquals", "${aws:username}").bind({"aws:username": ABSENT}).outcome(("x",)) is True


def test_variable_that_the_requester_chooses() -> None:
    chosen = {"aws:referer": Texts(never=("owner*",))}
    prefixed = compiled("StringLike", "x-${aws:Referer}", "fixed").bind(chosen)
    assert [prefixed.outcome((text,)) for text in ("x-1", "y", "fixed")] == [None, False, True]
    assert holds(prefixed, ("x-1",))
    negated = compiled("StringNotLike", "x-${aws:Referer}").bind(chosen)
    assert [negated.outcome((text,)) for text in ("x-1", "y")] == [None, True]
    # Nothing but the variable: the text is one that he can choose.
    alone = compiled("StringEquals", "${aws:referer, 'none'}").bind(chosen)
    assert [alone.outcome((text,)) for text in ("x", "owner1", "none")] == [None, False, None]
    assert compiled("StringEquals", "${aws:x}").bind({"aws:x": UNKNOWN}).outcome(("x",)) is None


def test_default_of_a_variable_that_the_requester_may_leave_out() -> None:
    chosen = {"aws:x": Texts(only=("a*",), may_be_absent=True)}
    test = compiled("StringEquals", "${aws:x, 'none'}").bind(chosen)
    assert [test.outcome((text,)) for text in ("ab", "none", "b")] == [None, None, False]
    assert compiled("StringEquals", "${aws:x}").bind(chosen).outcome(("none",)) is False


def test_policy_of_the_old_version_has_no_variables() -> None:
    test = compiled("StringLike", "${aws:username}*", variables=False)
    assert [holds(test, (text,)) for text in ("${aws:username}x", "ann", "${*}")] == [True, False, False]


def test_test_without_values_matches_nothing() -> None:
    assert compiled("StringEquals").outcome(("",)) is False
    assert compiled("StringNotEquals").outcome(("",)) is True
    assert compiled("IpAddress").outcome(("10.0.0.1",)) is False
