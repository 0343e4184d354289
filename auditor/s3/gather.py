"""Read the facts of the listed objects concurrently, and deliver them in the listing's order, in bounded memory.

Pure rules turn the answers of S3 about an object into facts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.ordered import in_order, one_ahead
from auditor.aio.stop import Stop
from auditor.aws.failures import is_gone
from auditor.errors import CallFailed
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import Acl, Evidence, Head, ObjectRef, Skipped, Unread
from auditor.model.reuse import NO_FACTS, KnownFacts
from auditor.s3.calls import Caller
from auditor.s3.listing import Listed, within_limit

NO_OBJECT_ACLS: Final = "the server lacks GetObjectAcl, so the bucket's ACL applies to each object"

WINDOW: Final = 2000
"""Largest number of objects that are started and not yet delivered. A slow object delays at most this many objects."""

BATCH: Final = 200


def stand_in(facts: BucketFacts) -> Acl | None:
    """Return the ACL that counts for each object of a bucket, for a server without ACLs of objects. It has the bucket's
    grants, or no grants if the server has no ACLs at all. Return None for AWS and Ceph, and if the bucket's ACL was not
    read.
    """
    if facts.semantics is not Semantics.OTHER:
        return None
    if isinstance(facts.acl, Acl):
        return facts.acl
    return Acl(facts.owner if isinstance(facts.owner, str) else "", ()) if "GetBucketAcl" in facts.lacking else None


class VanishedError(Exception):
    """The object was deleted after it was listed."""


def gone(ref: ObjectRef) -> Evidence:
    """Return the evidence of an object that was deleted after it was listed."""
    fact = Skipped("the object was gone")
    return Evidence(ref, fact, fact, vanished=True)


def renewed(evidence: Evidence) -> Evidence:
    """Return the evidence with the values of the HEAD in place of the listed ones if the object was written since."""
    ref, head = evidence.ref, evidence.head
    if evidence.vanished or not isinstance(head, Head) or head.last_modified in (ref.last_modified, None):
        return evidence
    return replace(evidence, ref=as_read(ref, head))


def is_fixed(ref: ObjectRef) -> bool:
    """True if the object version is never written again. The null version may be."""
    return ref.version_id not in (None, "null")


def refused(acl: Acl | Unread | Skipped, bucket_answers: bool) -> Unread:
    """Make the Unread of a HEAD that was refused with status 400. S3 sends no error code with a HEAD, so the code is
    derived.

    The code is SSE-C if the object's ACL could be read, or if no ACL was asked for and the bucket answered a probe;
    else the code is 400.
    """
    sse_c = isinstance(acl, Acl) or (bucket_answers and not isinstance(acl, Unread))
    return Unread("HeadObject", "SSE-C" if sse_c else "400")


def unread(failure: CallFailed, versioned: bool) -> Unread:
    """Convert a failed call to Unread. Raises VanishedError if the object is gone.

    Status 405 stands for a delete marker, and so for a gone object, if a header says so, or if the call is the HEAD of
    a version. Any other 405 means that the server does not support the call. versioned: True if the call named a
    version.
    """
    marker = failure.headers.get("x-amz-delete-marker") == "true" or (failure.action == "HeadObject" and versioned)
    if is_gone(failure) and (failure.status != 405 or marker):
        raise VanishedError from failure
    return Unread(failure.action, failure.code)


def as_read(ref: ObjectRef, head: Head) -> ObjectRef:
    """Return the object's listing entry with the values of its HEAD in place of the listed ones."""
    return replace(
        ref,
        etag=head.etag,
        size=head.content_length,
        last_modified=head.last_modified or ref.last_modified,
        storage_class=head.storage_class or "STANDARD",
        checksum_algorithms=(),
        checksum_type=head.checksum_type,
    )


class Gathered(Struct, frozen=True):
    """One step of the listing, with the facts of its object.

    evidence: None for a step without an object (delete markers).
    """

    step: Listed
    evidence: Evidence | None


class EvidenceReader(Protocol):
    """Reads the facts of an object; a failed call on one object gives the value Unread.

    facts: those that need no call.
    """

    async def read(self, ref: ObjectRef, facts: KnownFacts = NO_FACTS) -> Evidence: ...


Sink = Callable[[list[Gathered]], Awaitable[None]]


async def gather(
    pages: AsyncGenerator[list[Listed], None],
    reader: EvidenceReader,
    caller: Caller,
    stop: Stop,
    sink: Sink,
    *,
    calls_per_object: int,
    whole_keys: bool = False,
    window: int = WINDOW,
) -> bool:
    """Read the facts of the object in each step of the listing, and pass them to `sink` in the listing's order.

    Return True if the listing ended before any stop. whole_keys: never stop between two versions of one key, even if
    this means to wait for another page.

    There are at most as many tasks as permits, and at most `window` results that wait for the sink, which gets them in
    batches. A failed call on one object becomes an Unread in its evidence; an error that ends the run cancels all other
    work, and is raised itself. calls_per_object: largest number of calls for one object.
    """
    caller.calls_per_object = calls_per_object
    start = _Starter(reader, caller, stop)
    async with one_ahead(within_limit(pages, stop)) as ahead:
        return await in_order(ahead, start, sink, stop, window=window, batch=BATCH, whole_keys=whole_keys)


class _Starter:
    """Starts to read the object of each step of the listing; in_order() calls it with the steps.

    It waits for a permit, and returns a task that reads the object; None if no further object may be started. A step
    without an object, or with known facts, needs no task: its result is returned.
    """

    def __init__(self, reader: EvidenceReader, caller: Caller, stop: Stop) -> None:
        self._reader = reader
        self._caller = caller
        self._permits = caller.permits
        self._stop = stop

    async def __call__(
        self, group: asyncio.TaskGroup, step: Listed, same_key: bool
    ) -> asyncio.Task[Gathered] | Gathered | None:
        if step.ref is None or step.known is not None:
            return Gathered(step, step.known)
        await self._permits.acquire()
        if self._must_stop(step.ref) and not same_key:
            self._end(step.ref)
            return None
        return group.create_task(self._read(step, step.ref))

    def _must_stop(self, ref: ObjectRef) -> bool:
        """True if no further object may be started: the stop is set, or a limit leaves too little for all objects in
        flight. Call it after taking the object's permit, so that the object's own calls count too.
        """
        flag = self._caller.begin_object(ref.storage_class)
        if flag is not None:
            self._stop.set(f"the limit of {flag} was reached")
        return self._stop.is_set()

    def _end(self, ref: ObjectRef) -> None:
        self._caller.end_object(ref.storage_class)
        self._permits.release()

    async def _read(self, step: Listed, ref: ObjectRef) -> Gathered:
        try:
            return Gathered(step, await self._reader.read(ref, step.facts or NO_FACTS))
        finally:
            self._end(ref)  # not in a callback, which runs later: _must_stop counts the permits in use
