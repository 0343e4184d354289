"""One night of a trend: the counts of a target's last complete run of that day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from auditor.model.json_text import Size


@dataclass(frozen=True, slots=True)
class TrendNight:
    """One day of a trend, in UTC, with the counts of its last complete run; None if there was no such run."""

    day: str
    """The day, such as 2026-01-02."""
    run: str | None = None
    verdicts: Mapping[str, Size] | None = None
    """Number of objects by verdict."""
    findings: Mapping[str, Size] | None = None
    """Number of findings by severity."""
    undecided: Size | None = None
    """Number of objects with a fact that could not be read."""
    listed: Size | None = None
    """Number of listed objects."""
    excepted: Mapping[str, Size] | None = None
    """Number of objects by verdict that an exception covered."""
