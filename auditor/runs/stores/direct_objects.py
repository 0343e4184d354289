"""The S3 calls of a store, by requests that the auditor signs itself, without the SDK."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import file_digest, sha256
from io import BufferedReader
from threading import Lock
from typing import Final, TypeVar

from msgspec.structs import replace

from auditor.aio.backoff import backoff
from auditor.aws.connection import Connection
from auditor.aws.endpoint import Origin, plain_origin, tls_context
from auditor.aws.failures import EXPIRED, is_transient
from auditor.aws.plain import PlainConfiguration, plain
from auditor.aws.sigv4 import EMPTY_BODY, Signer, encode_key, encode_query
from auditor.errors import CallFailed
from auditor.model.version import VERSION
from auditor.runs.stores.base import ATTEMPTS, LARGEST_FILE, BucketObjects
from auditor.s3.engines.answers import text
from auditor.s3.engines.base import ListQuery
from auditor.s3.engines.signed import Pairs, failure_of, transport_errors
from auditor.s3.engines.xml_answers import page
from auditor.s3.http.base import Request, Response, Server
from auditor.s3.http.blocking import BlockingTransport

T = TypeVar("T")
_CONDITIONS: Final = {"IfMatch": "if-match", "IfNoneMatch": "if-none-match"}
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
"""Limit in bytes of an object that is read whole."""
_FIRST_PAUSE: Final = 0.3
_LONGEST_PAUSE: Final = 20.0
_FIRST_SECONDS: Final = 5.0
"""Seconds in which a call is tried if the server never answered and no connection is made, as in RetryPolicy."""


class KeptTransports:
    """Holds the transports of a process, one for each server, and returns a server's transport when it is called.

    The connections of the transports stay open from one store to the next.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: dict[Server, BlockingTransport] = {}

    def __call__(self, server: Server) -> BlockingTransport:
        with self._lock:
            return self._made.setdefault(server, BlockingTransport(server))

    def close(self) -> None:
        for transport in self._made.values():
            transport.close()


