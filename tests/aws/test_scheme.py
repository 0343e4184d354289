"""A session token that leaves the machine without encryption gets one warning."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from auditor.aws.sigv4 import leaves_in_the_open
from auditor.cli.main import main
from tests.support.engine_names import INSTALLED
from tests.support.servers.stub import StubServer


@pytest.mark.parametrize("engine", INSTALLED)
def test_one_warning_for_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, engine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "0.0.0.0")
    with StubServer() as server:
        server.world.add("audited").put("a", b"x")
        for host, token, warnings in (("0.0.0.0", "T", 1), ("0.0.0.0", "", 0), ("127.0.0.1", "T", 0)):
            monkeypatch.setenv("AWS_SESSION_TOKEN", token)
            caplog.clear()
            url = server.url.replace("127.0.0.1", host)
            assert main(("audit", "s3://audited", "--endpoint-url", url, "--engine", engine)) in (0, 3)
            entries = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
            said = [entry for entry in entries if "token" in entry]
            assert len(said) == warnings, (host, token)
            assert all(f"a session token is sent to {url} without encryption" in entry for entry in said)


def test_where_tokens_are_open_to_others() -> None:
    others = ["http://s3.example", "http://10.0.0.1:9000", "http://[fd00::1]:9000", "http://localhost.evil.example"]
    ours = ["https://s3.example", "http://localhost:9000", "http://127.0.0.2:9000", "http://[::1]:9000"]
    assert [url for url in (*others, *ours) if leaves_in_the_open(url)] == others
