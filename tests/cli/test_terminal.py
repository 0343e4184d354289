"""The closing screen at a real terminal: its width, its colours and links, and the same words in a pipe."""

from __future__ import annotations

import io
import os
import re
import shlex
from pathlib import Path

import pytest

from auditor.cli.progress import shows_colour, shows_links
from auditor.offline.run_text import COLUMNS
from auditor.text import width
from tests.cli.conftest import Run
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.terminals import screen

ESCAPES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[!-~]*\x1b\\")
COPIED = ("Report  ", "Run folder  ", "Next  ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_and_links_by_the_environment() -> None:
    for environment, terminal, pipe, links in (
        ({"TERM": "xterm-256color"}, True, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "0"}, True, True, False),
        ({"TERM": "dumb"}, False, False, False),
        ({}, False, False, False),
        ({"TERM": "xterm", "VTE_VERSION": "7600"}, True, False, True),
        ({"TERM": "xterm", "TERM_PROGRAM": "vscode"}, True, False, True),
        ({"TERM": "xterm", "TERM_PROGRAM": "Apple_Terminal"}, True, False, False),
        ({"TERM": "xterm", "VTE_VERSION": "7600", "NO_COLOR": "1"}, False, False, False),
    ):
        found = (shows_colour(Terminal(), environment), shows_colour(io.StringIO(), environment))
        assert found == (terminal, pipe), environment
        assert shows_links(Terminal(), environment) is links, environment
        assert not shows_links(io.StringIO(), environment), environment


@pytest.fixture
def folder(run: Run, stub: StubServer, tmp_path: Path) -> str:
    """The folder of a run over exposed objects, an object of one group being -rf *; relative to the directory."""
    for key in ("-rf *", "finance/salaries.csv", "odd\x1b[2J", "photos/dog.jpg"):
        stub.put(BUCKET, key, b"x", acl="public-read")
    stub.put(BUCKET, "plain", b"x")
    assert run("audit", f"s3://{BUCKET}", "--endpoint-url", stub.url, "--out", "my runs")[0] == 3
    (found,) = Path("my runs", f"bucket={BUCKET}").glob("run=*")
    return str(found)


@pytest.mark.parametrize(("wide", "environment"), [(160, {"NO_COLOR": "1"}), (80, {"VTE_VERSION": "7600"})], ids=str)
def test_the_screen(folder: str, tmp_path: Path, run: Run, wide: int, environment: dict[str, str]) -> None:
    code, text = screen(tmp_path, "export", folder, "--format", "table", columns=wide, **environment)
    plain = ESCAPES.sub("", text)
    lines = plain.splitlines()
    assert code == 0
    assert "\x1b" not in plain
    assert all(width(line) <= wide for line in lines if not line.startswith(COPIED))
    assert any(width(line) > 70 for line in lines if not line.startswith(COPIED))
    assert lines[0] == "Strangers can get at 4 objects."
    first = next(line for line in lines if line.startswith("exposed "))
    assert first.split("  ")[-1].strip() == "finance/salaries.csv"
    assert "The ACL lets anyone on the" in plain
    assert (text == plain) is ("NO_COLOR" in environment)
    assert ("\x1b[1;31mexposed\x1b[0m" in text) is (text != plain)
    assert ("\x1b]8;;" in text) is ("VTE_VERSION" in environment)
    _, piped, err = run("export", folder, "--format", "table")
    assert "\x1b" not in piped + err
    assert (plain == piped) is (wide == COLUMNS)


def test_the_report_and_the_next_command_have_the_whole_path(folder: str, tmp_path: Path, run: Run) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    _, text = screen(elsewhere, "export", str(tmp_path / folder), "--format", "table", VTE_VERSION="7600")
    ((uri, report),) = re.findall(r"Report +\x1b\]8;;([!-~]+)\x1b\\(.+)\x1b\]8;;\x1b\\", text)
    assert report == str(tmp_path / folder / "report.html")
    assert uri == Path(report).as_uri()
    ((command,),) = [re.findall(r"^Next +auditor (.+)$", text, re.MULTILINE)]
    os.chdir(elsewhere)
    code, out, err = run(*shlex.split(command))
    assert (code, err) == (0, "")
    assert "closed to somebody" in out
