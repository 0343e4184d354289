"""Each operator, with the values of a request that meet it and those that do not."""

from __future__ import annotations

import json

import pytest

from auditor.model.policy import parse
from auditor.verdict.conditions import ConditionTest, compile_test, key_name
from auditor.verdict.domains import ABSENT, UNKNOWN, FixedValues, Texts

KEY = "aws:key"


def compiled(operator: str, *values: str, variables: bool = True) -> ConditionTest:
    return compile_test(operator, KEY, values, variables=variables)


ROLE = "arn:aws:iam::111122223333:role/x"

TABLE = [
    # operator, values of the policy, values of requests that meet it, values that do not
    ("StringEquals", ["a", "b*"], ["a", "b*"], ["", "A", "ab", "bb"]),
    ("StringEqualsIgnoreCase", ["aB"], ["ab", "AB", "aB"], ["", "abc", "b"]),
    ("StringLike", ["a*c", "d?"], ["ac", "abbc", "dx"], ["a", "acd", "d", "dxy", "AC"]),
    ("StringLike", ["**"], ["", "a"], []),
    ("StringLike", ["?*?"], ["ab", "abc"], ["", "a"]),
    (
        "ArnEquals",
        ["arn:aws:iam::*:role/x"],
        [ROLE],
        ["arn:aws:iam::1:role/y", "", "role/x", "arn:aws:iam::1:2:role/x"],
    ),
    ("ArnLike", ["arn:*:iam::1111????3333:role/*"], [ROLE, f"{ROLE}/a:b"], ["arn:aws:s3::111122223333:role/x"]),
    (
        "ArnLike",
        ["arn:aws:someservice:*:111122223333:finance/*"],
        ["arn:aws:someservice:us-east-2:111122223333:finance/document.txt"],
        ["arn:aws:someservice:us-east-2:999999999999:store/abc:111122223333:finance/document.txt"],
    ),
    ("ArnLike", ["arn:aws:iam::?:x"], ["arn:aws:iam::1:x"], ["arn:aws:iam::::x", "arn:aws:iam::12:x"]),
    ("ArnLike", ["arn:aws:sqs:::a?b"], ["arn:aws:sqs:::a:b"], ["arn:aws:sqs:::ab"]),
    ("NumericEquals", ["10", "2.50"], ["10", "10.0", "2.5", "010", "1e1"], ["", "1", "10.1", "x", "10 "]),
    ("NumericLessThan", ["1.2"], ["1.1", "-5", "1.19"], ["1.2", "1.3", "1.10e1", "x"]),
    ("NumericLessThanEquals", ["10"], ["10", "9"], ["11", "ten"]),
    ("NumericGreaterThan", ["1.2"], ["1.3", "10"], ["1.2", "1.1", ""]),
    ("NumericGreaterThanEquals", ["1.2"], ["1.2", "1.3"], ["1.1", "nan", "inf"]),
    ("NumericLessThan", ["5", "20"], ["19"], ["20"]),
    ("DateEquals", ["2020-01-01T00:00:00Z"], ["2020-01-01", "1577836800", "20200101T000000Z"], ["2020-01-02", "x", ""]),
    ("DateLessThan", ["2020-01-01T00:00:01Z"], ["2020-01-01T00:00:00.9Z", "2019-12"], ["2020-01-01T00:00:01Z"]),
    ("DateLessThanEquals", ["2020-01-01T00:00+01:00"], ["2019-12-31T23:00:00Z"], ["2019-12-31T23:00:01Z"]),
    ("DateGreaterThan", ["1577836800"], ["2020-01-01T00:00:00.001Z", "2020-01-01T00:00-0100"], ["2020-01-01", "2020"]),
    ("DateGreaterThanEquals", ["2020-01"], ["2020-01-01", "99999999999"], ["2019-12-31T23:59:59Z", "0"]),
    ("Bool", ["true"], ["true", "True", "TRUE"], ["false", "", "1", "truetrue"]),
    ("Bool", ["False", "true"], ["true", "false"], ["yes"]),
    ("BinaryEquals", ["QmluYXJ5VmFsdWVJbkJhc2U2NA=="], ["QmluYXJ5VmFsdWVJbkJhc2U2NA=="], ["QmluYXJ5", ""]),
    ("IpAddress", ["203.0.113.0/24"], ["203.0.113.0", "203.0.113.255"], ["203.0.114.0", "203.0.112.255", "", "x"]),
    ("IpAddress", ["203.0.113.7/24", "10.1.2.3"], ["203.0.113.9", "10.1.2.3"], ["10.1.2.4", "::ffff:10.1.2.3"]),
    (
        "IpAddress",
        ["2001:DB8:1234:5678::/64", "::1"],
        ["2001:db8:1234:5678::9", "::1"],
        ["2001:db8:1234:5679::", "0.0.0.1"],
    ),
    (
        "IpAddress",
        ["10.0.0.0/9", "10.128.0.0/9", "10.1.0.0/16"],
        ["10.0.0.0", "10.255.255.255"],
        ["11.0.0.0", "9.9.9.9"],
    ),
    ("IpAddress", ["0.0.0.0/0"], ["0.0.0.0", "255.255.255.255"], ["::", "203.0.113.7/32"]),
]
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


