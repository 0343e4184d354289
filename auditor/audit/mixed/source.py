"""Give the steps of a listing the facts that an S3 Inventory report has of their objects.

The listing proves which objects there are. The report only supplies facts, of its own age, of objects that the listing
shows unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.mixed.report_origin import unseen_words
from auditor.audit.mixed.sorted_rows import SortedRows
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, Semantics
from auditor.model.dates import iso_date
from auditor.model.object import (
    CONTENT,
    PUBLIC_GROUPS,
    Acl,
    DormantAcl,
    Evidence,
    FactSource,
    Head,
    ObjectRef,
    PartialHead,
    Unread,
)
from auditor.model.reuse import ACL, NO_PRIOR, Keep, Prior
from auditor.rules.judge import Judge
from auditor.s3.inventory.facts import InventoryFacts
from auditor.s3.listing import Listed
from auditor.s3.object_reader import ObjectReader

_NOT_READ: Final = Unread("GetObjectAcl", "NotRead")
"""Stands for an ACL that is still to be read, while it is decided if the HEAD has to be read too."""


class ReportLimits(Struct, frozen=True):
    """The largest ages of a report's facts, in seconds; None for no limit."""

    acl: float | None = None
    head: float | None = None

    @classmethod
    def of(cls, keep: Keep | None) -> ReportLimits:
        """Return the limits that the setting `keep` gives. The shortest limit of a changing member of HEAD counts for
        all that a report has of it.
        """
        limits = {} if keep is None else keep.limits
        heads = [limit for name, limit in limits.items() if name not in (ACL, CONTENT)]
        return cls(limits.get(ACL), min(heads, default=None))

    @property
    def longest(self) -> float | None:
        """The age past which a report has nothing to give; None if there is none."""
        return None if self.acl is None or self.head is None else max(self.acl, self.head)


class PageFacts:
    """The facts of a report whose rows are lost: each object is read by calls."""

    async def pages(
        self,
        pages: AsyncGenerator[list[Listed], None],
        reader: ObjectReader,
        judge: Judge,
        io: Callable[..., Awaitable[Any]],
        *,
        heads: bool,
    ) -> AsyncGenerator[list[Listed], None]:
        """Yield the pages of the listing with what is known of each step.

        reader: reads the other facts. judge: judges an object, to see if a rule needs a member of HEAD that the report
        or the earlier run does not have. io: runs a function in a thread. heads: True if a report may stand for HEADs.
        """
        async with aclosing(pages):
            async for page in pages:
                yield [step if step.ref is None else replace(step, unreported=True) for step in page]

    def unseen_words(self, unreported: int) -> list[str]:
        """Return phrases on what an audit that used the report did not look at, for the summary. unreported: the number
        of objects whose stored ACL the report does not tell (Tally.unreported).
        """
        return []


class MixedFacts(PageFacts):
    """The facts of a report, which pages() adds to the steps of a listing.

    facts: those of the bucket. limits: ages past which a fact is read by a call. clock: returns the present time, in
    seconds since 1970.
    """

    def __init__(
        self,
        inventory: SortedRows,
        facts: BucketFacts,
        limits: ReportLimits,
        clock: Callable[[], float],
    ) -> None:
        self._inventory = inventory
        self._facts = facts
        self._limits = limits
        self._clock = clock

    async def pages(
        self,
        pages: AsyncGenerator[list[Listed], None],
        reader: ObjectReader,
        judge: Judge,
        io: Callable[..., Awaitable[Any]],
        *,
        heads: bool,
    ) -> AsyncGenerator[list[Listed], None]:
        lookup = self._inventory.lookup
        effective = EffectiveAcls(self._facts)
        known = _KnownFacts(self._inventory.origin.created, reader, judge, effective, heads=heads)
        async with aclosing(pages):
            async for page in pages:
                refs = [step.ref for step in page if step.ref is not None]
                found = iter(await io(lookup.facts_of_page, refs))
                known.age(self._clock(), self._limits)
                yield [step if step.ref is None else known.step(step, step.ref, next(found)) for step in page]

    def unseen_words(self, unreported: int) -> list[str]:
        return unseen_words(self._inventory.origin, unreported)


