"""What a ledger knows of a key, and all that it ever knew: over each kind of ledger."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from auditor.errors import DigestConflict
from auditor.ledger.base import Entry, Event, Expectation, KeyRecord, Known, Ledger, Notice, Version
from tests.ledger.conftest import Open
from tests.ledger.test_conformance import ENTRY, MD5, ODD_KEYS, OTHER, SHA

KEY = ENTRY.key
S3_WORD = replace(ENTRY, source="s3", hashed_at="2026-01-01T00:00:00Z")
OURS = replace(ENTRY, bytes_read=7)
NOTICE = Notice(key=KEY, sequencer="0055AED6DCD90281E5", deleted=False, at="2026-01-01T00:00:00Z", etag="etag", size=5)
EXPECTED = Expectation(key=KEY, algorithm="sha256", digest=SHA, origin="manifest.txt", imported_at="2026-03-01")


async def lines(ledger: Ledger, key: str = KEY) -> list[tuple[str, str, dict[str, str]]]:
    return [(one.what, one.at, dict(one.detail)) for one in await ledger.history("bucket", key)]


async def subject(ledger: Ledger, key: str = KEY) -> KeyRecord:
    found = await ledger.subject("bucket", key)
    assert found is not None
    return found


async def all_subjects(ledger: Ledger, prefix: str = "") -> list[KeyRecord]:
    return [one async for one in ledger.subjects("bucket", prefix)]


async def test_what_was_recorded_is_told_with_who_when_and_how_much_was_read(ledger: Ledger) -> None:
    await ledger.record(replace(OURS, version_id="v1", digests={"sha256": SHA, "md5": MD5}))
    known = {
        name: Known(digest=digest, source="auditor", recorded_at=ENTRY.hashed_at, verified_at=None, bytes_read=7)
        for name, digest in (("sha256", SHA), ("md5", MD5))
    }
    version = Version(version_id="v1", etag="etag", size=5, digests=known, first_seen=ENTRY.hashed_at)
    assert await subject(ledger) == KeyRecord(key=KEY, versions=(version,))
    assert await ledger.history("bucket", KEY) == [
        Event(
            key=KEY,
            at=ENTRY.hashed_at,
            what="recorded",
            version_id="v1",
            etag="etag",
            size=5,
            detail={"algorithm": name, "digest": digest, "source": "auditor", "bytes_read": "7"},
        )
        for name, digest in (("sha256", SHA), ("md5", MD5))
    ]


async def test_key_that_nobody_wrote_of(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    assert await ledger.subject("bucket", "a") is None
    assert await ledger.subject("other", KEY) is None
    assert await ledger.history("bucket", "a") == []


async def test_the_same_again_adds_nothing_to_the_history(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    await ledger.record(replace(ENTRY, hashed_at="2027-01-01T00:00:00Z"))
    assert len(await lines(ledger)) == 1


async def test_s3s_word_becomes_ours_when_we_read_the_same(ledger: Ledger) -> None:
    assert await ledger.record(S3_WORD) is True
    assert await ledger.record(OURS) is True
    assert await ledger.record(replace(S3_WORD, hashed_at="2028-01-01T00:00:00Z")) is False
    (version,) = (await subject(ledger)).versions
    assert version.first_seen == S3_WORD.hashed_at
    assert version.digests == {
        "sha256": Known(digest=SHA, source="auditor", recorded_at=OURS.hashed_at, verified_at=None, bytes_read=7)
    }
    assert [(what, at, detail["source"]) for what, at, detail in await lines(ledger)] == [
        ("recorded", S3_WORD.hashed_at, "s3"),
        ("recorded", OURS.hashed_at, "auditor"),
    ]


async def test_conflict_is_written_down_and_nothing_else_of_its_entry(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    with pytest.raises(DigestConflict):
        await ledger.record(replace(ENTRY, digests={"sha256": OTHER, "md5": MD5}, hashed_at="later"))
    with pytest.raises(DigestConflict):
        await ledger.record(replace(ENTRY, size=6, hashed_at="later still"))
    (version,) = (await subject(ledger)).versions
    assert {name: one.digest for name, one in version.digests.items()} == {"sha256": SHA}
    assert (await lines(ledger))[1:] == [
        ("conflict", "later", {"algorithm": "sha256", "digest": OTHER, "stands": SHA, "source": "auditor"}),
        ("conflict", "later still", {"size": "6", "stands": "5", "source": "auditor"}),
    ]


async def test_many_at_once_stand_each_for_itself(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    entries = [replace(ENTRY, key=f"key-{number}") for number in range(98)]
    answers = await ledger.record_many([*entries, replace(ENTRY, digests={"sha256": OTHER}), ENTRY, entries[0]])
    assert answers[:98] == [True] * 98
    assert isinstance(answers[98], DigestConflict)
    assert answers[99:] == [False, False]
    assert [len(await lines(ledger, key)) for key in (KEY, "key-0", "key-97")] == [2, 1, 1]
    assert await ledger.record_many([]) == []


async def test_verified_is_kept_with_the_digest_and_never_goes_back(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1", digests={"sha256": SHA, "md5": MD5}))
    event = Event(key=KEY, at="2026-05-01", what="verified", version_id="v1", etag="etag", size=5)
    for at in ("2026-05-01", "2026-06-01", "2026-04-01"):
        await ledger.note("bucket", [replace(event, at=at, detail={"algorithm": "sha256"})])
    (version,) = (await subject(ledger)).versions
    assert {name: one.verified_at for name, one in version.digests.items()} == {"sha256": "2026-06-01", "md5": None}
    assert [at for what, at, _ in await lines(ledger) if what == "verified"] == [
        "2026-05-01",
        "2026-06-01",
        "2026-04-01",
    ]


@pytest.mark.parametrize("other", [{"version_id": "v2"}, {"etag": "e2"}, {"etag": None}, {"detail": {}}, {"key": "k"}])
async def test_verified_of_another_object_or_algorithm_is_history_and_no_more(
    ledger: Ledger, other: dict[str, Any]
) -> None:
    await ledger.record(ENTRY)
    event = Event(key=KEY, at="2026-05-01", what="verified", etag="etag", detail={"algorithm": "sha256"})
    await ledger.note("bucket", [replace(event, **other)])
    (version,) = (await subject(ledger)).versions
    assert version.digests["sha256"].verified_at is None
    assert (await lines(ledger, other.get("key", KEY)))[-1][0] == "verified"


async def test_notes_keep_their_order_and_one_that_comes_twice_is_one(ledger: Ledger) -> None:
    events = [Event(key=KEY, at="t", what="changed", etag=f"e{number}", size=number) for number in range(30)]
    await ledger.note("bucket", events)
    await ledger.note("bucket", events[::-1])
    assert await ledger.history("bucket", KEY) == events


async def test_long_text_in_a_line_is_cut(ledger: Ledger) -> None:
    await ledger.note("bucket", [Event(key=KEY, at="t" * 3000, what="unreadable", detail={"why": "x" * 5000})])
    (line,) = await ledger.history("bucket", KEY)
    assert line.detail == {"why": "x" * 1000}


async def test_a_note_alone_makes_no_subject(ledger: Ledger) -> None:
    await ledger.note("bucket", [Event(key=KEY, at="t", what="missing")])
    assert await ledger.subject("bucket", KEY) is None
    assert await all_subjects(ledger) == []


async def test_deletion_is_known_until_a_newer_notification_says_otherwise(ledger: Ledger) -> None:
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


@pytest.mark.parametrize(
    ("version_id", "minutes", "stands"),
    [(None, 20, False), (None, 10, True), ("v1", 20, True)],
    ids=["read long after", "being read", "an older version"],
)
async def test_deletion_that_a_later_look_belies_is_not_the_last_word(
    ledger: Ledger, version_id: str | None, minutes: int, stands: bool
) -> None:
    entry = replace(ENTRY, version_id=version_id)
    await ledger.record(entry)
    deletion = replace(NOTICE, deleted=True, at="2026-01-02T03:05:00.123Z", version_id="marker")
    await ledger.arrived("bucket", deletion)
    seen = Event(
        key=KEY,
        at=f"2026-01-02T03:{5 + minutes}:01Z",
        what="verified",
        version_id=version_id,
        etag=entry.etag,
        detail={"algorithm": "sha256"},
    )
    await ledger.note("bucket", [seen])
    assert ((await subject(ledger)).deleted_at is not None) is stands


@pytest.mark.parametrize(
    ("first", "second", "stands"),
    [
        ("0A", "0B", True),
        ("0B", "0A", False),
        ("0a", "0A00", True),  # one and the same
        ("0A", "0A01", True),
        ("0A01", "0a", False),
        ("FF", "0100000000000000", False),
        ("9", "a", True),
    ],
)
async def test_sequencers_are_compared_as_s3_says(ledger: Ledger, first: str, second: str, stands: bool) -> None:
    await ledger.arrived("bucket", replace(NOTICE, sequencer=first))
    assert await ledger.arrived("bucket", replace(NOTICE, sequencer=second, etag="other")) is stands


async def test_notification_that_comes_twice_is_written_once(ledger: Ledger) -> None:
    assert [await ledger.arrived("bucket", NOTICE) for _ in range(3)] == [True, True, True]
    assert await lines(ledger) == [("created", NOTICE.at, {"sequencer": NOTICE.sequencer})]


async def test_notifications_in_any_order_and_at_once_leave_the_newest(ledger: Ledger) -> None:
    notices = [
        replace(NOTICE, sequencer=f"{number:016X}", etag=f"e{number}", deleted=number % 2 == 1, at=f"t{number:02}")
        for number in range(12)
    ]
    random.Random(5).shuffle(notices)
    answers = await asyncio.gather(*(ledger.arrived("bucket", notice) for notice in notices))
    assert any(answers)
    assert (await subject(ledger)).deleted_at == "t11"
    assert len(await lines(ledger)) == 12


async def test_versions_stand_in_the_order_of_their_notifications_not_of_their_hashing(ledger: Ledger) -> None:
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


async def test_version_that_was_written_back_is_the_last_one_again(ledger: Ledger) -> None:
    for number, etag in enumerate(("a", "b", "a")):
        await ledger.arrived("bucket", replace(NOTICE, sequencer=f"0{number + 1}", etag=etag))
        await ledger.record(replace(ENTRY, etag=etag))
    assert [one.etag for one in (await subject(ledger)).versions] == ["b", "a"]


async def test_without_notifications_what_was_recorded_last_comes_last(ledger: Ledger) -> None:
    for etag in ("b", "c", "a"):
        await ledger.record(replace(ENTRY, etag=etag))
    await ledger.record(replace(ENTRY, etag="b", digests={"md5": MD5}))
    assert [one.etag for one in (await subject(ledger)).versions] == ["b", "c", "a"]


async def test_deletion_of_one_of_several_versions_leaves_the_key(ledger: Ledger) -> None:
    for version in ("v1", "v2"):
        await ledger.record(replace(ENTRY, version_id=version))
    await ledger.arrived("bucket", replace(NOTICE, deleted=True, version_id="v1", etag=None))
    assert (await subject(ledger)).deleted_at is None
    marker = replace(NOTICE, deleted=True, version_id="marker", etag=None, sequencer="01", at="then")
    await ledger.arrived("bucket", marker)
    assert (await subject(ledger)).deleted_at == "then"


async def test_expectations_are_kept_by_key_algorithm_and_origin(ledger: Ledger) -> None:
    others = [replace(EXPECTED, origin="b.txt"), replace(EXPECTED, algorithm="md5", digest=MD5, size=5)]
    assert await ledger.expect("bucket", [EXPECTED, *others]) == 3
    assert await ledger.expect("bucket", [replace(EXPECTED, imported_at="later"), *others]) == 0
    assert await ledger.expect("bucket", [replace(EXPECTED, digest=OTHER)]) == 1
    assert await ledger.expect("bucket", [replace(EXPECTED, digest=OTHER, size=4)]) == 1
    found = await subject(ledger)
    assert found == KeyRecord(
        key=KEY, versions=(), expectations=(others[1], others[0], replace(EXPECTED, digest=OTHER, size=4))
    )
    assert [(what, detail["digest"]) for what, _, detail in await lines(ledger)].count(("imported", SHA)) == 2
    assert len(await lines(ledger)) == 5
    assert await ledger.expect("bucket", []) == 0


async def test_the_same_key_twice_in_one_import(ledger: Ledger) -> None:
    assert await ledger.expect("bucket", [EXPECTED, EXPECTED, replace(EXPECTED, digest=OTHER)]) == 2
    (found,) = (await subject(ledger)).expectations
    assert found.digest == OTHER


async def test_subjects_come_in_the_order_of_a_listing_whatever_is_known_of_them(ledger: Ledger) -> None:
    keys = sorted(ODD_KEYS, key=lambda key: key.encode())
    await ledger.record_many([replace(ENTRY, key=key) for key in keys[::2]])
    await ledger.expect("bucket", [replace(EXPECTED, key=key) for key in keys[1::4]])
    for key in keys[3::4]:
        await ledger.arrived("bucket", replace(NOTICE, key=key))
    for bucket in ("buckeu", "bucke", "bucket-2"):
        await ledger.record(replace(ENTRY, bucket=bucket, key="t/x"))
    found = await all_subjects(ledger)
    assert [one.key for one in found] == keys
    assert found == [await ledger.subject("bucket", key) for key in keys]


@pytest.mark.parametrize("prefix", ["", "a", "a/", "a/b", "é", "\U0001f4a9", "z", "%", "a_"])
async def test_subjects_below_a_prefix(ledger: Ledger, prefix: str) -> None:
    keys = ["a", "a/", "a/b", "a/b\0", "a/b/c", "a0", "A/b", "é", "é\U0010ffff", "e\u0301", "\U0001f4a9x", "%", "a%"]
    await ledger.record_many([replace(ENTRY, key=key) for key in keys])
    wanted = sorted((key for key in keys if key.startswith(prefix)), key=lambda key: key.encode())
    assert [one.key for one in await all_subjects(ledger, prefix)] == wanted


@pytest.mark.slow
async def test_501_subjects_are_read_in_pages_and_each_comes_once(ledger: Ledger) -> None:
    entries: list[Entry] = [replace(ENTRY, key=f"{number:04}") for number in range(501)]
    random.Random(3).shuffle(entries)
    await ledger.record_many(entries)
    assert [one.key for one in await all_subjects(ledger)] == [f"{number:04}" for number in range(501)]


async def test_reader_that_stops_in_the_middle_leaves_a_ledger_that_works(ledger: Ledger) -> None:
    await ledger.record_many([replace(ENTRY, key=key) for key in "abc"])
    found = ledger.subjects("bucket")
    assert (await anext(found)).key == "a"
    await ledger.record(replace(ENTRY, key="d"))
    await found.aclose()
    assert len(await all_subjects(ledger)) == 4


async def test_long_and_ambiguous_versions_are_told_apart(ledger: Ledger) -> None:
    versions = ["v" * 1024, "v" * 1023 + "w", "a#b", " b"]
    await ledger.record_many([replace(ENTRY, version_id=version) for version in versions])
    await ledger.record(replace(ENTRY, version_id="a", etag="b#etag"))
    found = await subject(ledger)
    assert sorted((one.version_id, one.etag) for one in found.versions) == sorted(
        [*((version, "etag") for version in versions), ("a", "b#etag")]
    )


async def test_two_processes_that_write_one_entry_leave_one_line(opener: Open) -> None:
    async with opener() as first, opener() as second:
        answers = await asyncio.gather(*(ledger.record(ENTRY) for ledger in (first, second) * 5))
        assert answers.count(True) == 1
        assert len(await lines(first)) == 1
