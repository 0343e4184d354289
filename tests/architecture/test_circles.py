"""No modules of the package import each other in a circle: neither at once, nor in functions, nor for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def named(path: Path, root: Path) -> str:
    """Return the name of a module's file: `auditor.rules.base`, and `auditor.rules` for its package."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imports_of(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    """Yield for each name that the module imports, anywhere in it, the modules that it may be, the likeliest first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((f"{node.module}.{alias.name}", node.module) for alias in node.names)


def graph(root: Path, package: str) -> dict[str, set[str]]:
    """Return the modules that each module of a package below `root` imports, by their names."""
    trees = {named(path, root): ast.parse(path.read_text()) for path in (root / package).rglob("*.py")}
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        imported = (next((one for one in may_be if one in trees), None) for may_be in imports_of(tree))
        found[name] = {one for one in imported if one is not None}
    return found


def circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one circle, the first one again at the end; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle() -> None:
    assert circle(graph(ROOT, "auditor")) == []


@pytest.mark.parametrize(
    "back",
    [
        "from house.a import A",
        "import house.a",
        "from house import a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.a import A",
        "def of():\n    from house.a import A\n    return A",
    ],
)
def test_each_kind_of_import_closes_a_circle(back: str, tmp_path: Path) -> None:
    house = tmp_path / "house"
    house.mkdir()
    for name, text in {"__init__": "", "a": "from house.b import B", "b": "from house.c import C", "c": back}.items():
        (house / f"{name}.py").write_text(text)
    assert sorted(set(circle(graph(tmp_path, "house")))) == ["house.a", "house.b", "house.c"]
    (house / "c.py").write_text("import house")
    assert circle(graph(tmp_path, "house")) == []
