"""Stage `local` never reaches AWS: without a server on 127.0.0.1 every command that would talk to it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.deploy.checks.packaged import needs_osls, refusal, run

pytestmark = needs_osls
HERE = "http://127.0.0.1:1"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


def ask(folder: Path, command: str = "info", **environ: str) -> str:
    return refusal(folder, "--stage", "local", command=command, plugin="local.js", **KEYS, **environ)


@pytest.mark.parametrize("command", ["deploy", "info", "remove"])
def test_without_an_endpoint_nothing_is_asked(tmp_path: Path, command: str) -> None:
    assert "set AWS_ENDPOINT_URL=http://127.0.0.1:PORT" in ask(tmp_path, command)


@pytest.mark.parametrize(
    "endpoint", ["http://localhost:1", "https://127.0.0.1:1", "http://127.0.0.1", "http://127.0.0.1:1@example.net"]
)
def test_an_endpoint_elsewhere_is_refused(tmp_path: Path, endpoint: str) -> None:
    assert "set AWS_ENDPOINT_URL=http://127.0.0.1:PORT" in ask(tmp_path, AWS_ENDPOINT_URL=endpoint)


@pytest.mark.parametrize(
    ("name", "value"),
    [("AWS_ENDPOINT_URL_S3", "https://s3.example.net"), ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")],
)
def test_a_variable_that_would_lead_elsewhere_is_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    assert f"unset {name}" in ask(tmp_path, AWS_ENDPOINT_URL=HERE, **{name: value})


def test_packaging_for_local_asks_nobody_and_a_server_here_is_asked(tmp_path: Path) -> None:
    assert run(tmp_path / "package", ["--stage", "local"], plugin="local.js").returncode == 0
    assert "stage local needs" not in ask(tmp_path / "info", AWS_ENDPOINT_URL=HERE)
