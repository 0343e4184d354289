"""Sign requests with AWS Signature Version 4, and warn of a session token that leaves this machine without TLS.

Costly parts of the signature are computed once a day. Source: Amazon S3 API reference, "Authenticating Requests: Using
the Authorization Header (AWS Signature Version 4)".
"""

from __future__ import annotations

import hmac
import logging
import re
import time
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from msgspec import Struct

if TYPE_CHECKING:
    from _hashlib import HASH


EMPTY_BODY: Final = sha256(b"").hexdigest()
"""The payload hash of a request without a body."""

UNSIGNED: Final = frozenset({"expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"})
"""Headers that the signature does not cover, because a proxy may change them. The SDKs leave out the same ones."""

_OURS: Final = frozenset({"host", "authorization", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"})
_MOST_PREPARED: Final = 64
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_.~/-]*").fullmatch
_NAME: Final = re.compile(r"[a-z0-9-]+").fullmatch
_VALUE: Final = re.compile(r"[\t -~]*").fullmatch

Pairs = tuple[tuple[str, str], ...]
"""Headers as pairs of name and value. The names are lower-case, sorted and unique."""

log = logging.getLogger(__name__)


class UnsignableError(ValueError):
    """An object key, query or header cannot be part of an HTTP request. The message gives the reason, not the value."""


class Credentials(NamedTuple):
    """An access key and its secret. token: the session token of temporary ones, else None. repr() hides secrets."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r})"


ANONYMOUS: Final = Credentials("", "")
"""Stands for the credentials of a request that is not signed."""


def encode_key(key: str) -> str:
    """Encode an object key for a URL's path: percent-encode all but `A-Za-z0-9-._~/`, and normalise nothing."""
    return key if _PLAIN_KEY(key) else _encoded(key, "/")


def encode_query(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the query string of a URL in the canonical form that is signed: `name=value`, or `name=` without a value.
    pairs: names and values, not encoded, in any order. They are encoded first, then sorted.
    """
    return "&".join([f"{name}={value}" for name, value in sorted([(_encoded(n), _encoded(v)) for n, v in pairs])])


def _encoded(text: str, safe: str = "") -> str:
    try:
        return quote(text, safe=safe)
    except UnicodeEncodeError as error:
        raise UnsignableError("a key or a query holds a lone surrogate: it cannot be a key in S3") from error


class _KeyedHash(NamedTuple):
    """An HMAC-SHA256 (RFC 2104) whose key is already hashed, so that it can sign many texts.

    The standard library's HMAC takes twice the CPU. inner, outer: the hash states after the padded key.
    """

    inner: HASH
    outer: HASH

    @classmethod
    def of(cls, key: bytes) -> _KeyedHash:
        """Prepare a key of at most 64 bytes, the block size of SHA-256."""
        block = key.ljust(64, b"\0")
        return cls(sha256(bytes(byte ^ 0x36 for byte in block)), sha256(bytes(byte ^ 0x5C for byte in block)))

    def hexdigest(self, text: bytes) -> str:
        inner, outer = self.inner.copy(), self.outer.copy()
        inner.update(text)
        outer.update(inner.digest())
        return outer.hexdigest()


class _Prepared(Struct, frozen=True):
    """The parts of a signature that stay the same for a day: all but a request's method, path, query and time."""

    before: str
    """The canonical request before the time: from the first header to `x-amz-date:`."""
    after: str
    """The canonical request after the time."""
    keyed: _KeyedHash
    authorization: str
    """The Authorization header up to the signature."""
    headers: Pairs
    """All headers to send, except x-amz-date and authorization."""


class Signer:
    """Signs requests to one region and service. It is not thread-safe.

    url: of the server, for a warning if a session token goes there without TLS; none without it.
    """

    def __init__(self, region: str, service: str = "s3", url: str = "") -> None:
        self._in_the_open = url if leaves_in_the_open(url) else ""
        self._region = region
        self._service = service
        self._prepared: dict[tuple[Credentials, str, Pairs, str], _Prepared] = {}
        self._keyed: dict[str, _KeyedHash] = {}
        self._day = ""
        self._tick(0)

    def sign(
        self,
        credentials: Credentials,
        method: str,
        host: str,
        path: str,
        query: str,
        headers: Pairs,
        now: float,
        payload: str = EMPTY_BODY,
    ) -> Pairs:
        """Sign a request, and return all headers to send, with Host and Authorization. Raises UnsignableError.

        host: the value of the Host header. path, query: as sent, made with encode_key() and encode_query(). headers:
        the request's own headers, sorted; headers in UNSIGNED are sent, but not signed. now: seconds since the epoch,
        by the server's clock. payload: the SHA-256 of the body in hex, or UNSIGNED-PAYLOAD.
        """
        second = int(now)
        if second != self._second:
            self._tick(second)
        prepared = self._prepared.get((credentials, host, headers, payload))
        if prepared is None:
            prepared = self._prepare(credentials, host, headers, payload)
        canonical = f"{method}\n{path}\n{query}\n{prepared.before}{self._stamp}{prepared.after}"
        to_sign = f"{self._to_sign}{sha256(canonical.encode()).hexdigest()}"
        signature = prepared.keyed.hexdigest(to_sign.encode())
        return (*prepared.headers, self._date, ("authorization", prepared.authorization + signature))

    def _tick(self, second: int) -> None:
        """Set the time of the next signatures. On a new day, drop the cached parts of the day before.

        second: the time in seconds since the epoch.
        """
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(second))
        if stamp[:8] != self._day:
            self._day = stamp[:8]
            self._scope = f"{self._day}/{self._region}/{self._service}/aws4_request"
            self._prepared.clear()
            self._keyed.clear()
        self._second, self._stamp, self._date = second, stamp, ("x-amz-date", stamp)
        self._to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{self._scope}\n"

    def _prepare(self, credentials: Credentials, host: str, headers: Pairs, payload: str) -> _Prepared:
        _check(credentials, host, headers)
        fixed = [("host", host), *headers, ("x-amz-content-sha256", payload)]
        if credentials.token:
            if self._in_the_open:
                warn_of_token(self._in_the_open)
            fixed.append(("x-amz-security-token", credentials.token))
        signed = sorted([*(pair for pair in fixed if pair[0] not in UNSIGNED), ("x-amz-date", "")])
        names = ";".join(name for name, _ in signed)
        lines = "".join(f"{name}:{' '.join(value.split())}\n" for name, value in signed)
        before, _, after = f"\n{lines}".partition("\nx-amz-date:")
        prepared = _Prepared(
            before=f"{before[1:]}\nx-amz-date:",
            after=f"{after}\n{names}\n{payload}",
            keyed=self._key(credentials.secret_key),
            authorization=f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{self._scope}, "
            f"SignedHeaders={names}, Signature=",
            headers=tuple(fixed),
        )
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.clear()
        self._prepared[credentials, host, headers, payload] = prepared
        return prepared

    def _key(self, secret: str) -> _KeyedHash:
        """Return today's signing key for a secret access key. It is cached until another secret is used."""
        found = self._keyed.get(secret)
        if found is None:
            key = f"AWS4{secret}".encode()
            for part in (self._day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._keyed.clear()
            found = self._keyed[secret] = _KeyedHash.of(key)
        return found


def _check(credentials: Credentials, host: str, headers: Pairs) -> None:
    names = [name for name, _ in headers]
    if names != sorted(set(names)) or not _OURS.isdisjoint(names) or not all(map(_NAME, names)):
        raise UnsignableError(
            "the headers to sign are not distinct lower-case names in order, without the signer's own"
        )
    for name, value in (("host", host), *headers):
        _check_value(name, value)
    check_credentials(credentials)


def check_credentials(credentials: Credentials) -> None:
    """Raise UnsignableError if the credentials have characters that an HTTP header cannot hold."""
    _check_value("authorization", credentials.access_key)
    _check_value("x-amz-security-token", credentials.token or "")
    try:
        credentials.secret_key.encode()
    except UnicodeEncodeError:  # "from None", because the cause quotes the secret
        raise UnsignableError("the secret key is no UTF-8") from None


def _check_value(name: str, value: str) -> None:
    if not _VALUE(value):
        raise UnsignableError(f"the header {name} would hold a line break or another forbidden character")


def leaves_in_the_open(url: str) -> bool:
    """True if requests to the URL leave this machine without TLS."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "http" and host not in ("localhost", "::1") and not host.startswith("127.")


@cache
def warn_of_token(server: str) -> None:
    """Warn that requests with a session token go to the server. server: its scheme, host and port. A second call for
    the same server does nothing.
    """
    log.warning("a session token is sent to %s without encryption, where others may read it: use https", server)


def with_warning(client: Any) -> Any:
    """Let an SDK client call warn_of_token() before it sends a token in the open. Return the client."""
    client.meta.events.register("before-send", _sent)
    return client


def _sent(request: Any, **_: Any) -> None:
    if "X-Amz-Security-Token" in request.headers and leaves_in_the_open(request.url):
        parts = urlsplit(request.url)
        warn_of_token(f"{parts.scheme}://{parts.netloc}")
