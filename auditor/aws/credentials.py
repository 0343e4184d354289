"""The credentials of botocore's chain for an event loop: held in memory, and renewed ahead in a thread."""

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
"""Seconds between two looks at the provider: botocore renews in the last fifteen minutes before expiry, when asked."""

PATIENCE: Final = 120.0
"""Seconds until a provider that does not answer is given up; the next look goes through the whole chain."""

_AFTER_ERROR: Final = 5.0
_SOON: Final = 1.0
"""Seconds until the next look while one is under way, and while the credentials are about to expire."""

_TOO_LATE: Final = 10.0
"""Seconds before their expiry from which credentials sign no more; longer than any pause between looks."""

_RECENT: Final = 60.0
"""Seconds for which requests may be under way that carry the credentials from before a renewal."""

_DAY: Final = 24 * 60 * 60
_NEVER: Final = float("inf")


class CredentialProvider(Protocol):
    """botocore's Credentials: the call blocks, and renews them when they are about to expire."""

    def get_frozen_credentials(self) -> Any:
        """An object with access_key, secret_key and token."""
        ...


Load = Callable[[], CredentialProvider]


def load_chain(profile: str | None) -> CredentialProvider:
    """The first provider of botocore's chain that has credentials, in a session of its own. Blocks."""
    found = aws.core_session(profile).get_credentials()
    if found is None:
        raise sdk.NoCredentialsError
    provider: CredentialProvider = found
    return provider


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """One look at the provider, in a thread. afresh: through the whole chain. done: the error, None for success."""

    number: int
    started_at: float
    afresh: bool
    done: asyncio.Future[Exception | None]


@dataclass(frozen=True, slots=True)
class _LookResult:
    """The result of a look. left: seconds until the credentials expire."""

    provider: CredentialProvider
    credentials: Credentials
    left: float


class CredentialSource:
    """Credentials to sign with, from the chain that the SDK engines use. For one event loop; reads nothing when made.

    load: makes botocore's provider, in a thread; called again after the provider failed to answer. clock: seconds.
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
        """The credentials; None when a look at the provider is due, by current(). Saves most requests a coroutine."""
        return self._held if self._clock() < self._look_at else None

    async def current(self) -> Credentials:
        """The credentials; waits for a look only the first time, and when none are left that are valid.

        Raises CredentialsError when that look fails, finds none, or takes too long.
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
        """True if other credentials are there after S3 called them expired: a request signed anew is worth it.

        Looks through the whole chain, unless they changed just now. Raises CredentialsError as current() does.
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
        # A daemon thread: one that hangs in the loop's own pool would keep the program from ending. The copied context
        # gives its log lines the labels of the run.
        work = (self._fetch, loop, look, None if afresh else self._provider)
        Thread(target=copy_context().run, args=work, name="auditor-credentials", daemon=True).start()
        return look

    def _fetch(self, loop: asyncio.AbstractEventLoop, look: _Look, provider: CredentialProvider | None) -> None:
        """Runs in the thread."""
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
        """Runs on the loop. A late answer counts unless a newer one came; a late error does not."""
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
        now, left = self._clock(), answer.left
        if self._held is not None and self._held != answer.credentials:
            self._changed_at = now
        self._provider, self._held, self._failing = answer.provider, answer.credentials, False
        self._expires_at = now + left
        self._look_at = now + (left if left == _NEVER else EVERY if left > 2 * EVERY else _SOON)

    def _expiring(self) -> bool:
        return self._clock() > self._expires_at - _TOO_LATE

    def _warn(self, error: Exception) -> None:
        """Log the first of several failed renewals while the held credentials are valid."""
        if self._held is None or self._expiring():
            return
        self._look_at = self._clock() + _AFTER_ERROR
        if not self._failing:
            log.warning("%s; the present ones are used until they expire", _sentence(error))
        self._failing = True

    async def _wait(self, look: _Look) -> Credentials:
        """Wait for the look; a waiter that is cancelled or gives up takes nothing from the others."""
        await asyncio.wait([look.done], timeout=max(0.0, look.started_at + self._patience - self._clock()))
        if not look.done.done():
            self._give_up(look)
            raise CredentialsError(f"the source of the AWS credentials has not answered for {self._patience:g} seconds")
        if (error := look.done.result()) is not None:
            raise CredentialsError(_sentence(error)) from error
        assert self._held is not None
        return self._held

    def _give_up(self, look: _Look) -> None:
        """Leave the look and its provider, which may hold a lock for ever."""
        if self._look is look:
            self._look = self._provider = None


def _seconds_left(provider: CredentialProvider) -> float:
    """Seconds until the credentials expire, a day at most: botocore only says if they do within a given time."""
    if not isinstance(provider, RefreshableCredentials):
        return _NEVER
    return float(max(0, bisect_right(range(_DAY), False, key=provider.refresh_needed) - 1))


def _sentence(error: Exception) -> str:
    """One sentence without the SDK's message: a credential process may print secrets."""
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
