"""The checks of notifications: the newest notification of a key stands, whatever the order of arrival."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from msgspec.structs import replace

from auditor.ledger.base import Event, Ledger, Notice

from .base import ENTRY, KEY, NOTICE, OpenLedger, check, lines, opened, subject

MARKER: Final = Notice(key=KEY, sequencer="10", deleted=True, at="2026-01-10T00:00:00Z", version_id="marker")
"""A delete marker that hides the versions of KEY."""
_LOOKS: Final = [(None, 20, False), (None, 10, True), ("v1", 20, True)]
"""The version that was read, the minutes after the deletion, and whether the deletion stands. The first read came long
after, the second may have begun before, the third is of an older version."""
_SEQUENCERS: Final = [
    ("0A", "0B", True),
    ("0B", "0A", False),
    ("0a", "0A00", True),  # equal after padding
    ("0A", "0A01", True),
    ("0A01", "0a", False),
    ("FF", "0100000000000000", False),
    ("9", "a", True),
]
"""The sequencer that came first, the sequencer that came next, and whether the next one stands."""


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
async def notification_without_an_etag_names_no_version(ledger: Ledger) -> None:
    assert await ledger.arrived("bucket", replace(NOTICE, etag=None)) is True
    found = await subject(ledger)
    assert (found.noticed_at, found.versions, found.unrecorded) == (NOTICE.at, (), False)


@opened
async def notifications_in_any_order_and_at_once_leave_the_newest(ledger: Ledger) -> None:
    notices = [
        replace(NOTICE, sequencer=f"{number:016X}", etag=f"e{number}", deleted=number % 2 == 1, at=f"t{number:02}")
        for number in range(6)
    ]
    random.Random(5).shuffle(notices)
    answers = await asyncio.gather(*(ledger.arrived("bucket", notice) for notice in notices))
    assert any(answers)
    assert (await subject(ledger)).deleted_at == "t05"
    assert len(await lines(ledger)) == 6


@opened
async def versions_stand_in_the_order_of_their_notifications_not_of_their_hashing(ledger: Ledger) -> None:
    for number in (1, 2):
        version = f"v{number}"
        await ledger.arrived("bucket", replace(NOTICE, sequencer=f"0{number}", etag=version, version_id=version))
    late = replace(NOTICE, sequencer="00F", etag="v0", version_id="v0")
    assert await ledger.arrived("bucket", late) is False
    for version in ("v2", "v0", "v1", "v3"):  # no notification named v3
        await ledger.record(replace(ENTRY, version_id=version, etag=version))
    found = await subject(ledger)
    assert [(one.version_id, one.sequencer) for one in found.versions] == [
        ("v0", "00F"),
        ("v1", "01"),
        ("v2", "02"),
        ("v3", ""),
    ]


@opened
async def versions_stand_in_the_order_of_notifications_that_have_no_sequencer(ledger: Ledger) -> None:
    await ledger.record_many([replace(ENTRY, version_id=version) for version in ("v1", "v2")])
    for number, version, order in ((1, "v2", None), (2, "v1", ["v2", "v1"]), (3, "v2", ["v1", "v2"])):
        await ledger.arrived("bucket", replace(NOTICE, sequencer="", version_id=version, at=f"2026-01-0{number}"))
        assert order is None or [one.version_id for one in (await subject(ledger)).versions] == order


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


async def removal(ledger: Ledger, version_id: str, sequencer: str, at: str = "2026-01-11T00:00:00Z") -> None:
    """Tell the ledger that a version or a delete marker was deleted for good."""
    event = Event(key=KEY, at=at, what="deleted", version_id=version_id, detail={"sequencer": sequencer})
    await ledger.note("bucket", [event, event])


@opened
async def removal_of_a_delete_marker_brings_the_key_back(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.arrived("bucket", replace(NOTICE, version_id="v1"))
    second = replace(MARKER, sequencer="12", version_id="second", at="2026-01-12T00:00:00Z")
    for notice in (MARKER, second, MARKER):
        await ledger.arrived("bucket", notice)
    assert (await subject(ledger)).deleted_at == second.at
    await removal(ledger, "second", "13")
    assert (await subject(ledger)).deleted_at == MARKER.at
    await removal(ledger, "marker", "14")
    for notice in (MARKER, second):
        await ledger.arrived("bucket", notice)
        assert (await subject(ledger)).deleted_at is None
    await ledger.arrived("bucket", replace(MARKER, sequencer="15", version_id="third", at="then"))
    assert (await subject(ledger)).deleted_at == "then"


@opened
async def removal_of_a_delete_marker_that_is_told_first_counts_too(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await removal(ledger, "marker", "14")
    assert (await subject(ledger)).deleted_at is None
    await ledger.arrived("bucket", MARKER)
    assert (await subject(ledger)).deleted_at is None


@opened
async def key_is_deleted_when_each_version_was_deleted_for_good(ledger: Ledger) -> None:
    for version in ("v1", "v2"):
        await ledger.record(replace(ENTRY, version_id=version))
        await ledger.arrived("bucket", replace(NOTICE, version_id=version))
    await removal(ledger, "v2", "14")
    found = await subject(ledger)
    assert (found.deleted_at, [one.removed_at for one in found.versions]) == (None, [None, "2026-01-11T00:00:00Z"])
    await removal(ledger, "v1", "15", "2026-01-12T00:00:00Z")
    found = await subject(ledger)
    assert found.deleted_at == "2026-01-12T00:00:00Z"
    assert None not in [one.removed_at for one in found.versions]
    again = Event(
        key=KEY,
        at="2026-02-01T00:00:00Z",
        what="verified",
        version_id="v1",
        etag="etag",
        detail={"algorithm": "sha256"},
    )
    await ledger.note("bucket", [again])  # the read overrules the notifications
    found = await subject(ledger)
    assert (found.deleted_at, found.versions[0].removed_at) == (None, None)


@opened
async def version_that_nobody_recorded_and_that_is_left_keeps_the_key(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.arrived("bucket", replace(NOTICE, version_id="v1"))
    await ledger.arrived("bucket", replace(NOTICE, version_id="v2", etag="other", sequencer="02"))
    assert (await subject(ledger)).unrecorded is True
    await removal(ledger, "v1", "14")
    assert (await subject(ledger)).deleted_at is None
    await removal(ledger, "v2", "15")
    found = await subject(ledger)
    assert (found.deleted_at, found.unrecorded) == ("2026-01-11T00:00:00Z", False)


@opened
async def null_version_is_newer_than_a_deletion_for_good_without_a_sequencer(ledger: Ledger) -> None:
    await ledger.note("bucket", [Event(key=KEY, at="2026-01-11T00:00:00Z", what="deleted", version_id="null")])
    await ledger.record(replace(ENTRY, hashed_at="2026-01-10T23:59:00Z"))
    await ledger.arrived("bucket", replace(NOTICE, version_id="null"))
    assert [one.removed_at for one in (await subject(ledger)).versions] == [None]


@opened
async def null_version_can_be_written_again_after_it_was_deleted_for_good(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, hashed_at="2026-01-10T23:59:00Z"))
    await ledger.arrived("bucket", replace(NOTICE, version_id="null"))
    await removal(ledger, "null", "14")
    assert (await subject(ledger)).deleted_at == "2026-01-11T00:00:00Z"
    await ledger.arrived("bucket", replace(NOTICE, version_id="null", sequencer="15", at="2026-01-11T00:01:00Z"))
    found = await subject(ledger)
    assert (found.deleted_at, found.versions[0].removed_at) == (None, None)


@opened
async def listing_long_after_a_deletion_overrules_it(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.arrived("bucket", MARKER)
    listed = Event(key=KEY, at="2026-01-10T00:14:00Z", what="listed", version_id="v1", etag="etag", size=5)
    await ledger.note("bucket", [listed])  # two clocks may differ by this much
    assert (await subject(ledger)).deleted_at == MARKER.at
    await ledger.note("bucket", [replace(listed, at="2026-01-10T00:16:00Z"), listed])
    assert (await subject(ledger)).deleted_at is None
    await ledger.arrived("bucket", MARKER)
    assert (await subject(ledger)).deleted_at is None
    newer = replace(MARKER, sequencer="11", version_id="other", at="2026-01-10T00:20:00Z")
    await ledger.arrived("bucket", newer)
    assert (await subject(ledger)).deleted_at == newer.at
    assert [what for what, _, _ in await lines(ledger)].count("listed") == 2


@check
async def sequencers_order_versions_though_two_writers_clocks_differ(opener: OpenLedger) -> None:
    def fast() -> float:
        return 1_800_000_600.0

    def slow() -> float:
        return 1_800_000_000.0

    writers = (("a", fast), ("b", slow), ("c", fast), ("b", slow))
    for number, (etag, clock) in enumerate(writers, start=1):
        async with opener(clock=clock) as ledger:
            await ledger.arrived("bucket", replace(NOTICE, etag=etag, sequencer=f"0{number}"))
            await ledger.record(replace(ENTRY, etag=etag))
    async with opener() as ledger:
        assert [(one.etag, one.sequencer) for one in (await subject(ledger)).versions] == [
            ("a", "01"),
            ("c", "03"),
            ("b", "04"),
        ]
