"""The argument parser: it names the command or flag that was probably meant, and its help page groups the commands
and ends with examples.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final, NoReturn

from auditor.cli.examples import COMMAND_GROUPS, DAILY_FLAGS, EXAMPLES
from auditor.cli.output import say
from auditor.errors import UsageError
from auditor.text import likeliest

_CHOICE: Final = re.compile(r"argument \S+: invalid choice: '(?P<given>[^']*)'")
_UNKNOWN: Final = "unrecognized arguments: "
_APART: Final = ": keep the arguments together, without a flag between them, and quote one that has spaces"

_Section = tuple[str | None, str | None, list[argparse.Action]]


class HelpAll(argparse.Action):
    """The action of `--help-all`: print the page with all flags, and end."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        assert isinstance(parser, SuggestingParser)
        sys.stdout.write(parser.format_help(everything=True))
        parser.exit()


class SuggestingParser(argparse.ArgumentParser):
    """Adds "did you mean .." to the errors of unknown commands, choices and flags. The usage line names only what a
    command needs: the help page has its flags in groups.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        first = next(iter(sys.argv[1:] if args is None else args), "").partition("=")[0]
        known = any(option.startswith(first) for option in self._option_string_actions)
        if first.startswith("--") and not known and list(self._subcommands()):  # argparse would miss the command first
            self.error(f"{_UNKNOWN}{first}")
        found, rest = super().parse_known_args(args, namespace)
        flags = [one for one in rest if one.startswith("-")]
        if rest and not list(self._subcommands()):  # a command's own parser: it knows the flags that fit
            self.error(f"{_UNKNOWN}{' '.join(rest)}{'' if flags else _APART}")
        if hasattr(found, "all_buckets") and not self._names_objects(found):
            others = (
                "--all-buckets or --estate FILE" if not hasattr(found, "fill") else "--all-buckets, --estate or --fill"
            )
            self.error(f"the following arguments are required: s3://BUCKET[/PREFIX], or {others}")
        return found, rest

    @staticmethod
    def _names_objects(found: argparse.Namespace) -> bool:
        """True if the arguments say which objects: by targets, or by a flag in their place."""
        return bool(found.targets or found.all_buckets or found.estate or getattr(found, "fill", None) is not None)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong as one sentence, and end the process with the exit code of a wrong usage."""
        if choice := _CHOICE.match(message):
            meant = _meant(choice["given"], self._choices())
            if list(self._subcommands()):  # their names would fill the terminal
                named = f"{self.prog} {choice['given'][:100]}".partition(" ")[2]
                message = f"there is no command {named!r}{meant or f': `{self.prog} --help` lists them'}"
            else:
                message += meant
        elif message.startswith(_UNKNOWN):
            given = message.removeprefix(_UNKNOWN).split()[0].partition("=")[0]
            message += _meant(given, self._option_string_actions)
        say(message)
        self.exit(UsageError.exit_code)

    def format_usage(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self._short_usage(), self._actions, [])
        return formatter.format_help()

    def format_help(self, *, everything: bool = False) -> str:
        """Return the help page. everything: True for all flags of a command, not only its daily ones."""
        command = self.prog.partition(" ")[2]
        daily = not everything and command in DAILY_FLAGS
        sections = list(self._daily(command) if daily else self._sections())
        formatter = self._get_formatter()
        formatter.add_usage(self._short_usage(), self._actions, [])
        formatter.add_text(self.description)
        for title, words, actions in sections:
            formatter.start_section(title)
            formatter.add_text(words)
            formatter.add_arguments(actions)
            formatter.end_section()
        hidden = len(self._actions) - sum(len(actions) for _, _, actions in sections)
        formatter.add_text(f"--help-all shows {hidden} more flags." if daily else self.epilog)
        lines = "".join(f"  {line}\n" for line in EXAMPLES.get(command, ()))
        return formatter.format_help() + (f"\nexamples:\n{lines}" if lines else "")

    def _short_usage(self) -> str:
        """Return the usage line of the command: its name, `[options]`, the required flags and the arguments."""
        formatter = argparse.HelpFormatter(self.prog, width=10_000)
        needed = [action for action in self._actions if action.required or not action.option_strings]
        formatter.add_usage(None, needed, [])
        words = formatter.format_help().strip().removeprefix(f"usage: {self.prog}")
        return f"{self.prog} [options]{words}".replace("%", "%%")

    def _sections(self) -> Iterator[_Section]:
        """Yield the title, words and flags of each section of the help page: arguments first, then flags in groups. The
        list of all commands is several sections; that of a command's actions is one.
        """
        for found in self._action_groups:
            commands = [one for one in found._group_actions if isinstance(one, argparse._SubParsersAction)]
            if not commands:
                yield found.title, found.description, found._group_actions
                continue
            listed = {one.dest: one for one in commands[0]._choices_actions}
            groups = COMMAND_GROUPS if listed.keys() >= set(chain(*COMMAND_GROUPS.values())) else {}
            for title, names in groups.items():
                if here := [listed.pop(name) for name in names if name in listed]:
                    yield title, None, here
            if listed:
                yield found.title, None, list(listed.values())

    def _daily(self, command: str) -> Iterator[_Section]:
        """Yield the sections of a help page with the daily flags alone, in their order."""
        yield "arguments", None, [one for one in self._actions if not one.option_strings]
        flags = (*DAILY_FLAGS[command], "--verbose", "--quiet", "--help", "--help-all")
        yield "options", None, [self._option_string_actions[flag] for flag in flags]

    def _subcommands(self) -> Iterator[str]:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices

    def _choices(self) -> Iterator[str]:
        for action in self._actions:
            yield from map(str, action.choices or ())


def _meant(given: str, candidates: Iterable[str]) -> str:
    meant = likeliest(given, candidates)
    return f": did you mean {meant}?" if meant else ""
