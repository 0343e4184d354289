"""The help pages: groups of commands and flags, examples that the parser takes, and completion in a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.cli.commands.rules import rule_ids
from auditor.cli.help import CommandParser, make_parser
from tests.cli.conftest import Run

MOST_EXAMPLES = 4
BESIDE = Path(sys.executable).parent
ASK = """
source <(auditor completion bash)
COMP_LINE="$1" COMP_POINT=${#1}
_python_argcomplete auditor
printf '%s\\n' "${COMPREPLY[@]}"
"""


def commands(parser: CommandParser) -> Iterator[tuple[str, CommandParser]]:
    """Yield each command that does work, by its words after `auditor`."""
    if not parser.commands:
        yield parser.prog.partition(" ")[2], parser.declared()
    for inner in parser.commands.values():
        yield from commands(inner)


COMMANDS = dict(commands(make_parser()))


def test_the_parser_takes_each_example() -> None:
    for name, parser in {"": make_parser(), **COMMANDS}.items():
        assert not name or 1 <= len(parser.examples) <= MOST_EXAMPLES, name
        for line in parser.examples:
            words = shlex.split(line)
            end = next((place for place, word in enumerate(words) if word in {"|", ">"}), len(words))
            assert line.startswith(f"auditor {name}")
            make_parser().parse_args(words[1:end])


def test_a_command_has_a_page_of_one_screen_that_ends_with_its_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name, parser in COMMANDS.items():
        page = parser.format_help()
        usage, _, rest = page.partition("\n\n")
        assert usage.startswith(f"usage: auditor {name} [options]")
        assert (len(usage.splitlines()) <= 3, len(page.splitlines()) <= 45) == (True, True), name
        assert rest.endswith("".join(f"  {line}\n" for line in parser.examples)), name


def test_the_daily_flags_are_flags_and_the_other_page_has_all(run: Run) -> None:
    for name, parser in COMMANDS.items():
        if parser.flags.daily is None:
            continue
        flags, daily, short = parser.flags, parser.flags.daily, parser.format_help()
        assert all(flag in short for action in daily for flag in action.option_strings), name
        code, page, _ = run(*name.split(), "--help-all")
        assert (code, [flag for flag in flags.by_option if flag not in page]) == (0, []), name
        hidden = len(list(flags.all)) - len(daily) - ("arguments:" in short)
        assert f"--help-all shows {hidden} more flags." in short, name


def ask(line: str) -> list[str]:
    """Ask bash for the completions of a line."""
    here = {"PATH": f"{BESIDE}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", ASK, "bash", line], env=os.environ | here, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
def test_bash_completes_commands_flags_and_rules() -> None:
    assert ask("auditor aud") == ["audit"]
    assert ask("auditor audit --max-") == ["--max-rate", "--max-calls", "--max-cost"]
    assert ask("auditor audit --only O01,O1") == rule_ids("O01,O1")
    assert ask("auditor rules B2") == ["B20", "B21"]


def test_each_shell_gets_its_code(run: Run) -> None:
    for shell in ("bash", "zsh", "fish", "powershell"):
        code, out, _ = run("completion", shell)
        assert (code, "auditor" in out) == (0, True), shell
