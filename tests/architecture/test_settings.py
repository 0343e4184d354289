"""Each setting is declared once, in auditor/config/settings.py."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Final

import pytest

from auditor.cli.help import CommandParser, make_parser
from auditor.config.settings import SETTINGS, event_settings
from auditor.lambdas.event import EVENT_TARGET
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


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.flag])
def test_a_flag_is_written_in_its_declaration_alone(name: str) -> None:
    declared = re.compile(rf'\.add\(\s*"{SETTINGS[name].option}[ "]')
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "auditor" / "cli").rglob("*.py")))
    assert bool(declared.search(source)) == (name in ELSEWHERE)


def test_an_event_names_targets_or_settings_and_no_deployment() -> None:
    for function in ("audit", "verify"):
        assert not event_settings(function) & EVENT_TARGET
        assert not event_settings(function) & {"out", "ledger", "queue", "record", "accept_cost", "endpoint_url"}