class DirectObjects:
    """Makes the calls of a store on one bucket.

    profile, configuration: the source of the credentials. kept: True if close() has to leave the connections open.
    """

    def __init__(
        self,
        origin: Origin,
        profile: str | None,
        configuration: PlainConfiguration,
        transport: BlockingTransport,
        *,
        kept: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = f"{origin.path_prefix}/"
        self._host = origin.host_header
        self._hashes_bodies = origin.scheme == "http"  # TLS protects a body, and its MD5 is in a signed header
        self._signer = Signer(origin.region, origin.service, origin.url)
        self._signing = Lock()
        self._profile = profile
        self._configuration = configuration
        self.transport = transport
        self._kept = kept
        self._sleep = sleep
        self._clock = clock
        self._reached = False

    def get(self, key: str) -> tuple[bytes, str]:
        answer = self._retried(partial(self._send, "GetObject", "GET", key))
        return answer.body, _etag("GetObject", answer)

    def stream(self, key: str) -> Iterator[bytes]:
        return self._retried(partial(self._opened, key))

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        size = len(body) if isinstance(body, bytes) else os.fstat(body.fileno()).st_size
        extra = [("content-length", str(size)), ("content-md5", md5), ("content-type", kind)]
        extra += [(_CONDITIONS[name], value) for name, value in condition.items()]
        return _etag("PutObject", self._retried(partial(self._send, "PutObject", "PUT", key, "", tuple(extra), body)))

    def delete(self, key: str) -> None:
        self._retried(partial(self._send, "DeleteObject", "DELETE", key))

    def keys(self, prefix: str) -> Iterator[str]:
        query, position = ListQuery(prefix), None
        while True:
            asked = encode_query(query.pairs(position))
            answer = self._retried(partial(self._send, "ListObjectsV2", "GET", "", asked))
            found = page(query, answer.body)
            yield from (ref.key for ref in found.refs)
            if found.next is None:
                return
            position = found.next

    def close(self) -> None:
        if not self._kept:
            self.transport.close()

    def _retried(self, attempt: Callable[[], T]) -> T:
        """Make a call, and repeat it after failures that may be temporary.

        attempt: makes the call once. Raises CallFailed.
        """
        started = self._clock()
        for failures in range(ATTEMPTS):
            pause = backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE)
            try:
                answer = attempt()
            except CallFailed as failure:
                self._reached |= failure.status > 0
                if failures + 1 == ATTEMPTS or not (is_transient(failure) or self._renewed(failure)):
                    raise
                lost = failure.code == "ConnectionError" and not self._reached
                if lost and self._clock() + pause - started > _FIRST_SECONDS:
                    raise
            else:
                self._reached = True
                return answer
            self._sleep(pause)
        raise AssertionError(attempt)

    def _renewed(self, failure: CallFailed) -> bool:
        """True if S3 refused the credentials as expired, and there are new ones now."""
        if failure.code not in EXPIRED or (found := plain(self._profile)) is None:
            return False
        before, self._configuration = self._configuration, found
        return found.credentials != before.credentials

    def _opened(self, key: str) -> Iterator[bytes]:
        request = self._request("GET", key, "", (), EMPTY_BODY)
        with transport_errors("GetObject"):
            answer = self.transport.stream(request)
        if isinstance(answer, Response):
            raise failure_of("GetObject", answer)
        return _pieces(answer)

    def _send(
        self, action: str, method: str, key: str, query: str = "", extra: Pairs = (), body: bytes | BufferedReader = b""
    ) -> Response:
        """Send one request, once, and return the answer. Raises CallFailed. extra: more headers."""
        request = self._request(method, key, query, extra, self._payload(body))
        with transport_errors(action):
            if isinstance(body, bytes):
                answer = self.transport.send(replace(request, body=body))
            else:
                answer = self.transport.send(request, body)
        if not 200 <= answer.status < 300:
            raise failure_of(action, answer)
        return answer

    def _payload(self, body: bytes | BufferedReader) -> str:
        """Return what the signature says of the body: its SHA-256, or UNSIGNED-PAYLOAD if TLS protects it.

        A body that is a file is rewound.
        """
        if not body:
            return EMPTY_BODY
        if isinstance(body, bytes):
            return sha256(body).hexdigest() if self._hashes_bodies else _UNSIGNED
        body.seek(0)
        digest = file_digest(body, sha256).hexdigest() if self._hashes_bodies else _UNSIGNED
        body.seek(0)
        return digest

    def _request(self, method: str, key: str, query: str, extra: Pairs, payload: str) -> Request:
        credentials = self._configuration.get_frozen_credentials()
        headers = tuple(sorted((*extra, ("user-agent", f"s3-auditor/{VERSION}"))))
        path = self._path + encode_key(key)
        with self._signing:
            signed = self._signer.sign(credentials, method, self._host, path, query, headers, time.time(), payload)
        return Request(method, f"{path}?{query}" if query else path, signed)


def _pieces(body: Iterator[bytes]) -> Iterator[bytes]:
    with transport_errors("GetObject"):
        yield from body


def _etag(action: str, answer: Response) -> str:
    found = answer.headers.get(b"etag")
    if found is None:
        raise CallFailed(action, "Malformed", 200, "ETag is missing")
    return text(found)


def open_objects(connection: Connection, kept: KeptTransports | None = None) -> BucketObjects | None:
    """Return a client without the SDK for the run store in the connection's bucket; None if only the SDK can do it.

    It makes no call yet. kept: connections to reuse, which stay open after close(); None for new ones.
    """
    configuration, origin = plain(connection.profile), plain_origin(connection)
    if configuration is None or origin is None:
        return None
    server = Server(
        host=origin.host,
        port=origin.port,
        tls=tls_context(connection) if origin.scheme == "https" else None,
        connect_timeout=connection.connect_timeout,
        read_timeout=connection.read_timeout,
        largest_body=LARGEST_FILE,
    )
    transport = BlockingTransport(server) if kept is None else kept(server)
    return DirectObjects(origin, connection.profile, configuration, transport, kept=kept is not None)
