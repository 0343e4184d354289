"""Export the histories of all keys as a table, with the event types of the standard PREMIS."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from auditor.ledger.base import AUDITOR, HistoryEntry, Ledger, What
from auditor.ledger.manifests.csv_table import csv_row
from auditor.model.target import Target

_PREMIS: Final[Mapping[What, str]] = {
    "recorded": "message digest calculation",
    "verified": "fixity check",
    "mismatch": "fixity check",
    "deleted": "deletion",
}
"""The labels of https://id.loc.gov/vocabulary/preservation/eventType. That list has no event for other lines."""
COLUMNS: Final = (
    "key",
    "at",
    "event",
    "premis_event_type",
    "version_id",
    "etag",
    "size",
    "algorithm",
    "digest",
    "seal",
    "detail",
)


@dataclass(slots=True)
class HistoryCounts:
    """The number of exported history lines. complete: True if the export reached the end of the ledger."""

    lines: int = 0
    complete: bool = False


def premis_type(entry: HistoryEntry) -> str:
    """Return the PREMIS event type of a history line; "" if it has none, as for a digest that S3 computed."""
    if entry.event.what == "recorded" and entry.event.detail.get("source", AUDITOR) != AUDITOR:
        return ""
    return _PREMIS.get(entry.event.what, "")


def _fields(entry: HistoryEntry) -> dict[str, object]:
    """Return the values of an exported line by column, in the order of COLUMNS."""
    event = entry.event
    named = (event.detail.get("algorithm"), event.detail.get("digest"))
    values = (event.key, event.at, event.what, premis_type(entry) or None, event.version_id, event.etag, event.size)
    return dict(zip(COLUMNS, (*values, *named, entry.seal, dict(event.detail)), strict=True))


def _csv(entry: HistoryEntry) -> bytes:
    fields = _fields(entry)
    fields["detail"] = json.dumps(fields["detail"])
    return csv_row("" if value is None else str(value) for value in fields.values())


def _json(entry: HistoryEntry) -> bytes:
    return json.dumps(_fields(entry)).encode() + b"\n"


FORMATS: Final[Mapping[str, tuple[bytes, Callable[[HistoryEntry], bytes]]]] = {
    "csv": (csv_row(COLUMNS), _csv),
    "json-lines": (b"", _json),
}
"""The bytes before all lines, and the writer of a line, by the name of the format."""


async def export_history(
    ledger: Ledger,
    target: Target,
    name: str,
    write: Callable[[bytes], object],
    go_on: Callable[[int], bool] = lambda lines: True,
) -> HistoryCounts:
    """Write the histories of all keys below the target, in the order of S3's listing. Raises LedgerError.

    name: of a format in FORMATS. go_on: called now and then with the number of lines written; False stops the export.
    """
    counts, (head, line_of) = HistoryCounts(), FORMATS[name]
    write(head)
    async with aclosing(ledger.histories(target.bucket, target.prefix)) as parts:
        async for part in parts:
            if not go_on(counts.lines):
                return counts
            for entry in part:
                write(line_of(entry))
            counts.lines += len(part)
    counts.complete = True
    return counts
