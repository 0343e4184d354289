"""The checks of key histories: the present record of a key, and all lines of its history."""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from msgspec.structs import replace

from auditor.errors import DigestConflict
from auditor.ledger.base import Entry, Event, Expectation, KeyRecord, Known, Ledger, Version

from .base import (
    ENTRY,
    KEY,
    MD5,
    NOTICE,
    ODD_KEYS,
    OTHER,
    SHA,
    OpenLedger,
    all_subjects,
    check,
    lines,
    opened,
    raises,
    subject,
)

S3_WORD: Final = replace(ENTRY, source="s3", hashed_at="2026-01-01T00:00:00Z")
OURS: Final = replace(ENTRY, bytes_read=7)
EXPECTED: Final = Expectation(key=KEY, algorithm="sha256", digest=SHA, origin="manifest.txt", imported_at="2026-03-01")
_OTHER_VERIFIED: Final[list[dict[str, Any]]] = [
    {"version_id": "v2"},
    {"etag": "e2"},
    {"etag": None},
    {"detail": {}},
    {"key": "k"},
    {"what": "mismatch"},
]
_ASCII: Final = ["a", "a/", "a/b", "a/b\0", "a/b/c", "a0", "A/b", "%", "a%"]
_KEYS: Final = [*_ASCII, "é", "é\U0010ffff", "e\u0301", "\U0001f4a9x"]
_PREFIXES: Final = ["", "a", "a/", "a/b", "é", "\U0001f4a9", "z", "%", "a_"]


@opened
async def record_has_source_time_and_bytes_read(ledger: Ledger) -> None:
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


