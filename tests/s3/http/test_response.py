"""Answers cut at every byte, and malformed answers, without a network."""

from __future__ import annotations

import gc
import itertools

import pytest

from auditor.s3.http.base import LARGEST_HEAD, MOST_HEADERS, BrokenAnswerError, Response
from auditor.s3.http.response import MOST_INTERIM, ResponseReader

HEADERS = b'x-amz-request-id: 4442587FB7D0A2F9\r\nETag: "e"\r\nx-a: 1\r\nX-A: 2\r\n'
PARSED = {b"x-amz-request-id": b"4442587FB7D0A2F9", b"etag": b'"e"', b"x-a": b"1, 2"}
CHUNKED = {**PARSED, b"transfer-encoding": b"chunked"}

ANSWERS = {
    "length": (
        b"HTTP/1.1 200 OK\r\n" + HEADERS + b"Content-Length: 5\r\n\r\nbody\n",
        Response(200, "OK", {**PARSED, b"content-length": b"5"}, b"body\n"),
    ),
    "chunked": (
        b"HTTP/1.1 200 OK\r\n" + HEADERS + b"Transfer-Encoding: chunked\r\n\r\n"
        b'4;n=v;q="x"\r\nbody\r\n1\r\n\n\r\n000\r\nETag: trailing\r\nX-End: 1\r\n\r\n',
        Response(200, "OK", CHUNKED, b"body\n"),
    ),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-A: early\r\n\r\n"
        b"HTTP/1.1 404 Not Found\r\n" + HEADERS + b"Content-Length: 1\r\n\r\n!",
        Response(404, "Not Found", {**PARSED, b"content-length": b"1"}, b"!"),
    ),
    "no-content": (b"HTTP/1.1 204 No Content\r\n" + HEADERS + b"\r\n", Response(204, "No Content", PARSED, b"")),
    "not-modified": (
        b"HTTP/1.1 304 Not Modified\r\n" + HEADERS + b"Content-Length: 7\r\n\r\n",
        Response(304, "Not Modified", {**PARSED, b"content-length": b"7"}, b""),
    ),
    "no-reason": (
        b"HTTP/1.1 500\r\n" + HEADERS + b"Content-Length: 0\r\n\r\n",
        Response(500, "", {**PARSED, b"content-length": b"0"}, b""),
    ),
}
HEAD_ANSWERS = {
    "length": (
        b"HTTP/1.1 200 OK\r\n" + HEADERS + b"Content-Length: 434234\r\n\r\n",
        Response(200, "OK", {**PARSED, b"content-length": b"434234"}, b""),
    ),
    "chunked": (
        b"HTTP/1.1 404 Not Found\r\n" + HEADERS + b"Transfer-Encoding: chunked\r\n\r\n",
        Response(404, "Not Found", CHUNKED, b""),
    ),
    "neither": (b"HTTP/1.1 200 OK\r\n" + HEADERS + b"\r\n", Response(200, "OK", PARSED, b"")),
    "interim": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + HEADERS + b"Content-Length: 0\r\n\r\n",
        Response(200, "OK", {**PARSED, b"content-length": b"0"}, b""),
    ),
}
EVERY = [
    *(pytest.param(False, *case, id=f"get-{name}") for name, case in ANSWERS.items()),
    *(pytest.param(True, *case, id=f"head-{name}") for name, case in HEAD_ANSWERS.items()),
]


def read(*pieces: bytes, head_only: bool = False) -> ResponseReader:
    """A reader that was fed these pieces; none but the last may end the answer."""
    reader = ResponseReader()
    reader.expect(head_only=head_only)
    for piece in pieces[:-1]:
        assert reader.feed(piece) is None
    reader.feed(pieces[-1])
    return reader


