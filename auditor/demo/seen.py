"""What the demo came to, and what of it is not as it must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from auditor.counts import Counts
from auditor.demo.compare import Comparison, audit_differences, hashing_differences
from auditor.demo.damage import Verified


@dataclass(frozen=True, slots=True)
class Seen:
    """Two audits' summaries, planted against found, what the worker did in between, and what `verify` said at last."""

    first: dict[str, Any]
    comparison: Comparison
    work: Counts
    second: dict[str, Any]
    verified: Verified

    def differences(self, objects: int) -> list[str]:
        """Sentences. objects: how many were loaded."""
        return [
            *audit_differences(self.first, objects),
            *self.comparison.differences,
            *hashing_differences(self.first["hashing"], self.work, self.second["hashing"]),
            *audit_differences(self.second, objects),
            *self.verified.differences(objects),
        ]
