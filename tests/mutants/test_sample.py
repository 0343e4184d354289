"""The sample of changes, the list of those that are equal in effect, and the gate of `make mutants`."""

from __future__ import annotations

import tomllib

from tests.mutants.sample import EQUAL, Change, equals_of, folders_of
from tests.support.paths import ROOT


def test_the_modules_and_the_list_are_of_this_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    modules = settings["tool"]["mutmut"]["only_mutate"]
    assert [path for path in modules if not (ROOT / path).is_file()] == []
    changes = [Change(path, path, 1, "work", "a < 1", "a <= 1") for path in modules]
    assert [folder for folder in folders_of(changes) if not (ROOT / folder).is_dir()] == []
    equals = equals_of(EQUAL.read_text(encoding="utf-8"))
    assert [entry for entry in equals if entry.path not in modules or not entry.because] == []
