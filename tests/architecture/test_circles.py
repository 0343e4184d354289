"""No modules import each other in a circle, not even in functions or for types alone, and the functions' package is
whole: none of its modules imports one that the package leaves out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from deploy.sources import PACKAGES, source_files
from tests.support.paths import ROOT

Names = tuple[str, ...]
"""The modules that an imported name may be, the likeliest first."""


def named(path: Path, root: Path) -> str:
    """Return the name of a module's file: `auditor.rules.base`, and `auditor.rules` for its package."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imports_of(statements: list[ast.stmt], for_types: bool = False) -> Iterator[tuple[Names, bool]]:
    """Yield the names that the statements and those within them import, and True if they do for types alone."""
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (((alias.name,), for_types) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (((f"{node.module}.{alias.name}", node.module), for_types) for alias in node.names)
        typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from imports_of(getattr(node, block, []), for_types or (typing and block == "body"))


@cache
def imports(root: Path, package: str) -> Mapping[str, list[tuple[Names, bool]]]:
    """Return the imports of each module of a package below `root`."""
    paths = (root / package).rglob("*.py")
    return {named(path, root): list(imports_of(ast.parse(path.read_text()).body)) for path in paths}


def circle(root: Path, package: str) -> list[str]:
    """Return the modules of one circle of imports, the first one again at the end; empty if there is none."""
    found = imports(root, package)
    graph: dict[str, set[str]] = {}
    for name, imported in found.items():
        likeliest = (next((one for one in may_be if one in found), None) for may_be, _ in imported)
        graph[name] = {one for one in likeliest if one is not None}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle() -> None:
    assert circle(ROOT, "auditor") == []


def test_each_module_that_the_package_imports_is_in_the_package() -> None:
    ours = {name: found for package in PACKAGES for name, found in imports(ROOT, package).items()}
    packed = {named(ROOT / path, ROOT) for path in source_files(ROOT) if path.endswith(".py")}
    missing = ours.keys() - packed
    assert missing, "the command line is no part of the package"
    runs = [(name, may_be) for name in packed & ours.keys() for may_be, for_types in ours[name] if not for_types]
    wrong = {f"{name} imports {one}" for name, may_be in runs for one in missing & set(may_be)}
    assert not wrong, "take the name out of LEFT_OUT in deploy/sources.py, or move the code that both need"
