"""Read the ACL and the HEAD of an object. A failed call on one object gives the value Unread, not an exception."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from msgspec.structs import replace

from auditor.errors import CallFailed
from auditor.model.object import Acl, Ask, Evidence, FactOrigin, Head, ObjectRef, Skipped, Unread
from auditor.model.reuse import NO_FACTS, KnownFacts
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine, ListQuery
from auditor.s3.gather import VanishedError, as_read, gone, is_fixed, refused, renewed, unread
from auditor.s3.key_policies import KeyPolicies
from auditor.s3.listing import ask_page

INTERNED_ACLS: Final = 1024
_NOT_ASKED: Final = Skipped("it was not asked for")


class ObjectReader:
    """Reads an object's ACL and then its HEAD, as far as `ask` wants them.

    A failed call on one object gives the value Unread. algorithms: the wanted digests; a HEAD asks for S3's checksums
    only if the listing names one of these algorithms. stand_in: for a server that has no ACLs of objects, the ACL that
    counts for each object; None for a server that has them, where an ACL that cannot be read is Unread. keys: reads the
    policy of each KMS key that a HEAD names; None to read none.
    """

    def __init__(
        self,
        engine: Engine,
        caller: Caller,
        ask: Ask,
        algorithms: Sequence[str],
        stand_in: Acl | None = None,
        keys: KeyPolicies | None = None,
    ) -> None:
        self._engine = engine
        self._caller = caller
        self._ask = ask
        self._wanted = frozenset(name.upper() for name in algorithms)
        self._ask_checksums = True
        self._stand_in = stand_in
        self._keys = keys
        self.lacks_acls = False
        """True once the server has answered that it has no ACLs of objects."""
        self._interned = lru_cache(INTERNED_ACLS)(_interned)
        self._probing = asyncio.Lock()
        self._probed_at = float("-inf")

    async def read(self, ref: ObjectRef, facts: KnownFacts = NO_FACTS) -> Evidence:
        """Read the ACL and the HEAD of a listed object, and return them as evidence.

        The evidence also tells if the object was deleted or overwritten since it was listed. A fact that `facts` has is
        used without a call, unless a HEAD shows that the object was written again since. Raises RunError if every
        further call would fail too.
        """
        kept_acl, kept_head = (None, None) if facts is NO_FACTS else self._kept(ref, facts)
        dormant = facts.dormant
        try:
            acl = kept_acl or await self._acl(ref)
            # An ACL of an earlier day does not prove that the bucket answers today.
            head = kept_head or await self._head(ref, _NOT_ASKED if kept_acl else acl, kept_acl=kept_acl is not None)
            if self._keys is not None and isinstance(head, Head):
                await self._keys.read(head)
            if kept_head is None and isinstance(head, Head):
                if head.etag != ref.etag:
                    return await self._changed(ref, head)
                if head.last_modified not in (ref.last_modified, None):  # the same bytes again, perhaps another ACL
                    dormant = None
                    if kept_acl:
                        kept_acl, acl = None, await self._acl(ref)
        except VanishedError:
            return gone(ref)
        if facts is NO_FACTS:
            return Evidence(ref, acl, head)
        read_at = facts.read_at(acl=kept_acl is not None, head=kept_head is not None)
        return Evidence(ref, acl, head, read_at=read_at, dormant=dormant)

    def known(self, ref: ObjectRef, facts: KnownFacts) -> Evidence | None:
        """Return the evidence that read() would return without any call; None if it would make one."""
        acl, head = self._kept(ref, facts)
        if (acl is None and self._asks_acl(ref)) or (head is None and self._ask.head is None):
            return None
        if head is not None and self._keys is not None and not self._keys.knows(head):
            return None
        read_at = facts.read_at(acl=acl is not None, head=head is not None)
        acl_or_why, head_or_why = acl or self._ask.acl or _NOT_ASKED, head or self._ask.head or _NOT_ASKED
        return Evidence(ref, acl_or_why, head_or_why, read_at=read_at, dormant=facts.dormant)

    def _kept(self, ref: ObjectRef, facts: KnownFacts) -> tuple[Acl | None, Head | None]:
        """Return those facts that stand for calls of this run: no fact that the run does not ask for, no HEAD of other
        bytes, and no ACL where the bucket's own ACL counts for each object.
        """
        acl = facts.acl if self._stand_in is None and self._asks_acl(ref) else None
        head = facts.head if self._ask.head is None else None
        if head is not None and (head.etag != ref.etag or self._lacks_checksum(ref, head, facts.head_from)):
            head = None
        return acl and self._interned(acl), head

    def _lacks_checksum(self, ref: ObjectRef, head: Head, source: FactOrigin) -> bool:
        """True if a HEAD of today would name a wanted checksum that the HEAD of an earlier run was not asked for."""
        if source is not FactOrigin.RUN or not self._ask_checksums:
            return False
        names = self._wanted.intersection(ref.checksum_algorithms)
        return any(getattr(head, f"checksum_{name.lower()}", "") is None for name in names)

    def lacks(self, known: Evidence) -> bool:
        """True if read_again() would read a fact of an object with these facts."""
        return not known.vanished and (self._lacks_acl(known) or self._lacks_head(known))

    async def read_again(self, known: Evidence, unchanged: Callable[[], Awaitable[bool]]) -> Evidence:
        """Read the facts of an object that an earlier run could not read or did not ask for, and keep the others.

        A known fact is kept only if it is of the object that is there now: an object that was written again since has
        other facts, and all of them are read. A HEAD shows this by its ETag and time. An ACL shows nothing.

        known: the facts of the earlier run. unchanged: returns True if a listing that begins after the call has the
        object as it was: it is called after the ACL was read. Raises RunError if every further call would fail too.
        """
        ref, wants_acl, wants_head = known.ref, self._lacks_acl(known), self._lacks_head(known)
        combines = wants_acl and not wants_head and isinstance(known.head, Head) and self._asks_acl(ref)
        try:
            acl = await self._acl(ref) if wants_acl else known.acl
            if combines and not is_fixed(ref) and not await unchanged():
                return renewed(await self.read(ref))
            head = await self._head(ref, acl) if wants_head else known.head
            if self._keys is not None and isinstance(head, Head):
                await self._keys.read(head)
            if wants_head and isinstance(head, Head):
                if head.etag != ref.etag:
                    return await self._changed(ref, head)
                if not wants_acl and head.last_modified not in (ref.last_modified, None):
                    acl = await self._acl(ref)  # the same bytes were written again, perhaps with another ACL
        except VanishedError:
            return gone(ref)
        return renewed(Evidence(ref, acl, head, changed=known.changed))

    def _lacks_acl(self, known: Evidence) -> bool:
        return isinstance(known.acl, Unread) or (isinstance(known.acl, Skipped) and self._asks_acl(known.ref))

    def _lacks_head(self, known: Evidence) -> bool:
        return isinstance(known.head, Unread) or (isinstance(known.head, Skipped) and self._ask.head is None)

    async def _changed(self, ref: ObjectRef, head: Head) -> Evidence:
        """Return the present facts of an object that was overwritten after it was listed.

        head: the HEAD of the new object. The ACL is read again, because the one at hand may belong to the old object.
        """
        now = as_read(ref, head)
        acl = await self._acl(replace(now, owner=None))
        return Evidence(replace(now, owner=acl.owner) if isinstance(acl, Acl) else now, acl, head, changed=True)

    def _asks_acl(self, ref: ObjectRef) -> bool:
        return self._ask.acl is None or (self._ask.acl_for_owner and ref.owner is None)

    async def _acl(self, ref: ObjectRef) -> Acl | Unread | Skipped:
        if self._ask.acl is not None and not self._asks_acl(ref):
            return self._ask.acl
        if self.lacks_acls and self._stand_in is not None:
            return self._stand_in
        try:
            return self._interned(await self._acl_once(ref))
        except CallFailed as failure:
            if self._stand_in is not None and failure.status == 501:
                self.lacks_acls = True
                return self._stand_in
            return unread(failure, ref.version_id is not None)

    async def _head(
        self, ref: ObjectRef, acl: Acl | Unread | Skipped, *, kept_acl: bool = False
    ) -> Head | Unread | Skipped:
        if self._ask.head is not None:
            return self._ask.head
        checksum = self._ask_checksums and not self._wanted.isdisjoint(ref.checksum_algorithms)
        renewals = self._caller.renewals
        try:
            return await self._head_once(ref, checksum)
        except CallFailed as failure:
            if failure.status == 403 and checksum:
                return await self._head_without_checksum(ref)
            if failure.status == 400:
                proved = kept_acl and await self._bucket_answers(ref)
                proved = proved or await self._bucket_answers(ref if isinstance(acl, Acl) else None)
                if self._caller.renewals != renewals:  # expired credentials may have caused the 400
                    return await self._head(ref, acl, kept_acl=kept_acl)
                return refused(acl, proved)
            if failure.status == 404 and not isinstance(acl, Acl):
                await self._bucket_answers()  # HEAD does not tell a missing object from a missing bucket
            return unread(failure, ref.version_id is not None)

    def _acl_once(self, ref: ObjectRef) -> Coroutine[Any, Any, Acl]:
        return self._caller.call(
            "acl",
            "GetObjectAcl",
            partial(self._engine.get_acl, ref.key, ref.version_id),
            storage_class=ref.storage_class,
        )

    def _head_once(self, ref: ObjectRef, checksum: bool) -> Coroutine[Any, Any, Head]:
        return self._caller.call(
            "head",
            "HeadObject",
            partial(self._engine.head, ref.key, ref.version_id, checksum=checksum),
            storage_class=ref.storage_class,
        )

    async def _head_without_checksum(self, ref: ObjectRef) -> Head | Unread:
        """Repeat a HEAD that was refused with 403, now without asking for checksums. If it succeeds, the caller lacks
        kms:Decrypt, which checksums need (HeadObject, S3 API reference). Later HEADs then do not ask for checksums.
        """
        try:
            head = await self._head_once(ref, False)
        except CallFailed as failure:
            return unread(failure, ref.version_id is not None)
        self._ask_checksums = False
        return head

    async def _bucket_answers(self, readable: ObjectRef | None = None) -> bool:
        """Return True if the bucket answers another call, a probe.

        The probe is needed because the error of a HEAD has no code. readable: an object whose ACL could be read, maybe
        on an earlier day; the probe reads this ACL again, which costs a twelfth of a listing. Raises RunError if every
        further call would fail too.
        """
        refused_at = self._caller.clock()
        async with self._probing:
            # One probe is enough for all HEADs that were refused before it.
            if self._probed_at < refused_at:
                self._probed_at = self._caller.clock()
                try:
                    await self._probe(readable)
                except CallFailed:  # an audit of versions may lack the right to list objects
                    self._probed_at = float("-inf")
                    return False
        return True

    async def _probe(self, ref: ObjectRef | None) -> None:
        if ref is not None:
            await self._acl_once(ref)
        else:
            await ask_page(self._engine, self._caller, ListQuery(page_size=1), None)


def _interned(acl: Acl) -> Acl:
    """Return the ACL unchanged. A cache around this function makes equal ACLs one object, which saves memory."""
    return acl
