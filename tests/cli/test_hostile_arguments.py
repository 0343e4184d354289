"""Malformed arguments, variables and files: each gives one printable sentence and a non-zero exit code."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from auditor.cli.output import Plain
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer

TARGET = ("audit", "s3://bucket", "--endpoint-url", "http://127.0.0.1:9")
ESCAPE = "\x1b[31mred\r\nAUDITED: clean\u202e"


def is_one_sentence(err: str) -> bool:
    return err.endswith("\n") and err[:-1].isprintable() and "bug" not in err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("audit", "s3://bucket", "--endpoint-url", "http://["), "--endpoint-url"),
        (("audit", "s3://bucket", "--endpoint-url", "http://127.0.0.1:99999"), "--endpoint-url"),
        (("audit", "s3://bucket", "--endpoint-url", "http://127.0.0.1:http"), "--endpoint-url"),
        ((*TARGET, "--ledger", "sqlite:x", "--queue", "http://["), "--queue"),
        (("work", "--ledger", "sqlite:x", "--queue", "http://127.0.0.1:99999/q"), "--queue"),
        ((*TARGET, "--ledger", "sqlite:~nobody-of-that-name/x"), "--ledger"),
        ((*TARGET, "--out", "~nobody-of-that-name/x"), "--out"),
        ((*TARGET, "--only", f"O01{ESCAPE}"), "no rule"),
        ((*TARGET, "--region", f"eu{ESCAPE}"), "region"),
        (("audit", "s3://bucket/\udcff"), "UTF-8"),
        ((*TARGET, "--start-after", "\udcff"), "UTF-8"),
        ((*TARGET, "--stop-at", "\udcff"), "UTF-8"),
    ],
)
def test_wrong_usage_is_one_line_that_names_it(run: Run, arguments: tuple[str, ...], named: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert is_one_sentence(err), err
    assert named in err


def test_queue_that_cannot_be_reached_is_named_on_one_line(run: Run) -> None:
    code, _, err = run("work", "--ledger", "sqlite:x", "--queue", f"http://127.0.0.1:9/q{ESCAPE}")
    assert code == 1
    assert is_one_sentence(err), err


def test_prefix_with_control_characters_is_shown_and_not_obeyed(run: Run, stub: StubServer) -> None:
    stub.world.add("elsewhere", wrong_region="always")
    code, _, err = run("audit", f"s3://elsewhere/{ESCAPE}", "--endpoint-url", stub.url)
    assert code == 1
    assert all(map(str.isprintable, err.splitlines())), err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "document",
    [
        pytest.param("a = " + "[" * 100_000, id="nested"),
        pytest.param("max_calls = " + "9" * 6000, id="6,000 digits"),
        pytest.param("max_calls = 1.5", id="a fraction"),
        pytest.param('"\\u001b[31m" = 1', id="an escape sequence"),
        pytest.param("\x00", id="nul"),
    ],
)
def test_settings_file_that_makes_no_sense(run: Run, tmp_path: Path, document: str) -> None:
    (tmp_path / "auditor.toml").write_text(document)
    code, _, err = run(*TARGET)
    assert code == 2
    assert is_one_sentence(err), err
    assert "auditor.toml" in err


def test_aws_configuration_that_cannot_be_read(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("[broken")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    code, _, err = run(*TARGET)
    assert code == 2
    assert is_one_sentence(err), err


def logged(message: str, error: BaseException | None = None) -> str:
    exc_info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("botocore", logging.DEBUG, "", 0, "said %s", (message,), exc_info)
    return Plain("%(levelname)s %(name)s: %(message)s").format(record)


def test_keys_begin_no_line_of_their_own_in_the_log() -> None:
    assert logged(ESCAPE) == "DEBUG botocore: said \\x1b[31mred\\r\\nAUDITED: clean\\u202e"


def test_tracebacks_in_the_log_move_no_cursor() -> None:
    lines = logged("it", ValueError(ESCAPE)).split("\n")
    assert len(lines) > 1
    assert all(map(str.isprintable, lines))


@pytest.mark.parametrize(
    "line",
    [
        "headers={'X-Amz-Security-Token': b'SECRET/+==', 'User-Agent': b'x-amz-date'}",
        "CanonicalRequest:\nx-amz-security-token:SECRET/+==\nx-amz-date:1",
        "?X-Amz-Security-Token=SECRET%2F&X-Amz-Date=1",
    ],
)
def test_session_token_is_not_in_the_log(line: str) -> None:
    shown = logged(line)
    assert "SECRET" not in shown
    assert "***" in shown
    assert "x-amz-date" in shown.lower()
