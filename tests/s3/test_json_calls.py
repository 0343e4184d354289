"""Plain calls: signed as the SDK signs them, and the SDK takes over wherever one fails."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from auditor.errors import CallFailed
from auditor.s3.json_calls import open_json_client

KEY: dict[str, Any] = {"TableName": "t", "Key": {"pk": {"S": "naïve"}, "sk": {"S": "-"}}}
ITEM = {"Item": {"pk": {"S": "naïve"}}}
CONDITION = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "no"}
THROTTLED = {"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"}


@dataclass
class Service:
    """A DynamoDB with prepared answers: status, document, and the checksum's error. The last one stays."""

    answers: list[tuple[int, Any, int]]
    asked: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""

    @property
    def plain(self) -> list[bool]:
        """Whether each call was a plain one."""
        return ["Boto" not in headers["user-agent"] for headers, _ in self.asked]


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            service.asked.append(({name.lower(): value for name, value in self.headers.items()}, body))
            status, document, error = service.answers.pop(0) if len(service.answers) > 1 else service.answers[0]
            if not status:
                self.close_connection = True  # without an answer
                return
            content = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.send_header("x-amz-crc32", str(zlib.crc32(content) + error))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def get(service: Service) -> dict[str, Any]:
    with serving(service):
        return await call(service.url)


async def call(url: str, times: int = 1) -> dict[str, Any]:
    async with open_json_client("dynamodb", threads=1, region="eu-west-1", endpoint_url=url, profile=None) as client:
        for _ in range(times - 1):
            await client.call("GetItem", **KEY)
        return await client.call("GetItem", **KEY)


@pytest.mark.parametrize("token", [None, "a/token=="])
async def test_call_is_signed_as_the_sdk_signs_it(monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    if token:
        monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    service = Service([(200, ITEM, 0)])
    assert (await get(service))["Item"] == ITEM["Item"]
    assert service.plain == [True]
    ((headers, body),) = service.asked
    assert headers.get("x-amz-security-token") == token
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    given = {name: headers[name] for name in signed if name not in ("host", "x-amz-date")}
    request = AWSRequest("POST", f"{service.url}/", given, body)
    request.context["timestamp"] = request.headers["X-Amz-Date"] = headers["x-amz-date"]
    auth = SigV4Auth(Credentials("AKID", "secret", token), "dynamodb", "eu-west-1")
    text = auth.string_to_sign(request, auth.canonical_request(request))
    assert headers["authorization"].endswith(f"Signature={auth.signature(text, request)}")


@pytest.mark.parametrize(
    "first",
    [(400, THROTTLED, 0), (500, {}, 0), (200, b"not JSON", 0), (200, ITEM, 1), (200, b"\xff", 0), (200, [], 0)],
    ids=["throttled", "500", "no JSON", "a wrong checksum", "no UTF-8", "no object"],
)
async def test_sdk_takes_over_where_a_plain_call_fails(first: tuple[int, Any, int]) -> None:
    service = Service([first, (200, ITEM, 0)])
    assert (await get(service))["Item"] == ITEM["Item"]
    assert service.plain == [True, False]


async def test_refused_condition_is_an_answer_and_asked_once() -> None:
    service = Service([(400, CONDITION, 0)])
    with pytest.raises(CallFailed) as failed:
        await get(service)
    assert (failed.value.code, failed.value.status) == ("ConditionalCheckFailedException", 400)
    assert service.plain == [True]


async def test_table_that_answered_before_is_asked_again_by_the_sdk() -> None:
    service = Service([(200, ITEM, 0), (0, None, 0), (0, None, 0), (200, ITEM, 0)])
    with serving(service):
        async with open_json_client(
            "dynamodb", threads=1, region="eu-west-1", endpoint_url=service.url, profile=None
        ) as it:
            for _ in range(2):
                await it.call("GetItem", **KEY)
    assert service.plain == [True, True, True, False]
