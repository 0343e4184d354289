"""The oracle's own conditions, one by one; the case files hold its verdicts against what the guides say."""

from __future__ import annotations

from tests.verdict.oracle.conditions import Values, holds

TABLE: list[tuple[str, tuple[str, ...], Values, bool]] = [
    ("StringEquals", ("a",), ("a",), True),
    ("StringEquals", ("a*",), ("ab",), False),
    ("StringEquals", ("a",), None, False),
    ("StringNotEquals", ("a",), None, True),
    ("StringNotEquals", ("a", "b"), ("b",), False),
    ("StringEqualsIfExists", ("a",), None, True),
    ("ForAllValues:StringEquals", ("a",), None, True),
    ("ForAllValues:StringEquals", ("a",), ("a", "b"), False),
    ("ForAnyValue:StringEquals", ("a",), ("a", "b"), True),
    ("ForAnyValue:StringNotEquals", ("a",), None, False),
    ("StringLike", ("${user}/*",), ("bob/x",), True),
    ("StringLike", ("${nobody}/*",), ("bob/x",), False),
    ("StringNotLike", ("${nobody}/*",), ("bob/x",), True),
    ("StringLike", ("${nobody, 'bob'}/*",), ("bob/x",), True),
    ("StringLike", ("a${*}",), ("ab",), False),
    ("StringLike", ("a${*}",), ("a*",), True),
    ("ArnLike", ("arn:aws:iam::*:role/x",), ("arn:aws:iam::1:role/x",), True),
    ("ArnLike", ("arn:*:role/x",), ("arn:aws:iam::1:role/x",), False),
    ("ArnNotLike", ("arn:aws:iam::*:role/x",), None, True),
    ("IpAddress", ("10.0.0.0/8",), ("::1",), False),
    ("NotIpAddress", ("10.0.0.0/8",), ("11.0.0.1",), True),
    ("NumericLessThan", ("1.2",), ("1.1",), True),
    ("NumericLessThan", ("1.2",), None, False),
    ("DateGreaterThan", ("2020-01-01T00:00:00Z",), ("1782907200",), True),
    ("Bool", ("true",), ("True",), True),
    ("Null", ("true",), None, True),
    ("Null", ("false",), None, False),
    ("Null", ("false",), ("",), True),
]
"""Operator, values of the policy, values of the request, the outcome."""


def test_conditions() -> None:
    failures = [row for row in TABLE if holds(row[0], row[1], row[2], {"user": ("bob",)}) is not row[3]]
    assert not failures, failures
