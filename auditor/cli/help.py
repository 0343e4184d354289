"""The parser of the command line, and its help pages. It names the command or flag that was probably meant, and a
command declares its flags when its own parser is first needed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from auditor.cli.commands import ACTIONS, COMMANDS, Command
from auditor.cli.flags import ARGUMENTS, Flags
from auditor.cli.output import say
from auditor.errors import UsageError
from auditor.model.version import VERSION
from auditor.text import likeliest

_CHOICE: Final = re.compile(r"argument \S+: invalid choice: '(?P<given>[^']*)'")
_UNKNOWN: Final = "unrecognized arguments: "
_APART: Final = ": keep the arguments together, without a flag between them, and quote one that has spaces"
_EXAMPLE: Final = re.compile(r"^ *(auditor .+)$", re.MULTILINE)


class _HelpAll(argparse.Action):
    """The action of `--help-all`: print the page with all flags, and end."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        assert isinstance(parser, CommandParser)
        parser.print_help(everything=True)
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """Adds "did you mean .." to the errors of unknown commands, choices and flags. The usage line names only what a
    command needs: the help page has its flags in sections.

    flags: those that are declared; of a command, after declared(). commands: the parsers of the commands or actions
    below this one, by name.
    """

    def __init__(self, *, command: Command | None = None, examples: str | None = None, **words: Any) -> None:
        """command: the one whose flags are declared when they are first needed; None for a list of commands. examples:
        a text with the lines of examples; a command has them in its declaration.
        """
        super().__init__(add_help=False, **words)
        self.flags = Flags(self)
        self.flags.add("--help", "show this help message and exit", "", "-h", action="help")
        self.commands: Mapping[str, CommandParser] = {}
        self._command = command
        self._examples = examples
        self._listed: dict[str, list[argparse.Action]] = {}
        self._chosen: list[argparse.Action] = []

    def declared(self) -> CommandParser:
        """Return this parser with the flags of its command. Imports the command's module at the first call."""
        command, self._command = self._command, None
        if command is not None:
            self.flags.add("--help-all", "show all flags and exit", action=_HelpAll, nargs=0)
            self.flags.of_all_commands()
            declare, run = command.functions()
            declare(self.flags)
            self.set_defaults(run=run)
            self._examples = declare.__doc__
        return self

    def list_commands(self, name: str, groups: Mapping[str, Sequence[Command]]) -> None:
        """Add a parser for each command. name: of one, such as "command". groups: the commands, by title."""
        commands = self.add_subparsers(dest=name, metavar=name.upper(), required=True)
        self._chosen = [commands]
        self.commands = _Parsers(commands, {one.name: one for members in groups.values() for one in members})
        for title, members in groups.items():
            self._listed[title] = [argparse.Action([], one.name, help=one.summary) for one in members]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.declared()
        given = list(sys.argv[1:] if args is None else args)
        for word in given:
            self.commands.get(word)  # argparse looks for the command among the parsers that are made
        first = next(iter(given), "").partition("=")[0]
        known = any(option.startswith(first) for option in self.flags.by_option)
        if first.startswith("--") and not known and self.commands:  # argparse would miss the command first
            self.error(f"{_UNKNOWN}{first}")
        found, rest = super().parse_known_args(args, namespace)
        flags = [one for one in rest if one.startswith("-")]
        if rest and not self.commands:  # a command's own parser: it knows the flags that fit
            self.error(f"{_UNKNOWN}{' '.join(rest)}{'' if flags else _APART}")
        if sentence := self.flags.refusal(found):
            self.error(sentence)
        return found, rest

    def print_help(self, file: Any = None, *, everything: bool = False) -> None:
        """Print the help page. Raises OSError if it cannot be written, which argparse keeps to itself."""
        print(self.format_help(everything=everything), end="", file=file or sys.stdout, flush=True)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong as one sentence, and end the process with the exit code of a wrong usage."""
        if choice := _CHOICE.match(message):
            values = [str(value) for action in self.flags.all for value in action.choices or ()]
            meant = _meant(choice["given"], [*self.commands, *values])
            if self.commands:  # their names would fill the terminal
                named = f"{self.prog} {choice['given'][:100]}".partition(" ")[2]
                message = f"there is no command {named!r}{meant or f': `{self.prog} --help` lists them'}"
            else:
                message += meant
        elif message.startswith(_UNKNOWN):
            given = message.removeprefix(_UNKNOWN).split()[0].partition("=")[0]
            message += _meant(given, self.flags.by_option)
        say(message)
        self.exit(UsageError.exit_code)

    def format_help(self, *, everything: bool = False, without: Container[argparse.Action] = ()) -> str:
        """Return the help page. everything: True for all flags of a command, not only its daily ones. without: flags to
        leave out.
        """
        daily = None if everything else self.declared().flags.daily
        formatter = self.formatter_class(prog=self.prog)
        formatter.add_usage(self._short_usage(), [], [])
        formatter.add_text(self.description)
        sections = list(self._sections(daily))
        for title, words, actions in sections:
            formatter.start_section(title)
            formatter.add_text(words)
            formatter.add_arguments(one for one in actions if one not in without)
            formatter.end_section()
        hidden = len(list(self.flags.all)) - sum(len(actions) for *_, actions in sections)
        formatter.add_text(f"--help-all shows {hidden} more flags." if daily else self.epilog)
        lines = "".join(f"  {line}\n" for line in self.examples)
        return formatter.format_help() + (f"\nexamples:\n{lines}" if lines else "")

    @property
    def examples(self) -> list[str]:
        """The examples on the help page: the lines that begin with `auditor` in the docstring of the declaration."""
        return _EXAMPLE.findall(self._examples or "")

    def _sections(self, daily: list[argparse.Action] | None) -> Iterator[tuple[str, str | None, list[argparse.Action]]]:
        """Yield the title, words and flags of each section of the help page. daily: the flags to show; None for all."""
        if daily is not None:
            yield "arguments", None, self.flags.sections[ARGUMENTS]
            yield "options", None, daily
            return
        for title, actions in (*self.flags.sections.items(), *self._listed.items()):
            yield title, self.flags.words.get(title), actions

    def _short_usage(self) -> str:
        """Return the usage line of the command: its name, `[options]`, the required flags and the arguments."""
        formatter = argparse.HelpFormatter(self.prog, width=10_000)
        needed = [action for action in self.flags.all if action.required or not action.option_strings]
        formatter.add_usage(None, [*needed, *self._chosen], [])
        words = formatter.format_help().strip().removeprefix(f"usage: {self.prog}")
        return f"{self.prog} [options]{words}".replace("%", "%%")


class _Parsers(Mapping[str, CommandParser]):
    """The parsers of commands, by name. Each is made when it is first asked for."""

    def __init__(self, made: Any, commands: Mapping[str, Command]) -> None:
        """made: what argparse's add_subparsers() returned. commands: by name."""
        self._made = made
        self._commands = commands

    def __getitem__(self, name: str) -> CommandParser:
        if name in self._made.choices:
            parser: CommandParser = self._made.choices[name]
            return parser
        one = self._commands[name]
        sentence = f"{one.summary[0].upper()}{one.summary[1:]}."
        parser = self._made.add_parser(name, description=sentence, command=one if one.module else None)
        if not one.module:
            parser.list_commands("action", {"actions": ACTIONS[name]})
        return parser

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


def _meant(given: str, candidates: Iterable[str]) -> str:
    meant = likeliest(given, candidates)
    return f": did you mean {meant}?" if meant else ""


def make_parser() -> CommandParser:
    """Return the parser of the command line.

    auditor demo
    auditor audit s3://my-bucket/prefix/
    auditor explain s3://my-bucket/report.pdf
    """
    parser = CommandParser(
        prog="auditor",
        description="Find who can read each object of an S3 bucket and how it is protected, and record the digests of "
        "its bytes. The auditor only reads the audited bucket.",
        epilog="auditor help COMMAND prints the help of a command. Exit codes: 0 complete and clean; 1 failed; "
        "2 wrong usage; 3 findings at or above --fail-on, or outcomes that it names (verify: digests that do not "
        "match, missing objects); 4 something could not be checked.",
        examples=make_parser.__doc__,
    )
    version = f"auditor {VERSION}"
    parser.flags.add("--version", "show program's version number and exit", "", "-V", action="version", version=version)
    parser.flags.add("--help-all", argparse.SUPPRESS, action=_HelpAll, nargs=0)
    parser.list_commands("command", COMMANDS)
    return parser
