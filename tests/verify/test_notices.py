"""Verifying after deletions that S3 told of: a loss is never called deleted, and a deletion is never called a loss."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from msgspec.structs import replace

from auditor.hashing.queue.notification import decode_notification, drop_superseded
from auditor.ledger.base import Event, Notice
from auditor.verify.history import acknowledgements
from tests.support.servers.clients import BUCKET
from tests.support.servers.world import StubBucket, StubObject
from tests.support.verification import LONG_AGO, Bench, expectation, now
from tests.verify.test_run import flip


async def told(bench: Bench, event: str, version_id: str | None, sequencer: str, at: str = LONG_AGO) -> None:
    """Take an event of S3's about `key`, as the worker does."""
    item = {"key": "key", "sequencer": sequencer} | ({} if version_id is None else {"versionId": version_id})
    record = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventTime": at,
        "eventName": event,
        "s3": {"bucket": {"name": BUCKET}, "object": item},
    }
    await drop_superseded(bench.ledger, decode_notification(json.dumps({"Records": [record]})))


@pytest.fixture
async def item(bench: Bench, bucket: StubBucket) -> StubObject:
    """The only version of `key`, recorded, in a bucket that has versions."""
    bucket.versioning = "Enabled"
    put = bench.put("key")
    await bench.recorded(put)
    return put


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize("verified", [False, True])
async def test_loss_after_an_undelete_is_missing(
    bench: Bench, bucket: StubBucket, item: StubObject, versions: bool, verified: bool
) -> None:
    await told(bench, "ObjectRemoved:DeleteMarkerCreated", "marker", "01")
    await told(bench, "ObjectRemoved:Delete", "marker", "02")
    if verified:
        assert (await bench.verify(versions=versions)).outcomes == {"match": 1}
    bucket.objects.remove("key")
    found = await bench.verify(versions=versions)
    assert (found.outcomes, found.code) == ({"missing": 1}, 3)


@pytest.mark.parametrize("versions", [False, True])
async def test_loss_after_an_undelete_that_only_a_listing_showed(
    bench: Bench, bucket: StubBucket, item: StubObject, versions: bool
) -> None:
    await told(bench, "ObjectRemoved:DeleteMarkerCreated", "marker", "01")
    for percent in (0.0001, None):  # it is not due, and then it is
        await bench.verify(versions=versions, percent=percent)
    listed = [event for event in await bench.ledger.history(BUCKET, "key") if event.what == "listed"]
    assert [(event.etag, event.detail) for event in listed] == [(item.etag, {"deleted": LONG_AGO})]
    bucket.objects.remove("key")
    found = await bench.verify(versions=versions)
    assert (found.outcomes, found.code) == ({"missing": 1}, 3)


async def test_key_that_stays_deleted_is_deleted(bench: Bench, bucket: StubBucket, item: StubObject) -> None:
    marker = bucket.delete("key")
    assert marker is not None
    await told(bench, "ObjectRemoved:DeleteMarkerCreated", marker.version_id, "01")
    for _ in range(2):
        found = await bench.verify()
        assert (found.outcomes, found.code) == ({"deleted": 1}, 0)
    assert (await bench.verify(versions=True)).outcomes == {"match": 1}
    assert not [event for event in await bench.ledger.history(BUCKET, "key") if event.what == "listed"]


@pytest.mark.parametrize("versions", [False, True])
async def test_version_deleted_for_good_is_deleted(
    bench: Bench, bucket: StubBucket, item: StubObject, versions: bool
) -> None:
    bucket.objects.remove("key")
    assert (await bench.verify(versions=versions)).outcomes == {"missing": 1}
    await told(bench, "ObjectRemoved:Delete", item.version_id, "01", now().strftime("%Y-%m-%dT%H:%M:%SZ"))
    found = await bench.verify(versions=versions)
    assert (found.outcomes, found.code) == ({"deleted": 1}, 0)


async def test_of_two_lost_versions_only_one_was_told(bench: Bench, bucket: StubBucket, item: StubObject) -> None:
    newer = bench.put("key", b"newer")
    await bench.recorded(newer)
    bucket.objects.remove("key")
    await told(bench, "ObjectRemoved:Delete", newer.version_id, "01")
    for versions in (False, True):
        found = await bench.verify(versions=versions)
        assert (found.outcomes, found.code) == ({"missing": 1} | ({"deleted": 1} if versions else {}), 3)


