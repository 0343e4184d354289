"""Make the events that a ledger itself writes into a key's history, and the fingerprint of an event."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from auditor.ledger.base import Entry, Event, Expectation, Notice, What
from auditor.model.dates import now_in_utc
from auditor.model.json_codec import JsonError, parse_object
from auditor.model.object import AnyVersion

LONGEST: Final = 1000
"""Largest number of characters of one text in an event's detail; longer texts are cut."""


def recorded(entry: Entry, algorithm: str) -> Event:
    """Return the "recorded" event for one digest of an entry."""
    detail = {"algorithm": algorithm, "digest": entry.digests[algorithm], "source": entry.source}
    return Event.of(entry, entry.hashed_at, "recorded", detail | {"bytes_read": str(entry.bytes_read)})


def conflicted(entry: Entry, what: str, stands: str) -> Event:
    """Return the "conflict" event for an entry that the ledger refused, because it has another digest or size.

    what: the algorithm whose digests differ, or "size". stands: the digest or size that the ledger keeps.
    """
    refused = str(entry.size) if what == "size" else entry.digests[what]
    named = {"size": refused} if what == "size" else {"algorithm": what, "digest": refused}
    return Event.of(entry, entry.hashed_at, "conflict", named | {"stands": stands, "source": entry.source})


def disagreed(version: AnyVersion, detail: Mapping[str, str]) -> Event:
    """Return a "mismatch" event with the present time: two digests of the object version differ.

    detail: the algorithm, both digests, and the source of one of them.
    """
    return Event.of(version, now_in_utc(), "mismatch", detail)


def noticed(notice: Notice) -> Event:
    """Return the "created" or "deleted" event for a notification of S3."""
    what: What = "deleted" if notice.deleted else "created"
    return Event.of(notice, notice.at, what, {"sequencer": notice.sequencer})


def imported(expectation: Expectation) -> Event:
    """Return the "imported" event for an expected digest."""
    detail = {"algorithm": expectation.algorithm, "digest": expectation.digest, "origin": expectation.origin}
    key, at = expectation.key, expectation.imported_at
    return Event(key=key, at=at, what="imported", size=expectation.size, detail=detail)


def bounded(event: Event) -> Event:
    """Return the event with each text of its detail cut to LONGEST characters."""
    return replace(event, detail={name: text[:LONGEST] for name, text in event.detail.items()})


def fingerprint(event: Event) -> bytes:
    """Return a hash of the event, 16 bytes. By this hash, a history finds out if it already has an equal event."""
    fields = [event.key, event.at, event.what, event.version_id, event.etag, event.size, dict(event.detail)]
    return hashlib.sha256(_canonical(fields)).digest()[:16]


def write_detail(detail: Mapping[str, str]) -> str:
    return _canonical(dict(detail)).decode()


def read_detail(text: str) -> dict[str, str]:
    """Parse an event's detail from the text that write_detail() made.

    Return any other text as {"damaged": text}, so that users see it.
    """
    try:
        return {str(name): str(value) for name, value in parse_object(text).items()}
    except JsonError:
        return {"damaged": text[:LONGEST]}


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
