"""Stop before the function's deadline and hand the rest over to the function's next invocation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Protocol

from auditor.aio.stop import Stop
from auditor.aws.client import open_client
from auditor.aws.failures import explain
from auditor.errors import CallFailed, RunError
from auditor.model.summary import Resume
from auditor.model.target import Target

MOST_HOPS: Final = 200


class NextInvocation(Protocol):
    """The next invocation of a function, which continues the work that was left at the deadline."""

    async def invoke(self, event: Mapping[str, Any]) -> None:
        """Start the next invocation with this event, and do not wait for it. Raises RunError."""
        ...


class OwnFunction:
    """The function itself, invoked asynchronously (Lambda API: Invoke with InvocationType Event)."""

    def __init__(self, arn: str) -> None:
        self._arn = arn

    async def invoke(self, event: Mapping[str, Any]) -> None:
        payload = json.dumps(event).encode()
        try:
            async with _lambda() as client:
                await client.call("Invoke", FunctionName=self._arn, InvocationType="Event", Payload=payload)
        except CallFailed as failure:
            thing = f"the rest is not handed over: the function {self._arn}"
            allow, absent = "lambda:InvokeFunction", "deploy it again"
            raise RunError(explain(thing, failure, allow=allow, absent=absent)) from failure


@asynccontextmanager
async def _lambda() -> AsyncIterator[Any]:
    async with open_client("lambda", threads=1, region=None, endpoint_url=None, profile=None) as client:
        yield client


def next_event(event: Mapping[str, Any], target: Target, hop: int, resume: Resume | None) -> dict[str, Any]:
    """Make the event that continues with `target`. event: the settings of the present event, which are kept.

    resume: where the run continues; None if the target was not begun. Raises RunError after MOST_HOPS hops: such a run
    makes no progress.
    """
    if hop >= MOST_HOPS:
        raise RunError(f"the work on {target.uri} was handed on {hop} times and is still not complete: it stops here")
    following = dict(event)
    following |= {"bucket": target.bucket, "prefix": target.prefix, "versions": target.versions, "hop": hop + 1}
    if target.stop_at is not None:
        following["stop_at"] = target.stop_at
    if resume is not None:
        following |= {"run": resume.run, "start_after": resume.start_after}
    elif target.start_after is not None:
        following["start_after"] = target.start_after
    return following


DEADLINE: Final = "the deadline is near"
MARGIN_SECONDS: Final = 45.0
"""Work stops so long before the deadline, or by MARGIN_SHARE of the time left at the start, if that is shorter."""
MARGIN_SHARE: Final = 0.25


@contextmanager
def stop_before_deadline(seconds_left: float | None) -> Iterator[Stop]:
    """Give a stop that is set shortly before the deadline. seconds_left: None if there is no deadline."""
    stop = Stop()
    if seconds_left is None:
        yield stop
        return
    margin = min(MARGIN_SECONDS, max(0.0, seconds_left) * MARGIN_SHARE)
    timer = asyncio.get_running_loop().call_later(seconds_left - margin, stop.set, DEADLINE)
    try:
        yield stop
    finally:
        timer.cancel()
