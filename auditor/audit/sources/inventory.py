"""The facts that an S3 Inventory report has of the objects that the listing shows unchanged.

The listing proves which objects there are. The report only supplies facts, of its own age.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from auditor.audit.run_context import RunContext
from auditor.audit.sources.inventory_reports import ReportLimits, SortedRows, load_newest, open_reports, report_times
from auditor.audit.sources.walk import FactSource
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, Semantics
from auditor.model.dates import iso_date
from auditor.model.object import PUBLIC_GROUPS, Acl, DormantAcl, FactOrigin, ObjectRef, Unread
from auditor.model.reuse import KnownFacts
from auditor.runs.tally import Tally
from auditor.s3.inventory.facts import InventoryFacts
from auditor.s3.inventory.setup import inventory_place
from auditor.text import visible

log = logging.getLogger(__name__)
_UNREPORTED: Final = KnownFacts(unreported=True)


@asynccontextmanager
async def open_inventory(run: RunContext) -> AsyncIterator[FactSource]:
    """Load the newest report of the run's bucket, and yield the source of its facts.

    Raises InventoryError if no report can be used, OutputError if their place cannot be read, InventoryMissing if it is
    not known, and RunStopped after a stop.
    """
    target = run.remaining
    place = await inventory_place(run.settings.inventory, target, run.ask_setting)
    times = report_times(run.settings, run.clock())

    def load() -> SortedRows:
        with open_reports(place, run.settings) as store:
            return load_newest(store, place, target, times=times, stopped=lambda: bool(run.outer_stop))

    rows = await asyncio.to_thread(load)
    log.info("facts come from %s, of %s", visible(rows.origin.uri), rows.origin.created)
    try:
        yield ReportFacts(rows, run)
    finally:
        await asyncio.to_thread(rows.close)


class EmptyFacts:
    """A source of facts that has none: the rows of a report that are lost. Each object is read by calls."""

    def known(self, refs: Sequence[ObjectRef]) -> Sequence[KnownFacts]:
        return [_UNREPORTED] * len(refs)

    def unseen(self, tally: Tally) -> Iterable[str]:
        return ()


class ReportFacts:
    """A source of facts: the rows of a report. They may stand for HEADs unless the run has a ledger."""

    def __init__(self, rows: SortedRows, run: RunContext) -> None:
        self._rows = rows
        self._effective = EffectiveAcls(run.facts)
        self._limits = ReportLimits.of(run.settings.keep)
        self._clock = run.clock
        self._heads = run.plan.ask.head is None and not run.has_ledger
        self._created = rows.origin.created
        self._read = iso_date(self._created).timestamp()

    def known(self, refs: Sequence[ObjectRef]) -> Sequence[KnownFacts]:
        """Return what the report has of each object of a page, as far as it is within its limits. Blocks."""
        found = self._rows.lookup.facts_of_page(refs)
        age, limits = self._clock() - self._read, self._limits
        acls = limits.acl is None or age <= limits.acl
        heads = self._heads and (limits.head is None or age <= limits.head)
        return [self._of(ref, one, acls=acls, heads=heads) for ref, one in zip(refs, found, strict=True)]

    def unseen(self, tally: Tally) -> Iterable[str]:
        return self._rows.origin.unseen(tally.unreported)

    def _of(self, ref: ObjectRef, found: InventoryFacts | None, *, acls: bool, heads: bool) -> KnownFacts:
        """Return the facts of an object. acls, heads: True if a fact of this kind is within its limit."""
        if found is None or ref.last_modified >= self._created:
            return _UNREPORTED
        acl = self._effective.of(found.acl) if acls else None
        if acl is not None and ref.owner not in (None, acl.owner):  # the owner is another one now
            acl = None
        hidden = self._effective.hidden(found.acl)
        return KnownFacts(
            acl,
            self._created,
            FactOrigin.INVENTORY,
            found.head(ref) if heads else None,
            self._created,
            FactOrigin.INVENTORY,
            None if hidden is None else DormantAcl(hidden, self._created),
            unreported=found.acl is None,
        )


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
