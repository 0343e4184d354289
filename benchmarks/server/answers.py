"""Answer a request."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from email.utils import formatdate
from typing import Final
from urllib.parse import parse_qsl, unquote

from benchmarks.server import documents, dynamodb, files
from benchmarks.server.behaviour import Gate
from benchmarks.server.objects import BLOCK, BUCKET, PREFIX, etag_of, keys_of, size_of, sized_body
from tests.support.servers.http_server import Answer, Application, Asked, Later, held
from tests.support.servers.stub_answers import framed, reply_of
from tests.support.servers.stub_calls import call_of
from tests.support.servers.stub_xml import error
from tests.support.servers.world import World

REASONS: Final = {
    200: b"OK",
    204: b"No Content",
    206: b"Partial Content",
    404: b"Not Found",
    412: b"Precondition Failed",
    416: b"Requested Range Not Satisfiable",
    500: b"Internal Server Error",
    503: b"Slow Down",
}
CONTROL: Final = "/-/"
UNKNOWN: Final = "unknown"
_KEPT: Final = (CONTROL.encode(), f"/{files.BUCKET}/".encode())
_FRAME: Final = (
    b"HTTP/1.1 %d %b\r\nx-amz-id-2: Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4\r\n"
    b"x-amz-request-id: %016X\r\nDate: %b\r\n%bServer: AmazonS3\r\nContent-Length: %d\r\n\r\n"
)
_HEAD: Final = (
    b"Last-Modified: Fri, 02 Jan 2026 03:04:05 GMT\r\n"
    b'ETag: "%b"\r\n'
    b"x-amz-server-side-encryption: AES256\r\n"
    b"x-amz-replication-status: COMPLETED\r\n"
    b'x-amz-expiration: expiry-date="Fri, 01 Jan 2027 00:00:00 GMT", rule-id="yearly"\r\n'
    b"x-amz-meta-team: warehouse\r\n"
    b"x-amz-meta-build: %d\r\n"
    b"x-amz-meta-source: export\r\n"
    b"Cache-Control: private, max-age=0\r\n"
    b"Accept-Ranges: bytes\r\n"
    b"Content-Type: application/octet-stream\r\n"
)
_XML: Final = b"Content-Type: application/xml\r\n"
_JSON: Final = b"Content-Type: application/json\r\n"
_RANGE: Final = re.compile(r"bytes=(\d+)-(\d*)")


def _read_block(start: int, length: int) -> memoryview:
    """BLOCK again and again."""
    start %= len(BLOCK)
    return memoryview(BLOCK)[start : start + length]


class Answers(Application):
    """Answers requests, and counts them: those about objects by itself, fast; all others as the tests' stub does."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._world = World()
        self._bucket = self._world.add(BUCKET)
        self._files = files.Files()
        self._tables = dynamodb.Tables()
        self._id = 0
        self._second = 0
        self._date = b""

    @property
    def bandwidth(self) -> float | None:
        return self.gate.behaviour.bandwidth

    def connected(self) -> None:
        self.gate.counters.connections += 1

    def keeps(self, url: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Those of control requests, run folders and DynamoDB."""
        return url.startswith(_KEPT) or dynamodb.TARGET in headers

    def answer(self, asked: Asked) -> Answer | Later:
        path, _, query = asked.target.partition("?")
        if path.startswith(CONTROL):
            return self._controlled(asked, path)
        found = self._answer(asked, path, query)
        latency = self.gate.behaviour.latency
        return Later(latency, lambda: found) if latency else found

    def _answer(self, asked: Asked, path: str, query: str) -> Answer:
        if dynamodb.TARGET in asked.headers:
            return self._ledger(asked)
        bucket, _, key = path[1:].partition("/")
        if bucket == files.BUCKET:
            return self._filed(asked, unquote(key), query)
        if asked.method != "POST" and key:
            refused = self._refused(asked, key)
            if refused is not None:
                return refused
        if not key:
            return self._of_bucket(asked, query)
        if asked.method in ("PUT", "POST", "DELETE"):
            return self._written(asked, key, query)
        return self._read(asked, unquote(key), query)

    def _framed(self, status: int, headers: bytes, length: int) -> bytes:
        self._id += 1
        now = int(time.time())
        if now != self._second:
            self._second, self._date = now, formatdate(now, usegmt=True).encode()
        return _FRAME % (status, REASONS[status], self._id, self._date, headers, length)

    def _whole(self, status: int, headers: bytes, body: bytes, method: str = "GET") -> Answer:
        return Answer(self._framed(status, headers, len(body)), b"" if method == "HEAD" else body)

    def _error(self, status: int, code: str, message: str, method: str) -> Answer:
        return self._whole(status, _XML, b"" if method == "HEAD" else error(code, message, "4442587FB7D0A2F9"), method)

    def _refused(self, asked: Asked, key: str) -> Answer | None:
        """The prefix of a request: the first folder of its key."""
        caller = asked.headers.get(b"x-caller", b"").decode() or UNKNOWN
        status = self.gate.refuses(key.partition("/")[0], caller)
        if status == 503:
            return self._error(503, "SlowDown", "Please reduce your request rate.", asked.method)
        return self._error(500, "InternalError", "We encountered an internal error.", asked.method) if status else None

    def _read(self, asked: Asked, key: str, query: str) -> Answer:
        answered, objects, size = self.gate.counters.answered, self.gate.behaviour.objects, self.gate.behaviour.size
        number = keys_of(objects).number(key)
        if number is None:
            return self._sized(asked, key)
        if query.startswith("acl"):
            answered["acl"] += 1
            return self._whole(200, _XML, documents.acl_of(number, self.gate.behaviour.strangers))
        headers = _HEAD % (etag_of(number).encode(), number)
        if asked.method == "HEAD":
            answered["head"] += 1
            return Answer(self._framed(200, headers, size_of(number, size)))
        return self._body(asked, headers, size_of(number, size))

    def _sized(self, asked: Asked, key: str) -> Answer:
        body = sized_body(key)
        if body is None:
            return self._error(404, "NoSuchKey", "The specified key does not exist.", asked.method)
        headers = _HEAD % (b"5" * 32, 0)
        if isinstance(body, int):
            return self._body(asked, headers, body)
        if asked.method == "HEAD":
            return Answer(self._framed(200, headers, len(body)))
        self.gate.counters.answered["get"] += 1
        return Answer(self._framed(200, headers, len(body)), held(body), 0, len(body))

    def _body(self, asked: Asked, headers: bytes, size: int) -> Answer:
        if asked.method == "HEAD":
            return Answer(self._framed(200, headers, size))
        self.gate.counters.answered["get"] += 1
        wanted = _RANGE.fullmatch(asked.headers.get(b"range", b"").decode())
        if wanted is None:
            return Answer(self._framed(200, headers, size), _read_block, 0, size)
        first, last = int(wanted[1]), min(int(wanted[2] or size), size - 1)
        if first > last:
            return self._error(416, "InvalidRange", "The requested range is not satisfiable", asked.method)
        headers += b"Content-Range: bytes %d-%d/%d\r\n" % (first, last, size)
        return Answer(self._framed(206, headers, last - first + 1), _read_block, first, last - first + 1)

    def _of_bucket(self, asked: Asked, query: str) -> Answer:
        lists = "list-type" in query
        self.gate.counters.answered["list" if lists else "bucket"] += 1
        refused = self._refused(asked, PREFIX.rstrip("/")) if lists else None
        if refused is not None:
            return refused
        call = call_of(asked)
        self._bucket.objects = documents.measured(self.gate.behaviour.objects, self.gate.behaviour.size)
        return framed(reply_of(self._world, call), call)

    def _ledger(self, asked: Asked) -> Answer:
        operation = asked.headers[dynamodb.TARGET].decode().rpartition(".")[2]
        self.gate.counters.answered[operation] += 1
        found = self._tables.answer(operation, json.loads(asked.body))
        return self._whole(200, _JSON, json.dumps(found).encode())

    def _written(self, asked: Asked, key: str, query: str) -> Answer:
        self.gate.counters.answered[asked.method.lower()] += 1
        if asked.method == "POST":
            begun = query.startswith("uploads")
            document = documents.upload_begun(key) if begun else documents.upload_ended(key)
            return self._whole(200, _XML, document)
        return self._whole(200, b'ETag: "%b"\r\n' % (b"e" * 32), b"")

    def _filed(self, asked: Asked, key: str, query: str) -> Answer:
        """Answer a call on the bucket of run folders."""
        if not key:
            pairs = dict(parse_qsl(query, keep_blank_values=True))
            return self._whole(200, _XML, self._files.listing(pairs.get("prefix", "")))
        status, etag, body = self._files.answer(asked.method, key, asked.headers, asked.body)
        if status in (404, 412):
            return self._error(status, "NoSuchKey" if status == 404 else "PreconditionFailed", "", asked.method)
        return self._whole(status, b"ETag: %b\r\n" % etag if etag else b"", body)

    def _controlled(self, asked: Asked, path: str) -> Answer:
        """PUT sets the behaviour from a JSON object of Behaviour's fields; GET returns the counters."""
        if asked.method == "PUT":
            self.gate.set(json.loads(asked.body))
            return self._whole(200, _JSON, json.dumps(self.gate.behaviour.to_dict()).encode())
        return self._whole(200, _JSON, json.dumps(self.gate.counters.to_dict()).encode())
