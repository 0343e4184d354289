"""R01: the object was not replicated."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.rules.base import Hit, Severity, rule


@rule("R01", "replication-failed", Severity.HIGH, reads=("head.replication_status",))
def check(head_replication_status: str | None) -> Iterator[Hit]:
    """
    Why: the copy that a disaster plan counts on does not exist, and S3 does not try again on its own.
    Flagged: a replication status of FAILED.
    Not flagged: PENDING (R02), COMPLETED and REPLICA; an object that no replication rule covers.
    Blind to: objects from before the replication rule; the copies themselves; the destination that failed.
    Fix: repair the role or the destination's policy, then replicate again with S3 Batch Replication.
    """
    if head_replication_status == "FAILED":
        yield Hit("its replication failed")
