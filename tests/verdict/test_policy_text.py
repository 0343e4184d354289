"""The lines of a policy's statements, and the place of each error."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.model.policy import parse
from auditor.verdict.policy_text import (
    PolicyTextError,
    StatementLines,
    check_policy,
    statement_lines,
    statements_of_others,
    without_statements,
)

STATEMENT = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::audited/*"}

POLICY = """{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "Website",
      "Effect": "Allow", "Principal": "*",
      "Action": "s3:GetObject", "Resource": "arn:aws:s3:::audited/}]\\"/*"
    },
    {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}, {
      "Sid": "", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"
    }
  ],
  "Id": "x"
}
"""


def test_lines_of_each_statement() -> None:
    check_policy(POLICY)
    assert statement_lines(POLICY) == [
        StatementLines("Website", 4, 8),
        StatementLines("#2", 9, 9),
        StatementLines("#3", 9, 11),
    ]


def test_a_policy_in_one_line_and_one_without_statements() -> None:
    for policy in ({"Statement": STATEMENT}, {"Statement": [STATEMENT], "Version": "2012-10-17", "Id": "a"}):
        assert statement_lines(json.dumps(policy)) == [StatementLines("#1", 1, 1)]
    assert statement_lines("") == statement_lines('{"Statement": []}') == []


def test_statements_of_another_bucket() -> None:
    table: list[tuple[object, list[str]]] = [
        ("arn:aws:s3:::audited/*", []),
        ("arn:aws-cn:s3:::audited", []),
        (["arn:aws:s3:::other/*", "arn:aws:s3:::audited/a/b:c"], []),
        ("*", []),
        ("arn:aws:s3:::aud*/x", []),
        ("arn:aws:s3:::other/*", ["#1"]),
        ("arn:aws:s3:::audited2/*", ["#1"]),
        ("arn:aws:s3:::other/audited/*", ["#1"]),
    ]
    for resource, others in table:
        text = json.dumps({"Statement": [{**STATEMENT, "Resource": resource}]})
        assert statements_of_others(text, "audited") == others, resource
    statement = {name: value for name, value in STATEMENT.items() if name != "Resource"}
    text = json.dumps({"Statement": [{**statement, "NotResource": "arn:aws:s3:::other/*"}]})
    assert statements_of_others(text, "audited") == statements_of_others("", "audited") == []


@given(
    st.lists(st.fixed_dictionaries({}, optional={"Sid": st.text()}), max_size=5),
    st.sampled_from([None, 0, 2]),
)
def test_each_statement_is_found_in_any_layout(more: list[dict[str, str]], indent: int | None) -> None:
    statements = [{**STATEMENT, **extra} for extra in more]
    text = json.dumps({"Id": "a{[", "Statement": statements, "Version": "2012-10-17"}, indent=indent)
    found = statement_lines(text)
    assert tuple(one.name for one in found) == parse(text).names
    lines = text.split("\n")
    for statement, place in zip(statements, found, strict=True):
        if indent is not None:
            written = "\n".join(lines[place.first - 1 : place.last]).strip().rstrip(",")
            assert json.loads(written) == statement


def test_the_place_of_an_error() -> None:
    for text, said in (
        ("", "line 1, column 1: "),
        ('{"Statement": [\n {"Effect": }]}', "line 2, column 13: "),
        ('{"Statement": []} x', "line 1, column 19: "),
        ("[]", "it is not a JSON object|the policy is not a JSON object"),
        ("[" * 100_000, "nested too deep"),
        ('{"Version": "2020-01-01", "Statement": []}', "Version is unknown"),
        ('{"Statement": [\n{"Effect": "Allow"}]}', "line 2, statement 1: "),
        (
            '{"Statement": [\n{"Effect": "Alow",\n "Principal": "*", "Action": "*", "Resource": "*"}]}',
            "neither Allow nor",
        ),
        ('{"Statement": [3]}', "line 1, statement 1: a statement is not an object"),
        ('{"Statement": 3}', "neither a list nor an object"),
        ('{"Statement": [], "Statement": []}', "twice"),
    ):
        with pytest.raises(PolicyTextError, match=said):
            check_policy(text)


@given(st.text(alphabet='{}[]",:\\ \nSEStatmen', max_size=60))
def test_any_text_is_a_policy_or_an_error_in_words(text: str) -> None:
    with suppress(PolicyTextError):
        check_policy(text)
        assert len(statement_lines(text)) == len(parse(text).statements)


def test_statements_are_taken_out_by_name() -> None:
    left = without_statements(POLICY, ["#2"])
    assert parse(left).names == ("Website", "#2")  # the third one has no name of its own
    assert json.loads(left)["Id"] == "x"
    assert without_statements(POLICY, ["Website", "#2", "#3"]) == ""
    assert without_statements("", ["Website"]) == ""
    one = json.dumps({"Version": "2012-10-17", "Statement": STATEMENT})
    assert without_statements(one, ["#1"]) == ""
    assert json.loads(without_statements(one, ["other"])) == {"Version": "2012-10-17", "Statement": [STATEMENT]}
