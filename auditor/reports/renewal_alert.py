"""Make the alert on objects that an event made exposed: counts and prefixes, never keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from auditor.model.alert import Alert, AlertSection, Quoted
from auditor.model.run_lines import first_prefix
from auditor.text import counted

PREFIXES: Final = 15
"""Largest number of prefixes in an alert."""


def renewal_alert(bucket: str, run: str, exposed: Sequence[str]) -> Alert | None:
    """Return the alert on objects that are exposed since the last run; None if there are none.

    run: ID of the last run. exposed: the keys of the objects.
    """
    if not exposed:
        return None
    words = f"{counted(len(exposed), 'object')} newly exposed"
    prefixes = Counter(map(first_prefix, exposed)).most_common()
    items = tuple((Quoted(prefix or "(no prefix)"), f": {number:,}") for prefix, number in prefixes[:PREFIXES])
    sections = (
        AlertSection(
            ("In ", Quoted(f"s3://{bucket}"), f": {words}, as S3's events say. By prefix:"),
            items,
            len(prefixes) - len(items),
            "prefix",
        ),
        AlertSection(("The next audit has their findings; `auditor explain` says who can reach one.",)),
    )
    return Alert(title=("S3 events of ", Quoted(bucket), f": {words}"), sections=sections, bucket=bucket, run=run)
