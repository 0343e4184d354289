"""Commands with closed or full streams: they end as usual, or with a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def in_shell(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m auditor ARGUMENTS` as a child of a shell that redirects."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m auditor "$@" {redirection}', sys.executable, *arguments],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_stream_that_is_closed(redirection: str) -> None:
    ended = in_shell(redirection, "rules")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_error_that_nobody_can_read() -> None:
    assert in_shell("2>&-", "audit", "bucket").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_results_that_find_no_room() -> None:
    ended = in_shell(">/dev/full", "rules")
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "stdout" in ended.stderr


@pytest.mark.parametrize("arguments", [("rules",), ("audit", "--help"), ("audit", "--help-all")])
def test_reader_that_went_away(arguments: tuple[str, ...]) -> None:
    ended = in_shell("| true", *arguments)
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [(), ("--help",), ("help", "audit"), ("audit", "--help-all")])
def test_help_that_finds_no_room(words: tuple[str, ...]) -> None:
    ended = in_shell(">/dev/full", *words)
    assert (ended.returncode, len(ended.stderr.splitlines()), "stdout" in ended.stderr) == (1, 1, True)
