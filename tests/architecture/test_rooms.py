"""The rooms of the package: the folders, the layers that import-linter enforces, and the map in the documents agree."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path

from tests.support.paths import ROOT

PACKAGE = ROOT / "auditor"
MAP = (ROOT / "docs" / "architecture.md").read_text()
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
LISTS_BY_NAME = {
    "", "aws", "cli/commands", "ledger", "ledger/manifests", "offline/formats", "rules", "runs/stores",
    "s3/engines",
}  # fmt: skip
"""The packages whose `__init__.py` is a list by name; that of aws sets a variable of botocore's; others are empty."""


def folders() -> set[str]:
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def modules() -> set[str]:
    return {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}


def layers() -> list[list[str]]:
    """The contract's layers, highest first, each as its rooms."""
    (contract,) = [one for one in CONTRACTS if one["type"] == "layers"]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


def test_each_folder_and_module_has_a_layer() -> None:
    assert {room for layer in layers() for room in layer} == folders() | modules()


def test_each_folder_and_module_has_a_sentence_on_the_map() -> None:
    described = re.findall(r"^\| `([a-z0-9]+)` \| [A-Z].+\. \|$", MAP, re.MULTILINE)
    assert sorted(described) == sorted(folders() | modules())


def test_the_map_draws_the_layers_of_the_contract() -> None:
    (drawing,) = re.findall(r"```text\n(.*?)```", MAP, re.DOTALL)[:1]
    drawn = [re.findall(r"[a-z0-9]+", line.partition("  #")[0]) for line in drawing.splitlines()]
    assert [sorted(line) for line in drawn if line] == [sorted(layer) for layer in layers()]


def test_each_file_that_the_map_names_exists() -> None:
    named = set(re.findall(r"`([a-z0-9]+/[\w/.-]+)`", MAP))
    missing = {name for name in named if not any((base / name).exists() for base in (ROOT, PACKAGE))}
    assert missing == set()


def test_no_contract_has_an_exception() -> None:
    assert [one["name"] for one in CONTRACTS if "ignore_imports" in one] == []


def test_few_folders_and_modules_stand_at_the_top() -> None:
    assert len(folders()) <= 17
    assert len(modules()) <= 5


def test_a_class_name_occurs_once() -> None:
    found: dict[str, list[Path]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for name in re.findall(r"^ *class (\w+)[(:\[]", path.read_text(), re.MULTILINE):
            found[name].append(path.relative_to(ROOT))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_a_package_is_a_list_by_name_or_empty() -> None:
    for path in PACKAGE.rglob("__init__.py"):
        room = path.parent.relative_to(PACKAGE).as_posix().removeprefix(".")
        if room not in LISTS_BY_NAME:
            assert path.read_text() == "", path


def test_no_docstring_begins_with_a_riddle() -> None:
    """Name the thing: subject, verb, object."""
    riddle = re.compile(r'^ *r?"""\s*(?:What|Who|Whoever|Whom|Whose|Those|That which)\b.*', re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for folder in ("auditor", "handlers", "deploy", "tools")
        for path in (ROOT / folder).rglob("*.py")
        for text in riddle.findall(path.read_text())
    ]
    assert found == []
