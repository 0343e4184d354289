"""Wildcards against a slow and plain oracle, and against patterns made to be slow."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from auditor.model.wildcard import Wildcard, matches_arn

PATTERNS = st.text(alphabet="ab/*?", max_size=9)
TEXTS = st.text(alphabet="ab/", max_size=9)


def matches_slowly(pattern: str, text: str) -> bool:
    """The definition, word for word. It is exponential, so it is for short texts only."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches_slowly(pattern[1:], text[skip:]) for skip in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and matches_slowly(pattern[1:], text[1:])


@given(PATTERNS, TEXTS)
@example("*a?", "aab")
@example("a*a", "a")
@example("?*?", "a")
@example("**", "")
@example("*a*a*", "a")
@example("*?b*?b*", "abbab")
@example("*a?*b", "ab")
@example("*ab*b", "ab")
@example("a?b?a", "aabba")
@example("*a?*a?*", "ab")
def test_agrees_with_the_definition(pattern: str, text: str) -> None:
    assert Wildcard.of(pattern).matches(text) == matches_slowly(pattern, text)


@given(st.text(alphabet="ab*?", max_size=6), st.text(alphabet="ab", min_size=1, max_size=3))
@example("ab*", "ab")
@example("ab", "ab")
@example("a?*", "ab")
def test_what_is_said_of_a_whole_bucket_holds_for_each_key(pattern: str, bucket: str) -> None:
    wildcard, start = Wildcard.of(pattern), bucket
    after = [wildcard.matches(start + key) for key in ("a", "b", "ab", "ba", "aab", "bbbb", "abab", "aaaa", "baab")]
    assert wildcard.may_match_after(start) or not any(after)
    assert not wildcard.matches_all_after(start) or all(after)


def test_a_pattern_for_the_whole_bucket_or_for_no_object_of_it_is_known_as_one() -> None:
    whole = ("bucket/*", "buck*", "*", "bucket/**")
    parts = ("bucket/a*", "bucket/?*", "b?x*", "bucket/", "other/*", "*/a*")
    assert [Wildcard.of(one).matches_all_after("bucket/") for one in (*whole, *parts)] == [True] * 4 + [False] * 6
    none, some = ("bucket", "bucket/", "other/*", "bucket2/*"), ("bucket/a", "b*", "bucket/a*", "*a")
    assert [Wildcard.of(one).may_match_after("bucket/") for one in (*none, *some)] == [False] * 4 + [True] * 4


def test_a_pattern_made_to_backtrack_is_answered() -> None:
    """A matcher that tries every division of the text among the stars would never end."""
    assert not Wildcard.of("*a" * 500 + "*b").matches("a" * 1024)
    assert Wildcard.of("*a" * 500 + "*b").matches("a" * 1023 + "b")
    assert not Wildcard.of("*?a" * 60 + "*b").matches("a" * 1024)
    assert not Wildcard.of("*" + "a" * 500 + "b*" + "a" * 400 + "c").matches("a" * 1024)
    assert not Wildcard.of("*a" * 10_000 + "*b").matches("a" * 1024)


TABLES = tomllib.loads((Path(__file__).parent / "tables" / "wildcards.toml").read_text(encoding="utf-8"))


def test_policy_variables() -> None:
    for situation, pattern, text, matches, sure in TABLES["variables"]:
        wildcard = Wildcard.of(pattern, variables=True)
        assert (wildcard.matches(text), wildcard.sure) == (matches, sure), situation


def test_without_variables_braces_are_text_and_stars_wildcards() -> None:
    wildcard = Wildcard.of("a${*}")
    assert wildcard.matches("a${anything}")
    assert not wildcard.matches("a*")
    assert wildcard.sure
    assert Wildcard.of("${$}").matches("${$}")


def test_an_odd_text_matches_itself_and_nothing_else() -> None:
    for text in ("Å", "🗝️", "a\nb", "\x00", "a\\b", "[a]", "a.b", "(", "a|b", " ", "^$", "\u00e9"):
        assert Wildcard.of(text).matches(text)
        assert Wildcard.of(f"*{text}*").matches(f"x{text}\n")
        assert not any(Wildcard.of(text).matches(other) for other in (f"{text}x", "b", "e\u0301"))


def test_each_part_of_an_arn_matches_the_same_part_of_a_pattern() -> None:
    arn = "arn:aws:s3:::bucket/a:b:c"
    for pattern in ("arn:*:s3:*:*:bucket/a:b:*", "arn:aws:s3:::*"):
        assert matches_arn(pattern, arn), pattern
    for pattern in ("arn:*:bucket/a:b:c", "arn:aws:s3:::bucket/a", "*"):
        assert not matches_arn(pattern, arn), pattern