@opened
async def the_same_again_adds_nothing_and_an_unknown_key_has_no_history(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    await ledger.record(replace(ENTRY, hashed_at="2027-01-01T00:00:00Z"))
    assert len(await lines(ledger)) == 1
    assert await ledger.subject("bucket", "a") is None
    assert await ledger.subject("other", KEY) is None
    assert await ledger.history("bucket", "a") == []


@opened
async def s3s_word_becomes_ours_when_we_read_the_same(ledger: Ledger) -> None:
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


@opened
async def conflict_is_written_down_and_nothing_else_of_its_entry(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    with raises(DigestConflict):
        await ledger.record(replace(ENTRY, digests={"sha256": OTHER, "md5": MD5}, hashed_at="later"))
    with raises(DigestConflict):
        await ledger.record(replace(ENTRY, size=6, hashed_at="later still"))
    (version,) = (await subject(ledger)).versions
    assert {name: one.digest for name, one in version.digests.items()} == {"sha256": SHA}
    assert (await lines(ledger))[1:] == [
        ("conflict", "later", {"algorithm": "sha256", "digest": OTHER, "stands": SHA, "source": "auditor"}),
        ("conflict", "later still", {"size": "6", "stands": "5", "source": "auditor"}),
    ]


@opened
async def many_at_once_stand_each_for_itself(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    entries = [replace(ENTRY, key=f"key-{number}") for number in range(98)]
    answers = await ledger.record_many([*entries, replace(ENTRY, digests={"sha256": OTHER}), ENTRY, entries[0]])
    assert answers[:98] == [True] * 98
    assert isinstance(answers[98], DigestConflict)
    assert answers[99:] == [False, False]
    assert [len(await lines(ledger, key)) for key in (KEY, "key-0", "key-97")] == [2, 1, 1]
    assert await ledger.record_many([]) == []


@opened
async def verified_is_kept_with_the_digest_and_never_goes_back(ledger: Ledger) -> None:
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


@opened
async def verified_of_another_object_or_algorithm_is_history_and_no_more(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    event = Event(key=KEY, at="2026-05-01", what="verified", etag="etag", detail={"algorithm": "sha256"})
    for other in _OTHER_VERIFIED:
        await ledger.note("bucket", [replace(event, **other)])
        (version,) = (await subject(ledger)).versions
        assert version.digests["sha256"].verified_at is None, other
        assert (await lines(ledger, other.get("key", KEY)))[-1][0] == other.get("what", "verified")


@opened
async def notes_keep_their_order_and_one_that_comes_twice_is_one(ledger: Ledger) -> None:
    events = [Event(key=KEY, at="t", what="changed", etag=f"e{number}", size=number) for number in range(30)]
    await ledger.note("bucket", events)
    await ledger.note("bucket", events[::-1])
    assert await ledger.history("bucket", KEY) == events


@opened
async def long_text_in_a_line_is_cut(ledger: Ledger) -> None:
    await ledger.note("bucket", [Event(key=KEY, at="t" * 3000, what="unreadable", detail={"why": "x" * 5000})])
    (line,) = await ledger.history("bucket", KEY)
    assert line.detail == {"why": "x" * 1000}


@opened
async def a_note_alone_makes_no_subject(ledger: Ledger) -> None:
    await ledger.note("bucket", [Event(key=KEY, at="t", what="missing")])
    assert await ledger.subject("bucket", KEY) is None
    assert await all_subjects(ledger) == []


@opened
async def without_notifications_the_last_record_comes_last(ledger: Ledger) -> None:
    for etag in ("b", "c", "a"):
        await ledger.record(replace(ENTRY, etag=etag))
    await ledger.record(replace(ENTRY, etag="b", digests={"md5": MD5}))
    assert [one.etag for one in (await subject(ledger)).versions] == ["b", "c", "a"]


@opened
async def expectations_are_kept_by_key_algorithm_and_origin(ledger: Ledger) -> None:
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
    other = replace(EXPECTED, origin="other.txt")
    assert await ledger.expect("bucket", [other, other, replace(other, digest=OTHER)]) == 2
    assert [one.digest for one in (await subject(ledger)).expectations if one.origin == other.origin] == [OTHER]


@opened
async def retired_key_stays_retired_until_it_is_seen_again(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.expect("bucket", [EXPECTED])
    person = {"by": "Ada", "reason": "dropped by the new manifest"}
    retired = Event(key=KEY, at="2026-04-01T00:00:00Z", what="retired", detail=person)
    await ledger.note("bucket", [retired, retired])
    found = await subject(ledger)
    assert (found.retired_at, found.expectations) == (retired.at, ())
    assert [version.retired_at for version in found.versions] == [retired.at]
    assert (await lines(ledger))[-1] == ("retired", retired.at, person)
    await ledger.expect("bucket", [replace(EXPECTED, origin="newer.txt", imported_at="2026-04-02T00:00:00Z")])
    await ledger.record(replace(ENTRY, version_id="v2", hashed_at="2026-04-01T00:00:01Z"))
    found = await subject(ledger)
    assert (found.retired_at, [one.origin for one in found.expectations]) == (None, ["newer.txt"])
    assert [version.retired_at for version in found.versions] == [retired.at, None]


@opened
async def retirement_is_overruled_by_a_listing_and_by_a_newer_notification(ledger: Ledger) -> None:
    for number, later in enumerate(("listed", "created", "deleted")):
        entry = replace(ENTRY, key=f"key-{number}")
        await ledger.record(entry)
        await ledger.note("bucket", [Event(key=entry.key, at="2026-04-01T00:00:00Z", what="retired")])
        assert (await subject(ledger, entry.key)).retired_at is not None
        if later == "listed":
            await ledger.note("bucket", [Event(key=entry.key, at="2026-04-01T00:00:01Z", what="listed")])
        else:
            at = "2026-04-01T00:00:01.000Z"
            await ledger.arrived("bucket", replace(NOTICE, key=entry.key, at=at, deleted=later == "deleted"))
        assert ((await subject(ledger, entry.key)).retired_at is None) is (later != "deleted"), later


@opened
async def key_is_retired_when_each_of_its_versions_is(ledger: Ledger) -> None:
    for version in ("v1", "v2", "v3"):
        await ledger.record(replace(ENTRY, version_id=version))
    for number, version in enumerate(("v1", "v2")):
        at = f"2026-04-0{number + 1}T00:00:00Z"
        await ledger.note("bucket", [Event(key=KEY, at=at, what="retired", version_id=version)])
    found = await subject(ledger)
    retired = [one.retired_at for one in found.versions]
    assert (found.retired_at, retired) == (None, ["2026-04-01T00:00:00Z", "2026-04-02T00:00:00Z", None])
    await ledger.note("bucket", [Event(key=KEY, at="2026-04-03T00:00:00Z", what="deleted", version_id="v3")])
    assert (await subject(ledger)).retired_at == "2026-04-02T00:00:00Z"


@opened
async def subjects_come_in_the_order_of_a_listing_whatever_is_known_of_them(ledger: Ledger) -> None:
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


@opened
async def subjects_below_a_prefix(ledger: Ledger) -> None:
    await ledger.record_many([replace(ENTRY, key=key) for key in _KEYS])
    for prefix in _PREFIXES:
        wanted = sorted((key for key in _KEYS if key.startswith(prefix)), key=lambda key: key.encode())
        assert [one.key for one in await all_subjects(ledger, prefix)] == wanted, prefix
        for after in ("a/", *wanted[:3]):
            left = [key for key in wanted if key.encode() > after.encode()]
            assert [one.key async for one in ledger.subjects("bucket", prefix, after)] == left, (prefix, after)


@opened
async def many_subjects_are_read_in_pages_and_each_comes_once(ledger: Ledger) -> None:
    entries: list[Entry] = [replace(ENTRY, key=f"{number:04}") for number in range(501)]
    random.Random(3).shuffle(entries)
    await ledger.record_many(entries)
    assert [one.key for one in await all_subjects(ledger)] == [f"{number:04}" for number in range(501)]


@opened
async def reader_that_stops_in_the_middle_leaves_a_ledger_that_works(ledger: Ledger) -> None:
    await ledger.record_many([replace(ENTRY, key=key) for key in "abc"])
    found = ledger.subjects("bucket")
    assert (await anext(found)).key == "a"
    await ledger.record(replace(ENTRY, key="d"))
    await found.aclose()
    assert len(await all_subjects(ledger)) == 4


@opened
async def long_and_ambiguous_versions_are_told_apart(ledger: Ledger) -> None:
    versions = ["v" * 1024, "v" * 1023 + "w", "a#b", " b"]
    await ledger.record_many([replace(ENTRY, version_id=version) for version in versions])
    await ledger.record(replace(ENTRY, version_id="a", etag="b#etag"))
    found = await subject(ledger)
    assert sorted((one.version_id, one.etag) for one in found.versions) == sorted(
        [*((version, "etag") for version in versions), ("a", "b#etag")]
    )


@check
async def two_processes_that_write_one_entry_leave_one_line(opener: OpenLedger) -> None:
    async with opener() as first, opener() as second:
        answers = await asyncio.gather(*(ledger.record(ENTRY) for ledger in (first, second) * 5))
        assert answers.count(True) == 1
        assert len(await lines(first)) == 1


@opened
async def histories_of_all_keys_come_in_order(ledger: Ledger) -> None:
    for key in _KEYS:
        await ledger.record(replace(ENTRY, key=key))
        await ledger.note("bucket", [Event(key=key, at="2027", what="missing", version_id=ENTRY.version_id)])
    await ledger.record(replace(ENTRY, bucket="bucket2", key="a"))
    await ledger.record(replace(ENTRY, bucket="bucke", key="t/a"))
    for prefix in _PREFIXES:
        found = [one async for part in ledger.histories("bucket", prefix) for one in part]
        wanted = [key for key in sorted(_KEYS, key=str.encode) if key.startswith(prefix)]
        assert found == [line for key in wanted for line in await ledger.history("bucket", key)]
        assert [one.what for one in found] == ["recorded", "missing"] * len(wanted)
        assert {one.seal for one in found} <= {"sound"}
