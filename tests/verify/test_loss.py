"""Bytes that another object replaced: when they are lost, and when the bucket or the ledger may still have them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import CallFailed
from auditor.ledger.base import Event, KeyRecord, Known, Version
from auditor.model.digest import VerifyOutcome
from auditor.model.object import Head, ObjectRef
from auditor.verify.loss import LossFinder, is_told_lost
from auditor.verify.merge import Pair
from tests.support.fakes.caller import make_caller
from tests.support.fakes.hashing import Store

OLD, NEW = "2026-01-01", "2026-02-01"
KNOWN = Known(digest="aa", source="auditor", recorded_at=OLD, verified_at=None, bytes_read=1)
GONE = Version(version_id="null", etag="old", size=1, digests={"sha256": KNOWN}, first_seen=OLD)
CURRENT = ObjectRef("key", "new", 1, NEW)
TOLD = Event(key="key", at=NEW, what="lost", etag="old")


class Bucket(Store):
    """Answers HEAD alone."""

    def __init__(self, answer: Head | CallFailed) -> None:
        super().__init__()
        self.answer = answer
        self.heads = 0

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        self.heads += 1
        if isinstance(self.answer, CallFailed):
            raise self.answer
        return self.answer


class OneHistory:
    """A ledger with these lines of one key."""

    def __init__(self, *lines: Event) -> None:
        self.lines = [*lines]

    async def history(self, bucket: str, key: str) -> list[Event]:
        return self.lines


PLAIN, VERSIONED = Head("new", 1), Head("new", 1, version_id="null")
PAIR = Pair("key", None, KeyRecord(key="key", versions=(GONE,)), absent=True, version=GONE, replaced_by=CURRENT)


def finder(bucket: Bucket, *lines: Event, young: bool = False) -> LossFinder:
    ledger: Any = OneHistory(*lines)
    return LossFinder("bucket", bucket, make_caller(), ledger, lambda written: young and written == NEW)


async def test_bytes_that_another_object_replaced_are_lost_and_s3_is_asked_once() -> None:
    bucket = Bucket(PLAIN)
    find = finder(bucket).find
    for _ in range(2):
        found = await find(PAIR)
        assert found is not None
        assert (found.outcome, found.listed, found.etag, found.size) == (VerifyOutcome.LOST, False, "old", 1)
        assert found.detail == {"replaced_by": "new"}
    assert bucket.heads == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (VERSIONED, None),
        (CallFailed("HeadObject", "404", 404), None),
        (CallFailed("HeadObject", "AccessDenied", 403), VerifyOutcome.UNREADABLE),
    ],
)
async def test_s3_decides_whether_the_bytes_can_be_there(
    answer: Head | CallFailed, outcome: VerifyOutcome | None
) -> None:
    found = await finder(Bucket(answer)).find(PAIR)
    assert (None if found is None else found.outcome) is outcome
    assert found is None or found.detail == {"code": "AccessDenied"}


async def test_current_object_with_a_version_id_shows_that_versions_are_kept() -> None:
    bucket = Bucket(PLAIN)
    assert await finder(bucket).find(replace(PAIR, replaced_by=replace(CURRENT, version_id="v1"))) is None
    assert bucket.heads == 0
    found = await finder(bucket).find(replace(PAIR, replaced_by=replace(CURRENT, version_id="null")))
    assert found is not None


async def test_young_object_is_no_loss_until_the_ledger_knows_it() -> None:
    assert await finder(Bucket(PLAIN), young=True).find(PAIR) is None
    for digests, lost in ((GONE.digests, True), ({}, False)):
        known = KeyRecord(key="key", versions=(GONE, replace(GONE, etag="new", digests=digests)))
        found = await finder(Bucket(PLAIN), young=True).find(replace(PAIR, subject=known))
        assert (found is not None) is lost


async def test_damaged_record_proves_no_loss() -> None:
    broken = replace(GONE, digests={"sha256": replace(KNOWN, damaged=True)})
    assert await finder(Bucket(PLAIN)).find(replace(PAIR, subject=KeyRecord(key="key", versions=(broken,)))) is None


async def test_loss_is_told_once() -> None:
    assert await finder(Bucket(PLAIN), TOLD).find(PAIR) is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (TOLD, True),
        (replace(TOLD, at=OLD), True),
        (replace(TOLD, at="2025-12-31"), False),
        (replace(TOLD, etag="other"), False),
        (replace(TOLD, what="missing"), False),
    ],
)
def test_loss_is_told_while_nobody_read_the_bytes_later(line: Event, told: bool) -> None:
    assert is_told_lost(GONE, [line]) is told
    read = replace(KNOWN, verified_at="2026-03-01")
    assert not is_told_lost(replace(GONE, digests={"sha256": KNOWN, "md5": read}), [line])
