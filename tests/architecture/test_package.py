"""The functions' package: none of its modules imports one that the package leaves out."""

from __future__ import annotations

import ast

from deploy.sources import PACKAGES, source_files
from tests.support.paths import ROOT


def module_of(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def imports(source: str) -> set[str]:
    """The modules and names that a source imports as it runs, at its top or in a function."""
    found: set[str] = set()
    left: list[ast.AST] = [ast.parse(source)]
    while left:
        for node in ast.iter_child_nodes(left.pop()):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            if isinstance(node, ast.ImportFrom):
                found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            left.append(node)
    return found


def test_each_module_that_the_package_imports_is_in_the_package() -> None:
    ours = {module_of(path.relative_to(ROOT).as_posix()) for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    packed = {module_of(path): source for path, source in source_files(ROOT).items() if path.endswith(".py")}
    missing = ours - packed.keys()
    assert missing, "the command line is no part of the package"
    wrong = {f"{name} imports {one}" for name, source in packed.items() for one in missing & imports(source.decode())}
    assert not wrong, "take the name out of LEFT_OUT in deploy/sources.py, or move the code that both need"


def test_an_import_in_a_function_counts_and_one_for_types_alone_does_not() -> None:
    source = "if TYPE_CHECKING:\n    from a import b\ndef f():\n    from c import d\n    import e\n"
    assert imports(source) == {"c", "c.d", "e"}
