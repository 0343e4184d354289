"""A request's bytes; test_conformance has the requests that are refused."""

from __future__ import annotations

import pytest

from auditor.aws.sigv4 import Credentials, Signer
from auditor.s3.http.base import Request
from auditor.s3.http.request import CommonLines, request_bytes


def test_bytes_of_a_request() -> None:
    request = Request("HEAD", "/a/b?versionId=x%2By", (("Host", "h:1"), ("x-amz-date", "20260102T030405Z")))
    assert request_bytes(request) == (
        b"HEAD /a/b?versionId=x%2By HTTP/1.1\r\nHost: h:1\r\nx-amz-date: 20260102T030405Z\r\n\r\n"
    )


def test_request_without_headers() -> None:
    assert request_bytes(Request("GET", "/", ())) == b"GET / HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "get", "", "GET /other HTTP/1.1\r\nX: "])
def test_method_that_may_change_something_is_refused(method: str) -> None:
    with pytest.raises(ValueError, match="one of GET, HEAD, POST"):
        request_bytes(Request(method, "/", ()))


@pytest.mark.parametrize("character", ["\r", "\n", "\0", "\r\n", "\n\r\n", "é", "\u2028"])
@pytest.mark.parametrize("where", ["target", "name", "value"])
def test_character_that_ends_a_line_or_is_not_ascii(where: str, character: str) -> None:
    fields = {"target": "t", "name": "n", "value": "v"}
    fields[where] += character + "x"
    with pytest.raises(ValueError, match=r"line break|ascii"):
        request_bytes(Request("GET", "/" + fields["target"], ((fields["name"], fields["value"]), ("Host", "h"))))


@pytest.mark.parametrize("character", ["\r", "\n", "\0", "é"])
def test_header_that_many_requests_share_is_refused_each_time(character: str) -> None:
    lines = CommonLines()
    request = Request("GET", "/", (("Host", f"h{character}x"), ("x-amz-date", "d"), ("authorization", "a")))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"line break|ascii"):
            request_bytes(request, lines)


def test_lines_that_are_shared_are_the_same_and_few_are_kept() -> None:
    lines = CommonLines()
    for number in (*range(9), *range(9)):
        request = Request("GET", "/", (("Host", f"h{number}"), ("x-amz-date", str(number)), ("authorization", "a")))
        assert request_bytes(request, lines) == request_bytes(request)
    assert len(lines._cached) <= 4


def test_signed_requests_end_in_what_is_their_own() -> None:
    """The lines before the signature may be cached for the next request; a signature must not be."""
    signed = Signer("us-east-1").sign(Credentials("a", "b", "t"), "GET", "h", "/", "", (("range", "bytes=0-1"),), 1e9)
    assert [name for name, _ in signed[-2:]] == ["x-amz-date", "authorization"]
