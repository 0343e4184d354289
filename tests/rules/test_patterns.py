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


REFUSED = {
    "at most 1000 characters": ["a" * (MOST_CHARACTERS + 1)],
    "at most 500 parts": ["(a{999}){999}", "((((){999}){999}){999}){999}"],
    "at most 50 groups": ["(" * 51 + ")" * 51],
    "ends within a group": ["(a"],
    "ends within a set": ["[a", "[]"],
    "ends within an escape": ["a\\"],
    "closing parenthesis": ["a)"],
    "repeats nothing": ["*a"],
    "repeats something": ["a**", "a+?"],
    "only plain groups": ["(?i)a", "(?=a)"],
    "only the escapes": [r"(a)\1", r"\bword"],
    r"have \\D": [r"[\D]"],
    "whole value": ["^a$"],
    "lower character": ["[b-a]", r"[a-\d]"],
    "repetition is": ["a{", "a{1x}"],
    "lower number": ["a{2,1}"],
}


def test_patterns_that_make_others_slow_or_are_refused() -> None:
    for text in ("(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*a){20}b", "(a?){30}a{30}b"):
        assert not Pattern.parse(text).matches("a" * 2048), text
        assert Pattern.parse(text).matches("a" * 60 + "b"), text
    for says, text in ((says, text) for says, texts in REFUSED.items() for text in texts):
        with pytest.raises(ValueError, match=says) as refused:
            Pattern.parse(text)
        assert str(refused.value).isprintable(), text
