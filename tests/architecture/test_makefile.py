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


def test_help_lists_the_targets_of_daily_work_and_no_more() -> None:
    listed = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {"install", "run", "test", "check", "deploy"} <= {line.split()[0] for line in listed.splitlines()}
    assert len(listed.splitlines()) <= 15
