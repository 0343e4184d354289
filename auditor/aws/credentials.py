"""Supply an event loop with AWS credentials from botocore's chain of sources, and renew them before they expire.

A thread asks the sources, so that the loop never waits while it has valid credentials.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Final

from msgspec import Struct

from auditor.aws.connection import CredentialProvider, Load
from auditor.aws.plain import PlainConfiguration, plain
from auditor.aws.sigv4 import ANONYMOUS, Credentials, UnsignableError, check_credentials
from auditor.errors import AuditorError, CredentialsError

log = logging.getLogger(__name__)

EVERY: Final = 30.0
"""Seconds between two requests to the provider. botocore renews credentials only when asked, within fifteen minutes
before they expire.
"""

PATIENCE: Final = 120.0
"""Seconds to wait for the provider's answer. Then the request is abandoned, and the next tries the whole chain."""

_AFTER_ERROR: Final = 5.0
_SOON: Final = 1.0
"""Seconds until the next check, if a request is under way or the credentials expire soon."""

_TOO_LATE: Final = 10.0
"""Credentials that expire within this many seconds are not used. Renewal is tried at shorter pauses than this."""

_RECENT: Final = 60.0
"""Seconds after a renewal. Within them S3 may still refuse requests that were signed with the old credentials."""

_DAY: Final = 24 * 60 * 60
_NEVER: Final = float("inf")


def load_chain(profile: str | None) -> CredentialProvider:
    """Return the first source of botocore's chain that has credentials. It is found without the SDK if possible.

    Blocks. Raises the SDK's exceptions.
    """
    if (configuration := plain(profile)) is not None:
        return configuration
    from auditor.aws.session import chain_credentials  # imports the SDK

    return chain_credentials(profile)


class _ProviderRequest(Struct, frozen=True, eq=False):
    """A running request for credentials, in a thread of its own.

    afresh: True if the request tries the whole chain of sources. done: gets the error, or None, when the request ends.
    """

    number: int
    started_at: float
    afresh: bool
    done: asyncio.Future[Exception | None]


class _ProviderAnswer(Struct, frozen=True):
    """The credentials that a request got. seconds_left: until they expire; infinity if they never do."""

    provider: CredentialProvider
    credentials: Credentials
    seconds_left: float