class _KnownFacts:
    """Adds the facts of a report to single steps. created: time of the report. heads: True if the report may stand for
    HEADs.
    """

    def __init__(
        self, created: str, reader: ObjectReader, judge: Judge, effective: EffectiveAcls, *, heads: bool
    ) -> None:
        self._created = created
        self._reader = reader
        self._judge = judge
        self._effective = effective
        self._heads = heads
        self._read = iso_date(created).timestamp()
        self._acl_holds = self._head_holds = True

    def age(self, now: float, limits: ReportLimits) -> None:
        """Note which facts are within their limits at this time, in seconds since 1970."""
        age = now - self._read
        self._acl_holds = limits.acl is None or age <= limits.acl
        self._head_holds = limits.head is None or age <= limits.head

    def step(self, step: Listed, ref: ObjectRef, found: InventoryFacts | None) -> Listed:
        """Return the step with the facts that the report has of its object, and those that it had before."""
        if found is None or ref.last_modified >= self._created:
            return replace(step, unreported=True)
        if found.acl is None:
            step = replace(step, unreported=True)
        before = _prior_of(step)
        prior = self._with_acl(before, ref, found) if self._acl_holds else before
        hidden = self._effective.hidden(found.acl)
        if hidden is not None:
            prior = replace(prior, dormant=DormantAcl(hidden, self._created))
        if prior.head is None and self._heads and self._head_holds:
            prior = self._with_head(prior, ref, found)
        if prior is before:
            return step
        known = self._reader.known(ref, prior)
        if known is not None and prior.head is before.head is not None and self._judge.object(known).unstored:
            known, prior = (
                None,
                replace(prior, head=None),
            )  # the HEAD of the last run lacks a value that the ACL asks for
        return replace(step, known=known, prior=None if known is not None else prior)

    def _with_acl(self, prior: Prior, ref: ObjectRef, found: InventoryFacts) -> Prior:
        """Return the facts with the ACL of the report, unless a later one is known or the owner is another one now."""
        acl = self._effective.of(found.acl)
        if acl is None or (prior.acl is not None and (prior.acl_at or "") >= self._created):
            return prior
        if ref.owner is not None and acl.owner != ref.owner:
            return prior
        return replace(prior, acl=acl, acl_at=self._created, acl_from=FactSource.INVENTORY)

    def _with_head(self, prior: Prior, ref: ObjectRef, found: InventoryFacts) -> Prior:
        """Return the facts with the members of HEAD that the report has, if no rule needs another one."""
        head = found.head(ref)
        if head is None or self._judge.object(Evidence(ref, prior.acl or _NOT_READ, head)).unstored:
            return prior
        return replace(prior, head=head, head_at=self._created, head_from=FactSource.INVENTORY)


class EffectiveAcls:
    """Makes of a stored ACL, which a report has, the ACL that GetObjectAcl would return.

    GetObjectAcl returns the permissions in force: without grants to the public groups under IgnorePublicAcls (S3 User
    Guide, "Blocking public access to your Amazon S3 storage"), and of the bucket's owner alone under
    BucketOwnerEnforced. If such a setting could not be read, only a call tells the ACL. facts: those of the bucket.
    """

    def __init__(self, facts: BucketFacts) -> None:
        levels = (facts.public_access_block, facts.account_public_access_block)
        self._owner = facts.owner if isinstance(facts.owner, str) else None
        self._enforced = facts.ownership == BUCKET_OWNER_ENFORCED
        self._hides = facts.semantics is Semantics.AWS and facts.ignores_public_acls
        self._unsure = not facts.ignores_public_acls and any(isinstance(level, Unread) for level in levels)
        self._maybe_enforced = isinstance(facts.ownership, Unread)

    def of(self, stored: Acl | None) -> Acl | None:
        """Return the ACL in force; None if it is not known."""
        if self._maybe_enforced and self._outsiders(stored) is not None:
            return None
        if stored is None or not any(grant.grantee in PUBLIC_GROUPS for grant in stored.grants):
            return stored
        if self._unsure:
            return None
        if not self._hides:
            return stored
        return Acl(stored.owner, tuple([grant for grant in stored.grants if grant.grantee not in PUBLIC_GROUPS]))

    def hidden(self, stored: Acl | None) -> Acl | None:
        """Return the part of a stored ACL that counts for nothing today: all but the grants to the bucket's owner if
        ACLs are off, or the public grants that a block hides, then with the owner ""; None if there is none.
        """
        if self._enforced:
            return self._outsiders(stored)
        if stored is None or not self._hides:
            return None
        grants = tuple([grant for grant in stored.grants if grant.grantee in PUBLIC_GROUPS])
        return Acl("", grants) if grants else None

    def _outsiders(self, stored: Acl | None) -> Acl | None:
        """Return what BucketOwnerEnforced hides of a stored ACL: its owner, and all grants but those to the bucket's
        owner; None if it hides nothing.
        """
        if stored is None:
            return None
        grants = tuple([grant for grant in stored.grants if grant.grantee != self._owner])
        return Acl(stored.owner, grants) if grants or stored.owner != self._owner else None


def _prior_of(step: Listed) -> Prior:
    """Return the facts of an earlier run that the step has."""
    known = step.known
    if known is None:
        return step.prior or NO_PRIOR
    at = known.read_at
    return Prior(
        known.acl if isinstance(known.acl, Acl) else None,
        at.acl if at else None,
        (at and at.acl_from) or FactSource.RUN,
        known.head if isinstance(known.head, Head) and not isinstance(known.head, PartialHead) else None,
        at.head if at else None,
        (at and at.head_from) or FactSource.RUN,
    )