@pytest.mark.parametrize(("head_only", "sent", "answer"), EVERY)
def test_cut_at_every_byte(head_only: bool, sent: bytes, answer: Response) -> None:
    reader = ResponseReader()
    for cut in range(1, len(sent)):
        reader.expect(head_only=head_only)
        assert reader.feed(sent[:cut]) is None
        assert reader.end() is None
        assert reader.feed(sent[cut:]) == answer
        assert reader.reusable


@pytest.mark.parametrize(("head_only", "sent", "answer"), EVERY)
def test_every_byte_by_itself(head_only: bool, sent: bytes, answer: Response) -> None:
    reader = ResponseReader()
    for _ in range(2):
        reader.expect(head_only=head_only)
        got = [reader.feed(bytes([byte])) for byte in sent]
        assert got == [None] * (len(sent) - 1) + [answer]
        assert reader.reusable


def test_answers_follow_each_other_in_any_order() -> None:
    reader = ResponseReader()
    cases = [(False, *case) for case in ANSWERS.values()] + [(True, *case) for case in HEAD_ANSWERS.values()]
    for first, second in itertools.product(cases, repeat=2):
        for head_only, sent, answer in (first, second):
            reader.expect(head_only=head_only)
            assert reader.feed(sent) == answer
            assert reader.reusable


@pytest.mark.parametrize("excess", [b"H", b"HTTP/1.1 200 OK\r\n", b"\0", b"0\r\n\r\n", b"more", ANSWERS["length"][0]])
@pytest.mark.parametrize(("head_only", "sent", "answer"), EVERY)
def test_bytes_after_the_answer(head_only: bool, sent: bytes, answer: Response, excess: bytes) -> None:
    for cut in range(len(sent)):
        reader = ResponseReader()
        reader.expect(head_only=head_only)
        if cut:
            reader.feed(sent[:cut])
        assert reader.feed(sent[cut:] + excess) == answer
        assert not reader.reusable


def test_earlier_answer_is_not_changed_by_a_later_one() -> None:
    reader = ResponseReader()
    sent, answer = ANSWERS["length"]
    reader.expect(head_only=False)
    first = reader.feed(sent + b"HTTP/1.1 500 No\r\nX-Other: 1\r\n\r\n")
    assert first == answer


def test_answer_is_not_kept_once_it_was_given() -> None:
    reader = ResponseReader()
    for sent, _ in ANSWERS.values():
        reader.expect(head_only=False)
        answer = reader.feed(sent)
        assert answer is not None
        assert not any(holder is reader for holder in gc.get_referrers(answer))
        assert not any(isinstance(holder, list) for holder in gc.get_referrers(answer.body))


def test_body_until_the_end_of_the_connection() -> None:
    reader = read(b"HTTP/1.1 200 OK\r\n\r\n", b"one ", b"two")
    assert reader.end() == Response(200, "OK", {}, b"one two")
    assert not reader.reusable


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_end_of_the_connection_ends_no_other_answer(sent: bytes) -> None:
    assert read(sent).end() is None


def test_nothing_came_and_something_came() -> None:
    reader = ResponseReader()
    told = [reader.started]
    reader.feed(b"H")
    told.append(reader.started)
    reader.expect(head_only=False)
    told.append(reader.started)
    assert told == [False, True, False]


@pytest.mark.parametrize(
    "said", [b"close", b"Close", b"keep-alive, close", b"close\r\nConnection: keep-alive", b"x,close , y"]
)
def test_server_closes(said: bytes) -> None:
    for head_only, rest in (
        (False, b"Content-Length: 0\r\n\r\n"),
        (True, b"Content-Length: 9\r\n\r\n"),
        (True, b"\r\n"),
    ):
        assert not read(b"HTTP/1.1 200 OK\r\nConnection: " + said + b"\r\n" + rest, head_only=head_only).reusable


