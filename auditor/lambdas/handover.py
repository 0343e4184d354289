"""Stop before the deadline of a Lambda function, and leave the rest of the work to the function's next invocation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from typing import Any, Final, Protocol

from auditor.aio.stop import Grace, Stop
from auditor.aws.client import ThreadedClient, open_client
from auditor.aws.failures import explain
from auditor.errors import CallFailed, RunError
from auditor.model.summary import Resume
from auditor.model.target import Target

MOST_HOPS: Final = 200
MOST_FRUITLESS: Final = 2
"""Largest number of invocations in a row that make no progress before the work fails. The first one of a short function
may end before the first object, and a server may be silent for half an hour."""


class NextInvocation(Protocol):
    """Starts the next invocation of a function, for work that is left at the deadline."""

    async def invoke(self, event: Mapping[str, Any]) -> None:
        """Start the next invocation with this event, and do not wait for its end. Raises RunError if it cannot be
        started.
        """
        ...

    async def close(self) -> None: ...


class OwnFunction:
    """Starts the next invocation of this function asynchronously (Lambda API: Invoke with InvocationType Event)."""

    def __init__(self, arn: str) -> None:
        self._arn = arn
        self._stack = AsyncExitStack()
        self._client: ThreadedClient | None = None

    async def invoke(self, event: Mapping[str, Any]) -> None:
        payload = json.dumps(event).encode()
        try:
            if self._client is None:
                opening = open_client("lambda", threads=2, region=None, endpoint_url=None, profile=None)
                self._client = await self._stack.enter_async_context(opening)
            await self._client.call("Invoke", FunctionName=self._arn, InvocationType="Event", Payload=payload)
        except CallFailed as failure:
            thing, allow = f"the function {self._arn}", "lambda:InvokeFunction"
            raise RunError(explain(thing, failure, allow=allow, absent="deploy it again")) from failure

    async def close(self) -> None:
        await self._stack.aclose()


def next_event(event: Mapping[str, Any], target: Target, hop: int, resume: Resume | None) -> dict[str, Any]:
    """Return the event with which the next invocation continues `target`.

    event: the settings in the present event. hop: number of invocations before the present one. resume: where the run
    continues; None if no run was begun. Raises RunError after MOST_HOPS invocations.
    """
    if hop >= MOST_HOPS:
        raise RunError(f"the work on {target.uri} was handed over {hop} times and is still not complete: it stops here")
    following = dict(event)
    following |= {"bucket": target.bucket, "prefix": target.prefix, "versions": target.versions, "hop": hop + 1}
    if target.stop_at is not None:
        following["stop_at"] = target.stop_at
    start_after = target.start_after if resume is None else resume.start_after
    if resume is not None:
        following["run"] = resume.run
    if start_after is not None:
        following["start_after"] = start_after
    return following


def restart_event(event: Mapping[str, Any], target: Target, run: str | None, hop: int | None = None) -> str:
    """Return, as text without object keys, the event that a person or a script sends to continue `target`.

    event: the settings in the present event. run: ID of the run; None for a new run. hop: for a verification, the
    number of invocations before the one to start, because its state is stored by this number; None for an audit or a
    new run.
    """
    following = dict(event) | {"bucket": target.bucket, "prefix": target.prefix, "versions": target.versions}
    following |= {} if run is None else {"run": run}
    return json.dumps(following | ({} if run is None or hop is None else {"hop": hop}))


DEADLINE: Final = "the deadline is near"
MARGIN_SECONDS: Final = 45.0
"""Largest time in seconds from the stop to the deadline, the margin. It is MARGIN_SHARE of the time left, if that is
less."""
MARGIN_SHARE: Final = 0.25
LEAST_MARGIN: Final = 12.0
"""Smallest margin in seconds, so that a call that answers late is not cut off; at most half of the time left."""


class FunctionStop(Stop):
    """A stop that is set `margin` seconds before the deadline of a Lambda function.

    Each step after the stop has a share of these seconds, so that a silent server takes no time from the later steps.
    """

    def __init__(self, margin: float) -> None:
        shares = Grace(flight=0.4 * margin, sending=0.5 * margin, saving=0.65 * margin, all=0.7 * margin)
        super().__init__(grace=shares)
        self._margin = margin

    def handing_on(self) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self.limit(0.87 * self._margin)

    def telling(self) -> AbstractAsyncContextManager[asyncio.Timeout]:
        return self.limit(0.95 * self._margin)


async def pause(stop: FunctionStop, seconds: float) -> None:
    """Wait before the next look at what another invocation works on, or until the stop."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


@contextmanager
def stop_before_deadline(seconds_left: float | None) -> Iterator[FunctionStop]:
    """Yield a stop that is set shortly before the deadline. If seconds_left is None, nothing sets the stop."""
    left = max(0.0, seconds_left or 0.0)
    margin = max(min(MARGIN_SECONDS, left * MARGIN_SHARE), min(LEAST_MARGIN, left / 2))
    stop = FunctionStop(margin)
    if seconds_left is None:
        yield stop
        return
    timer = asyncio.get_running_loop().call_later(left - margin, stop.set, DEADLINE)
    try:
        yield stop
    finally:
        timer.cancel()
