"""The sample of changes, the list of those that are equal in effect, and the gate of `make mutants`."""

from __future__ import annotations

import tomllib
from collections import Counter

import pytest

from tests.mutants.sample import (
    EQUAL,
    Change,
    Equal,
    changes_of,
    drawn,
    equals_of,
    folders_of,
    judged,
)
from tests.support.paths import ROOT

MODULES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]["only_mutate"]

SOURCE = '''"""A module."""


class Gate:
    """A gate."""

    def opens(self, height: int) -> bool:
        return (
            height > 3
            and height < 9
        )


def twice(number: int) -> int:
    return number * 2
'''
MADE = """class Gate:
    @_mutmut_mutated(mutants_xǁGateǁopens__mutmut)
    def opens(self, height: int) -> bool:
        ...

    def xǁGateǁopens__mutmut_orig(self, height: int) -> bool:
        return (
            height > 3
            and height < 9
        )

    def xǁGateǁopens__mutmut_1(self, height: int) -> bool:
        return (
            height >= 3
            and height < 9
        )

    def xǁGateǁopens__mutmut_2(self, height: int) -> bool:
        return (
            height > 3
        )
def x_twice__mutmut_orig(number: int) -> int:
    return number * 2
def x_twice__mutmut_1(number: int) -> int:
    return number / 2
"""
SPANS = {
    "xǁGateǁopens__mutmut_orig": (5, 10),
    "xǁGateǁopens__mutmut_1": (11, 16),
    "xǁGateǁopens__mutmut_2": (17, 21),
    "x_twice__mutmut_orig": (22, 23),
    "x_twice__mutmut_1": (24, 25),
}


def change(path: str, at: int = 1) -> Change:
    return Change(f"{path}__mutmut_{at}", path, at, "work", f"a < {at}", f"a <= {at}")


def test_a_change_has_the_line_and_the_words_of_the_source() -> None:
    assert [
        (one.name, one.line, one.function, one.was, one.became)
        for one in changes_of("auditor/a/gate.py", SOURCE, MADE, SPANS)
    ] == [
        ("auditor.a.gate.xǁGateǁopens__mutmut_1", 9, "Gate.opens", "height > 3", "height >= 3"),
        ("auditor.a.gate.xǁGateǁopens__mutmut_2", 10, "Gate.opens", "and height < 9", ""),
        ("auditor.a.gate.x_twice__mutmut_1", 15, "twice", "return number * 2", "return number / 2"),
    ]


def test_each_module_has_the_same_share_and_a_small_one_leaves_its_rest() -> None:
    changes = [change(path, at) for path, count in (("a", 50), ("b", 2), ("c", 50)) for at in range(count)]
    assert Counter(one.path for one in drawn(changes, 22, 1)) == {"a": 10, "b": 2, "c": 10}
    assert len(drawn(changes, 500, 1)) == 102


def test_more_than_a_twentieth_unlisted_fails() -> None:
    changes = [change("a", at) for at in range(40)]
    codes: dict[Change, int | None] = dict.fromkeys(changes, 1)
    codes |= {changes[0]: 0, changes[1]: 33, changes[2]: -24}
    verdict = judged(codes, [], changes)
    assert (verdict.tried, verdict.noticed, verdict.survivors) == (40, 38, changes[:2])
    assert verdict.holds
    assert not judged(codes | {changes[3]: 0}, [], changes).holds


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (Equal("a", "work", "a < 1", "a <= 1", "it was thought so"), "a test notices it"),
        (Equal("a", "work", "gone", "a <= 1", "the line was so once"), "it means 0 changes and not 1"),
        (Equal("a", "work", "a < 2", "a <= 2", "two lines were so", times=2), "it means 1 changes and not 2"),
    ],
)
def test_an_entry_of_the_list_that_is_wrong_is_named(entry: Equal, sentence: str) -> None:
    changes = [change("a", 1), change("a", 2), change("a", 3)]
    verdict = judged({changes[0]: 1, changes[2]: 1}, [entry], changes)
    assert not verdict.holds
    assert [str(entry) in one and sentence in one for one in verdict.wrong_entries] == [True]


@pytest.mark.parametrize("code", [None, 2, 4])
def test_a_change_that_was_not_tried_is_no_success(code: int | None) -> None:
    with pytest.raises(SystemExit, match="did not try"):
        judged({change("a"): code}, [], [change("a")])


def test_the_modules_and_the_list_are_of_this_package() -> None:
    assert [path for path in MODULES if not (ROOT / path).is_file()] == []
    assert [folder for folder in folders_of([change(path) for path in MODULES]) if not (ROOT / folder).is_dir()] == []
    assert [
        entry
        for entry in equals_of(EQUAL.read_text(encoding="utf-8"))
        if entry.path not in MODULES or not entry.because
    ] == []
