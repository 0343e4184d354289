"""The sorted rows of an S3 Inventory report that concern some keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from auditor.audit.mixed.report_origin import ReportOrigin
from auditor.s3.inventory.facts import Shape
from auditor.s3.inventory.lookup import InventoryLookup
from auditor.s3.inventory.sorting import SortedLines


class SortedRows:
    """Sorted rows, in which the facts of listed objects are looked up. Close it, or use it in a `with`."""

    def __init__(self, origin: ReportOrigin, lines: SortedLines, shapes: Sequence[Shape], *, versions: bool) -> None:
        self.origin = origin
        self.lookup = InventoryLookup(lines.sorted(), shapes, versions=versions)
        self._lines = lines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the sorted rows."""
        self._lines.close()
