"""L01: the Object Lock that the configuration requires is missing or weaker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from auditor.model.object import HELD, RELEASED, Unread
from auditor.model.toml_forms import form
from auditor.rules.base import Hit, Severity, rule

_Mode = Annotated[str, form("write GOVERNANCE or COMPLIANCE", "GOVERNANCE|COMPLIANCE")]


@rule(
    "L01",
    "lock-required",
    Severity.HIGH,
    reads=("head.object_lock_mode", "head.object_lock_event_hold", "config.mode", "config.retention_readable"),
    options={"mode": _Mode, "retention_readable": bool},
)
def check(
    head_object_lock_mode: str | None, head_object_lock_event_hold: str | None, mode: str, retention_readable: bool
) -> Iterator[Hit | Unread]:
    """
    Why: without a lock, whoever may delete the object can destroy it and its versions; GOVERNANCE can be bypassed.
    Flagged: GOVERNANCE where mode in [rules.L01] is COMPLIANCE; no lock, if retention_readable is true, or S3 shows
        that an event hold is off (high). An object under an event hold whose mode is not COMPLIANCE, where that is
        required: AWS does not say that nobody can release the hold (medium).
    Not flagged: a lock that is as strong as mode, or stronger; its date (L02); an event hold, where mode is GOVERNANCE.
    Blind to: a legal hold; the bucket's defaults, which apply to new objects only. S3 hides the lock and the event
        hold from a caller without s3:GetObjectRetention: where it shows neither, the rule is undecided, unless
        retention_readable is true. An event hold other than ON and OFF leaves it undecided, too.
    Fix: set a retention with PutObjectRetention, and a default retention for the bucket.
    """
    held = head_object_lock_event_hold == HELD
    if head_object_lock_mode == "COMPLIANCE" or (mode == "GOVERNANCE" and (held or head_object_lock_mode is not None)):
        return
    if held:
        yield Hit("it is held until an event, but its mode is not COMPLIANCE", severity=Severity.MEDIUM)
    elif head_object_lock_event_hold not in (None, RELEASED):
        yield Unread("HeadObject", "Unknown")
    elif head_object_lock_mode is not None:
        yield Hit("its Object Lock can be bypassed: the mode is not COMPLIANCE")
    elif retention_readable or head_object_lock_event_hold is not None:
        yield Hit("it has no Object Lock, which is required")
    else:
        yield Unread("GetObjectRetention", "Unknown")
