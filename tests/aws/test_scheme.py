"""A session token that leaves the machine without encryption gets one warning."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from auditor.aws.scheme import leaves_in_the_open
from auditor.cli.main import main
from tests.support.engine_names import INSTALLED
from tests.support.servers.stub import StubServer


@pytest.mark.parametrize("engine", INSTALLED)
@pytest.mark.parametrize(
    ("host", "token", "warnings"), [("0.0.0.0", "T", 1), ("0.0.0.0", "", 0), ("127.0.0.1", "T", 0)]
)
def test_one_warning_for_a_server(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    engine: str,
    host: str,
    token: str,
    warnings: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", host)
    if token:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    with StubServer() as server:
        server.world.add("audited").put("a", b"x")
        url = server.url.replace("127.0.0.1", host)
        code = main(("audit", "s3://audited", "--endpoint-url", url, "--engine", engine))
        assert code in (0, 3)
        said = [entry for entry in caplog.records if entry.levelno >= logging.WARNING and "token" in entry.getMessage()]
        assert len(said) == warnings
        assert all(f"a session token is sent to {url} without encryption" in entry.getMessage() for entry in said)


@pytest.mark.parametrize(
    ("url", "open_to_others"),
    [
        ("http://s3.example", True),
        ("http://10.0.0.1:9000", True),
        ("http://[fd00::1]:9000", True),
        ("http://localhost.evil.example", True),
        ("https://s3.example", False),
        ("http://localhost:9000", False),
        ("http://127.0.0.2:9000", False),
        ("http://[::1]:9000", False),
    ],
)
def test_where_tokens_are_open_to_others(url: str, open_to_others: bool) -> None:
    assert leaves_in_the_open(url) is open_to_others
