"""The help pages: groups of commands and flags, examples that the parser takes, and completion in a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.cli.commands import COMMANDS as TABLE
from auditor.cli.commands.rules import rule_ids
from auditor.cli.flags import OPTIONS
from auditor.cli.help import CommandParser, make_parser
from auditor.cli.main import main

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
DAILY = [name for name, parser in COMMANDS.items() if parser.flags.daily is not None]


def test_each_command_has_a_few_examples() -> None:
    assert [name for name, parser in COMMANDS.items() if not 1 <= len(parser.examples) <= MOST_EXAMPLES] == []


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_parser_takes_each_example(name: str) -> None:
    for line in COMMANDS.get(name, make_parser()).examples:
        words = shlex.split(line)
        end = next((place for place, word in enumerate(words) if word in {"|", ">"}), len(words))
        assert words[0] == "auditor"
        assert line.startswith(f"auditor {name}")
        make_parser().parse_args(words[1:end])


def test_each_command_is_in_one_group_of_the_first_page() -> None:
    page = make_parser().format_help()
    names = [command.name for group in TABLE.values() for command in group]
    assert sorted(names) == sorted({name.partition(" ")[0] for name in COMMANDS})
    assert [title for title in TABLE if f"\n{title}:\n" not in page] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_short_usage_and_ends_with_its_examples(name: str) -> None:
    usage, _, rest = COMMANDS[name].format_help().partition("\n\n")
    assert usage.startswith(f"usage: auditor {name} [options]")
    assert len(usage.splitlines()) <= 3
    assert rest.endswith("".join(f"  {line}\n" for line in COMMANDS[name].examples))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_is_one_screen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(COMMANDS[name].format_help().splitlines()) <= 45


@pytest.mark.parametrize("name", DAILY)
def test_the_daily_flags_are_flags_and_the_other_page_has_all(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = COMMANDS[name].flags
    known, daily = set(flags.by_option), flags.daily or []
    short = COMMANDS[name].format_help()
    assert all(f"{flag}" in short for action in daily for flag in action.option_strings)
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help-all"])
    page = capsys.readouterr().out
    assert ended.value.code == 0
    assert all(f"{flag}" in page for flag in known)
    hidden = len(list(flags.all)) - len(daily) - ("arguments:" in short)
    assert f"--help-all shows {hidden} more flags." in short


def test_the_flags_of_an_audit_stand_in_groups() -> None:
    sections = COMMANDS["audit"].flags.sections
    assert list(sections)[2:5] == ["which objects", "rules and findings", "results"]
    loose = sections[OPTIONS]
    assert {action.dest for action in loose} == {"help", "help_all", "verbose", "quiet", "no_progress"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["audit", "s3://bbb", "--enigne=x"], "unrecognized arguments: --enigne=x: did you mean --engine?"),
        (["audti"], "there is no command 'audti': did you mean audit?"),
        (["help", "audti"], "there is no command 'audti': did you mean audit?"),
        (["digests", "exprt"], "there is no command 'digests exprt': did you mean export?"),
        (["qqqqqq"], "there is no command 'qqqqqq': `auditor --help` lists them"),
        (["\x1b[2Jq"], "there is no command '\\\\x1b[2Jq': `auditor --help` lists them"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"auditor: {sentence}\n"


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        (["help"], ["--help"]),
        (["help", "audit"], ["audit", "--help"]),
        (["help", "digests", "export"], ["digests", "export", "--help"]),
        (["-V"], ["--version"]),
    ],
)
def test_help_and_version_have_a_second_form(
    arguments: list[str], same: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for given in (arguments, same):
        with pytest.raises(SystemExit) as ended:
            main(given)
        assert ended.value.code == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rules", "O1"], "there is no rule 'O1': did you mean O01 (acl-everyone-control)?"),
        (["rules", "acl-everyone-reed"], "did you mean O02 (acl-everyone-read)?"),
        (["rules", "qqqqqq"], "there is no rule 'QQQQQQ': `auditor rules` lists them"),
        (["rules", "\x1b[2J" + "x" * 500], "there is no rule '\\\\x1b[2J"),
    ],
)
def test_an_unknown_rule_names_the_one_that_was_meant(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words.casefold() in said.casefold()
    assert len(said) < 250


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_gets_its_code(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "auditor" in capsys.readouterr().out


def test_without_its_package_completion_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("argcomplete", "argcomplete.shell_integration"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "auditor.cli.commands.rules")
    assert main(["completion", "bash"]) == 2
    assert "from the project's folder, pip install '.[cli]'" in capsys.readouterr().err
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    assert main(["rules", "O01"]) == 0  # a shell's question without the package: an ordinary command
