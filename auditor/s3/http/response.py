"""Parse the bytes of answers, which come in pieces of any size, into Responses. Nothing is read or sent here."""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from auditor.s3.http.base import LARGEST_BODY, LARGEST_HEAD, MOST_HEADERS, BrokenAnswerError, Response

MOST_INTERIM: Final = 16
"""Limit of interim (1xx) answers before the final one."""

_FIRST: Final = ord("H")
_BEGINNING: Final = b"HTTP/1."
_BODILESS: Final = (204, 304)


class ResponseReader:
    """Parses one answer after the other: call expect(), then feed() until it returns the answer.

    started: True if the answer's first byte has come. reusable: True if the last answer is complete, no byte followed
    it, and the server keeps the connection open.
    """

    # httptools is stricter than HTTP requires: it refuses bare line feeds, folded lines and a second length.
    __slots__ = (
        "_answer",
        "_body",
        "_body_size",
        "_ended",
        "_extra_bytes",
        "_fault",
        "_head",
        "_head_only",
        "_headers",
        "_interim",
        "_is_http_1",
        "_largest",
        "_parser",
        "_reason",
        "_repeated",
        "_size",
        "_status",
        "_until_close",
        "reusable",
        "started",
    )

    def __init__(self, largest_body: int = LARGEST_BODY) -> None:
        self._largest = largest_body
        self._answer: Response | None = None
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._repeated = 0
        self._ended = True
        self._is_http_1 = False
        self._parser = HttpResponseParser(self)
        self.expect(head_only=False)

    def expect(self, *, head_only: bool) -> None:
        """Begin to parse a new answer.

        head_only: True for the answer to a HEAD, which has no body in spite of its Content-Length.
        """
        if not self._ended:
            # The parser waits for a body: that of a HEAD never comes, and the rest of another may have gone past it.
            self._parser = HttpResponseParser(self)
        self._ended = False
        self._head_only = head_only
        self._answer = None
        self._fault = ""
        self._extra_bytes = False
        self._interim = 0
        self._size = 0
        self.started = False
        self.reusable = False
        self._begin_head()

    def feed(self, data: bytes | memoryview) -> Response | None:
        """Parse more bytes. Return the answer if they complete it, else None. Raises BrokenAnswerError."""
        if not self.started:
            self.started = True
            self._is_http_1 = data[:7] == _BEGINNING
            if not self._is_http_1 and data[0] != _FIRST:
                raise BrokenAnswerError("what came is not HTTP")
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if self._answer is None:
                raise BrokenAnswerError(self._fault or str(error)[:200] or "what came is not HTTP/1.1") from error
            self._extra_bytes = True
        answer = self._answer
        if answer is None:
            self._check_size()
            return None
        if self._extra_bytes:
            self.reusable = False
        # An idle connection must not keep a body of megabytes in memory.
        self._answer, self._body = None, []
        return answer

    @property
    def status(self) -> int:
        """The status of the present answer; 0 until its head is complete."""
        return 0 if self._head else self._status

    def head(self) -> Response:
        """Return the present answer without its body. Call it once `status` is set."""
        return Response(self._status, self._reason.decode("latin-1"), self._headers, b"")

    def taken(self) -> list[bytes]:
        """Return the pieces of the body that came since the last call, for a caller that does not buffer the body."""
        body, self._body = self._body, []
        return body

    def end(self) -> Response | None:
        """Return the answer if the end of the connection completes it; None if it is incomplete."""
        if self._until_close and self._answer is None:
            self._finish()
        return self._answer

    def on_message_begin(self) -> None:
        if self._answer is not None:
            self._extra_bytes = True

    def on_status(self, phrase: bytes) -> None:
        self._reason += phrase

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head:
            name, value = name.lower(), value.rstrip(b" \t")
            headers = self._headers
            if name in headers:
                self._repeated += 1
                if self._repeated > MOST_HEADERS:
                    self._fail("too many headers")
                value = headers[name] + b", " + value
            headers[name] = value

    def on_headers_complete(self) -> None:
        parser = self._parser
        self._status = status = parser.get_status_code()
        if self._answer is not None:
            return
        if self._repeated or self._size > LARGEST_HEAD or len(self._headers) > MOST_HEADERS:
            self._check_head()
        if status >= 200:
            self._head = False
            self._begin_body(status)
        elif status < 100 or status == 101:
            self._fail(f"status {status} is not an answer")

    def on_body(self, piece: bytes) -> None:
        if self._answer is not None:
            self._extra_bytes = True
            return
        self._body.append(piece)
        self._body_size += len(piece)
        if self._body_size > self._largest:
            self._fail("the body is larger than the limit")

    def on_chunk_header(self) -> None:
        if self._answer is not None:
            self._extra_bytes = True

    def on_message_complete(self) -> None:
        self._ended = self._status >= 200
        if self._answer is not None:
            return
        if self._status >= 200:
            self._finish()
            return
        self._interim += 1
        if self._interim > MOST_INTERIM:
            self._fail("too many interim answers")
        self._begin_head()

    def _begin_head(self) -> None:
        self._head = True
        self._status = 0
        self._reason = b""
        self._headers = {}
        self._repeated = 0
        self._body = []
        self._body_size = 0
        self._until_close = False

    def _begin_body(self, status: int) -> None:
        if status > 599:
            self._fail(f"status {status} is not an answer")
        parser, headers = self._parser, self._headers
        # get_http_version() makes a str, which costs a tenth of all the parsing.
        if (self._interim or not self._is_http_1) and not parser.get_http_version().startswith("1."):
            self._fail("what came is not HTTP/1.1")
        self.reusable = parser.should_keep_alive()
        length, encoding = headers.get(b"content-length"), headers.get(b"transfer-encoding")
        if encoding is not None and encoding.lower() != b"chunked":
            self._fail("a transfer encoding that is not chunked")
        if self._head_only:
            self.reusable = self.reusable or (length is None and encoding is None and self._stays_open())
            self._finish()
        elif length is not None:
            if int(length) > self._largest and status not in _BODILESS:
                self._fail("the body is larger than the limit")
        elif encoding is None and status not in _BODILESS:
            self._until_close = True

    def _stays_open(self) -> bool:
        """Return True if the server keeps the connection open after an answer to a HEAD without a length.

        The HTTP parser itself assumes that every answer without a length ends with the connection.
        """
        said = self._headers.get(b"connection", b"") + self._headers.get(b"proxy-connection", b"")
        return b"close" not in said.lower() and self._parser.get_http_version() == "1.1"

    def _finish(self) -> None:
        body = self._body
        self._answer = Response(
            self._status,
            self._reason.decode("latin-1"),
            self._headers,
            body[0] if len(body) == 1 else b"".join(body),
        )

    def _check_head(self) -> None:
        if len(self._headers) + self._repeated > MOST_HEADERS:
            self._fail("too many headers")
        size = len(self._reason) + sum(len(name) + len(value) + 4 for name, value in self._headers.items())
        if size > LARGEST_HEAD:
            self._fail("the headers are larger than the limit")

    def _check_size(self) -> None:
        limit = LARGEST_HEAD * (1 + self._interim)
        if self._head and self._size > limit:
            raise BrokenAnswerError("the headers are larger than the limit")
        if self._size > limit + 2 * self._body_size:
            raise BrokenAnswerError("chunk extensions or trailers are larger than the limit")

    def _fail(self, why: str) -> None:
        self._fault = why
        raise BrokenAnswerError(why)
