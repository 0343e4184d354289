"""An option of a `make` target is the user's alone: no variable of the Makefile sets it unasked."""

from __future__ import annotations

import re
import subprocess

from tests.support.paths import ROOT

_OPTION = re.compile(r"\$\((?:if|or) \$\(([A-Z_]+)\)")
_SET = re.compile(r"^(?:export )?([A-Z_]+) *:?=", re.MULTILINE)


def test_no_variable_has_the_name_of_an_option() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    options = set(_OPTION.findall(text))
    assert "QUICK" in options
    assert options & set(_SET.findall(text)) == set()


def shown(target: str, *given: str) -> str:
    """The commands that `make TARGET` would run."""
    command = ["make", "-n", target, *given]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_bench_is_quick_only_where_it_is_asked_for() -> None:
    assert "--quick" not in shown("bench")
    assert "--quick" in shown("bench", "QUICK=1")


def test_a_room_is_the_folder_of_its_tests() -> None:
    assert " tests/verdict" not in shown("test")
    assert " tests/verdict" in shown("test", "ROOM=verdict")


def test_help_lists_the_targets_of_daily_work_and_no_more() -> None:
    listed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {"install", "run", "test", "check", "deploy"} <= {line.split()[0] for line in listed.splitlines()}
    assert len(listed.splitlines()) <= 15
