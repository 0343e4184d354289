"""Colours are for terminals that show them, and for users who did not refuse them."""

from __future__ import annotations

import io

import pytest

from auditor.cli.terminal import columns, shows_colour
from auditor.reports.table import COLUMNS


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({}, False),
    ],
)
def test_colour_on_a_terminal(environment: dict[str, str], shown: bool) -> None:
    assert shows_colour(Terminal(), environment) is shown


def test_a_pipe_has_no_colour_and_the_default_width() -> None:
    assert not shows_colour(io.StringIO(), {"TERM": "xterm"})
    assert columns(io.StringIO()) == COLUMNS
