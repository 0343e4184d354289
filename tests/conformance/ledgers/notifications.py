"""The checks of notifications: the newest one of a key stands, whatever their order."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Final

from auditor.ledger.base import Event, Ledger, Notice

from .base import ENTRY, KEY, NOTICE, lines, opened, subject

_LOOKS: Final = [(None, 20, False), (None, 10, True), ("v1", 20, True)]
"""The version that was read, the minutes after the deletion, and whether the deletion stands: the first was read long
after, the second was being read, the third is an older version."""
_SEQUENCERS: Final = [
    ("0A", "0B", True),
    ("0B", "0A", False),
    ("0a", "0A00", True),  # equal after padding
    ("0A", "0A01", True),
    ("0A01", "0a", False),
    ("FF", "0100000000000000", False),
    ("9", "a", True),
]
"""The sequencer that came first, the next one, and whether the next one stands."""


@opened
async def deletion_is_known_until_a_newer_notification_says_otherwise(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    assert await ledger.arrived("bucket", NOTICE) is True
    assert (await subject(ledger)).deleted_at is None
    deletion = Notice(key=KEY, sequencer="0055AED6DCD90281E6", deleted=True, at="2026-01-02T03:05:00Z")
    assert await ledger.arrived("bucket", deletion) is True
    assert (await subject(ledger)).deleted_at == "2026-01-02T03:05:00Z"
    assert await ledger.arrived("bucket", NOTICE) is False
    assert (await subject(ledger)).deleted_at == "2026-01-02T03:05:00Z"
    assert await ledger.arrived("bucket", replace(NOTICE, sequencer="0055AED6DCD90281E7", at="again")) is True
    assert (await subject(ledger)).deleted_at is None
    assert [what for what, _, _ in await lines(ledger)] == ["recorded", "created", "deleted", "created"]


@opened
async def deletion_that_a_later_look_belies_is_not_the_last_word(ledger: Ledger) -> None:
    for number, (version_id, minutes, stands) in enumerate(_LOOKS):
        entry = replace(ENTRY, key=f"key-{number}", version_id=version_id)
        await ledger.record(entry)
        deletion = replace(NOTICE, key=entry.key, deleted=True, at="2026-01-02T03:05:00.123Z", version_id="marker")
        await ledger.arrived("bucket", deletion)
        seen = Event(
            key=entry.key,
            at=f"2026-01-02T03:{5 + minutes}:01Z",
            what="verified",
            version_id=version_id,
            etag=entry.etag,
            detail={"algorithm": "sha256"},
        )
        await ledger.note("bucket", [seen])
        assert ((await subject(ledger, entry.key)).deleted_at is not None) is stands, (version_id, minutes)


@opened
async def sequencers_are_compared_as_s3_says(ledger: Ledger) -> None:
    for number, (first, second, stands) in enumerate(_SEQUENCERS):
        notice = replace(NOTICE, key=f"key-{number}")
        await ledger.arrived("bucket", replace(notice, sequencer=first))
        arrived = await ledger.arrived("bucket", replace(notice, sequencer=second, etag="other"))
        assert arrived is stands, (first, second)


@opened
async def notification_that_comes_twice_is_written_once(ledger: Ledger) -> None:
    assert [await ledger.arrived("bucket", NOTICE) for _ in range(3)] == [True, True, True]
    assert await lines(ledger) == [("created", NOTICE.at, {"sequencer": NOTICE.sequencer})]


@opened
async def notifications_in_any_order_and_at_once_leave_the_newest(ledger: Ledger) -> None:
    notices = [
        replace(NOTICE, sequencer=f"{number:016X}", etag=f"e{number}", deleted=number % 2 == 1, at=f"t{number:02}")
        for number in range(12)
    ]
    random.Random(5).shuffle(notices)
    answers = await asyncio.gather(*(ledger.arrived("bucket", notice) for notice in notices))
    assert any(answers)
    assert (await subject(ledger)).deleted_at == "t11"
    assert len(await lines(ledger)) == 12


@opened
async def versions_stand_in_the_order_of_their_notifications_not_of_their_hashing(ledger: Ledger) -> None:
    for number in (1, 2):
        version = f"v{number}"
        await ledger.arrived("bucket", replace(NOTICE, sequencer=f"0{number}", etag=version, version_id=version))
    late = replace(NOTICE, sequencer="00F", etag="v0", version_id="v0")
    assert await ledger.arrived("bucket", late) is False
    for version in ("v2", "v0", "v1", "v3"):  # nobody told of v3
        await ledger.record(replace(ENTRY, version_id=version, etag=version))
    found = await subject(ledger)
    assert [(one.version_id, one.sequencer) for one in found.versions] == [
        ("v0", "00F"),
        ("v1", "01"),
        ("v2", "02"),
        ("v3", ""),
    ]


@opened
async def version_that_was_written_back_is_the_last_one_again(ledger: Ledger) -> None:
    for number, etag in enumerate(("a", "b", "a")):
        await ledger.arrived("bucket", replace(NOTICE, sequencer=f"0{number + 1}", etag=etag))
        await ledger.record(replace(ENTRY, etag=etag))
    assert [one.etag for one in (await subject(ledger)).versions] == ["b", "a"]


@opened
async def deletion_of_one_of_several_versions_leaves_the_key(ledger: Ledger) -> None:
    for version in ("v1", "v2"):
        await ledger.record(replace(ENTRY, version_id=version))
    await ledger.arrived("bucket", replace(NOTICE, deleted=True, version_id="v1", etag=None))
    assert (await subject(ledger)).deleted_at is None
    marker = replace(NOTICE, deleted=True, version_id="marker", etag=None, sequencer="01", at="then")
    await ledger.arrived("bucket", marker)
    assert (await subject(ledger)).deleted_at == "then"
