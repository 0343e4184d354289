"""Patterns against the definition, and the product of patterns against all short texts."""

from __future__ import annotations

from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from auditor.model.wildcard import Wild
from auditor.verdict.globs import Glob, Sieve, memberships
from auditor.verdict.variables import shape

PARTS = st.lists(st.sampled_from(["a", "b", ":", "1", *Wild]), max_size=5)

ONE = {Wild.ANY: "ab:1x", Wild.PART: "ab1x", Wild.DIGIT: "1"}
MANY = {Wild.STAR: Wild.ANY, Wild.STAR_PART: Wild.PART}


def matches_slowly(parts: list[str | Wild], text: str, lower: bool = False) -> bool:
    """The definition, word for word. It is exponential, so it is for short texts only."""
    if not parts:
        return not text
    first, rest = parts[0], parts[1:]
    if isinstance(first, Wild) and first in MANY:
        taken = ONE[MANY[first]]
        ends = [i for i in range(len(text) + 1) if all(char in taken for char in text[:i])]
        return any(matches_slowly(rest, text[i:], lower) for i in ends)
    if not text:
        return False
    if isinstance(first, Wild):
        return text[0] in ONE[first] and matches_slowly(rest, text[1:], lower)
    same = text[0].lower() == first.lower() if lower else text[0] == first
    return same and matches_slowly(rest, text[1:], lower)


def in_order(parts: list[str | Wild]) -> list[str | Wild]:
    """Confine wildcards as an ARN does: those before the last colon take none."""
    within = {Wild.STAR: Wild.STAR_PART, Wild.ANY: Wild.PART}
    last = max((i for i, part in enumerate(parts) if part == ":"), default=-1)
    return [within.get(part, part) if isinstance(part, Wild) and i < last else part for i, part in enumerate(parts)]


@given(PARTS, st.text(alphabet="ab:1x", max_size=7))
@example([Wild.STAR, "a", Wild.STAR, "a"], "a")
@example([Wild.STAR, "a", "b"], "aab")
@example([Wild.STAR, Wild.ANY], "")
@example([Wild.STAR, "a", Wild.STAR_PART], "a:a")
@example([Wild.ANY, "a", Wild.STAR_PART], ":a")
@example([Wild.STAR_PART, "a", Wild.STAR_PART], "ba:a")
@example([Wild.STAR, Wild.STAR_PART], ":")
@example([Wild.STAR_PART, Wild.STAR], ":")
def test_agrees_with_the_definition(parts: list[str | Wild], text: str) -> None:
    parts = in_order(parts)
    assert Glob.of(parts).matches(text) == matches_slowly(parts, text)
    letters: list[str | Wild] = [part for part in parts if isinstance(part, str)]
    upper = text.swapcase()
    assert Glob.of(letters, ignore_case=True).matches(upper) == matches_slowly(letters, upper, lower=True)
    assert all(Glob.of([letter], ignore_case=True).matches(letter) for letter in "aßıſKǅΣ")


SHAPES = st.lists(st.text(alphabet="ab1*?#:", max_size=4), max_size=2)


@given(st.lists(SHAPES, max_size=3), st.lists(st.text(alphabet="ab*?#", max_size=3), min_size=1, max_size=2), SHAPES)
@example([["a*"], ["*b"]], ["*"], ["ab"])
@example([["#"]], ["?"], ["1"])
@example([["?"], ["#*"]], ["#", "a"], [])
@example([["a"]], ["a*"], ["*"])
@example([["a*"], ["*b"], ["?"]], ["*"], [])
def test_product_agrees_with_all_short_texts(sets: list[list[str]], only: list[str], never: list[str]) -> None:
    globs = [tuple(map(shape, texts)) for texts in sets]
    sieve = Sieve(tuple(map(shape, only)), tuple(map(shape, never)))
    found = memberships(globs, sieve)

    def membership(text: str) -> tuple[bool, ...]:
        return tuple(any(glob.matches(text) for glob in globs_) for globs_ in globs)

    for inside, text in found.items():
        assert sieve.keeps(text)
        assert membership(text) == inside
    # The alphabet of the short texts has a letter and digits that no pattern names.
    texts = ["".join(chars) for length in range(5) for chars in product("ab:1x2", repeat=length)]
    assert {membership(text) for text in texts if sieve.keeps(text)} <= set(found)
