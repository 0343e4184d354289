"""L02: the object's retention has ended, or ends soon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Final

from auditor.model.dates import any_date
from auditor.model.object import HELD, RELEASED, Head, Unread
from auditor.model.toml_forms import form
from auditor.rules.base import Hit, Severity, rule

MOST_DAYS: Final = 36_500
_Days = Annotated[int, form(f"write a number from 0 to {MOST_DAYS}", ge=0, le=MOST_DAYS)]


@rule(
    "L02",
    "lock-ends",
    Severity.MEDIUM,
    reads=("head", "now", "config.days", "config.retention_readable"),
    head=("lock",),
    options={"days": _Days, "retention_readable": bool},
)
def check(head: Head, now: datetime, days: int, retention_readable: bool) -> Iterator[Hit | Unread]:
    """
    Why: from that date on, whoever may delete the object can destroy it.
    Flagged: a retain-until date that has passed, or that comes within the days in [rules.L02] after the start of the
        run.
    Not flagged: an object without retention (L01); a later date; an object under an event hold, which has no date: S3
        holds it until the release, and then for the hold's duration.
    Blind to: a legal hold, which continues. S3 hides the date and the event hold from a caller without
        s3:GetObjectRetention: where it shows neither, the rule is undecided, unless retention_readable is true. A date
        or an event hold that cannot be read leaves it undecided, too.
    Fix: extend the retention with PutObjectRetention, or let it lapse deliberately.
    """
    if head.object_lock_event_hold == HELD:
        return
    if head.object_lock_event_hold not in (None, RELEASED):
        yield Unread("HeadObject", "Unknown")
        return
    text = head.object_lock_retain_until_date
    if text is None:
        if not retention_readable and head.object_lock_event_hold is None:
            yield Unread("GetObjectRetention", "Unknown")
        return
    try:
        left = any_date(text) - now
    except (ValueError, OverflowError):
        yield Unread("HeadObject", "Unknown")
        return
    if left <= timedelta():
        yield Hit("its retention has ended")
    elif left <= timedelta(days=days):
        yield Hit(f"its retention ends within {days} days")