@pytest.mark.parametrize("rest", [b"Content-Length: 9\r\n\r\n", b"\r\n"])
def test_head_of_http_1_0_is_not_reusable(rest: bytes) -> None:
    assert not read(b"HTTP/1.0 200 OK\r\n" + rest, head_only=True).reusable


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",), id="rtsp"),
        pytest.param((b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",), id="http-2"),
        pytest.param(tuple(bytes([byte]) for byte in b"HTTP/2.0 200 OK\r\nX: y\r\n\r\n"), id="http-2-byte-by-byte"),
        pytest.param((b"HTTP/1.1 100 C\r\n\r\nHTTP/2.0 200 OK\r\nX: y\r\n\r\n",), id="http-2-after-interim"),
        pytest.param((b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",), id="http-0.9"),
        pytest.param((b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",), id="blank-line-first"),
        pytest.param((b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",), id="line-feeds"),
        pytest.param((b"HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",), id="carriage-return-in-reason"),
        pytest.param((b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",), id="folded-line"),
        pytest.param((b"HTTP/1.1 200 OK\r\nX : a\r\nContent-Length: 0\r\n\r\n",), id="blank-before-colon"),
        pytest.param((b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",), id="both"),
        pytest.param((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",), id="both-again"),
        pytest.param((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",), id="chunked-gzip"),
        pytest.param((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",), id="negative-chunk"),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\n",), id="chunk-size"
        ),
        pytest.param((b"HTTP/1.1 100 Continue\r\n\r\n" * (MOST_INTERIM + 1),), id="interim-without-end"),
        pytest.param((b"HTTP/1.1 100 Continue\r\n\r\n",) * (MOST_INTERIM + 1), id="interim-one-by-one"),
        pytest.param((b"HTTP/1.1 200 " + b"O" * LARGEST_HEAD, b"O"), id="reason-without-end"),
        pytest.param(
            (b"HTTP/1.1 200 " + b"O" * LARGEST_HEAD + b"\r\nContent-Length: 0\r\n\r\n",), id="reason-too-large"
        ),
        pytest.param((b"HTTP/1.1 200 OK\r\n" + b"X" * LARGEST_HEAD,), id="name-without-end"),
        pytest.param((b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 100_000,), id="one-header-again-and-again"),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\n", *(b"X%d: 1\r\n" % n for n in range(MOST_HEADERS)), b"Y: 1\r\n\r\n"), id="too-many"
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * LARGEST_HEAD,), id="chunk-extension"
        ),
        pytest.param(
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * LARGEST_HEAD,), id="trailer"
        ),
    ],
)
def test_broken(pieces: tuple[bytes, ...]) -> None:
    with pytest.raises(BrokenAnswerError):
        read(*pieces)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "status 101"),
        (b"HTTP/1.1 099 Low\r\n\r\n", "status 99"),
        (b"HTTP/1.1 600 High\r\n\r\n", "status 600"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 100_000, "too many headers"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "not chunked"),
        (b"\x16\x03\x01", "not HTTP"),
    ],
)
def test_broken_answer_says_why(sent: bytes, why: str) -> None:
    with pytest.raises(BrokenAnswerError, match=why):
        read(sent)


def test_as_many_headers_as_may_be() -> None:
    lines = b"".join(b"X%d: 1\r\n" % n for n in range(MOST_HEADERS - 1))
    reader = read(b"HTTP/1.1 200 OK\r\n", lines, b"Content-Length: 0\r\n\r\n")
    assert reader.reusable


def test_large_body_in_one_piece_with_its_head_is_no_large_head() -> None:
    body = b"x" * 2 * LARGEST_HEAD
    reader = ResponseReader()
    reader.expect(head_only=False)
    answer = reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert answer is not None
    assert answer.body == body


@pytest.mark.parametrize("framing", [b"Content-Length: 11\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nb\r\n"])
def test_a_body_larger_than_this_reader_holds(framing: bytes) -> None:
    reader = ResponseReader(largest_body=10)
    reader.expect(head_only=False)
    with pytest.raises(BrokenAnswerError, match="the body is larger than the limit"):
        reader.feed(b"HTTP/1.1 200 OK\r\n" + framing + b"x" * 11)
