"""Give the steps of a listing the facts that an earlier run read, and read what these do not answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from auditor.audit.keeping.begin import Opened, Opening
from auditor.audit.keeping.earlier import Lines
from auditor.errors import OutputError
from auditor.model.object import Acl, Evidence, ObjectRef
from auditor.model.reuse import NO_PRIOR, Prior
from auditor.rules.judge import Judge
from auditor.rules.plan import judges_values
from auditor.s3.listing import Listed
from auditor.s3.object_reader import ObjectReader
from auditor.text import visible

T = TypeVar("T")
log = logging.getLogger(__name__)


class KeepingSource:
    """Yields the steps of a listing with the facts that are kept, and reads the other facts of their objects.

    opening: opens the earlier run. reader: reads an object. judge: judges it, to see if a rule needs a value of
    metadata that the earlier run did not store. clock: returns the present time, in seconds since 1970. start_after:
    the key after which the listing begins; None for all keys.
    """

    def __init__(
        self,
        opening: Opening,
        reader: ObjectReader,
        judge: Judge,
        clock: Callable[[], float],
        *,
        start_after: str | None = None,
    ) -> None:
        self._open = partial(opening.open, start_after)
        self._reader = reader
        self._judge = judge if judges_values(opening.plan) else None
        self._clock = clock

    async def pages(
        self, pages: AsyncGenerator[list[Listed], None], io: Callable[..., Awaitable[Any]]
    ) -> AsyncGenerator[list[Listed], None]:
        """Yield the pages of the listing with what is known of each step. io: runs a function in the thread of the
        store.

        If the earlier run cannot be read, nothing more of it is kept.
        """
        async with aclosing(pages):
            opened = await self._reading(partial(io, self._open))
            async for page in pages:
                lines: Lines | None = None
                if opened is not None:
                    keys = [step.key for step in page if step.ref is not None]
                    lines = await self._reading(partial(io, opened.objects.of, keys))
                if opened is None or lines is None:
                    opened = None
                    yield page
                else:
                    now = self._clock()
                    yield [self._step(step, lines, opened, now) for step in page]

    async def _reading(self, read: Callable[[], Awaitable[T]]) -> T | None:
        """Return what was read of the earlier run; None if it cannot be read."""
        try:
            return await read()
        except OutputError as error:
            log.warning("no more facts are reused from the last run: %s", visible(str(error)))
            return None

    def _step(self, step: Listed, lines: Lines, opened: Opened, now: float) -> Listed:
        ref = step.ref
        if ref is None or (prior := opened.prior(ref, lines.get((ref.key, ref.version_id)), now)) is None:
            return step
        known = self._reader.known(ref, prior)
        if known is None:
            return replace(step, prior=prior)
        return replace(step, prior=replace(prior, head=None)) if self._lacks(known) else replace(step, known=known)

    async def read(self, ref: ObjectRef, prior: Prior = NO_PRIOR) -> Evidence:
        """Read the facts that `prior` lacks, and the HEAD too if a rule needs a value that the earlier run did not
        store. Raises RunError if every further call would fail too.
        """
        found = await self._reader.read(ref, prior)
        if prior.head is None or found.vanished or not self._lacks(found):
            return found
        acl = found.acl if isinstance(found.acl, Acl) else None
        again = await self._reader.read(ref, replace(prior, acl=acl, head=None))
        return again if prior.acl is not None else replace(again, read_at=None)  # the ACL was read just before

    def _lacks(self, evidence: Evidence) -> bool:
        return self._judge is not None and bool(self._judge.object(evidence).unstored)
