"""Each setting is declared once, in auditor/config/settings.py."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Final

from auditor.cli.help import CommandParser, make_parser
from auditor.config.settings import SETTINGS
from tests.support.paths import ROOT

ELSEWHERE: Final = {
    "algorithms": "`digests export` takes one; `verify` compares some, and hashes with others",
    "out": "the demo's is a directory",
}
"""Settings whose flag a command declares anew, and why."""


def actions(parser: CommandParser) -> Iterator[argparse.Action]:
    yield from parser.declared().flags.all
    for command in parser.commands.values():
        yield from actions(command)


def test_the_flags_are_those_of_the_declarations() -> None:
    flags = {action.dest: action.option_strings for action in actions(make_parser()) if action.dest in SETTINGS}
    assert flags == {name: [setting.option] for name, setting in SETTINGS.items() if setting.flag}


def test_a_flag_is_written_in_its_declaration_alone() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "auditor" / "cli").rglob("*.py")))
    options = {name: setting.option for name, setting in SETTINGS.items() if setting.flag}
    again = {name for name, option in options.items() if re.search(rf'\.add\(\s*"{option}[ "]', source)}
    assert again == ELSEWHERE.keys()
