"""The modules that each Lambda function, and the command line, imports when it starts: none that it does not need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.paths import ROOT

DEAR: Final = frozenset({
    "aioboto3", "aiobotocore", "aiohttp", "awscrt", "boto3", "botocore", "duckdb", "jinja2", "moto",
    "s3transfer", "yarl",
})  # fmt: skip
"""Libraries that a function imports when it needs them, if at all. None of them is needed for an import."""
SELDOM: Final = frozenset({
    "argparse", "configparser", "csv", "ctypes.util", "difflib", "email", "http", "importlib.metadata",
    "multiprocessing", "shutil", "sqlite3", "tempfile", "tomllib", "urllib.request",
})  # fmt: skip
"""Modules of the standard library that take a millisecond or more, and that few invocations need. msgspec needs uuid
and platform."""
ROOMS: Final = {
    "audit": {"cli", "reports.page", "testing", "verify"},
    "hashing": {"audit", "cli", "reports", "rules", "testing", "verdict", "verify"},
    "renew": {"cli", "reports.page", "testing", "verify"},
    "verify": {"audit", "cli", "rules", "testing", "verdict"},
}
"""The rooms, and the folders in rooms, that each handler does without."""
NAMED: Final = "import json, sys; print(json.dumps(sorted(sys.modules)))"
BEGIN: Final = """
from types import SimpleNamespace
context = SimpleNamespace(get_remaining_time_in_millis=lambda: 60_000, invoked_function_arn="arn")
try:
    handler({"Records": []}, context) if FUNCTION == "hashing" else handler({"bucket": "audited"}, context)
except Exception as error:
    print(error, file=sys.stderr)
"""
REFUSED: Final = {
    "audit": "there is no rule 'Z99'",
    "hashing": "AUDITOR_QUEUE is not set",
    "verify": "AUDITOR_LEDGER is not",
}
"""The words with which the functions refuse a file with unknown rules, or for want of a variable."""


def imported(*codes: str, **environ: str) -> tuple[list[set[str]], str]:
    """Return the names of the modules that a fresh interpreter has after each code, and the text of its stderr."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("AUDITOR_")}
    command = [sys.executable, "-c", "import sys\n" + "".join(f"{code}\n{NAMED}\n" for code in codes)]
    done = subprocess.run(command, cwd=ROOT, env=plain | environ, capture_output=True, text=True, check=True)
    return [set(json.loads(line)) for line in done.stdout.splitlines() if line.startswith("[")], done.stderr


def rooms(modules: set[str]) -> set[str]:
    """Return the rooms of these modules, and each folder and module in the rooms: `reports`, `reports.page`."""
    return {name.removeprefix("auditor.") for name in modules if name.startswith("auditor.")}


def test_each_handler_has_its_row() -> None:
    assert ROOMS.keys() == {path.stem for path in (ROOT / "handlers").glob("*.py")} - {"__init__"}


def libraries(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize("function", ROOMS)
def test_a_function_imports_only_what_it_needs(function: str, tmp_path: Path) -> None:
    """The functions that judge nothing read the same auditor.toml, and leave its rules to the audit."""
    config = tmp_path / "auditor.toml"
    config.write_text("[rules.Z99]\n[[exceptions]]\nrule = 'Y99'\nowner = 'o'\nreason = 'r'\nuntil = 2026-01-01\n")
    codes = [f"import handlers.{function}"]
    if function in REFUSED:
        codes.append(f"FUNCTION = {function!r}\nfrom handlers.{function} import handler\n{BEGIN}")
    (modules, *begun), said = imported(*codes, AUDITOR_CONFIG=str(config))
    assert rooms(modules) & ROOMS[function] == set()
    assert libraries(modules) & DEAR == set()
    assert modules & SELDOM == set()
    assert REFUSED.get(function, "") in said
    for after in begun:
        assert (rooms(after) & {"rules", "verdict"} == set()) is (function != "audit")


def test_the_command_line_declares_its_flags_without_a_loop_or_a_rule() -> None:
    code = "from auditor.cli.main import main\ntry:\n    main([{!r}{}])\nexcept SystemExit:\n    pass"
    (version, pages, audit), _ = imported(
        code.format("--version", ""), code.format("--help", ""), code.format("audit", ", '--help'")
    )
    for modules in (version, pages):
        assert [name for name in modules if name.startswith("auditor.cli.commands.")] == []
        assert libraries(modules) & (DEAR | {"asyncio", "httptools", "ssl", "subprocess", "uvloop"}) == set()
        assert modules & (SELDOM - {"argparse", "shutil"}) == set()  # argparse asks shutil for the terminal's width
    assert "auditor.cli.commands.audit" in audit
    for modules in (version, pages, audit):
        assert rooms(modules) & {"audit", "hashing", "rules", "runs", "verdict", "verify"} == set()
        assert libraries(modules) & DEAR == set()