@pytest.mark.parametrize(("operator", "policy", "met", "unmet"), TABLE)
def test_operator_on_one_value(operator: str, policy: list[str], met: list[str], unmet: list[str]) -> None:
    test = compiled(operator, *policy)
    assert [value for value in met if not holds(test, (value,))] == []
    assert [value for value in unmet if holds(test, (value,))] == []


@pytest.mark.parametrize(("operator", "policy", "met", "unmet"), [row for row in TABLE if row[0] in NEGATIONS])
def test_negated_operator_is_the_opposite(operator: str, policy: list[str], met: list[str], unmet: list[str]) -> None:
    test = compiled(NEGATIONS[operator], *policy)
    assert [value for value in met if holds(test, (value,))] == []
    assert [value for value in unmet if not holds(test, (value,))] == []


def test_table_has_every_positive_operator() -> None:
    relations = ("Equals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
    ordered = {kind + relation for kind in ("Numeric", "Date") for relation in relations}
    others = {"StringEquals", "StringEqualsIgnoreCase", "StringLike", "ArnEquals", "ArnLike", "Bool", "BinaryEquals"}
    assert set(POSITIVE) == ordered | others | {"IpAddress"}


VALUE = {operator: policy[0] for operator, policy, *_ in TABLE}


@pytest.mark.parametrize("operator", POSITIVE)
def test_absent_key_meets_no_positive_operator(operator: str) -> None:
    test = compiled(operator, VALUE[operator])
    assert test.outcome(None) is False
    assert test.outcome(()) is False


@pytest.mark.parametrize(("operator", "negated"), NEGATIONS.items())
def test_absent_key_meets_a_negated_operator(operator: str, negated: str) -> None:
    assert compiled(negated, VALUE[operator]).outcome(None) is True


@pytest.mark.parametrize("operator", [*POSITIVE, *NEGATIONS.values()])
def test_absent_key_meets_if_exists(operator: str) -> None:
    positive = {value: key for key, value in NEGATIONS.items()}.get(operator, operator)
    value = VALUE[positive]
    test = compiled(f"{operator}IfExists", value)
    assert test.outcome(None) is True
    assert test.outcome((value,)) == compiled(operator, value).outcome((value,))
    assert compiled(f"ForAllValues:{operator}", value).outcome(None) is True
    assert compiled(f"ForAnyValue:{operator}", value).outcome(None) is False
    assert compiled(f"ForAllValues:{operator}IfExists", value).outcome(None) is True
    assert compiled(f"ForAnyValue:{operator}IfExists", value).outcome(None) is False


@pytest.mark.parametrize(
    ("values", "absent", "present"),
    [(["true"], True, False), (["false"], False, True), (["True", "FALSE"], True, True), ([], False, False)],
)
def test_null_asks_for_presence(values: list[str], absent: bool, present: bool) -> None:
    test = compiled("Null", *values)
    assert (test.outcome(None), test.outcome(()), test.outcome(("",)), test.outcome(("x",))) == (
        absent,
        absent,
        present,
        present,
    )


@pytest.mark.parametrize(
    ("operator", "request_values", "outcome"),
    [
        ("ForAllValues:StringLike", ["a1", "a2"], True),
        ("ForAllValues:StringLike", ["a1", "b"], False),
        ("ForAnyValue:StringLike", ["b", "a1"], True),
        ("ForAnyValue:StringLike", ["b", "c"], False),
        ("ForAllValues:StringNotLike", ["b", "c"], True),
        ("ForAllValues:StringNotLike", ["b", "a1"], False),
        ("ForAnyValue:StringNotLike", ["b", "a1"], True),
        ("ForAnyValue:StringNotLike", ["a1", "a2"], False),
        # An empty text counts as no value.
        ("ForAllValues:StringLike", [""], True),
        ("ForAnyValue:StringNotLike", [""], False),
        ("ForAllValues:StringLike", ["", "b"], False),
        # Without a prefix, one value that matches is enough, and a negated operator wants none.
        ("StringLike", ["b", "a1"], True),
        ("StringNotLike", ["b", "a1"], False),
        ("StringNotLike", ["b", "c"], True),
    ],
)
def test_key_with_several_values(operator: str, request_values: list[str], outcome: bool) -> None:
    test = compiled(operator, "a*", "aa")
    assert test.outcome(request_values) is outcome
    assert test.multi is operator.startswith("For")


@pytest.mark.parametrize(
    "operator", ["stringlike", "STRINGLIKE", "foranyvalue:stringLike", "ForAllValues:STRINGLIKEIFEXISTS"]
)
def test_names_of_operators_have_no_case(operator: str) -> None:
    assert holds(compiled(operator, "a*"), ("ab",))


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("StringMatches", "a"),
        ("", "a"),
        ("IfExists", "a"),
        ("ForAllValues:", "a"),
        ("ForSomeValues:StringEquals", "a"),
        ("ForAllValues:ForAnyValue:StringEquals", "a"),
        ("NullIfExists", "true"),
        ("ForAnyValue:Null", "true"),
        ("BoolNotEquals", "true"),
        ("Null", "yes"),
        ("Bool", "1"),
        ("Bool", "${aws:SecureTransport}"),
        ("BinaryEquals", "no base64!"),
        ("NumericEquals", "ten"),
        ("NumericEquals", ""),
        ("NumericEquals", "NaN"),
        ("NumericEquals", "1_000"),
        ("NumericEquals", "१"),
        ("NumericEquals", "1e999"),
        ("DateLessThan", "tomorrow"),
        ("DateLessThan", "2020"),
        ("DateLessThan", "2020-13-01"),
        ("DateLessThan", "2020-02-30"),
        ("DateLessThan", "2020-W01"),
        ("DateLessThan", "2020-01-01T24:00:00Z"),
        ("DateLessThan", "2020-01-01T00:00:00+99:00"),
        ("DateLessThan", "20201301T000000Z"),
        ("DateLessThan", "0000-01-01"),
        ("IpAddress", "203.0.113.0/33"),
        ("IpAddress", "203.0.113"),
        ("IpAddress", "203.0.113.0/255.255.255.0"),
        ("IpAddress", "203.0.113.*"),
        ("IpAddress", "example.com"),
        ("IpAddress", ""),
        ("IpAddress", "1::2::3"),
        ("ArnLike", "*"),
        ("ArnLike", "arn:aws:iam::111122223333"),
        ("StringEquals", "${aws:username"),
        ("StringEquals", "${}"),
        ("StringEquals", "${aws:username, default}"),
        ("StringEquals", "${aws:username, 'a' 'b'}"),
    ],
)
def test_what_has_no_documented_meaning_is_refused(operator: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"^the (value|operator) (is|has) "):
        compiled(operator, value)


