"""The generated documents: `python -m tests.architecture.documents [--check]` writes them, or compares them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator

from auditor.cli.parser import make_parser
from auditor.cli.sql.athena import PLACE, athena_file
from auditor.cli.sql.duckdb_views import duckdb_file
from auditor.config.settings import SETTINGS
from auditor.reports.formats import FORMATS
from auditor.rules import RULES
from auditor.rules.docs import as_markdown
from benchmarks.scale import page as scale
from tests.architecture.schema_files import pages as schema_pages
from tests.architecture.verdict_page import verdict_page
from tests.support.paths import ROOT


def cli_page() -> str:
    """docs/cli.md: every command's own help."""
    os.environ["COLUMNS"] = "100"
    parser = make_parser()
    parts = [
        "# Command line\n\n<!-- Written by `make docs` from the commands' own help: edit auditor/cli/parser.py. -->\n"
    ]
    for name, command in _commands(parser):
        parts.append(f"\n## {name}\n\n```text\n{command.format_help().rstrip()}\n```\n")
    return "".join(parts)


def _commands(
    parser: argparse.ArgumentParser, called: str = "auditor"
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield called, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from _commands(command, f"{called} {name}")


SETTINGS_TABLE = "<!-- settings, written by `make docs` from auditor/config/settings.py -->\n"


def configuration_page() -> str:
    """docs/configuration.md with its table of settings written anew."""
    before, _, rest = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8").partition(SETTINGS_TABLE)
    table = ["| setting | flag | event of | |", "|---|---|---|---|"]
    for name, setting in SETTINGS.items():
        flag = f"`{setting.flag}`" if setting.flag else ""
        table.append(f"| `{name}` | {flag} | {', '.join(setting.events)} | {setting.help} |")
    after = rest.partition("\n\n")[2]
    return f"{before}{SETTINGS_TABLE}{chr(10).join(table)}\n\n{after}"


FORMATS_TABLE = "<!-- formats, written by `make docs` from auditor/reports/formats/__init__.py -->\n"


def outputs_page() -> str:
    """docs/outputs.md with its table of formats written anew."""
    before, _, rest = (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8").partition(FORMATS_TABLE)
    table = ["| format | content |", "|---|---|", *(f"| `{name}` | {one.words} |" for name, one in FORMATS.items())]
    after = rest.partition("\n\n")[2]
    return f"{before}{FORMATS_TABLE}{chr(10).join(table)}\n\n{after}"


PAGES: dict[str, Callable[[], str]] = {
    "docs/rules.md": lambda: as_markdown(RULES),
    "docs/cli.md": cli_page,
    "docs/configuration.md": configuration_page,
    "docs/outputs.md": outputs_page,
    "docs/verdict.md": verdict_page,
    scale.PAGE: scale.page,
    scale.PICTURE: scale.drawing,
    **schema_pages(),
    "docs/sql/duckdb.sql": lambda: duckdb_file("RUN"),
    "docs/sql/athena.sql": lambda: athena_file(PLACE),
}


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    stale = []
    for name, make in PAGES.items():
        path, text = ROOT / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if check and stale:
        print(f"out of step: {', '.join(stale)}: run make docs")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