class CredentialSource:
    """Holds the AWS credentials of one event loop and renews them. The constructor does not load any yet.

    load: searches botocore's chain for a source of credentials, in a thread; it is called again if S3 says that the
    credentials have expired, or if the source does not answer. clock: returns seconds. patience: seconds to wait for an
    answer of the source.
    """

    def __init__(
        self,
        profile: str | None = None,
        *,
        load: Load | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self._load: Load = load or (lambda: load_chain(profile))
        self._clock = clock
        self._patience = patience
        self._held: Credentials | None = None
        self._provider: CredentialProvider | None = None
        self._expires_at = self._ask_at = self._changed_at = float("-inf")
        self._request: _ProviderRequest | None = None
        self._started = self._newest = 0
        self._failing = False

    def at_hand(self) -> Credentials | None:
        """Return the credentials if they need no renewal, else None.

        If the result is None, the caller awaits current(). Callers try at_hand() first, because it saves that coroutine
        for nearly all requests.
        """
        return self._held if self._clock() < self._ask_at else None

    async def current(self) -> Credentials:
        """Return the credentials. Wait for the provider only if there are no credentials yet, or if they expire at
        once.

        Raises CredentialsError if the provider fails, finds no credentials, or takes too long.
        """
        if (held := self.at_hand()) is not None:
            return held
        if isinstance(self._provider, PlainConfiguration):  # reading the environment takes microseconds
            self._take(_ProviderAnswer(self._provider, self._provider.get_frozen_credentials(), _NEVER))
            return self._provider.get_frozen_credentials()
        if self._request is not None and self._clock() - self._request.started_at >= self._patience:
            self._give_up(self._request)
        request = self._request or self._start(afresh=self._provider is None)
        if self._held is None or self._expiring():
            return await self._wait(request)
        self._ask_at = self._clock() + _SOON
        return self._held

    async def renewed(self) -> bool:
        """Search the whole chain again after S3 refused the credentials as expired. Return True if there are new ones.

        If the credentials changed within the last minute, return True at once. Raises CredentialsError.
        """
        if self._clock() - self._changed_at < _RECENT:
            return True
        before, request = self._held, self._request
        await self._wait(request if request is not None and request.afresh else self._start(afresh=True))
        return self._held != before

    def _start(self, *, afresh: bool) -> _ProviderRequest:
        loop = asyncio.get_running_loop()
        self._started += 1
        request = self._request = _ProviderRequest(self._started, self._clock(), afresh, loop.create_future())
        # A daemon thread: a hanging thread of the loop's own pool would keep the program alive. The copied context
        # gives its log lines the labels of the run.
        work = (self._fetch, loop, request, None if afresh else self._provider)
        Thread(target=copy_context().run, args=work, name="auditor-credentials", daemon=True).start()
        return request

    def _fetch(
        self, loop: asyncio.AbstractEventLoop, request: _ProviderRequest, provider: CredentialProvider | None
    ) -> None:
        """Ask a provider for credentials, in the request's thread, and pass the answer to the event loop.

        provider: None to search botocore's chain for one.
        """
        answer: _ProviderAnswer | Exception
        try:
            provider = provider or self._load()
            frozen = provider.get_frozen_credentials()
            found = Credentials(frozen.access_key, frozen.secret_key, frozen.token)
            check_credentials(found)
            answer = _ProviderAnswer(provider, found, _seconds_left(provider))
        except Exception as error:
            answer = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._end, request, answer)

    def _end(self, request: _ProviderRequest, answer: _ProviderAnswer | Exception) -> None:
        """End a request, on the event loop: store the credentials that it got, and wake the callers that wait for it.

        The credentials are dropped if a later request has already got some. The error of an abandoned request is not
        logged.
        """
        in_time = self._request is request
        if in_time:
            self._request = None
        if isinstance(answer, Exception):
            if in_time:
                self._warn(answer)
            request.done.set_result(answer)
            return
        if request.number > self._newest:
            self._newest = request.number
            self._take(answer)
        request.done.set_result(None)

    def _take(self, answer: _ProviderAnswer) -> None:
        now, seconds = self._clock(), answer.seconds_left
        if self._held is not None and self._held != answer.credentials:
            self._changed_at = now
        self._provider, self._held, self._failing = answer.provider, answer.credentials, False
        self._expires_at = now + seconds
        if isinstance(answer.provider, PlainConfiguration) and answer.provider.of_environment:
            self._ask_at = now + _SOON
        else:
            self._ask_at = now + (seconds if seconds == _NEVER else EVERY if seconds > 2 * EVERY else _SOON)

    def _expiring(self) -> bool:
        return self._clock() > self._expires_at - _TOO_LATE

    def _warn(self, error: Exception) -> None:
        """Log that the renewal failed, if the credentials at hand are still valid.

        Of a row of failures, only the first is logged.
        """
        if self._held is None or self._expiring():
            return
        self._ask_at = self._clock() + _AFTER_ERROR
        if not self._failing:
            log.warning("%s; the current ones are used until they expire", _sentence(error))
        self._failing = True

    async def _wait(self, request: _ProviderRequest) -> Credentials:
        """Wait for the end of a request, and return the credentials. Cancelling a waiter does not end the request."""
        await asyncio.wait([request.done], timeout=max(0.0, request.started_at + self._patience - self._clock()))
        if not request.done.done():
            self._give_up(request)
            raise CredentialsError(f"the source of the AWS credentials has not answered for {self._patience:g} seconds")
        if (error := request.done.result()) is not None:
            raise CredentialsError(_sentence(error)) from error
        assert self._held is not None
        return self._held

    def _give_up(self, request: _ProviderRequest) -> None:
        """Abandon a request that takes too long. Abandon its provider too, which may hold a lock for ever."""
        if self._request is request:
            self._request = self._provider = None


class NoCredentials(CredentialSource):
    """Stands for the credentials of a stranger's requests, which have no signature. No source is asked."""

    def at_hand(self) -> Credentials:
        return ANONYMOUS

    async def current(self) -> Credentials:
        return ANONYMOUS

    async def renewed(self) -> bool:
        return False


def _seconds_left(provider: CredentialProvider) -> float:
    """Return the seconds until the provider's credentials expire: at most a day, or infinity if they never do.

    botocore only tells if they expire within a given number of seconds, so this is a binary search.
    """
    refresh_needed = getattr(provider, "refresh_needed", None)  # only botocore's RefreshableCredentials have it
    if refresh_needed is None:
        return _NEVER
    return float(max(0, bisect_right(range(_DAY), False, key=refresh_needed) - 1))


def _sentence(error: Exception) -> str:
    """Describe a failure to get credentials, without the SDK's message, which may quote secrets."""
    from auditor.aws.sdk_errors import code_of, translate  # imports the SDK

    ours = translate("GetCredentials", error)
    if isinstance(ours, CredentialsError) or isinstance(error, AuditorError):
        return str(ours)
    if isinstance(error, UnsignableError):
        return f"the AWS credentials cannot be used: {error}"
    return (
        f"the AWS credentials could not be read ({code_of(error) or type(error).__name__}):"
        " check the profile, the role, or the credential process"
    )
