"""The commands `auditor rules` and `completion`, and the answer to a shell that asks for completions."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from auditor.cli.flags import Flags
from auditor.cli.help import CommandParser
from auditor.errors import UsageError
from auditor.reports.text_table import Column, text_table
from auditor.rules import RULES, RULES_BY_ID
from auditor.rules.docs import as_details, as_json
from auditor.rules.named import no_rule, rule_id

try:  # the extra "cli" has it
    from argcomplete import autocomplete
    from argcomplete.shell_integration import shellcode
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

_RULE_IDS: Final = frozenset({"only", "ignore", "ids"})
_MISSING: Final = "completion needs the package argcomplete: from the project's folder, pip install '.[cli]'"


def declare_rules(flags: Flags) -> None:
    """Declare the flags of `auditor rules`.

    auditor rules
    auditor rules O02 B01
    """
    flags.add("ids RULE", "explain these rules: IDs or names", nargs="*")
    flags.form()


def run_rules(options: argparse.Namespace) -> int:
    """Print the table of the rules, or the documentation of some. Return 0."""
    wanted = {name: rule_id(name, RULES) for name in options.ids}
    if unknown := [name for name, ident in wanted.items() if ident not in RULES_BY_ID]:
        raise UsageError(no_rule(unknown[0], RULES))
    chosen = [RULES_BY_ID[ident] for ident in dict.fromkeys(wanted.values())] or list(RULES)
    if options.format == "json":
        text = as_json(chosen)
    elif wanted:
        text = "\n".join(as_details(rule) for rule in chosen)
    else:
        rows = [(rule.id, rule.severity.value, rule.name, rule.title) for rule in chosen]
        text = "\n".join(text_table([Column()] * 4, rows))
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 0


def declare_completion(flags: Flags) -> None:
    """Declare the flags of `auditor completion`.

    auditor completion bash > ~/.local/share/bash-completion/completions/auditor
    auditor completion zsh > ~/.zfunc/_auditor
    auditor completion fish > ~/.config/fish/completions/auditor.fish
    """
    flags.add("shell", "the shell", choices=("bash", "zsh", "fish", "powershell"))


def run_completion(options: argparse.Namespace) -> int:
    """Print the code for a shell's start file. Raises UsageError if argcomplete is not installed."""
    if not _INSTALLED:
        raise UsageError(_MISSING)
    code = shellcode(["auditor"], shell=options.shell)
    sys.stdout.write(f"{code.strip()}\n")
    return 0


def complete(parser: CommandParser) -> None:
    """Answer a shell that asks for completions, and end the process. Does nothing if argcomplete is not installed.

    The shell's line is in COMP_LINE; of its commands the flags are declared, because argcomplete reads the actions of a
    parser before that parses.
    """
    if not _INSTALLED:
        return
    named, commands = parser, dict(parser.commands)  # argcomplete sees the parsers that are made
    for word in os.environ.get("COMP_LINE", "").split():
        if word in commands:
            named = commands[word].declared()
            commands = dict(named.commands)
    for action in named.flags.all:
        if action.dest in _RULE_IDS:
            action.completer = rule_ids  # type: ignore[attr-defined]
    autocomplete(parser, always_complete_options=False)


def rule_ids(prefix: str, **_: object) -> list[str]:
    """Return the IDs of rules that begin with the prefix, or else the names. The prefix may be a list with commas."""
    before, comma, last = prefix.rpartition(",")
    found = [rule.id for rule in RULES if rule.id.startswith(last.upper())]
    found = found or [rule.name for rule in RULES if rule.name.startswith(last.lower())]
    return [f"{before}{comma}{one}" for one in found]
