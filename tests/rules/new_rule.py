"""`make rule ID=o12 GROUP=access NAME=everyone_write` begins a rule: its file, its cases and its line in RULES."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT

TEMPLATE: Final = Path(__file__).parent / "template"
LONGEST_LINE: Final = 120


def begin(root: Path, number: str, group: str, name: str) -> list[Path]:
    """Write the rule's three files; returns them. Raises ValueError for a wrong argument, or an id that is in use."""
    rules, cases, stem = root / "auditor/rules", root / "tests/rules/cases", f"{number}_{name}"
    groups = sorted(path.parent.name for path in rules.glob("*/__init__.py"))
    if not re.fullmatch(r"[a-z][0-9]{2}_[a-z]+(_[a-z]+)+", stem) or group not in groups:
        raise ValueError(f"write ID=o12 GROUP=access NAME=two_words; the groups are {', '.join(groups)}")
    if found := [*rules.glob(f"*/{number}_*.py"), *cases.glob(f"{number}_*.toml")]:
        raise ValueError(f"{number} is in use: {found[0].name}")
    rule = (TEMPLATE / "rule.txt").read_text().format(id=number.upper(), name=name.replace("_", "-"))
    written = {
        rules / group / f"{stem}.py": rule,
        cases / f"{stem}.toml": (TEMPLATE / "cases.txt").read_text(),
        rules / "__init__.py": registered((rules / "__init__.py").read_text(), group, stem),
    }
    for path, text in written.items():
        path.write_text(text)
    return list(written)


def registered(source: str, group: str, stem: str) -> str:
    """The source of auditor/rules/__init__.py with the rule's import, and its line among the ids of its letter."""
    statement = re.compile(rf"from auditor\.rules\.{group} import (\([^)]*\)|[^\n]*)\n")
    modules = sorted([*re.findall(r"\w+", "".join(statement.findall(source))), stem])
    line = f"from auditor.rules.{group} import {', '.join(modules)}"
    if len(line) > LONGEST_LINE:
        names = "".join(f"    {module},\n" for module in modules)
        line = f"from auditor.rules.{group} import (\n{names})"
    checks = re.findall(r"(?m)^    \w+\.check,\n", source)
    alike = [check for check in checks if check[4] == stem[0]] or checks[-1:]
    listed = "".join(sorted([*alike, f"    {stem}.check,\n"]))
    return statement.sub(f"{line}\n", source).replace("".join(alike), listed)


if __name__ == "__main__":
    try:
        print(*begin(ROOT, *sys.argv[1:]), sep="\n")
    except (TypeError, ValueError) as error:
        sys.exit(f"{error}")
