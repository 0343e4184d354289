"""Patterns of a configuration match as Python's own do, refuse what they do not know, and never take long."""

from __future__ import annotations

import random
import re

import pytest

from auditor.rules.patterns import MOST_CHARACTERS, Pattern

VALUES = ("", "a", "b", "ab", "aab", "abab", "7", "77-years", "a-b", "]", "^", "A_9", " ", "\n", "é", "(", "a" * 9)


SYNTAX = (
    *("", "a", "a|b", "a|", "(ab)+", "(a|b)*b", "a?b", "a{2}b", "a{1,}b", "a{0,2}", "a{3,5}", ".", ".*", "a{0}", "}"),
    *("[ab]+", "[^ab]", "[a-c]{2,4}", "[]]", "[^]]", "[a-]+", "[-a]+", r"[\]a]", r"[\d_]+", r"[\w-]+", "[^]a]+"),
    *(r"\d+-years", r"\w+", r"\s", r"\D", r"\W", r"\S", r"\("),
    *("(a*)*", "(a*)*b", "((a|b)(a|b))*", "(|a)b", "()", "(()|a)+b"),
)


def test_patterns_are_the_same_as_pythons_own() -> None:
    for text in SYNTAX:
        theirs, ours = re.compile(text, re.DOTALL | re.ASCII), Pattern.parse(text)
        assert [ours.matches(value) for value in VALUES] == [bool(theirs.fullmatch(value)) for value in VALUES], text
    draw = random.Random(15)

    def part(depth: int) -> str:
        kind = draw.randrange(6) if depth else draw.randrange(3)
        if kind < 3:
            atom = "ab."[kind]
        else:
            atom = ("({}|{})", "({})({})", "{}a{}")[kind - 3].format(part(depth - 1), part(depth - 1))
        return f"({atom}){draw.choice(('', '', '?', '*', '+', '{2}', '{1,3}', '{0,}'))}"

    for _ in range(400):
        text = part(2)
        value = "".join(draw.choice("ab") for _ in range(draw.randrange(9)))
        assert Pattern.parse(text).matches(value) == (re.fullmatch(text, value) is not None), (text, value)


REFUSED = [
    ("a" * (MOST_CHARACTERS + 1), "at most 1000 characters"),
    ("(a{999}){999}", "at most 500 parts"),
    ("((((){999}){999}){999}){999}", "at most 500 parts"),
    ("(" * 51 + ")" * 51, "at most 50 groups"),
    ("(a", "ends within a group"),
    ("[a", "ends within a set"),
    ("[]", "ends within a set"),
    ("a\\", "ends within an escape"),
    ("a)", "closing parenthesis"),
    ("*a", "repeats nothing"),
    ("a**", "repeats something"),
    ("a+?", "repeats something"),
    ("(?i)a", "only plain groups"),
    ("(?=a)", "only plain groups"),
    (r"(a)\1", "only the escapes"),
    (r"\bword", "only the escapes"),
    (r"[\D]", r"have \\D"),
    ("^a$", "whole value"),
    ("[b-a]", "lower character"),
    (r"[a-\d]", "lower character"),
    ("a{", "repetition is"),
    ("a{1x}", "repetition is"),
    ("a{2,1}", "lower number"),
]


def test_patterns_that_make_others_slow_or_are_refused() -> None:
    for text in ("(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*a){20}b", "(a?){30}a{30}b"):
        assert not Pattern.parse(text).matches("a" * 2048), text
        assert Pattern.parse(text).matches("a" * 60 + "b"), text
    for text, says in REFUSED:
        with pytest.raises(ValueError, match=says) as refused:
            Pattern.parse(text)
        assert str(refused.value).isprintable(), text