def test_operator_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="no key"):
        compile_test("StringEquals", "", (), variables=True)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("aws:SourceIp", "AWS:sourceip", True),
        ("aws:PrincipalTag/Team", "aws:principaltag/team", True),
        ("s3:ExistingObjectTag/Team", "S3:existingobjecttag/Team", True),
        ("s3:ExistingObjectTag/Team", "s3:ExistingObjectTag/team", False),
        ("s3:TlsVersion", "s3:tlsversion", True),
        ("aws:SourceIp", "aws:VpcSourceIp", False),
    ],
)
def test_spellings_of_a_key(a: str, b: str, same: bool) -> None:
    assert (key_name(a) == key_name(b)) is same


@pytest.mark.parametrize(
    ("value", "operator", "met"),
    [
        (True, "StringEquals", "true"),
        (False, "Null", "x"),
        (True, "Bool", "true"),
        (1.2, "NumericGreaterThanEquals", "1.2"),
        (10, "StringEquals", "10"),
        ([True, 1, "a"], "StringEquals", "true"),
        ([True, 1, "a"], "StringEquals", "1"),
    ],
)
def test_json_scalar_as_a_value(value: object, operator: str, met: str) -> None:
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": "*",
        "Condition": {operator: {KEY: value}},
    }
    ((name, key, values),) = parse(json.dumps({"Statement": statement})).statements[0].conditions
    assert compile_test(name, key, values, variables=False).outcome((met,)) is True


