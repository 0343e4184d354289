"""The sample of changes, the list of those that are equal in effect, and the gate of `make mutants`."""

from __future__ import annotations

import tomllib

import pytest

from tests.mutants.sample import (
    EQUAL,
    Change,
    Equal,
    equals_of,
    folders_of,
    judged,
)
from tests.support.paths import ROOT

MODULES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]["only_mutate"]


def change(path: str, at: int = 1) -> Change:
    return Change(f"{path}__mutmut_{at}", path, at, "work", f"a < {at}", f"a <= {at}")


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
