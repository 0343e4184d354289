"""Claim one start of an estate for one invocation at a time, by a file in the folder of the estate.

Lambda may deliver an event twice, and sends it again after an invocation that failed or ran out of time (Lambda
Developer Guide, "How Lambda handles errors and retries with asynchronous invocation").
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from auditor.errors import RunTaken
from auditor.lambdas.claim_file import ClaimBusy, claim_in
from auditor.lambdas.claims import AFTER_DEADLINE, FOR_NEXT_HOP, OLDEST
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.handover import FunctionStop, pause
from auditor.runs.paths import parse_run_id, same_start
from auditor.runs.stores.base import Store

log = logging.getLogger(__name__)

NAME: Final = "running.json"


class StartBusy(ClaimBusy):
    """Raised if another invocation is working on the start, and may yet hand it on, end it, or die."""


class StartClaim(Struct, frozen=True):
    """A start that an invocation works on. ended: True if nothing is left to do, because it is reported already."""

    start: str
    ended: bool = False


class StartClaims:
    """The claims of one invocation in `FOLDER/running.json`. All methods block.

    The file has, for each start of the last days: its hop, the request, the times at which the entry was written and at
    which the claim ends, and whether the start is passed on to that hop, or ended. Every write is conditional. hop:
    number of earlier invocations of the start. request: ID of the invocation, which Lambda keeps when it tries an event
    again.
    """

    def __init__(
        self, store: Store, folder: str, hop: int, request: str | None, clock: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._path = f"{folder}/{NAME}"
        self._hop = hop
        self._request = request
        self._clock = clock
        self._token = secrets.token_hex(8)  # a retry has the request's ID too

    async def taken(self, wanted: str, follows: bool, context: FunctionContext, stop: FunctionStop) -> StartClaim:
        """Claim the start as soon as no other invocation has it: that one may still fail, or be killed.

        Raises RunTaken if there is nothing to do for this one, or if its own stop comes first. The parameters are those
        of take().
        """
        while True:
            try:
                return await asyncio.to_thread(self.take, wanted, follows=follows, seconds=context.remaining())
            except StartBusy as busy:
                log.info("this invocation waits: %s", busy)
                await pause(stop, context.poll_seconds)
                if stop:
                    raise RunTaken(f"{busy}: this one stops") from busy

    def take(self, wanted: str, *, follows: bool, seconds: float) -> StartClaim:
        """Claim the start of this event: `wanted`, or the one that an earlier delivery of the event has begun.

        follows: True if the event names the start. seconds: time left until the invocation's deadline. Raises
        StartBusy; RunTaken if this delivery has nothing to do, because a later hop continues the start.
        """
        parse_run_id(wanted)

        def choose(value: Mapping[str, Any]) -> tuple[dict[str, Any] | None, StartClaim]:
            now = self._clock()
            starts = {
                start: entry
                for start, entry in (value.get("starts") or {}).items()
                if now - float(entry.get("at", 0.0)) <= OLDEST
            }
            same = [start for start in starts if start == wanted or (same_start(start, wanted) and not follows)]
            start = max(same, default=wanted)
            entry: Mapping[str, Any] = starts.get(start) or {}
            if self._is_ended(entry, follows):
                return None, StartClaim(start, ended=True)
            self._check_free(start, entry, now)
            until = now + seconds + AFTER_DEADLINE
            return {**value, "starts": {**starts, start: self._entry(self._hop, until=until)}}, StartClaim(start)

        return claim_in(self._store, self._path, choose)

    def give_back(self, start: str, *, passed: bool = False, ended: bool = False) -> None:
        """End the claim, if this invocation still has it. passed: True if the next hop continues the start. ended:
        True if its end is reported. Neither: the next delivery of the event continues at once.
        """

        def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
            starts = dict((value or {}).get("starts") or {})
            if starts.get(start, {}).get("token") != self._token:
                return None  # the claim ended before, and another invocation has the start
            until = self._clock() + FOR_NEXT_HOP if passed else 0.0
            starts[start] = self._entry(self._hop + passed, until=until, passed=passed, ended=ended)
            return {**(value or {}), "starts": starts}

        self._store.update_json(self._path, change)

    def _is_ended(self, entry: Mapping[str, Any], follows: bool) -> bool:
        """True if nothing is left to do. A person may name an ended start, to continue with its holes."""
        named = follows and self._hop == 0 and (self._request is None or entry.get("request") != self._request)
        return bool(entry.get("ended")) and not named

    def _check_free(self, start: str, entry: Mapping[str, Any], now: float) -> None:
        if float(entry.get("until", 0.0)) <= now or entry.get("token") == self._token:
            return  # nobody works on it, or this is our own entry, whose answer was lost
        hop = int(entry.get("hop", 0))
        if self._hop < hop:
            raise RunTaken(f"the start {start} has reached hop {hop}: this invocation stops")
        if not entry.get("passed"):
            raise StartBusy(f"another invocation is working on the start {start}")

    def _entry(self, hop: int, *, until: float, passed: bool = False, ended: bool = False) -> dict[str, Any]:
        return {
            "hop": hop,
            "request": self._request,
            "token": self._token,
            "at": self._clock(),
            "until": until,
            "passed": passed,
            "ended": ended,
        }
