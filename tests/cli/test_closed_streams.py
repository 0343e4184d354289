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


@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&- <&-"])
def test_stream_that_is_closed(redirection: str) -> None:
    ended = in_shell(redirection, "rules")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_reader_that_went_away() -> None:
    assert "Traceback" not in in_shell("| true", "audit", "--help-all").stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [("rules",), ("audit", "--help-all")])
def test_answer_that_finds_no_room(words: tuple[str, ...]) -> None:
    ended = in_shell(">/dev/full", *words)
    assert (ended.returncode, len(ended.stderr.splitlines()), "stdout" in ended.stderr) == (1, 1, True)
