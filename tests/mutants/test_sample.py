"""The sample of changes, the list of those that are equal in effect, and the gate of `make mutants`."""

from __future__ import annotations

import tomllib

from tests.mutants.sample import (
    EQUAL,
    Change,
    equals_of,
    folders_of,
)
from tests.support.paths import ROOT

MODULES = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]["only_mutate"]


def change(path: str, at: int = 1) -> Change:
    return Change(f"{path}__mutmut_{at}", path, at, "work", f"a < {at}", f"a <= {at}")


def test_the_modules_and_the_list_are_of_this_package() -> None:
    assert [path for path in MODULES if not (ROOT / path).is_file()] == []
    assert [folder for folder in folders_of([change(path) for path in MODULES]) if not (ROOT / folder).is_dir()] == []
    assert [
        entry
        for entry in equals_of(EQUAL.read_text(encoding="utf-8"))
        if entry.path not in MODULES or not entry.because
    ] == []
