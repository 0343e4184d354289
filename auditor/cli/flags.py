"""Declare a command of the command line, and the flags that several commands share. A flag keeps its raw text;
config/settings.py reads the text as it reads an environment variable.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

from auditor.cli.options import settings_of, targets_of
from auditor.config.settings import SETTINGS

Group = argparse._ActionsContainer
Add = Callable[..., argparse.ArgumentParser]


def command(add: Add, name: str, summary: str, module: str | None = None) -> Group:
    """Add a command to the parser. module: name of the command's module in auditor.cli.commands, which has a function
    `run(options) -> int`; None: the module is named as the command.

    The module is imported when the command runs, because the import is slow. Wrong settings are refused before the
    import.
    """

    def run(options: argparse.Namespace) -> int:
        if "config" in options:
            settings = settings_of(options)
            if "start_after" in options:
                targets_of(options, settings)
        code: int = import_module(f"auditor.cli.commands.{module or name}").run(options)
        return code

    parser = add(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
    parser.set_defaults(run=run)
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="tell each step on stderr; twice: more; -vvv: the SDKs' too"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="only results, warnings and errors")
    parser.add_argument("--no-progress", action="store_true", help="show no progress")
    return parser


def settings_flags(parser: Group, *names: str, **helps: str) -> None:
    """Add the flags of the settings with these names. helps: settings with a help text for this command alone."""
    for name in (*names, *helps):
        setting = SETTINGS[name]
        text, metavar = helps.get(name, setting.help), setting.flag.partition(" ")[2]
        if metavar:
            parser.add_argument(setting.option, dest=name, metavar=metavar, help=text)
        else:
            parser.add_argument(setting.option, dest=name, action="store_const", const=True, help=text)


def connection_flags(parser: Group) -> None:
    settings_flags(parser, "endpoint_url", "profile", "region", "expected_owner", "requester_pays")
    config_flag(parser)


def config_flag(parser: Group) -> None:
    parser.add_argument("--config", metavar="FILE", help="settings file (auditor.toml, when there is one)")


def format_flag(parser: Group) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how results are printed")
