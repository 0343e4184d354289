"""Declare a command of the command line, and the flags that several commands share. A flag keeps its raw text;
config/settings.py reads the text as it reads an environment variable.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from auditor.cli.options import settings_of, targets_of
from auditor.cli.suggesting import HelpAll
from auditor.config.settings import SETTINGS

Group = argparse._ActionsContainer
Add = Callable[..., argparse.ArgumentParser]

OBJECTS: Final = "which objects"
RULES: Final = "rules and findings"
DIGESTS: Final = "digests"
SOURCE: Final = "where facts come from"
PACE: Final = "calls and their pace"
RESULTS: Final = "results"
ALERTS: Final = "alerts"
CONNECTION: Final = "connection"
_GROUPS: Final = {
    OBJECTS: ("versions", "allow_empty"),
    RULES: ("level", "only", "ignore", "fail_on", "fail_on_outcomes", "semantics", "key_policies"),
    DIGESTS: (
        *("ledger", "algorithms", "streams", "queue", "hash", "accept_cost"),
        *("max_age", "percent", "grace", "record"),
    ),
    SOURCE: ("source", "inventory"),
    PACE: ("engine", "concurrency", "max_rate", "max_calls", "max_cost", "keep", "every"),
    RESULTS: ("out",),
    ALERTS: ("topic", "chat_topic", "event_bus"),
    CONNECTION: ("endpoint_url", "profile", "region", "expected_owner", "requester_pays"),
}
"""The groups of a command's help page, and the settings whose flags stand in each. Other flags name their group."""


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
    parser.add_argument("--help-all", action=HelpAll, nargs=0, help="show all flags and exit")
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="log each step to stderr; -vv logs more, -vvv the SDKs' steps too",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only results, warnings and errors")
    parser.add_argument("--no-progress", action="store_true", help="show no progress")
    return parser


def group(parser: Group, title: str) -> Group:
    """Return the parser's group of flags with this title, made when it is first asked for. A group is its own group."""
    if not isinstance(parser, argparse.ArgumentParser):
        return parser
    made = (one for one in parser._action_groups if one.title == title)
    return next(made, None) or parser.add_argument_group(title)


def settings_flags(container: Group, *names: str, **helps: str) -> None:
    """Add the flags of the settings with these names, each to its group of the help page. helps: settings with a help
    text for this command alone.
    """
    for name in (*names, *helps):
        setting = SETTINGS[name]
        titles = [title for title, members in _GROUPS.items() if name in members]
        parser = group(container, titles[0]) if titles else container
        text, metavar = helps.get(name, setting.help), setting.flag.partition(" ")[2]
        if metavar:
            parser.add_argument(setting.option, dest=name, metavar=metavar, help=text)
        else:
            parser.add_argument(setting.option, dest=name, action="store_const", const=True, help=text)


def whole_number(text: str) -> int:
    """Read the number of a flag that is no setting. Raises ArgumentTypeError, whose text argparse prints."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a whole number: give one like 8")
    return int(text)


def connection_flags(parser: Group) -> None:
    settings_flags(parser, "endpoint_url", "profile", "region", "expected_owner", "requester_pays")
    config_flag(parser)


def config_flag(parser: Group) -> None:
    group(parser, CONNECTION).add_argument(
        "--config", metavar="FILE", help="settings file (auditor.toml, if it exists)"
    )


def format_flag(
    parser: Group, choices: Sequence[str] = ("table", "json"), text: str = "how results are printed"
) -> None:
    group(parser, RESULTS).add_argument("--format", choices=choices, default="table", help=text)


def target_flags(parser: Group, number: str = "+") -> None:
    """Add the targets, and the flags that limit their objects. number: of targets, as argparse has it."""
    parser.add_argument(
        "targets", nargs=number, metavar="s3://BUCKET[/PREFIX]", help="a bucket, or the keys with a prefix"
    )
    settings_flags(parser, "versions")
    objects = group(parser, OBJECTS)
    objects.add_argument("--start-after", metavar="KEY", help="only keys after this one")
    objects.add_argument("--stop-at", metavar="KEY", help="only keys up to and including this one")


def pace_flags(parser: Group) -> None:
    """Add the flags of an engine and its calls."""
    settings_flags(parser, "engine", "concurrency", "max_rate", "max_calls")
