"""L01: the Object Lock that the configuration requires is missing or weaker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from auditor.model.finding import Severity
from auditor.model.object import Unread
from auditor.rules.base import Hit, rule

MODES: Final = ("GOVERNANCE", "COMPLIANCE")
"""The modes of Object Lock, the weaker first."""


def validate(options: Mapping[str, Any]) -> None:
    if options["mode"] not in MODES:
        raise ValueError("mode must be GOVERNANCE or COMPLIANCE")


@rule(
    "L01",
    "lock-required",
    Severity.HIGH,
    reads=("head.object_lock_mode", "config.mode", "config.retention_readable"),
    options={"mode": str, "retention_readable": bool},
    validate=validate,
)
def check(head_object_lock_mode: str | None, mode: str, retention_readable: bool) -> Iterator[Hit | Unread]:
    """
    Why: without a lock, whoever may delete the object can destroy it and its versions; GOVERNANCE can be bypassed.
    Flagged: GOVERNANCE where mode of [rules.L01] is COMPLIANCE; no lock, if retention_readable is true.
    Not flagged: a lock that is as strong as mode, or stronger; its date (L02).
    Blind to: a legal hold. S3 leaves the lock out of its answer for a caller without s3:GetObjectRetention: unless
        retention_readable says that the auditor has this permission, the rule is undecided where S3 shows no lock.
    Fix: set the retention with PutObjectRetention, and a default retention for the bucket.
    """
    if head_object_lock_mode is None and not retention_readable:
        yield Unread("GetObjectRetention", "Unknown")
    elif head_object_lock_mode is None:
        yield Hit("it has no Object Lock, which is required")
    elif mode == "COMPLIANCE" and head_object_lock_mode != mode:
        yield Hit("its Object Lock can be bypassed: the mode is not COMPLIANCE")
