"""Every `auditor` command that a document shows is one that the parser takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from auditor.cli.help import make_parser
from tests.support.paths import ROOT

_BLOCK = re.compile(r"^```(?:sh|console|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`((?:\.venv/bin/)?auditor [a-z][^`\n]*)`")
_ENDS = frozenset({"|", ">", ">>", "2>", "&&", "||", ";", "&"})
_MENTION = "the following arguments are required"
"""The parser's words about a command that the text names without its arguments."""


def in_blocks(text: str) -> Iterator[str]:
    """Yield each command of the page's blocks that begins with `auditor`."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if line.strip().removeprefix("$ ").split(" ")[0] in {"auditor", ".venv/bin/auditor"}:
                yield line.strip().removeprefix("$ ")


def arguments(command: str) -> list[str]:
    """Return the arguments of the command up to the first pipe, redirection or comment."""
    words = shlex.split(command, comments=True)
    end = next((place for place, word in enumerate(words) if word in _ENDS), len(words))
    return words[1:end]


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]


def test_the_parser_takes_each_command_that_a_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    shown = {command for text in texts for command in in_blocks(text)}
    named = {command for text in texts for command in _CODE.findall(text) if ".." not in command} - shown
    assert [found for command in sorted(shown) if (found := refusal(command, capsys))] == []
    refused = [found for command in sorted(named) if (found := refusal(command, capsys))]
    assert [found for found in refused if _MENTION not in found] == []


parser = cache(make_parser)


def refusal(command: str, capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return the parser's last line of words about the command if it refuses it, else None."""
    try:
        parser().parse_args(arguments(command))
    except SystemExit as end:
        said = capsys.readouterr().err.splitlines()
        return f"{command}: {said[-1]}" if end.code else None
    return None
