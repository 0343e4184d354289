"""The one walk over the objects of a run: its steps, what is known of each object, and calls for all other facts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from functools import reduce
from typing import Any, Final, Protocol

from msgspec.structs import replace

from auditor.model.object import Acl, Evidence, ObjectRef, PartialHead, Unread
from auditor.model.reuse import NO_FACTS, KnownFacts
from auditor.model.target import Target
from auditor.rules.judge import Judge
from auditor.runs.tally import Tally
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine
from auditor.s3.gather import EvidenceReader
from auditor.s3.listing import Listed, pages
from auditor.s3.object_reader import ObjectReader

_NOT_READ: Final = Unread("GetObjectAcl", "NotRead")
"""Stands for an ACL that is still to be read, while it is decided if the HEAD has to be read too."""


class StepSource(Protocol):
    """Says which objects a run audits: a listing, or the lines of a stored run."""

    def pages(self, target: Target) -> AsyncGenerator[list[Listed], None]:
        """Yield the pages of the objects in the target's range of keys, each as a list of steps in key order."""
        ...


class FactSource(Protocol):
    """Knows facts of objects without a call: the last run, or an S3 Inventory."""

    def known(self, refs: Sequence[ObjectRef]) -> Sequence[KnownFacts | None]:
        """Return the facts of each object of a page; None where nothing is known. Blocks. Pages come in key order."""
        ...

    def unseen(self, tally: Tally) -> Iterable[str]:
        """Return phrases on what a run with these facts did not look at, for the summary. tally: the run's counts."""
        ...


class RunObjects(StepSource, EvidenceReader, Protocol):
    """The objects of a run, and the reader of the facts that their steps lack."""


class Listing:
    """The steps of a bucket's listing. It proves which objects there are.

    begin() asks for the first page while the caller prepares the rest of its work; close() then ends the listing.
    """

    def __init__(self, engine: Engine, caller: Caller) -> None:
        self._engine = engine
        self._caller = caller
        self._begun: tuple[AsyncGenerator[list[Listed], None], asyncio.Task[list[Listed] | None]] | None = None

    def begin(self, target: Target) -> None:
        """Ask for the first page of the target, which pages() is to yield."""
        found = pages(self._engine, self._caller, target)
        self._begun = found, asyncio.ensure_future(anext(found, None))

    async def pages(self, target: Target) -> AsyncGenerator[list[Listed], None]:
        found, first = self._begun or (pages(self._engine, self._caller, target), None)
        async with aclosing(found):
            if first is not None and (page := await first) is not None:
                yield page
            async for page in found:
                yield page

    async def close(self) -> None:
        """End a listing that was begun, also one whose first page nobody took."""
        if self._begun is None:
            return
        found, first = self._begun
        first.cancel()
        await asyncio.wait([first])
        if not first.cancelled():
            first.exception()  # whoever took the page has seen the error
        await found.aclose()


class ObjectWalk:
    """Yields the steps of a source with the facts that are known of their objects, and reads the other facts.

    facts: the sources of facts, the one that goes before the others first. reader: reads an object. judge: judges it,
    to see if a rule needs a member of the HEAD that a source does not have. values: True if a HEAD may lack the values
    of user metadata that a rule judges. io: runs a function that blocks in a thread.
    """

    def __init__(
        self,
        steps: StepSource,
        facts: Sequence[FactSource],
        reader: ObjectReader,
        judge: Judge,
        io: Callable[..., Awaitable[Any]],
        *,
        values: bool,
    ) -> None:
        self._steps = steps
        self._facts = facts
        self._reader = reader
        self._judge = judge
        self._io = io
        self._values = values

    async def pages(self, target: Target) -> AsyncGenerator[list[Listed], None]:
        async with aclosing(self._steps.pages(target)) as pages:
            async for page in pages:
                refs = [step.ref for step in page if step.ref is not None]
                found = [await self._io(source.known, refs) for source in self._facts]
                facts = zip(*found, strict=True)
                yield [self._with(step, step.ref, next(facts)) if found and step.ref else step for step in page]

    def _with(self, step: Listed, ref: ObjectRef, found: Iterable[KnownFacts | None]) -> Listed:
        """Return the step with the facts that the sources found, and with the evidence if these are all facts."""
        known_facts = [one for one in found if one is not None]
        facts = reduce(KnownFacts.joined, known_facts) if known_facts else NO_FACTS
        if facts.save_nothing:
            return replace(step, facts=facts) if facts.unreported else step
        if isinstance(facts.head, PartialHead) and self._unstored(Evidence(ref, facts.acl or _NOT_READ, facts.head)):
            facts = replace(facts, head=None)
        known = self._reader.known(ref, facts)
        if known is not None and not isinstance(facts.head, PartialHead) and self._lacks_values(known):
            known, facts = None, replace(facts, head=None)
        return replace(step, known=known, facts=facts)

    def read(self, ref: ObjectRef, facts: KnownFacts = NO_FACTS) -> Coroutine[Any, Any, Evidence]:
        """Read the facts that are not known, and the HEAD too if a rule needs a value that its source does not have.

        Raises RunError if every further call would fail too.
        """
        return self._reader.read(ref, facts) if facts.head is None else self._read_rest(ref, facts)

    async def _read_rest(self, ref: ObjectRef, facts: KnownFacts) -> Evidence:
        found = await self._reader.read(ref, facts)
        if found.vanished or not self._lacks_values(found):
            return found
        acl = found.acl if isinstance(found.acl, Acl) else None
        again = await self._reader.read(ref, replace(facts, acl=acl, head=None))
        return again if facts.acl is not None else replace(again, read_at=None)  # the ACL was read just before

    def _lacks_values(self, evidence: Evidence) -> bool:
        return self._values and self._unstored(evidence)

    def _unstored(self, evidence: Evidence) -> bool:
        return bool(self._judge.object(evidence).unstored)