async def test_key_with_a_notification_alone_is_in_flight_for_the_grace_period(bench: Bench) -> None:
    for key, minutes in (("young", 5), ("old", 20), ("ahead", -60)):
        at = (now() - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        await bench.ledger.arrived(BUCKET, Notice(key=key, sequencer="01", deleted=False, at=at, etag="e", size=4))
    found = await bench.verify()
    assert (found.lines, found.code) == (["- ahead", "- old", "> young"], 3)


async def retire(bench: Bench, version_id: str | None = None) -> None:
    at = now().strftime("%Y-%m-%dT%H:%M:%SZ")
    detail = {"by": "Ada", "reason": "moved to the archive"}
    event = Event(key="key", at=at, what="retired", version_id=version_id, detail=detail)
    await bench.ledger.note(BUCKET, [event])


async def acknowledge(bench: Bench) -> int:
    at = now().strftime("%Y-%m-%dT%H:%M:%SZ")
    events = acknowledgements(await bench.ledger.history(BUCKET, "key"), at, "Ada", "restored from the copy")
    await bench.ledger.note(BUCKET, events)
    return len(events)


@pytest.mark.parametrize("of_version", [False, True])
async def test_retired_object_is_counted_and_no_finding(
    bench: Bench, bucket: StubBucket, item: StubObject, of_version: bool
) -> None:
    bucket.objects.remove("key")
    assert (await bench.verify()).code == 3
    await retire(bench, item.version_id if of_version else None)
    for versions in (False, True):
        found = await bench.verify(versions=versions)
        assert (found.outcomes, found.code, found.lines[0][0]) == ({"retired": 1}, 0, "r")


async def test_loss_of_an_object_that_was_listed_after_it_was_retired(bench: Bench, bucket: StubBucket) -> None:
    await bench.recorded(bench.put("key"))
    long_ago = Event(key="key", at="2026-01-04T00:00:00Z", what="retired")
    await bench.ledger.note(BUCKET, [long_ago])
    assert (await bench.verify(percent=0.0001)).code == 0
    bucket.objects.remove("key")
    found = await bench.verify()
    assert (found.outcomes, found.code) == ({"missing": 1}, 3)


async def test_expected_digest_that_was_retired_is_compared_no_more(bench: Bench) -> None:
    bench.put("key", b"newer")
    await bench.expected(expectation("key", b"older"))
    assert (await bench.verify()).outcomes == {"mismatch": 1}
    await retire(bench)
    assert (await bench.verify()).outcomes == {"new": 1}
    await bench.expected(replace(expectation("key", b"older"), origin="again.txt", imported_at="2099-01-01T00:00:00Z"))
    assert (await bench.verify()).outcomes == {"mismatch": 1}


async def test_acknowledged_mismatch_is_counted_until_it_is_another_one(bench: Bench) -> None:
    item = bench.put("key")
    await bench.recorded(item)
    flip(item, 0)
    assert (await bench.verify()).code == 3
    assert await acknowledge(bench) == 1
    for _ in range(2):
        found = await bench.verify()
        assert (found.outcomes, found.code, found.lines) == ({"acknowledged": 1}, 0, ["k key"])
    detail = found.detail("key")
    assert (detail["finding"], detail["by"], detail["reason"]) == ("mismatch", "Ada", "restored from the copy")
    assert await acknowledge(bench) == 0
    flip(item, 0)
    assert (await bench.verify()).outcomes == {"match": 1}
    item.body = b"else"
    found = await bench.verify()
    assert (found.outcomes, found.code) == ({"mismatch": 1}, 3)


async def test_acknowledged_loss(bench: Bench, bucket: StubBucket, item: StubObject) -> None:
    bucket.objects.remove("key")
    await bench.verify()
    assert await acknowledge(bench) == 1
    for versions in (False, True):
        found = await bench.verify(versions=versions)
        assert (found.outcomes, found.code) == ({"acknowledged": 1}, 0)


async def test_acknowledged_change_excuses_no_loss(bench: Bench, bucket: StubBucket) -> None:
    await bench.recorded(bench.put("key"), bench.put("sound"))
    bench.put("key", b"our own upload")
    await bench.verify()
    await acknowledge(bench)
    assert (await bench.verify()).outcomes == {"acknowledged": 1, "match": 1}
    bucket.objects.remove("key")
    assert (await bench.verify()).outcomes == {"missing": 1, "match": 1}


async def test_last_finding_of_each_version_is_acknowledged_in_the_order_of_the_history() -> None:
    states = (("v1", "aa"), ("v2", "aa"), ("v1", "bb"))
    found = [
        Event(key="key", at="", what="mismatch", version_id=one, detail={"found": digest}) for one, digest in states
    ]
    made = acknowledgements(found, "2026-02-01", "Ada", "known")
    assert [(event.version_id, event.what, event.at) for event in made] == [
        ("v2", "acknowledged", "2026-02-01"),
        ("v1", "acknowledged", "2026-02-01"),
    ]
    assert made[1].detail == {"found": "bb", "finding": "mismatch", "by": "Ada", "reason": "known"}
    for later in ("verified", "unreadable"):
        good = Event(key="key", at="", what=later)
        assert acknowledgements([*found, good], "2026-02-01", "Ada", "known") == []
