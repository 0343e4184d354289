"""Hold the credentials of botocore's chain for an event loop, and renew them ahead of time in a thread."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final, Protocol

from botocore import exceptions as sdk
from botocore.credentials import RefreshableCredentials

from auditor.aws import session as aws
from auditor.aws.failures import translate
from auditor.aws.sigv4 import Credentials, UnsignableError, check_credentials
from auditor.errors import AuditorError, CredentialsError

log = logging.getLogger(__name__)

EVERY: Final = 30.0
"""Seconds between two looks at the provider. botocore renews in the last fifteen minutes before expiry, if asked."""

PATIENCE: Final = 120.0
"""Seconds to wait for the answer of a provider. Then the look is given up, and the next one uses the whole chain."""

_AFTER_ERROR: Final = 5.0
_SOON: Final = 1.0
"""Seconds until the next look, while a look is under way or the credentials expire soon."""

_TOO_LATE: Final = 10.0
"""Credentials that expire within so many seconds sign no more. It is longer than any pause between looks."""

_RECENT: Final = 60.0
"""For so many seconds after a renewal, S3 may still answer requests that were signed before it."""

_DAY: Final = 24 * 60 * 60
_NEVER: Final = float("inf")


class CredentialProvider(Protocol):
    """botocore's Credentials. The call blocks, and renews the credentials when they expire soon."""

    def get_frozen_credentials(self) -> Any:
        """An object with access_key, secret_key and token."""
        ...


Load = Callable[[], CredentialProvider]


def load_chain(profile: str | None) -> CredentialProvider:
    """The first provider of botocore's chain with credentials, in a new session. Blocks."""
    found = aws.core_session(profile).get_credentials()
    if found is None:
        raise sdk.NoCredentialsError
    provider: CredentialProvider = found
    return provider


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """One look at the provider, in a thread. afresh: use the whole chain. done: the error, None for success."""

    number: int
    started_at: float
    afresh: bool
    done: asyncio.Future[Exception | None]


@dataclass(frozen=True, slots=True)
class _LookResult:
    """The result of a look. seconds_left: until the credentials expire."""

    provider: CredentialProvider
    credentials: Credentials
    seconds_left: float


class CredentialSource:
    """The credentials for one event loop, from the chain that the SDK engines use. The constructor reads nothing.

    load: makes botocore's provider, in a thread; it is called again after a provider did not answer. clock: seconds.
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
        self._expires_at = self._look_at = self._changed_at = float("-inf")
        self._look: _Look | None = None
        self._begun = self._newest = 0
        self._failing = False

    def at_hand(self) -> Credentials | None:
        """The credentials; None when a look at the provider is due: call current(). It saves a coroutine."""
        return self._held if self._clock() < self._look_at else None

    async def current(self) -> Credentials:
        """The credentials. It waits for a look only if it holds none that are valid.

        Raises CredentialsError when that look fails, finds no credentials, or takes too long.
        """
        if (held := self.at_hand()) is not None:
            return held
        if self._look is not None and self._clock() - self._look.started_at >= self._patience:
            self._give_up(self._look)
        look = self._look or self._begin(afresh=self._provider is None)
        if self._held is None or self._expiring():
            return await self._wait(look)
        self._look_at = self._clock() + _SOON
        return self._held

    async def renewed(self) -> bool:
        """Look for other credentials after S3 called these expired; True if there are some now.

        It uses the whole chain, unless the credentials changed just now. Raises CredentialsError as current() does.
        """
        if self._clock() - self._changed_at < _RECENT:
            return True
        before, look = self._held, self._look
        await self._wait(look if look is not None and look.afresh else self._begin(afresh=True))
        return self._held != before

    def _begin(self, *, afresh: bool) -> _Look:
        loop = asyncio.get_running_loop()
        self._begun += 1
        look = self._look = _Look(self._begun, self._clock(), afresh, loop.create_future())
        # A daemon thread: a hanging thread of the loop's own pool would keep the program alive. The copied context
        # gives its log lines the labels of the run.
        work = (self._fetch, loop, look, None if afresh else self._provider)
        Thread(target=copy_context().run, args=work, name="auditor-credentials", daemon=True).start()
        return look

    def _fetch(self, loop: asyncio.AbstractEventLoop, look: _Look, provider: CredentialProvider | None) -> None:
        """Ask the provider. Runs in the thread."""
        answer: _LookResult | Exception
        try:
            provider = provider or self._load()
            frozen = provider.get_frozen_credentials()
            found = Credentials(frozen.access_key, frozen.secret_key, frozen.token)
            check_credentials(found)
            answer = _LookResult(provider, found, _seconds_left(provider))
        except Exception as error:
            answer = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(self._end, look, answer)

    def _end(self, look: _Look, answer: _LookResult | Exception) -> None:
        """Take a look's answer, on the loop. Ignore a late error, and a late answer after a newer one."""
        in_time = self._look is look
        if in_time:
            self._look = None
        if isinstance(answer, Exception):
            if in_time:
                self._warn(answer)
            look.done.set_result(answer)
            return
        if look.number > self._newest:
            self._newest = look.number
            self._take(answer)
        look.done.set_result(None)

    def _take(self, answer: _LookResult) -> None:
        now, seconds = self._clock(), answer.seconds_left
        if self._held is not None and self._held != answer.credentials:
            self._changed_at = now
        self._provider, self._held, self._failing = answer.provider, answer.credentials, False
        self._expires_at = now + seconds
        self._look_at = now + (seconds if seconds == _NEVER else EVERY if seconds > 2 * EVERY else _SOON)

    def _expiring(self) -> bool:
        return self._clock() > self._expires_at - _TOO_LATE

    def _warn(self, error: Exception) -> None:
        """Log a failed renewal while the present credentials are valid; the first of several only."""
        if self._held is None or self._expiring():
            return
        self._look_at = self._clock() + _AFTER_ERROR
        if not self._failing:
            log.warning("%s; the present ones are used until they expire", _sentence(error))
        self._failing = True

    async def _wait(self, look: _Look) -> Credentials:
        """Wait for the look. Another waiter is not affected when this one is cancelled or gives up."""
        await asyncio.wait([look.done], timeout=max(0.0, look.started_at + self._patience - self._clock()))
        if not look.done.done():
            self._give_up(look)
            raise CredentialsError(f"the source of the AWS credentials has not answered for {self._patience:g} seconds")
        if (error := look.done.result()) is not None:
            raise CredentialsError(_sentence(error)) from error
        assert self._held is not None
        return self._held

    def _give_up(self, look: _Look) -> None:
        """Abandon the look and its provider, which may hold a lock for ever."""
        if self._look is look:
            self._look = self._provider = None


def _seconds_left(provider: CredentialProvider) -> float:
    """Seconds until the credentials expire, at most a day. botocore only says if they expire within a given time."""
    if not isinstance(provider, RefreshableCredentials):
        return _NEVER
    return float(max(0, bisect_right(range(_DAY), False, key=provider.refresh_needed) - 1))


def _sentence(error: Exception) -> str:
    """One sentence about the failure. It omits the SDK's message, which may quote a credential process's secrets."""
    ours = translate("GetCredentials", error)
    if isinstance(ours, CredentialsError) or isinstance(error, AuditorError):
        return str(ours)
    if isinstance(error, UnsignableError):
        return f"the AWS credentials cannot be used: {error}"
    code = error.response.get("Error", {}).get("Code") if isinstance(error, sdk.ClientError) else None
    return (
        f"the AWS credentials could not be read ({code or type(error).__name__}):"
        " check the profile, the role, or the credential process"
    )
