"""Call a JSON service (DynamoDB) without the SDK and its threads. This takes a fifth of the SDK's CPU.

Such a plain call is one attempt. If it fails, the caller makes the call again through the SDK, which has retries and
error texts. Therefore every call must be repeatable.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from json import JSONDecodeError
from typing import Any, Final
from urllib.parse import urlsplit

from auditor.aws.client import ThreadedClient, open_client
from auditor.aws.connection import Connection
from auditor.aws.credentials import CredentialSource
from auditor.aws.endpoint import origin_at, proxy_for, tls_context
from auditor.errors import CallFailed, CredentialsError
from auditor.model.json_codec import MOST_MEMORY, memory_of
from auditor.model.version import VERSION
from auditor.s3.engines.signed import SignedRequests, lost
from auditor.s3.http.base import Server, TransportError, TransportTimeoutError
from auditor.s3.http.pool import HttpTransport

_TARGETS: Final = {"dynamodb": "DynamoDB_20120810"}
"""The prefix of the x-amz-target header of each service."""
_CONTENT_TYPE: Final = "application/x-amz-json-1.0"
_ANSWERS: Final = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""Error codes that are final answers to a call: repeating the call does not change them."""
_LARGEST: Final = 20 * 1024 * 1024
"""Largest size of an answer in bytes. DynamoDB's answers have up to 16 MB."""


@asynccontextmanager
async def open_json_client(
    service: str, *, threads: int, region: str | None, endpoint_url: str | None, profile: str | None
) -> AsyncIterator[ThreadedClient]:
    """Open a client that makes each call without the SDK first. The SDK only repeats failed calls.

    The arguments are those of auditor.aws.client.open_client.
    """
    opening = open_client(service, threads=threads, region=region, endpoint_url=endpoint_url, profile=profile)
    async with opening as client:
        calls = await asyncio.to_thread(_calls, client, service, threads, profile)
        if calls is None:
            yield client
            return
        client.plain = calls
        try:
            yield client
        finally:
            await calls.close()


def _calls(client: ThreadedClient, service: str, connections: int, profile: str | None) -> JsonCalls | None:
    """Return a JsonCalls for the client's endpoint; None if the endpoint is behind a proxy, or its URL has a path."""
    origin = origin_at(client.endpoint, client.region, service)
    if urlsplit(client.endpoint).path.strip("/") or proxy_for(origin) is not None:
        return None
    server = Server(
        host=origin.host,
        port=origin.port,
        tls=tls_context(Connection(bucket="", profile=profile)) if origin.scheme == "https" else None,
        connections=connections,
        largest_body=_LARGEST,
    )
    credentials = CredentialSource(load=client.service.load_credentials)
    return JsonCalls(SignedRequests(origin, credentials, HttpTransport(server)), credentials, _TARGETS[service])


class JsonCalls:
    """Makes calls to one endpoint of a JSON service without the SDK."""

    def __init__(self, requests: SignedRequests, credentials: CredentialSource, target: str) -> None:
        """target: the prefix of x-amz-target, such as DynamoDB_20120810."""
        self._requests = requests
        self._credentials = credentials
        self._target = target
        self._answered = False

    async def send(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Make one call, and return the service's answer; None if the SDK has to repeat the call.

        Raises CallFailed for an error that is a final answer (_ANSWERS). Raises CallFailed also if the first call gets
        no connection or no answer in time.
        """
        body = json.dumps(arguments).encode()
        headers = (
            ("content-length", str(len(body))),
            ("content-type", _CONTENT_TYPE),
            ("user-agent", f"s3-auditor/{VERSION}"),
            ("x-amz-target", f"{self._target}.{operation}"),
        )
        try:
            credentials = self._credentials.at_hand() or await self._credentials.current()
            request, _ = self._requests.signed(credentials, operation, "POST", "", "", headers, body)
            answer = await self._requests.transport.send(request)
            if memory_of(answer.body) > MOST_MEMORY:
                return None  # the SDK refuses such an answer
            found = json.loads(answer.body)
        except (TransportError, CredentialsError, JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            if not self._answered and isinstance(error, TransportTimeoutError):
                raise lost(operation, error) from error
            if not self._answered and isinstance(error.__cause__, TimeoutError):
                raise CallFailed(operation, "ConnectionError", message=str(error)[:500]) from error
            return None
        self._answered = True
        crc = b"%d" % zlib.crc32(answer.body)
        if not isinstance(found, dict) or answer.headers.get(b"x-amz-crc32", crc) != crc:
            return None
        code = str(found.get("__type", "")).rpartition("#")[2]
        if answer.status == 400 and code in _ANSWERS:
            raise CallFailed(operation, code, 400, str(found.get("message") or found.get("Message") or "")[:500])
        return found if answer.status == 200 else None

    async def close(self) -> None:
        await self._requests.transport.close()
