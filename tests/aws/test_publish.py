"""Events on a bus: entries that are refused although the call succeeds, and other failures."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from auditor.aws import publish
from auditor.aws.publish import MOST_BYTES, EventBridgeBus
from auditor.errors import RunError

NAME = "arn:aws:events:eu-west-1:123456789012:event-bus/ours"


class Bus(ThreadingHTTPServer):
    """A server for PutEvents. It answers with the codes of `script`, one for each call; None: the entry is taken."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script: list[str | None] = []
        self.calls: list[dict[str, Any]] = []
        self.regions: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Bus

    def do_POST(self) -> None:
        assert self.headers["X-Amz-Target"] == "AWSEvents.PutEvents"
        self.server.regions.append(self.headers["Authorization"].split("/")[2])
        self.server.calls.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        code = self.server.script.pop(0)
        entry = {"EventId": "1"} if code is None else {"ErrorCode": code, "ErrorMessage": "no"}
        body = json.dumps({"FailedEntryCount": int(code is not None), "Entries": [entry]}).encode()
        if code == "AccessDeniedException":
            body = json.dumps({"__type": code}).encode()
        self.send_response(400 if code == "AccessDeniedException" else 200)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Nothing is logged."""


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bus]:
    monkeypatch.setattr(publish, "_PAUSE", 0.0)
    with Bus() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_address[1]}")
        yield server
        server.shutdown()


async def test_entry_that_the_bus_is_too_busy_for_is_sent_again(bus: Bus) -> None:
    bus.script = ["ThrottlingException", "InternalFailure", None]
    await EventBridgeBus(NAME).put("s3-auditor", "Tested", {"a": "\u00e9"})
    assert len(bus.calls) == 3
    entry = {"Source": "s3-auditor", "DetailType": "Tested", "Detail": '{"a": "\\u00e9"}', "EventBusName": NAME}
    assert bus.calls == [{"Entries": [entry]}] * 3
    assert set(bus.regions) == {"eu-west-1"}


REFUSALS: list[tuple[list[str | None], str]] = [
    (["ThrottlingException"] * 4, "keeps refusing PutEvents (ThrottlingException)"),
    (["NotAuthorizedForSourceException"], "fails at PutEvents: NotAuthorizedForSourceException"),
    (["AccessDeniedException"], "refuses PutEvents (AccessDeniedException): allow events:PutEvents"),
    (["ResourceNotFoundException"], "does not exist (ResourceNotFoundException): check --event-bus"),
]


async def test_entry_that_is_refused_is_an_error_in_a_sentence(bus: Bus) -> None:
    for script, words in REFUSALS:
        bus.script = [*script]
        with pytest.raises(RunError) as caught:
            await EventBridgeBus(NAME, "--event-bus").put("s3-auditor", "Tested", {})
        assert str(caught.value).startswith(f"the event bus {NAME} ")
        assert words in str(caught.value)
        assert bus.script == []


async def test_event_that_is_too_large_is_not_sent(bus: Bus) -> None:
    with pytest.raises(RunError, match="takes no event of"):
        await EventBridgeBus(NAME).put("s3-auditor", "Tested", {"a": "x" * MOST_BYTES})
    assert bus.calls == []
