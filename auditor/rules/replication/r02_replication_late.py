"""R02: the replication of the object is late."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Final

from auditor.model.dates import any_date
from auditor.model.object import ObjectRef, Unread
from auditor.model.toml_forms import form
from auditor.rules.base import Hit, Severity, rule

MOST_HOURS: Final = 24 * 365
_Hours = Annotated[int, form(f"write a number from 0 to {MOST_HOURS}", ge=0, le=MOST_HOURS)]


@rule(
    "R02",
    "replication-late",
    Severity.MEDIUM,
    reads=("ref", "head.replication_status", "now", "config.hours"),
    options={"hours": _Hours},
)
def check(ref: ObjectRef, head_replication_status: str | None, now: datetime, hours: int) -> Iterator[Hit | Unread]:
    """
    Why: an object that is lost meanwhile has no copy; a status that stays PENDING often means a misconfigured role.
    Flagged: a replication status of PENDING on an object that is older than the hours in [rules.R02] at the start of
        the run.
    Not flagged: younger objects; FAILED (R01).
    Blind to: the time at which the replication began; it may be later than the upload. A date that cannot be read
        leaves the rule undecided.
    Fix: look at the replication metrics and the role; replicate again with S3 Batch Replication.
    """
    if head_replication_status != "PENDING":
        return
    try:
        age = now - any_date(ref.last_modified)
    except (ValueError, OverflowError):
        yield Unread("ListObjectsV2", "Unknown")
        return
    if age > timedelta(hours=hours):
        yield Hit(f"its replication has been pending for more than {hours} hours")
