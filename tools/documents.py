"""The generated documents: `python -m tools.documents [--check]` writes them, or compares them."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from auditor.cli.flags import OPTIONS
from auditor.cli.help import CommandParser, make_parser
from auditor.config.settings import SETTINGS
from auditor.offline.formats import FORMATS
from auditor.rules import RULES
from auditor.rules.docs import as_markdown
from benchmarks.scale import page as scale
from tools import ROOT, keywords
from tools.schemas.files import pages as schema_pages
from tools.verdict_page import verdict_page

CLI = """# Command line

<!-- Written by `make docs` from the commands' own help: edit auditor/cli/commands/. -->

`auditor COMMAND --help` prints a command's daily flags, and `--help-all` all of them. Below are all, those of several
commands [once](#flags-of-several-commands).

## Exit codes

| code | |
|---|---|
| 0 | complete, no hole, nothing at or above `--fail-on` (high) |
| 1 | the run failed, or the server's listing cannot be right; whatever was written is kept |
| 2 | wrong usage or setting |
| 3 | findings at or above `--fail-on`; for `verify`, an object is damaged, missing, or overwritten without a \
version left; for `probe`, S3 contradicts a verdict |
| 4 | a hole: an object or a setting could not be read, the listing did not reach its end, or nothing is listed \
under a prefix (`--allow-empty` allows it), or `probe` compared nothing; \
4 outranks 3, except for `probe` |

Findings raise 3, verdicts do not. With 4, the findings that there are still count, and more may be missing. Some
commands give their codes a meaning of their own, which their help states. One of several targets that failed is a hole
(4); if all failed, the code is 1.
"""
OF_ALL = frozenset({"--help", "--help-all", "--verbose", "--quiet", "--no-progress"})
"""Flags of all commands: no command names them."""


def cli_page() -> str:
    """docs/cli.md: every command's own help. A flag of several commands, with the same words, stands once."""
    os.environ["COLUMNS"] = "100"
    commands = dict(_commands(make_parser()))
    having = Counter(_words(flag) for command in commands.values() for flag in command.flags.all)
    common = {words[0]: words for words, number in reversed(having.most_common()) if number > 1}
    shared: dict[str, tuple[str, argparse.Action]] = {}
    taken: dict[str, dict[str, argparse.Action]] = {}
    for name, command in commands.items():
        for title, here in command.flags.sections.items():
            same = {_words(one)[0]: one for one in here if common.get(_words(one)[0]) == _words(one)}
            found = {flag: one for flag, one in same.items() if title != OPTIONS or flag in OF_ALL}
            taken.setdefault(name, {}).update(found)
            for flag, action in found.items():
                shared.setdefault(flag, (title, action))
    titles = dict.fromkeys(title for title, _ in shared.values())
    groups = {title: [flag for flag, (group, _) in shared.items() if group == title] for title in titles}
    page = argparse.HelpFormatter("auditor")
    for title, flags in groups.items():
        page.start_section(title)
        page.add_arguments(shared[flag][1] for flag in flags)
        page.end_section()
    first, *others = [
        f"\n## {name}\n\n```text\n{command.format_help(everything=True, without=taken[name].values()).rstrip()}\n```\n"
        f"{_also(taken[name], groups)}"
        for name, command in commands.items()
    ]
    return f"{CLI}{first}\n## Flags of several commands\n\n```text\n{page.format_help()}```\n{''.join(others)}"


def _also(taken: Iterable[str], groups: Mapping[str, Sequence[str]]) -> str:
    """Return the line that names the shared flags of a command: a group that it has as a whole by its title."""
    named = []
    for title, flags in groups.items():
        here = [flag for flag in flags if flag in taken and flag.startswith("--") and flag not in OF_ALL]
        named += [f"all of *{title}*"] if len(here) == len(flags) > 1 else [f"`{flag}`" for flag in here]
    return f"\nAlso {', '.join(named)}.\n" if named else ""


def _words(flag: argparse.Action) -> tuple[str, ...]:
    """Return the flag's name, or the argument's, and its words on a help page."""
    return (*flag.option_strings[-1:], str(flag.metavar), str(flag.choices), str(flag.help))


def _commands(parser: CommandParser) -> Iterator[tuple[str, CommandParser]]:
    yield parser.prog, parser.declared()
    for command in parser.commands.values():
        yield from _commands(command)


SETTINGS_TABLE = "<!-- settings, written by `make docs` from auditor/config/settings.py -->\n"


PARAMETERS_TABLE = "<!-- parameters, written by `make docs` from deploy/parameters.yml -->\n"
_PARAMETER: Final = re.compile(r"^  (\w+): (.+?) # (.+)$", re.MULTILINE)


def configuration_page() -> str:
    """docs/configuration.md with its tables of settings and parameters written anew."""
    settings = ["|setting|flag|event of|", "|---|---|---|"]
    for name, setting in SETTINGS.items():
        words = f"`{setting.flag}`" if setting.flag else setting.help
        settings.append(f"|`{name}`|{words}|{', '.join(setting.events)}|")
    parameters = ["|parameter|default|meaning|", "|---|---|---|"]
    for name, value, words in _PARAMETER.findall((ROOT / "deploy" / "parameters.yml").read_text(encoding="utf-8")):
        default = value.strip("'")
        parameters.append(f"|`{name}`|{f'`{default}`' if default else 'none'}|{words}|")
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    return _with_table(_with_table(page, SETTINGS_TABLE, settings), PARAMETERS_TABLE, parameters)


def _with_table(page: str, marker: str, rows: list[str]) -> str:
    """Return the page with these rows in place of the table below the marker. Raises ValueError if it has no marker."""
    before, found, rest = page.partition(marker)
    if not found:
        raise ValueError(f"the page lacks the line {marker.strip()}")
    after = rest.partition("\n\n")[2]
    return f"{before}{marker}{chr(10).join(rows)}\n\n{after}"


FORMATS_TABLE = "<!-- formats, written by `make docs` from auditor/offline/formats/__init__.py -->\n"


def outputs_page() -> str:
    """docs/outputs.md with its table of formats written anew."""
    rows = ["| format | content |", "|---|---|", *(f"| `{name}` | {one.words} |" for name, one in FORMATS.items())]
    return _with_table((ROOT / "docs" / "outputs.md").read_text(encoding="utf-8"), FORMATS_TABLE, rows)


PAGES: dict[str, Callable[[], str]] = {
    "docs/rules.md": lambda: as_markdown(RULES),
    "docs/cli.md": cli_page,
    "docs/configuration.md": configuration_page,
    "docs/outputs.md": outputs_page,
    "docs/verdict.md": verdict_page,
    keywords.PATH: keywords.keyword_types,
    scale.PAGE: scale.page,
    scale.PICTURE: scale.drawing,
    **schema_pages(),
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
        sys.stdout.write(f"out of step: {', '.join(stale)}: run make docs\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
