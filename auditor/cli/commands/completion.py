"""The command `auditor completion`, and the answer to a shell that asks for completions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Final

from auditor.errors import UsageError
from auditor.rules import RULES

try:  # the extra "cli" has it
    from argcomplete import autocomplete
    from argcomplete.shell_integration import shellcode
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

_RULE_IDS: Final = frozenset({"only", "ignore", "ids"})
_MISSING: Final = "completion needs the package argcomplete: from the project's folder, pip install '.[cli]'"


def run(options: argparse.Namespace) -> int:
    """Print the code for a shell's start file. Raises UsageError if argcomplete is not installed."""
    if not _INSTALLED:
        raise UsageError(_MISSING)
    code = shellcode(["auditor"], shell=options.shell)
    sys.stdout.write(f"{code.strip()}\n")
    return 0


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks for completions, and end the process. Does nothing if argcomplete is not installed."""
    if not _INSTALLED:
        return
    for action in _arguments(parser):
        if action.dest in _RULE_IDS:
            action.completer = rule_ids  # type: ignore[attr-defined]
    autocomplete(parser, always_complete_options=False)


def rule_ids(prefix: str, **_: object) -> list[str]:
    """Return the IDs of rules that go on with the prefix, which may be a list with commas."""
    before, comma, last = prefix.rpartition(",")
    return [f"{before}{comma}{rule.id}" for rule in RULES if rule.id.startswith(last.upper())]


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _arguments(command)