# ---- policy variables


@pytest.mark.parametrize(
    ("operator", "value", "met", "unmet"),
    [
        ("StringEquals", "home/${aws:username}", ["home/ann"], ["home/", "home/${aws:username}", "home/bob"]),
        ("StringEquals", "${AWS:UserName}", ["ann"], ["bob"]),
        ("StringLike", "${aws:username}/*", ["ann/x"], ["bob/x"]),
        ("StringLike", "${aws:star}", ["a*"], ["ab"]),
        ("StringEqualsIgnoreCase", "${aws:username}", ["ANN"], ["bob"]),
        ("StringEquals", "${aws:gone, 'none'}", ["none"], ["ann", ""]),
        ("StringEquals", "${aws:username, 'none'}", ["ann"], ["none"]),
        ("StringEquals", "${aws:many, 'none'}", ["none"], ["a", "b"]),
        ("StringEquals", "${aws:gone,''}", [""], ["x"]),
        ("StringLike", "a${*}b", ["a*b"], ["axb", "ab"]),
        ("StringEquals", "${?}${$}{x}", ["?${x}"], ["${?}"]),
        ("StringEquals", "a$b$", ["a$b$"], ["ab"]),
        ("ArnLike", "arn:aws:iam::${aws:account}:user/*", ["arn:aws:iam::1:user/x"], ["arn:aws:iam::2:user/x"]),
        ("ArnLike", "${aws:arn}", ["arn:aws:iam::1:user/x"], ["arn:aws:iam::1:user/y"]),
        ("ArnLike", "${aws:username}", [], ["ann"]),
    ],
)
def test_variable_has_the_text_of_its_key(operator: str, value: str, met: list[str], unmet: list[str]) -> None:
    domains = {
        "aws:username": FixedValues(("ann",)),
        "aws:star": FixedValues(("a*",)),
        "aws:account": FixedValues(("1",)),
        "aws:arn": FixedValues(("arn:aws:iam::1:user/x",)),
        "aws:many": FixedValues(("a", "b")),
        "aws:gone": ABSENT,
    }
    test = compiled(operator, value).bind(domains)
    assert [text for text in met if test.outcome((text,)) is not True] == []
    assert [text for text in unmet if test.outcome((text,)) is not False] == []


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


def test_variables_have_names_in_lower_case() -> None:
    test = compiled("StringLike", "${aws:UserName}*", "${saml:sub, 'x'}-${*}")
    assert test.variables == {"aws:username", "saml:sub"}
    assert compiled("StringLike", "${aws:UserName}*", variables=False).variables == frozenset()


def test_policy_of_the_old_version_has_no_variables() -> None:
    test = compiled("StringLike", "${aws:username}*", variables=False)
    assert test.bind({"aws:username": FixedValues(("ann",))}) is test
    assert [holds(test, (text,)) for text in ("${aws:username}x", "ann", "${*}")] == [True, False, False]
    assert holds(compiled("StringLike", "${*}", variables=False), ("${abc}",))


def test_test_without_values_matches_nothing() -> None:
    assert compiled("StringEquals").outcome(("",)) is False
    assert compiled("StringNotEquals").outcome(("",)) is True
    assert compiled("IpAddress").outcome(("10.0.0.1",)) is False
