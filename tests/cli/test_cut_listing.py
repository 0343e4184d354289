"""A listing whose answer is cut is told as such, by every engine: it is no sign of too many calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.cli.main import main
from tests.support.engine_names import OURS_FIRST
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import CUT, INTERNAL_ERROR, SLOW_DOWN, TRUNCATED, first_n

CUT_OFF = "(ListObjectsV2: ConnectionError): no whole answer came: check the server and the network, and try again\n"
NO_XML = "(ListObjectsV2): the answer is truncated, or is not XML: check the server and the network, and try again\n"
LATER = "(ListObjectsV2: InternalError): try again later\n"
SLOWER = "(ListObjectsV2: SlowDown): try again later, with a lower --max-rate\n"


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_what_went_wrong(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("AUDITOR_RETRY_ATTEMPTS", "2")
    stub.put(BUCKET, "a", b"x")
    place = ("--out", str(tmp_path), "--endpoint-url", stub.url)
    failures = []
    for fault, words in ((CUT, CUT_OFF), (TRUNCATED, NO_XML), (INTERNAL_ERROR, LATER), (SLOW_DOWN, SLOWER)):
        stub.faults = [first_n(99, fault, {"ListObjectsV2"})]
        code = main(["audit", f"s3://{BUCKET}", "--engine", engine, *place, "--quiet"])
        err = capsys.readouterr().err
        if (code, err) != (1, f"auditor: the listing of s3://{BUCKET} failed {words}"):
            failures.append((words, code, err))
    assert not failures, failures
