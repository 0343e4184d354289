"""Show the ledger's record of one object key, as JSON or as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import to_builtins

from auditor.ledger.base import AUDITOR, DAMAGED, Event, Expectation, KeyRecord, Known, Version
from auditor.reports.text_table import Column, text_table
from auditor.text import counted, visible


def as_json(bucket: str, key: str, subject: KeyRecord | None, history: Sequence[Event]) -> dict[str, Any]:
    """Return the ledger's record of one key, and the events of its history, as a JSON object. subject: the record; None
    if the ledger does not know the key.
    """
    return {
        "bucket": bucket,
        "key": key,
        "deleted_at": subject.deleted_at if subject else None,
        "retired_at": subject.retired_at if subject else None,
        "damage": list(subject.damage) if subject else [],
        "versions": [_plain(version) for version in subject.versions] if subject else [],
        "expectations": [_plain(one) for one in subject.expectations] if subject else [],
        "history": [_plain(event) for event in history],
    }


def _plain(value: Version | Expectation | Event) -> dict[str, Any]:
    fields: dict[str, Any] = to_builtins(value)
    fields.pop("key", None)
    return fields


def as_table(uri: str, subject: KeyRecord | None, history: Sequence[Event]) -> str:
    """Return the ledger's record of one key, and the events of its history, as lines for a terminal. Long lines are not
    cut, because people compare digests. uri: the key's, s3://BUCKET/KEY. subject: the record; None if the ledger does
    not know the key.
    """
    lines = [visible(uri), *(_subject(subject) if subject else ())]
    lines += ["history, oldest first", *text_table([Column()] * 3, map(_event, history), indent="  ")]
    return "".join(f"{line}\n" for line in lines)


def _subject(subject: KeyRecord) -> Iterator[str]:
    if subject.deleted_at is not None:
        yield f"deleted, a notification said at {visible(subject.deleted_at)}"
    if subject.retired_at is not None:
        yield f"retired at {visible(subject.retired_at)}"
    lost = any(known.damaged for version in subject.versions for known in version.digests.values())
    for words in subject.damage:
        mend = "" if lost else "; its digest is shown from the history, and `auditor ledger --repair` rewrites it"
        yield f"DAMAGED ledger entry: {visible(words)}{mend}"
    for version in subject.versions:
        yield (
            f"version {visible(version.version_id)}, ETag {visible(version.etag)}, {counted(version.size, 'byte')},"
            f" first seen {visible(version.first_seen)}"
        )
        if version.removed_at is not None:
            yield f"  deleted for good, a notification said at {visible(version.removed_at)}"
        if version.retired_at is not None:
            yield f"  retired at {visible(version.retired_at)}"
        digests = sorted(version.digests.items())
        rows = [(visible(algorithm), (visible(known.digest), _how(known))) for algorithm, known in digests]
        yield from text_table([Column(), Column()], rows, indent="  ")
    for one in subject.expectations:
        size = "" if one.size is None else f" of {counted(one.size, 'byte')}"
        yield f"expected{size}, by {visible(one.origin)}, imported {visible(one.imported_at)}"
        yield f"  {visible(one.algorithm)}  {visible(one.digest)}"


def _how(known: Known) -> str:
    origin = f"computed from {counted(known.bytes_read, 'byte')} read" if known.source == AUDITOR else "stated by S3"
    verified = f"last verified {visible(known.verified_at)}" if known.verified_at else "not verified since"
    damaged = "DAMAGED, and no sound line of the history recorded it: " if known.damaged else ""
    return f"{damaged}{origin}, recorded {visible(known.recorded_at)}, {verified}"


def _event(event: Event) -> tuple[str, str, str]:
    facts: dict[str, str | None] = {
        "version": event.version_id,
        "etag": event.etag,
        "size": None if event.size is None else f"{event.size}",
        **event.detail,
    }
    shown = " ".join(f"{visible(name)}={visible(value)}" for name, value in facts.items() if value is not None)
    mark = "  DAMAGED line: its seal is wrong" if event.seal == DAMAGED else ""
    return visible(event.at), event.what, f"{shown}{mark}"
