"""The credentials of botocore's chain, for a loop that must not wait for them: kept, and renewed ahead in a thread."""

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
"""Seconds between two looks at the source: botocore renews in the last fifteen minutes before expiry, when asked."""

PATIENCE: Final = 120.0
"""Seconds until a source that does not answer is given up, and asked again from the beginning."""

_AGAIN: Final = 5.0
"""Seconds until the next look after one that failed."""

_WHILE_ASKED: Final = 1.0
"""Seconds between two looks at a question that is open, and at credentials that are about to expire."""

_TOO_LATE: Final = 10.0
"""Seconds before their expiry from which on credentials sign nothing any more; longer than any pause between looks
that may go wrong."""

_RECENT: Final = 60.0
"""Seconds for which requests may still be under way that were signed with the credentials before."""

_DAY: Final = 24 * 60 * 60
_FOR_EVER: Final = float("inf")


class CredentialProvider(Protocol):
    """botocore's Credentials: blocking, and renewing themselves when asked."""

    def get_frozen_credentials(self) -> Any:
        """Something with access_key, secret_key and token."""
        ...


Load = Callable[[], CredentialProvider]


def load_chain(profile: str | None) -> CredentialProvider:
    """The first source of botocore's chain that has credentials, from a session of its own. Blocking."""
    found = aws.core_session(profile).get_credentials()
    if found is None:
        raise sdk.NoCredentialsError
    source: CredentialProvider = found
    return source


