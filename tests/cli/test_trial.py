"""`make trial`: one report of an audit, a probe and the price, which names nothing of the bucket."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.servers.strangers import StrangersServer
from tests.support.servers.world import ACCOUNT, OWNER, World
from tools.trial import main

BUCKET = "secret-bucket"


def test_the_report_by_the_connection_of_the_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.add(BUCKET)
    credentials, report = tmp_path / "credentials", tmp_path / "trial.json"
    credentials.write_text("[mine]\naws_access_key_id=testing\naws_secret_access_key=fake\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with StrangersServer(world) as server:
        server.put(BUCKET, "secret-name/public", acl="public-read")
        server.put(BUCKET, "secret-name/private")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("AUDITOR_RETRY_SECONDS", "1")
        flags = ["--profile", "mine", "--endpoint-url", server.url, "--region", "us-east-1"]
        assert main([f"s3://{BUCKET}", "--report", str(report), "--vantage", "198.51.100.7", *flags]) == 0
        assert {call.operation for call in server.asked} == {"HeadObject", "GetObjectAcl"}
    text = report.read_text()
    found = json.loads(text)
    assert (found["audit"]["exit_code"], found["audit"]["coverage"]["audited"]) == (3, 2)
    assert found["audit"]["calls"]["head"] == 2
    assert found["audit"]["calls_per_second"] > 0
    assert found["estimate"]["dollars"] > 0
    assert (found["probe"]["exit_code"], found["probe"]["agreed"], found["probe"]["disagreed"]) == (0, 2, 0)
    assert not any(word in text for word in (BUCKET, "secret-name", OWNER, ACCOUNT, str(tmp_path)))
