"""Turn what S3 answered about an object into facts: pure rules, without a call."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from auditor.aws.failures import is_gone
from auditor.errors import CallFailed
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import Acl, Evidence, Head, ObjectRef, Skipped, Unread

NO_OBJECT_ACLS: Final = "the server lacks GetObjectAcl, so the bucket's ACL applies to each object"


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
