"""Truth vectors of the tests on one key, against brute force over many values."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from itertools import combinations, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from auditor.verdict.conditions import ConditionTest, compile_test
from auditor.verdict.domains import (
    ABSENT,
    UNKNOWN,
    Addresses,
    Domain,
    FixedValues,
    Numbers,
    Texts,
)
from auditor.verdict.networks import NOT_PUBLIC, Network, parse_address, parse_network
from auditor.verdict.steps import TooComplexError
from auditor.verdict.values import truth_vectors, witnesses

YES, NO = (True,), (False,)
TRUE_OR_FALSE = Texts(only=("true", "false"))
FOREIGN_ARN = Texts(only=("arn:aws:iam::############:*",), never=("arn:aws:iam::111122223333:*",))


def compiled(operator: str, *values: str) -> ConditionTest:
    return compile_test(operator, "aws:key", values, variables=True)


def networks(*texts: str) -> tuple[Network, ...]:
    return tuple(parse_network(text) for text in texts)


def public_addresses(*never: str) -> Addresses:
    """Return the domain of all addresses of the internet but for the networks of `never`."""
    return Addresses(never=NOT_PUBLIC + networks(*never))


# ---- known answers


KNOWN: list[tuple[str, list[str], Domain, set[tuple[bool, ...]]]] = [
    ("StringEquals", ["x"], ABSENT, {NO}),
    ("Null", ["true"], Addresses(may_be_absent=True), {YES, NO}),
    ("Null", ["false"], Numbers(highest=1, may_be_absent=True), {YES, NO}),
    ("Bool", ["true", "false"], TRUE_OR_FALSE, {YES}),
    # Idioms of policies: any role of that name is somebody's, but none of this account is a stranger's.
    ("ArnLike", ["arn:aws:iam::*:role/x"], FOREIGN_ARN, {YES, NO}),
    ("ArnLike", ["arn:aws:iam::111122223333:role/*"], FOREIGN_ARN, {NO}),
    ("StringLike", ["arn:aws:iam::11112222????:*"], FOREIGN_ARN, {YES, NO}),
    ("StringLike", ["vpce-*"], Texts(only=("vpce-*",), never=("vpce-1",)), {YES}),
    ("IpAddress", ["0.0.0.0/0"], public_addresses(), {YES, NO}),
    ("IpAddress", ["0.0.0.0/0", "::/0"], public_addresses(), {YES}),
    ("IpAddress", ["0.0.0.0/1", "128.0.0.0/1", "::/0"], public_addresses(), {YES}),
    ("IpAddress", ["10.0.0.0/8", "192.168.0.0/16", "fc00::/7", "127.0.0.1"], public_addresses(), {NO}),
    ("NotIpAddress", ["203.0.113.0/24"], Addresses(only=networks("203.0.113.0/25")), {NO}),
    ("StringLike", ["203.0.113.*"], Addresses(only=networks("203.0.113.0/24")), {YES}),
    ("StringLike", ["10.*", "*.*.*.*/24", "zz*"], FixedValues(("10.1.1.1",)), {YES}),
    ("StringEquals", ["203.0.113.0/24"], public_addresses(), {NO}),
    ("StringEquals", ["203.0.113.9"], Addresses(only=networks("203.0.113.0/24")), {YES, NO}),
    ("StringLike", ["300.1.*"], public_addresses(), {NO}),
    ("ArnLike", ["arn:aws:s3:::*"], public_addresses(), {NO}),
    ("NumericLessThan", ["600000"], Numbers(highest=604_800_000), {YES, NO}),
    ("NumericEquals", ["5"], Numbers(lowest=5, highest=5), {YES}),
    ("NumericGreaterThan", ["9.5"], Numbers(highest=10), {YES, NO}),
    ("StringEquals", ["11", "07", "x"], Numbers(highest=10), {NO}),
    ("DateGreaterThan", ["2020-01-01"], Numbers(highest=1_763_000_000), {YES, NO}),
    ("DateGreaterThan", ["2030-01-01"], Numbers(highest=1_763_000_000), {NO}),
    ("IpAddress", ["10.0.0.0/8"], Numbers(highest=10), {NO}),
    ("DateLessThan", ["2025-01-01T00:00:00Z"], FixedValues(("2026-11-23T00:00:00Z",)), {NO}),
    ("ForAllValues:StringLike", ["a*"], Texts(only=("a*",), many=True), {YES}),
    ("ForAnyValue:StringLike", ["a*"], Texts(only=("a*",), may_be_absent=True, many=True), {YES, NO}),
    ("StringEquals", ["x"], Texts(only=()), set()),
    ("StringEquals", ["x"], Texts(never=("*",)), set()),
    ("StringEquals", ["x"], Addresses(never=networks("::/0", "0.0.0.0/0")), set()),
    ("StringEquals", ["x"], Texts(never=("*",), may_be_absent=True), {NO}),
]
"""Operator, values of the policy, the values that a requester has, the outcomes."""


def test_vectors_of_one_test() -> None:
    failures = [
        (operator, values, domain)
        for operator, values, domain, expected in KNOWN
        if truth_vectors([compiled(operator, *values)], domain) != expected
    ]
    assert not failures, failures
    for domain in (ABSENT, Texts(), UNKNOWN, Addresses(), Numbers(highest=3), Texts(many=True)):
        assert truth_vectors([], domain) == {()}


def test_pattern_of_numbers_or_addresses_is_too_complex() -> None:
    table: list[tuple[str, str, Domain]] = [
        *(("StringLike", text, public_addresses()) for text in ("203.0.*.1", "2*", "203.0.11?.1", "2001:db8:*", "?")),
        ("StringLike", "1*", Numbers(highest=10)),
        ("NumericLessThan", "5", Texts(only=("1*",))),
    ]
    for operator, value, domain in table:
        with pytest.raises(TooComplexError):
            truth_vectors([compiled(operator, value)], domain)
    mixed = [compiled("NumericLessThan", "10"), compiled("StringLike", "*")]
    assert truth_vectors(mixed, Texts()) == {(True, True), (False, True)}


# ---- brute force

SHAPE = st.text(alphabet="ab*?", max_size=4)
TEXT_OPERATORS = ["StringEquals", "StringNotEquals", "StringLike", "StringNotLike", "StringEqualsIgnoreCase", "Bool"]
QUANTIFIERS = ["", "", "ForAllValues:", "ForAnyValue:"]
SUFFIXES = ["", "", "IfExists"]


@st.composite
def text_tests(draw: st.DrawFn) -> ConditionTest:
    operator = draw(st.sampled_from(TEXT_OPERATORS))
    values = ["true"] if operator == "Bool" else draw(st.lists(SHAPE, max_size=3))
    name = draw(st.sampled_from(QUANTIFIERS)) + operator + draw(st.sampled_from(SUFFIXES))
    return compiled(name, *values)


PRESENCE = st.sampled_from([compiled("Null", "true"), compiled("Null", "false"), compiled("Null", "true", "false")])
TESTS = st.lists(text_tests() | PRESENCE, max_size=4)
TEXTS = st.builds(
    Texts,
    only=st.lists(SHAPE, min_size=1, max_size=2).map(tuple) | st.just(("*",)),
    never=st.lists(SHAPE, max_size=2).map(tuple),
    may_be_absent=st.booleans(),
)
SHORT = ["".join(chars) for length in range(5) for chars in product("abx", repeat=length)] + ["true", "B", "BA", "Aab"]


def vector(tests: Sequence[ConditionTest], values: tuple[str, ...]) -> tuple[bool | None, ...]:
    return tuple(test.outcome(values) for test in tests)


def keeps(domain: Texts, text: str) -> bool:
    likes = [compiled("StringLike", *patterns) for patterns in (domain.only, domain.never)]
    return vector(likes, (text,)) == (True, False)


@given(TESTS, TEXTS, st.booleans())
@example([compiled("ForAllValues:StringEquals", "a")], Texts(), False)
@example([compiled("ForAnyValue:StringNotEquals", "a")], Texts(never=("?*",)), False)
def test_texts_that_the_requester_chooses(tests: list[ConditionTest], domain: Texts, many: bool) -> None:
    domain = replace(domain, many=many)
    found = witnesses(tests, domain)
    for expected, values in found.items():
        assert vector(tests, values) == expected
        assert all(keeps(domain, value) for value in values) if values else domain.may_be_absent
    kept = [text for text in SHORT if keeps(domain, text)]
    chosen: list[tuple[str, ...]] = [(text,) for text in kept if text or not many]
    chosen += combinations([text for text in kept if text and len(text) <= 2], 2) if many else []
    chosen += [()] if domain.may_be_absent else []
    assert {vector(tests, values) for values in chosen} <= set(found)


CIDR = st.builds(
    lambda octet, bits: f"203.0.113.{octet}/{bits}", st.integers(0, 255), st.integers(24, 32)
) | st.sampled_from(["0.0.0.0/0", "::/0", "203.0.113.77", "2001:db8::/32", "2001:db8::5", "200.0.0.0/5"])
IP_TESTS = st.lists(
    st.builds(
        lambda operator, values: compiled(operator, *values),
        st.sampled_from(["IpAddress", "NotIpAddress", "IpAddressIfExists", "ForAnyValue:IpAddress"]),
        st.lists(CIDR, max_size=4),
    )
    | st.builds(compiled, st.just("StringLike"), st.sampled_from(["203.0.113.*", "203.*", "203.0.113.77", "*", "z"])),
    max_size=4,
)
ADDRESSES = st.builds(
    Addresses,
    only=st.lists(CIDR.map(parse_network), max_size=2).map(tuple),
    never=st.lists(CIDR.map(parse_network), max_size=2).map(tuple),
    may_be_absent=st.booleans(),
)
SOME_ADDRESSES = [f"203.0.113.{octet}" for octet in range(256)]
SOME_ADDRESSES += ["203.0.112.9", "8.8.8.8", "2001:db8::5", "2001:db8::6", "2600::1"]


def test_the_longest_address_is_one_and_other_texts_are_none() -> None:
    longest = "0000:0000:0000:0000:0000:ffff:255.255.255.255"
    assert str(parse_address(longest)) == "::ffff:ffff:ffff"
    assert [parse_address(text) for text in (f"0{longest}", "203.0.113.256", "bucket")] == [None] * 3
    with pytest.raises(ValueError, match="is not a network in CIDR notation"):
        parse_network("bucket")


@given(IP_TESTS, ADDRESSES)
@example([compiled("IpAddress", "203.0.113.0/24")], Addresses())
def test_address_that_the_requester_chooses(tests: list[ConditionTest], domain: Addresses) -> None:
    def inside(text: str) -> bool:
        address = ip_address(text)
        return any(address in n for n in domain.only) and not any(address in n for n in domain.never)

    found = witnesses(tests, domain)
    for expected, values in found.items():
        assert vector(tests, values) == expected
        assert inside(values[0]) if values else domain.may_be_absent
    by_force = {vector(tests, (text,)) for text in SOME_ADDRESSES if inside(text)}
    assert by_force <= set(found)


NUMBER_TESTS = st.lists(
    st.builds(
        lambda relation, values: compiled(f"Numeric{relation}", *values),
        st.sampled_from(["Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"]),
        st.lists(st.sampled_from(["0", "3", "3.5", "-1", "7", "7.0", "1e1", "11", "20.25"]), max_size=3),
    ),
    max_size=4,
)
TEXT_OF_NUMBER = st.builds(compiled, st.just("StringNotEquals"), st.sampled_from(["3", "11", "x", "03"]))


@given(NUMBER_TESTS, st.lists(TEXT_OF_NUMBER, max_size=1), st.integers(0, 12), st.integers(0, 30))
def test_number_that_the_requester_chooses(
    tests: list[ConditionTest], more: list[ConditionTest], lowest: int, highest: int
) -> None:
    both = [*tests, *more]
    by_force = {vector(both, (str(number),)) for number in range(lowest, highest + 1)}
    assert truth_vectors(both, Numbers(lowest=lowest, highest=highest)) == by_force
    texts = [
        "x",
        "-2",
        "-1",
        "-0.5",
        "0",
        "2",
        "3",
        "3.2",
        "3.5",
        "5",
        "7",
        "8",
        "10",
        "10.5",
        "11",
        "12",
        "20.25",
        "99",
    ]
    assert truth_vectors(tests, UNKNOWN) == {vector(tests, ()), *(vector(tests, (text,)) for text in texts)}


# ---- hostile policies

HOSTILE = (
    st.text(max_size=30)
    | st.text(alphabet="0123456789eE+-.:/TZ*?${}'# ", max_size=45)
    | st.text(alphabet="*?ab", max_size=40)
)
OPERATORS = [
    *TEXT_OPERATORS,
    *("ArnLike", "ArnNotEquals", "BinaryEquals", "IpAddress", "NotIpAddress", "Null"),
    *("NumericEquals", "NumericLessThan", "DateEquals", "DateGreaterThanEquals"),
]
DOMAINS: list[Domain] = [
    *(ABSENT, UNKNOWN, FixedValues(("x",)), FixedValues(("203.0.113.9", "5")), Texts(), FOREIGN_ARN),
    *(Texts(many=True, may_be_absent=True), public_addresses(), Numbers(highest=1_763_000_000)),
]


@given(
    st.lists(
        st.tuples(st.sampled_from(QUANTIFIERS), st.sampled_from(OPERATORS), st.lists(HOSTILE, min_size=1, max_size=3)),
        max_size=5,
    ),
    st.sampled_from(DOMAINS),
)
@example([("", "NumericLessThan", ["1" * 39 + "e9"]), ("", "NumericLessThan", ["1e-99"])], UNKNOWN)
@example([("", "DateEquals", ["9" * 20]), ("", "DateEquals", ["-1.5"])], UNKNOWN)
@example([("", "StringEqualsIgnoreCase", ["ßİǅ", "\ud800"])], Texts())
def test_hostile_tests_end_in_vectors_or_in_the_one_error(
    listed: list[tuple[str, str, list[str]]], domain: Domain
) -> None:
    tests = []
    for quantifier, operator, values in listed:
        with suppress(ValueError):
            tests.append(compiled(quantifier + operator, *values).bind({"x": Texts()}))
    with suppress(TooComplexError):
        for expected, witness in witnesses(tests, domain).items():
            outcomes = vector(tests, witness)
            assert all(outcome in (None, wanted) for outcome, wanted in zip(outcomes, expected, strict=True))


def test_too_many_combinations_and_tests_are_given_up() -> None:
    letters = [f"*{letter}{'?' * 9}b*" for letter in "abcdefghij"]
    many: list[tuple[list[ConditionTest], Domain]] = [
        ([compiled("StringLike", text) for text in letters], Texts()),
        ([compiled("ForAnyValue:StringEquals", str(i)) for i in range(20)], Texts(many=True)),
    ]
    for tests, domain in many:
        with pytest.raises(TooComplexError) as raised:
            truth_vectors(tests, domain)
        assert raised.value.excess is not None
        assert raised.value.excess.things == "steps for one condition key"


def test_long_lists_of_values_are_not_too_complex() -> None:
    assert truth_vectors([compiled("StringLike", "ab" * 30_000)], Texts()) == {YES, NO}
    apart, beside = ([f"9.{i}.{j}.0/{bits}" for i in range(25) for j in range(250)] for bits in (25, 24))
    for listed in (apart, beside):
        assert truth_vectors([compiled("IpAddress", *listed)], public_addresses()) == {YES, NO}
    accounts = [f"{i * 7_919_000_123 % 10**12:012d}" for i in range(1_000)]
    domain = Texts(only=("############",), never=tuple(accounts[:500]))
    assert truth_vectors([compiled("StringEquals", *accounts)], domain) == {YES, NO}
    assert truth_vectors([compiled("StringEquals", *accounts[:500])], domain) == {NO}
    roles = [f"arn:aws:iam::{account}:role/*-{account}" for account in accounts[:100]]
    assert truth_vectors([compiled("ArnNotLike", *roles)], FOREIGN_ARN) == {YES, NO}
    assert truth_vectors([compiled("StringLike", "*".join("abcdefghij" * 10))], Texts()) == {YES, NO}
