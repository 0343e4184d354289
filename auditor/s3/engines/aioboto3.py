"""The engine `aioboto3`: the asynchronous SDK on one event loop, with a connection for each call in flight."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar, Final

import aioboto3
import aiohttp
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from botocore import exceptions as sdk
from botocore import xform_name

from auditor.aws import session as aws
from auditor.aws.answer_limits import OBJECT, AnswerLimits, check_body, limits_of
from auditor.aws.connection import Connection, SharedCredentials
from auditor.aws.endpoint import tls_context
from auditor.aws.profiles import profile_missing
from auditor.aws.sdk_errors import sdk_errors
from auditor.aws.sigv4 import with_warning
from auditor.errors import CallFailed, UsageError
from auditor.s3.engines import answers as headers
from auditor.s3.engines.base import Body, Engine, Span
from auditor.s3.engines.sdk import SdkEngine, without_validation

_LOST: Final = (aiohttp.ClientError,)
_BROKEN: Final = (aiohttp.ClientResponseError, HttpProcessingError)


class _Answers(ResponseHandler):
    """The answers of one connection, which tells a body's reader if the rest of the body is malformed.

    aiohttp (3.14) stops its timer then, closes the connection, and lets the reader wait for ever.
    """

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        super().set_exception(exc, exc if exc_cause is None else exc_cause)
        if isinstance(exc, HttpProcessingError) and self._payload is not None and not self._payload.is_eof():
            self._payload.set_exception(exc)


class _OneHop:
    """An aiohttp session that follows no redirect and always verifies the server's certificate."""

    def __init__(self, session: Any, tls: ssl.SSLContext) -> None:
        self._session = session
        self._tls = tls

    def request(self, *arguments: Any, **options: Any) -> Any:
        return self._session.request(*arguments, allow_redirects=False, ssl=self._tls, **options)


class _OneHopSession(AIOHTTPSession):  # type: ignore[misc]
    """Makes the SDK send its requests through a _OneHop, for safety.

    The SDK's own session follows a redirect to any host, to which it sends the session token, and verifies no
    certificate behind a proxy.
    """

    def __init__(self, *arguments: Any, tls: ssl.SSLContext, read_timeout: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._tls = tls
        self._read_timeout = read_timeout

    async def send(self, request: Any) -> Any:
        """Send a request, and read the body up to a limit: the SDK reads one of any size."""
        streamed, request.stream_output = request.stream_output, True
        answer = await super().send(request)
        if not streamed or answer.status_code >= 300:
            answer._content = await _body(answer.raw, limits_of(request, OBJECT), self._read_timeout)
        return answer

    def _create_connector(self, proxy_url: Any) -> Any:
        connector = super()._create_connector(proxy_url)
        connector._factory = partial(_Answers, loop=asyncio.get_running_loop())
        return connector

    async def _get_session(self, proxy_url: Any) -> Any:
        return _OneHop(await super()._get_session(proxy_url), self._tls)


async def _body(raw: Any, limits: AnswerLimits, read_timeout: float) -> bytes:
    """Read a body up to a limit. Each piece has read_timeout seconds: aiohttp's own timer starts anew with every byte,
    also with those of a chunk's extension, which may have no end.
    """
    body = bytearray()
    try:
        while len(body) <= limits.size:
            async with asyncio.timeout(read_timeout):
                piece = await raw.content.readany()
            if not piece:
                break
            body += piece
        check_body(body, limits)
    except BaseException:
        raw.close()
        raise
    raw.release()
    return bytes(body)


class Aioboto3Body:
    """The bytes of an object (a Body) from aiobotocore."""

    def __init__(self, stream: Any, sent: headers.Headers, span: Span | None) -> None:
        self.length, self.etag, self.stored = headers.body_facts(sent, span)
        self._stream = stream

    async def readinto(self, buffer: memoryview) -> int:
        count, size = 0, len(buffer)
        try:
            while count < size:
                with sdk_errors("GetObject", _LOST, _BROKEN):
                    piece = await self._stream.content.read(size - count)
                if not piece:
                    break
                buffer[count : count + len(piece)] = piece
                count += len(piece)
        except CallFailed as failure:
            failure.read = count
            raise
        return count


class Aioboto3Engine(SdkEngine):
    """An engine whose calls are made by one client of aioboto3, for the whole run."""

    encoding: ClassVar[str] = "utf-8"

    async def _call(self, action: str, arguments: dict[str, Any]) -> Any:
        with sdk_errors(action, _LOST, _BROKEN):
            return await getattr(self._client, xform_name(action))(**arguments)

    def _body(self, stream: Any, sent: headers.Headers, span: Span | None) -> Body:
        return Aioboto3Body(stream, sent, span)

    async def _close(self, stream: Any) -> None:
        stream.close()


class _RoleProvider:
    """The only source of an AioSession's credentials: an assumed role. The SDK's own chain is never searched."""

    def __init__(self, role: SharedCredentials) -> None:
        self._role = role

    async def load_credentials(self) -> _AioRoleCredentials:
        return _AioRoleCredentials(await asyncio.to_thread(self._role.current))


class _AioRoleCredentials:
    """Credentials of an assumed role. While they are renewed, which blocks, the event loop continues."""

    def __init__(self, shared: Any) -> None:
        """shared: botocore's RefreshableCredentials, which other clients share."""
        self._shared = shared

    def get_deferred_property(self, name: str) -> Callable[[], None]:
        """Return a function that gives a property of the credentials for the host name of an endpoint. Those of S3 have
        none.
        """
        return self.get_account_id

    def get_account_id(self) -> None:
        """The account would be such a property."""
        return

    async def get_frozen_credentials(self) -> Any:
        if self._shared.refresh_needed():
            return await asyncio.to_thread(self._shared.get_frozen_credentials)
        return self._shared.get_frozen_credentials()


@asynccontextmanager
async def open_engine(connection: Connection) -> AsyncIterator[Engine]:
    """Open an engine of aioboto3, with at most connection.concurrency connections."""
    try:
        core = aws.with_shared_models(AioSession(profile=connection.profile))
        if connection.role is not None:
            core.register_component("credential_provider", _RoleProvider(connection.role))
        session = aioboto3.Session(botocore_session=core, region_name=connection.region)
        opening = session.client(
            "s3",
            region_name=connection.region or session.region_name or "us-east-1",
            endpoint_url=connection.endpoint_url,
            config=AioConfig(
                http_session_cls=partial(
                    _OneHopSession, tls=tls_context(connection), read_timeout=connection.read_timeout
                ),
                **aws.client_options(connection),
            ),
        )
        client = with_warning(without_validation(aws.without_redirects(await opening.__aenter__())))
    except sdk.ProfileNotFound as error:
        raise profile_missing(error) from error
    except (sdk.BotoCoreError, ValueError) as error:
        raise UsageError(f"the AWS SDK refuses the settings: {error}") from error
    try:
        yield Aioboto3Engine(connection, client)
    finally:
        await opening.__aexit__(None, None, None)
