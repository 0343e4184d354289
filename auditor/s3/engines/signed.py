"""Sign and send the requests to one server, and turn refusals into CallFailed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from auditor.aws.credentials import CredentialSource
from auditor.aws.endpoint import Origin
from auditor.aws.failures import CLOCK_SET, CREDENTIALS_RENEWED, EXPIRED
from auditor.aws.sigv4 import ANONYMOUS, EMPTY_BODY, Credentials, Signer, UnsignableError, encode_key, encode_query
from auditor.errors import CallFailed
from auditor.model.dates import http_date
from auditor.s3.engines import answers as headers
from auditor.s3.engines import xml_answers as documents
from auditor.s3.http.base import (
    BrokenAnswerError,
    Request,
    Response,
    Transport,
    TransportError,
    TransportTimeoutError,
)

SKEW_SECONDS: Final = 240.0
"""If this machine's clock is wrong by more seconds than this, requests get a corrected time. S3 refuses a difference of
fifteen minutes."""
_LONGEST_CODE: Final = 100
_CODES: Final[Mapping[type[TransportError], str]] = {TransportTimeoutError: "Timeout", BrokenAnswerError: "BrokenReply"}

Pairs = tuple[tuple[str, str], ...]
"""Headers of a request, as pairs of name and value. The names are lower-case and sorted."""


class SignedRequests:
    """The sender of requests to one server, which signs them with the current credentials and by the server's clock."""

    def __init__(self, origin: Origin, credentials: CredentialSource, transport: Transport) -> None:
        self.transport = transport
        self._path = f"{origin.path_prefix}/"
        self._host = origin.host_header
        self._signer = Signer(origin.region, origin.service, origin.url)
        self._credentials = credentials
        self._clock_behind = 0.0  # seconds to add to this machine's clock

    async def send(
        self,
        action: str,
        method: str,
        key: str,
        query: str,
        extra: Pairs,
        transport: Transport | None = None,
        body: bytes = b"",
    ) -> Response:
        """Sign and send a request, and return its answer.

        Raises CallFailed if the answer's status is not 200, or if none comes. action: the API operation. key: the
        object key, not encoded. query: the URL query, encoded. extra: more headers. transport: None for the usual
        transport to this server.
        """
        credentials = self._credentials.at_hand() or await self._credentials.current()
        request, added = self.signed(credentials, action, method, key, query, extra, body)
        try:
            answer = await (transport or self.transport).send(request)
        except TransportError as error:
            raise lost(action, error) from error
        if answer.status != 200:
            raise await self.refused(failure_of(action, answer), added)
        return answer

    def signed(
        self, credentials: Credentials, action: str, method: str, key: str, query: str, extra: Pairs, body: bytes = b""
    ) -> tuple[Request, float]:
        """Sign a request. Return it, and how many seconds were added to this machine's clock for its signature. A
        request by ANONYMOUS has no signature.

        action: the API operation. key: the object key, not encoded. query: the URL query, encoded. extra: more headers.
        """
        payload = sha256(body).hexdigest() if body else EMPTY_BODY
        try:
            path = self._path + encode_key(key)
            added = self._clock_behind
            now = time.time() + added
            if credentials is ANONYMOUS:
                signed: Pairs = (("host", self._host), *extra)
            else:
                signed = self._signer.sign(credentials, method, self._host, path, query, extra, now, payload)
        except UnsignableError as error:
            raise _unsignable(action, error) from error
        return Request(method, f"{path}?{query}" if query else path, signed, body), added

    async def refused(self, failure: CallFailed, added: float) -> CallFailed:
        """Correct the cause of a refusal, if it is expired credentials or a wrong clock, and return the failure to
        raise.

        If the credentials were renewed or the clock was corrected, the returned failure is one that callers retry. For
        any other cause it is `failure` itself. added: how many seconds were added to this machine's clock for the
        refused request.

        The clock is corrected only if the answer's Date shows that it is wrong: a HEAD's 403 has no code, and may have
        another cause.
        """
        if failure.code in EXPIRED and await self._credentials.renewed():
            return CallFailed(failure.action, CREDENTIALS_RENEWED, failure.status, failure.message, failure.headers)
        if failure.status == 403 and failure.code in ("RequestTimeTooSkewed", "403"):
            behind = _seconds_behind(failure)
            if behind is not None and abs(behind - added) >= SKEW_SECONDS:
                self._clock_behind = behind
                return CallFailed(failure.action, CLOCK_SET, failure.status, failure.message, failure.headers)
        return failure


def query_of(action: str, pairs: list[tuple[str, str]]) -> str:
    try:
        return encode_query(pairs)
    except UnsignableError as error:
        raise _unsignable(action, error) from error


def _unsignable(action: str, error: UnsignableError) -> CallFailed:
    return CallFailed(action, "Unsignable", message=str(error))


def failure_of(action: str, answer: Response) -> CallFailed:
    """Make a CallFailed of an answer with an error status.

    If the answer has no error code (HEAD), the code is the status.
    """
    code, message = documents.error_of(answer.body) if answer.body else ("", answer.reason)
    return CallFailed(
        action,
        (code or str(answer.status))[:_LONGEST_CODE],
        answer.status,
        message[:500],
        headers.texts(answer.headers),
    )


def _seconds_behind(failure: CallFailed) -> float | None:
    """Return by how many seconds this machine's clock is behind the answer's Date; None without a valid Date."""
    try:
        return http_date(failure.headers["date"]).timestamp() - time.time()
    except (KeyError, ValueError, TypeError):
        return None


def lost(action: str, error: TransportError) -> CallFailed:
    """Convert a TransportError to CallFailed. action: the API operation."""
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), "ConnectionError")
    return CallFailed(action, code, message=str(error)[:500])


@contextmanager
def transport_errors(action: str) -> Iterator[None]:
    """Convert a TransportError in this `with` block to CallFailed. action: the API operation."""
    try:
        yield
    except TransportError as error:
        raise lost(action, error) from error
