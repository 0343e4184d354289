"""Make calls of S3 Control on one account."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from auditor.errors import CallFailed
from auditor.s3.engines.base import Questions
from auditor.s3.engines.parse_reply import Reply, required

T = TypeVar("T")

MOST_PAGES: Final = 2_000
"""The largest number of pages of a listing, full or empty."""
TOO_MANY: Final = "TooMany"


class Call(Protocol):
    """A function that makes the call `action` with retries. `question` makes one attempt."""

    async def __call__(self, action: str, question: Callable[[], Awaitable[T]]) -> T: ...


class ControlCalls:
    """Makes calls of S3 Control. account: the number of the account that they are on."""

    def __init__(self, account: str, call: Call, questions: Questions) -> None:
        self.account = account
        self._call = call
        self._questions = questions

    async def ask(self, action: str, **arguments: str) -> Reply:
        """Make the call `action`, and return its reply. arguments: by botocore's name. Raises CallFailed."""
        return await self._call(action, lambda: self._questions.control(action, self.account, arguments))

    async def pages(self, action: str, element: str, **arguments: str) -> AsyncIterator[tuple[Sequence[Any], bool]]:
        """Yield the entries of each page of a listing, and True if another page follows.

        element: the one that has the entries. Raises CallFailed, also for a listing that does not end.
        """
        seen: set[str] = set()
        while True:
            reply = await self.ask(action, **arguments)
            token = reply.get("NextToken") or None
            yield required(action, reply, element), token is not None
            if token is None:
                return
            if token in seen:
                raise CallFailed(action, "Malformed", 200, "the listing goes round")
            seen.add(token)
            if len(seen) >= MOST_PAGES:
                raise CallFailed(action, TOO_MANY, 200, f"the listing has more than {MOST_PAGES} pages")
            arguments["NextToken"] = token