@dataclass(frozen=True, slots=True, eq=False)
class _Question:
    """What a thread is asked. number: of the order. afresh: the whole chain, not the source at hand. answered: on the
    loop, when the thread is back; with the error, if it has brought no credentials.
    """

    number: int
    asked_at: float
    afresh: bool
    answered: asyncio.Future[Exception | None]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a thread has brought. left: seconds until it expires."""

    source: CredentialProvider
    credentials: Credentials
    left: float


class CredentialSource:
    """Credentials to sign with, from the chain that the SDK engines use. For one event loop; reads nothing when made.

    load: gives botocore's credentials; blocking, called in a thread, again where what it gave has failed. clock:
    seconds. every, patience: see EVERY and PATIENCE.
    """

    def __init__(
        self,
        profile: str | None = None,
        *,
        load: Load | None = None,
        clock: Callable[[], float] = time.monotonic,
        every: float = EVERY,
        patience: float = PATIENCE,
    ) -> None:
        self._load: Load = load or (lambda: load_chain(profile))
        self._clock = clock
        self._every = every
        self._patience = patience
        self._held: Credentials | None = None
        self._source: CredentialProvider | None = None
        self._expires_at = float("-inf")
        self._look_at = float("-inf")
        self._changed_at = float("-inf")
        self._open: _Question | None = None
        self._asked = 0
        self._answered = 0
        self._afresh = self._failing = False

    def at_hand(self) -> Credentials | None:
        """The credentials of this moment; None: ask current(), for a look at the source is due. It saves nearly every
        request a coroutine.
        """
        return self._held if self._clock() < self._look_at else None

    async def current(self) -> Credentials:
        """The credentials of this moment: at once, but for the first time, and when none are left that are valid.

        Raises CredentialsError then, when the source has none, fails, or does not answer.
        """
        return self.at_hand() or await self._looked()

    async def renewed(self) -> bool:
        """After S3 said that they have expired: others are there, so that a request signed anew is worth it.

        Asks the chain from its beginning, unless they were replaced just now. Raises CredentialsError as current().
        """
        before = self._held
        if self._clock() - self._changed_at < _RECENT:
            return True
        question = self._open
        if question is None or not question.afresh:
            question = self._ask(afresh=True)
        await self._answer(question)
        return self._held != before

    async def _looked(self) -> Credentials:
        question = self._open
        if question is not None and self._clock() - question.asked_at >= self._patience:
            self._give_up(question)
        question = self._open or self._ask(afresh=self._afresh or self._source is None)
        if self._held is None or self._expiring():
            return await self._answer(question)
        self._look_at = self._clock() + _WHILE_ASKED
        return self._held

    def _ask(self, *, afresh: bool) -> _Question:
        loop = asyncio.get_running_loop()
        self._asked += 1
        question = self._open = _Question(self._asked, self._clock(), afresh, loop.create_future())
        source = None if afresh else self._source
        # Not in the loop's own pool: a thread that hangs there keeps the program from ending. In the asker's context:
        # what is logged about it bears the labels of that run.
        work = (self._fetch, loop, question, source)
        Thread(target=copy_context().run, args=work, name="auditor-credentials", daemon=True).start()
        return question

    def _fetch(self, loop: asyncio.AbstractEventLoop, question: _Question, source: CredentialProvider | None) -> None:
        """In the thread."""
        outcome: _Found | Exception
        try:
            source = source or self._load()
            frozen = source.get_frozen_credentials()
            found = Credentials(frozen.access_key, frozen.secret_key, frozen.token)
            check_credentials(found)
            outcome = _Found(source, found, _seconds_left(source))
        except Exception as error:
            outcome = error
        with suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(self._settle, question, outcome)

    def _settle(self, question: _Question, outcome: _Found | Exception) -> None:
        """On the loop. An answer that comes after a newer one changes nothing, nor an error given up on."""
        expected = self._open is question
        if expected:
            self._open = None
        if isinstance(outcome, Exception):
            if expected:
                self._failed(outcome)
            question.answered.set_result(outcome)
            return
        if question.number > self._answered:
            self._answered = question.number
            self._take(outcome)
        question.answered.set_result(None)

    def _take(self, found: _Found) -> None:
        now = self._clock()
        if self._held is not None and self._held != found.credentials:
            self._changed_at = now
        self._source, self._held = found.source, found.credentials
        self._afresh = self._failing = False
        self._expires_at = now + found.left
        self._look_at = now + self._pause(found.left)

    def _pause(self, left: float) -> float:
        if left == _FOR_EVER:
            return _FOR_EVER
        return self._every if left > 2 * self._every else _WHILE_ASKED

    def _expiring(self) -> bool:
        return self._clock() > self._expires_at - _TOO_LATE

    def _failed(self, error: Exception) -> None:
        if self._held is None or self._expiring():
            return
        self._look_at = self._clock() + _AGAIN
        if not self._failing:
            log.warning("%s; those at hand are used until they expire", _sentence(error))
        self._failing = True

    async def _answer(self, question: _Question) -> Credentials:
        """Waits for it; a waiter that is cancelled, or gives up, takes nothing from the others."""
        left = max(0.0, question.asked_at + self._patience - self._clock())
        await asyncio.wait([question.answered], timeout=left)
        if not question.answered.done():
            self._give_up(question)
            raise CredentialsError(f"the source of the AWS credentials has not answered for {self._patience:g} seconds")
        if (error := question.answered.result()) is not None:
            raise CredentialsError(_sentence(error)) from error
        assert self._held is not None
        return self._held

    def _give_up(self, question: _Question) -> None:
        """Its source may hold a lock for ever: the next question goes to another."""
        if self._open is question:
            self._open = None
            self._afresh = True


def _seconds_left(source: CredentialProvider) -> float:
    """Until its credentials expire, a day at most: botocore tells no more than whether they do within a given time."""
    if not isinstance(source, RefreshableCredentials):
        return _FOR_EVER
    return float(max(0, bisect_right(range(_DAY), False, key=source.refresh_needed) - 1))


def _sentence(error: Exception) -> str:
    """One sentence; never the words of the SDK's error, for those of a credential process may hold anything."""
    ours = translate("GetCredentials", error)
    if isinstance(ours, CredentialsError) or isinstance(error, AuditorError):
        return str(ours)
    if isinstance(error, UnsignableError):
        return f"the AWS credentials cannot be used: {error}"
    code = error.response.get("Error", {}).get("Code") if isinstance(error, sdk.ClientError) else None
    return (
        f"the AWS credentials could not be read ({code or type(error).__name__}):"
        " check the profile, the role, or what hands them out"
    )
