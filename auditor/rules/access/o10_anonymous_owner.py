"""O10: the object was uploaded without credentials."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.object import ANONYMOUS_OWNER
from auditor.rules.base import Hit, Severity, rule


@rule("O10", "owner-anonymous", Severity.CRITICAL, reads=("owner",))
def check(owner: str) -> Iterator[Hit]:
    """
    Why: a stranger could write to the bucket; the object may be malware, or may have replaced a real one.
    Flagged: an owner with the canonical ID that S3 gives to anonymous uploaders.
    Not flagged: any other foreign owner (O09); buckets with BucketOwnerEnforced, whose owner owns every object.
    Blind to: anonymous uploads from a time when ACLs were disabled: these look like the bucket owner's own.
    Fix: close the bucket to anonymous writers (B03, B04), then inspect the object and delete it.
    """
    if owner == ANONYMOUS_OWNER:
        yield Hit("it was uploaded without credentials", owner)
