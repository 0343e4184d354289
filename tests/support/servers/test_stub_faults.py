"""The stub fails in each way that it is told to."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from tests.support.servers.clients import BUCKET, client, listed, raw, refusal
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import (
    ACCESS_DENIED,
    BAD_GATEWAY,
    BLACK_HOLE,
    CUT,
    EMPTY,
    EXPIRED_TOKEN,
    GATEWAY_TIMEOUT,
    INCOMPLETE,
    INTERNAL_ERROR,
    INVALID_ACCESS_KEY,
    REQUEST_TIMEOUT,
    RESET,
    SLOW_DOWN,
    STALL,
    TRUNCATED,
    VANISH,
    first_n,
    latency,
    on_keys,
)

ERRORS = [
    (SLOW_DOWN, 503, "SlowDown"),
    (INTERNAL_ERROR, 500, "InternalError"),
    (BAD_GATEWAY, 502, "502"),
    (GATEWAY_TIMEOUT, 504, "504"),
    (REQUEST_TIMEOUT, 400, "RequestTimeout"),
    (EXPIRED_TOKEN, 400, "ExpiredToken"),
    (INVALID_ACCESS_KEY, 403, "InvalidAccessKeyId"),
    (ACCESS_DENIED, 403, "AccessDenied"),
]


def until(condition: Callable[[], bool]) -> None:
    """Wait for what another thread is about to do."""
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it never happened")
        time.sleep(0.01)


def exchange(url: str, target: str) -> bytes:
    """All bytes of the answer until the connection ends, in whatever way."""
    return answer_to(url, f"GET {target} HTTP/1.1\r\nHost: stub\r\nConnection: close\r\n\r\n".encode())


def answer_to(url: str, sent: bytes) -> bytes:
    host, _, port = urlsplit(url).netloc.partition(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(sent)
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_error_has_its_code_and_on_head_only_its_status(stub: StubServer, s3: Any) -> None:
    stub.put(BUCKET, "k")
    for fault, status, code in ERRORS:
        stub.faults = [fault]
        assert refusal(s3.get_object_acl, Key="k")[:2] == (status, code)
        assert refusal(s3.head_object, Key="k")[:2] == (status, str(status))


def test_reset_leaves_no_answer(stub: StubServer, s3: Any) -> None:
    stub.faults = [first_n(1, RESET)]
    with pytest.raises(ConnectionResetError):
        exchange(stub.url, "/audited?list-type=2")
    stub.faults = [first_n(1, RESET)]
    with pytest.raises(ConnectionClosedError):
        s3.list_objects_v2(Bucket=BUCKET)
    assert s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


def test_cut_body_ends_half_way(stub: StubServer) -> None:
    stub.faults = [CUT]
    for size in (1000, 3_000_000):
        stub.put(BUCKET, "k", None, size=size)
        head, _, body = exchange(stub.url, "/audited/k").partition(b"\r\n\r\n")
        assert f"Content-Length: {size}".encode() in head
        assert len(body) == size // 2


def test_stalled_body_stops_half_way_and_a_black_hole_gives_no_answer(stub: StubServer) -> None:
    stub.put(BUCKET, "k", None, size=1000)
    stub.faults = [STALL]
    impatient = client("s3", stub.url, read_timeout=0.2)
    body = impatient.get_object(Bucket=BUCKET, Key="k")["Body"]
    assert len(body.read(500)) == 500
    with pytest.raises(ReadTimeoutError):
        body.read(1)
    body.close()
    stub.faults = [BLACK_HOLE]
    with pytest.raises(ReadTimeoutError):
        impatient.list_objects_v2(Bucket=BUCKET)
    impatient.close()
    until(lambda: stub.in_flight == 0)


def test_requests_in_flight_are_counted_at_their_peak_until_the_client_leaves(stub: StubServer) -> None:
    stub.faults = [latency(1e6)]
    host, _, port = urlsplit(stub.url).netloc.partition(":")
    waiting = [socket.create_connection((host, int(port))) for _ in range(5)]
    for connection in waiting:
        connection.sendall(b"HEAD /audited/k HTTP/1.1\r\nHost: stub\r\n\r\n")
    until(lambda: stub.in_flight == 5)
    for connection in waiting:
        connection.close()
    until(lambda: stub.in_flight == 0)
    assert stub.peak_in_flight == 5


def test_request_that_is_no_http_or_comes_too_early_is_refused(stub: StubServer) -> None:
    assert answer_to(stub.url, b"hello\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert stub.requests == []
    stub.faults = [first_n(1, BLACK_HOLE)]
    one = b"HEAD /audited/k HTTP/1.1\r\nHost: stub\r\n\r\n"
    assert answer_to(stub.url, one + one) == b""
    assert stub.count("HeadObject") == 1
    until(lambda: stub.in_flight == 0)


def test_object_vanishes_between_listing_and_reading(stub: StubServer, s3: Any) -> None:
    stub.put(BUCKET, "gone")
    stub.put(BUCKET, "stays")
    stub.faults = [on_keys(lambda key: key == "gone", VANISH)]
    assert len(listed(s3, "list_objects_v2", "Contents")) == 2
    assert refusal(s3.head_object, Key="gone")[:2] == (404, "404")
    assert [entry["Key"] for entry in listed(s3, "list_objects_v2", "Contents")] == ["stays"]


def test_success_without_its_required_elements(stub: StubServer, s3: Any) -> None:
    stub.put(BUCKET, "k", b"body")
    for fault in (EMPTY, INCOMPLETE):
        stub.faults = [fault]
        assert "Owner" not in s3.get_object_acl(Bucket=BUCKET, Key="k")
        page = s3.list_objects_v2(Bucket=BUCKET)
        assert not {"Contents", "IsTruncated"} & page.keys()
        assert "ETag" not in s3.head_object(Bucket=BUCKET, Key="k")
        status, body = raw(stub.url, "/audited?list-type=2")
        assert (status, bool(body)) == (200, fault is INCOMPLETE)
    stub.faults = [TRUNCATED]
    status, body = raw(stub.url, "/audited?list-type=2")
    assert (status, body[:5], body[-1:] == b">") == (200, b"<?xml", False)
