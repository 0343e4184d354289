"""The calls of a store without the SDK: retries, credentials that change, and the requests themselves."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.aws.connection import Connection
from auditor.aws.endpoint import plain_origin
from auditor.aws.plain import plain
from auditor.errors import CallFailed
from auditor.runs.stores.base import ATTEMPTS
from auditor.runs.stores.direct_objects import DirectObjects
from auditor.s3.http.base import ConnectionLostError, Request, Response, TransportError

SLOW_DOWN = Response(503, "", {}, b"<Error><Code>SlowDown</Code></Error>")
DENIED = Response(403, "", {}, b"<Error><Code>AccessDenied</Code></Error>")
EXPIRED = Response(400, "", {}, b"<Error><Code>ExpiredToken</Code></Error>")
DONE = Response(200, "OK", {b"etag": b'"e"'}, b"body")


class Scripted:
    """A transport with ready answers, in order; the last one again and again."""

    def __init__(self, *answers: Response | TransportError) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []

    def send(self, request: Request, content: io.BufferedReader | None = None) -> Response:
        self.requests.append(request if content is None else Request(*_parts(request), content.read()))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, TransportError):
            raise answer
        return answer

    def stream(self, request: Request) -> Response | Iterator[bytes]:
        answer = self.send(request)
        return answer if answer.status != 200 else iter([answer.body])

    def close(self) -> None:
        pass


def _parts(request: Request) -> tuple[str, str, Any]:
    return request.method, request.target, request.headers


def objects(transport: Scripted, pauses: list[float] | None = None, endpoint: str | None = None) -> DirectObjects:
    origin, found = plain_origin(Connection(bucket="results", region="eu-west-1", endpoint_url=endpoint)), plain(None)
    assert origin is not None
    assert found is not None
    sleep = (pauses if pauses is not None else []).append
    return DirectObjects(origin, None, found, transport, sleep=sleep)  # type: ignore[arg-type]


def signer(request: Request) -> str:
    return dict(request.headers)["authorization"].partition("Credential=")[2].partition("/")[0]


def test_failure_that_passes_is_tried_again_and_no_refusal() -> None:
    for passing in (SLOW_DOWN, ConnectionLostError("gone"), Response(500, "", {}, b"")):
        transport, pauses = Scripted(passing, passing, DONE), list[float]()
        assert objects(transport, pauses).get("k") == (b"body", '"e"')
        assert (len(transport.requests), len(pauses)) == (3, 2)
    transport, pauses = Scripted(SLOW_DOWN), []
    with pytest.raises(CallFailed, match="SlowDown"):
        objects(transport, pauses).put("k", b"x", kind="text/plain", md5="m")
    assert (len(transport.requests), len(pauses)) == (ATTEMPTS, ATTEMPTS - 1)
    transport = Scripted(DENIED)
    for call in (objects(transport).get, objects(transport).stream, objects(transport).delete):
        with pytest.raises(CallFailed) as caught:
            call("k")
        assert (caught.value.code, caught.value.status) == ("AccessDenied", 403)
    assert len(transport.requests) == 3
    with pytest.raises(CallFailed, match="Malformed"):  # a write is answered with an ETag
        objects(Scripted(Response(200, "OK", {}, b""))).put("k", b"", kind="x/y", md5="m")


def test_address_that_never_connects_is_given_up_soon() -> None:
    for before, attempts in (((), 1), ((DONE,), ATTEMPTS)):
        transport, now = Scripted(*before, ConnectionLostError("no connection")), itertools.count()
        store = objects(transport)
        store._clock = lambda now=now: 5.0 * next(now)  # type: ignore[misc]
        for _ in before:
            store.get("k")
        with pytest.raises(CallFailed, match="ConnectionError"):
            store.get("k")
        assert len(transport.requests) == len(before) + attempts


def test_keys_that_change_are_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    transport = Scripted(DONE)
    store = objects(transport)
    store.get("k")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "renewed")
    store.get("k")
    assert [signer(request) for request in transport.requests] == ["testing", "renewed"]
    path, keys = tmp_path / "keys", "[default]\naws_secret_access_key = s\naws_access_key_id = "
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    path.write_text(f"{keys}old\n")
    transport = Scripted(EXPIRED, DONE)
    store = objects(transport)
    path.write_text(f"{keys}new\n")
    store.get("k")
    assert [signer(request) for request in transport.requests] == ["old", "new"]
    with pytest.raises(CallFailed, match="ExpiredToken"):
        objects(Scripted(EXPIRED)).get("k")


def test_body_is_signed_where_tls_does_not_protect_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    hashed = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    for endpoint, payload in ((None, "UNSIGNED-PAYLOAD"), ("http://127.0.0.1:1", hashed)):
        with (tmp_path / "file").open("rb") as file:
            for given in (b"content", file):
                transport = Scripted(SLOW_DOWN, DONE)
                store = objects(transport, endpoint=endpoint)
                assert store.put("k", given, kind="x/y", md5="m", IfNoneMatch="*") == '"e"'
                for request in transport.requests:
                    headers = dict(request.headers)
                    sent = (request.method, request.body, headers["x-amz-content-sha256"])
                    assert sent == ("PUT", b"content", payload)
                    told = [headers[name] for name in ("content-length", "content-md5", "content-type")]
                    assert (told, headers["if-none-match"]) == (["7", "m", "x/y"], "*")
                    assert "if-none-match" in headers["authorization"]
