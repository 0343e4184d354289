"""Export the ledger's digests as a checksum manifest, and the histories of all keys as a table.

The events of the table have the types of PREMIS, a standard of preservation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Final

from msgspec import Struct

from auditor.ledger.base import AUDITOR, Event, KeyHistory, Ledger, What
from auditor.ledger.manifests.base import Form
from auditor.ledger.manifests.csv_table import csv_row
from auditor.model.target import Target


class Exported(Struct):
    """The counts of an export: keys that are in the manifest, and keys that were left out, by reason."""

    keys: int = 0
    """Number of keys in the manifest."""
    deleted: int = 0
    """Number of keys left out because a notification reported their deletion."""
    retired: int = 0
    """Number of keys left out because a person retired them."""
    stale: int = 0
    """Number of keys whose newest content, reported by a notification, has no digest in the ledger. A form with one
    line for each key leaves them out."""
    without: int = 0
    """Number of keys left out because they have no digest by the wanted algorithms."""
    unnameable: int = 0
    """Number of keys left out because a line of this form cannot hold their name."""
    complete: bool = False
    """True if the export reached the end of the ledger."""

    @property
    def whole(self) -> bool:
        """True if the manifest has every existing key that the ledger knows, with the digest of its newest content."""
        return self.complete and not (self.stale or self.without or self.unnameable)


async def export(
    ledger: KeyHistory,
    target: Target,
    form: Form,
    algorithms: tuple[str, ...],
    write: Callable[[bytes], object],
    *,
    relative: bool = False,
    go_on: Callable[[int], bool] = lambda keys: True,
) -> Exported:
    """Write a manifest of all keys that the target covers, in the order of S3's listing. Raises LedgerError.

    relative: True to write the names without the target's prefix. go_on: called before each key with the number of keys
    written so far; returns False to stop the export.
    """
    counts = Exported()
    if form.head:
        write(form.head)
    async with aclosing(ledger.subjects(target.bucket, target.prefix)) as subjects:
        async for subject in subjects:
            if not go_on(counts.keys):
                return counts
            if subject.deleted_at is not None:
                counts.deleted += 1
                continue
            if subject.retired_at is not None:
                counts.retired += 1
                continue
            if subject.unrecorded:
                counts.stale += 1
                if form.single:
                    continue
            name = subject.key.removeprefix(target.prefix) if relative else subject.key
            lines = b"".join(form.rows(name, subject, algorithms))
            if not lines:
                counts.without += 1
            elif not form.nameable(name):
                counts.unnameable += 1
            else:
                write(lines)
                counts.keys += 1
    counts.complete = True
    return counts


_PREMIS: Final[Mapping[What, str]] = {
    "recorded": "message digest calculation",
    "verified": "fixity check",
    "mismatch": "fixity check",
    "deleted": "deletion",
}
"""PREMIS event type of each kind of event, as labelled in https://id.loc.gov/vocabulary/preservation/eventType. The
standard has no type for the other kinds."""
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


class HistoryCounts(Struct):
    """The number of exported history lines.

    complete: True if the export reached the end of the ledger.
    """

    lines: int = 0
    complete: bool = False


def premis_type(event: Event) -> str:
    """Return the PREMIS event type of a history line; "" if it has none, as for a digest that S3 computed."""
    if event.what == "recorded" and event.detail.get("source", AUDITOR) != AUDITOR:
        return ""
    return _PREMIS.get(event.what, "")


def _fields(event: Event) -> dict[str, object]:
    """Return the fields of an exported history line by column name, in the order of COLUMNS."""
    named = (event.detail.get("algorithm"), event.detail.get("digest"))
    values = (event.key, event.at, event.what, premis_type(event) or None, event.version_id, event.etag, event.size)
    return dict(zip(COLUMNS, (*values, *named, event.seal, dict(event.detail)), strict=True))


def _csv(event: Event) -> bytes:
    fields = _fields(event)
    fields["detail"] = json.dumps(fields["detail"])
    return csv_row("" if value is None else str(value) for value in fields.values())


def _json(event: Event) -> bytes:
    return json.dumps(_fields(event)).encode() + b"\n"


FORMATS: Final[Mapping[str, tuple[bytes, Callable[[Event], bytes]]]] = {
    "csv": (csv_row(COLUMNS), _csv),
    "json-lines": (b"", _json),
}
"""For each output format by name: the bytes at the start of the file, and the function that writes one line."""


async def export_history(
    ledger: Ledger,
    target: Target,
    name: str,
    write: Callable[[bytes], object],
    go_on: Callable[[int], bool] = lambda lines: True,
) -> HistoryCounts:
    """Write the histories of all keys that the target covers, in the order of S3's listing. Raises LedgerError.

    name: a format in FORMATS. go_on: called before each batch with the number of lines written so far; returns False to
    stop the export.
    """
    counts, (head, line_of) = HistoryCounts(), FORMATS[name]
    write(head)
    async with aclosing(ledger.histories(target.bucket, target.prefix)) as parts:
        async for part in parts:
            if not go_on(counts.lines):
                return counts
            for event in part:
                write(line_of(event))
            counts.lines += len(part)
    counts.complete = True
    return counts
