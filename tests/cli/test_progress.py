"""Progress in a log and on a terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest

from auditor.cli.output import print_text, say
from auditor.cli.progress import make_progress
from auditor.progress import Snapshot
from auditor.text import width
from tests.cli.test_terminal import Terminal


def snapshot(**changes: Any) -> Snapshot:
    values: dict[str, Any] = {
        "what": "s3://b",
        "objects": 1000,
        "seconds": 10.0,
        "detail": "2 findings",
    }
    return Snapshot(**(values | changes))


def test_a_log_and_a_dumb_terminal_get_a_line_a_minute_and_one_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for stream in (io.StringIO(), Terminal()):
        progress = make_progress(stream)
        for second in range(0, 150, 10):
            progress.update(snapshot(seconds=float(second)))
        progress.update(snapshot(seconds=150.0, done=True))
        progress.close()
        assert len(stream.getvalue().splitlines()) == 3
        assert "\r" not in stream.getvalue()


def test_the_last_run_gives_the_time_to_go() -> None:
    assert snapshot(expected=3000).eta == pytest.approx(20.0)
    assert "about 0:20 to go" in snapshot(expected=3000).words
    assert snapshot().eta is None
    assert snapshot(expected=500).eta is None
    assert snapshot(seconds=0.0, expected=5).eta is None


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    return Terminal()


def test_a_terminal_gets_a_line_that_moves_and_leaves_nothing_behind(terminal: Terminal) -> None:
    progress = make_progress(terminal)
    progress.update(snapshot())
    progress.update(snapshot(objects=2000, seconds=11.0))
    progress.update(snapshot(done=True))
    progress.close()
    assert terminal.getvalue() == (
        "\rs3://b: 1,000 objects, 100/s, 2 findings\x1b[K\rs3://b: 2,000 objects, 182/s, 2 findings\x1b[K\r\x1b[K"
    )


def test_a_long_name_is_cut_not_the_counts(terminal: Terminal) -> None:
    make_progress(terminal).update(snapshot(what=f"s3://b/{'漢' * 40}"))
    (line,) = terminal.getvalue().removeprefix("\r").split("\x1b[K")[:-1]
    assert line.endswith("…: 1,000 objects, 100/s, 2 findings")
    assert width(line) in (58, 59)


def test_other_text_takes_the_place_of_the_line(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    progress = make_progress(terminal)
    for speak, text in ((say, "a sentence"), (print_text, "a result\n")):
        progress.update(snapshot())
        assert not terminal.getvalue().endswith("\r\x1b[K")
        speak(text)
        assert terminal.getvalue().endswith("\r\x1b[K")
    assert capsys.readouterr() == ("a result\n", "auditor: a sentence\n")
