"""The outcome of a read, whatever the read came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import CallFailed, DigestConflict
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Paused, Result, Superseded, Unhashable
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import Entry
from auditor.model.digest import VerifyOutcome
from auditor.model.object import ObjectRef
from auditor.verify.compare import ExpectedDigest, ReadRequest
from auditor.verify.outcome import Verified
from auditor.verify.read import ReadResult, VerifyReader
from tests.conformance.memory import MemoryEngine
from tests.support.fakes.caller import make_caller

SHA, MD5 = "aa" * 32, "bb" * 16
REF = ObjectRef("key", "e", 5, "2026-01-01T00:00:00Z", "v1", storage_class="GLACIER_IR")
TASK = HashTask("key", "v1", "e", 5)
CLAIM = ExpectedDigest("sha256", SHA.upper(), "ledger")
REQUEST = ReadRequest(ref=REF, standing=VerifyOutcome.MATCH, claims=(CLAIM,))
HASHED = Hashed(TASK, {"sha256": SHA, "md5": MD5}, 7)


def verified(outcome: VerifyOutcome, **detail: str) -> Verified:
    return Verified(key="key", outcome=outcome, version_id="v1", etag="e", size=5, detail=detail)


class Records:
    """Takes digests, or refuses them with an error."""

    def __init__(self, error: DigestConflict | None = None) -> None:
        self.entries: list[Entry] = []
        self._error = error

    async def record(self, entry: Entry) -> bool:
        if self._error is not None:
            raise self._error
        self.entries.append(entry)
        return True


class Reads:
    """A reader of the bucket, whose reads come to `result`."""

    def __init__(self, result: Result, *, listed: bool = True, error: DigestConflict | None = None) -> None:
        self.asked: list[tuple[HashTask, Sequence[str]]] = []
        self.records = Records(error)
        self.engine = MemoryEngine([REF] if listed else [])
        self._result = result
        ledger: Any = self.records
        self.reader = VerifyReader("bucket", self.engine, make_caller(), ledger, self._hash, ["md5", "sha256"])

    async def _hash(self, task: HashTask, algorithms: Sequence[str]) -> Result:
        self.asked.append((task, algorithms))
        return self._result


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (HASHED, ReadResult(verified(VerifyOutcome.MATCH), 7)),
        (
            replace(HASHED, digests={"sha256": "cc"}),
            ReadResult(
                verified(VerifyOutcome.MISMATCH, algorithm="sha256", recorded=SHA, found="cc", origin="ledger"), 7
            ),
        ),
        (
            Mismatch(TASK, "sha1", "cc", "DD", 7),
            ReadResult(verified(VerifyOutcome.MISMATCH, algorithm="sha1", recorded="dd", found="cc", origin="s3"), 7),
        ),
        (Superseded(TASK, "Vanished"), ReadResult(verified(VerifyOutcome.UNREADABLE, code="Vanished"))),
        (Unhashable(TASK, "archived"), ReadResult(verified(VerifyOutcome.ARCHIVED, storage_class="GLACIER_IR"))),
        (Unhashable(TASK, "SSE-C"), ReadResult(verified(VerifyOutcome.UNREADABLE, code="SSE-C"))),
        (Failed(TASK, "SlowDown", True), ReadResult(verified(VerifyOutcome.UNREADABLE, code="SlowDown"))),
        (
            Failed(TASK, "SizeDiffers", False),
            ReadResult(verified(VerifyOutcome.MISMATCH, algorithm="size", recorded="5", code="SizeDiffers")),
        ),
        (Paused(TASK, None, 3), Paused(TASK, None, 3)),
    ],
    ids=lambda one: type(one).__name__,
)
async def test_each_result_has_its_outcome(result: Result, expected: ReadResult | Paused) -> None:
    reads = Reads(result)
    assert await reads.reader.answer(REQUEST) == expected
    assert reads.asked == [(TASK, ("sha256",))]
    assert reads.records.entries == []


async def test_size_that_differs_from_no_recorded_one_is_unreadable() -> None:
    found = await Reads(Failed(TASK, "SizeDiffers", False)).reader.answer(replace(REQUEST, claims=()))
    assert found == ReadResult(verified(VerifyOutcome.UNREADABLE, code="SizeDiffers"))


async def test_object_that_is_listed_no_more_is_in_flight() -> None:
    reads = Reads(Superseded(TASK, "Vanished"), listed=False)
    assert await reads.reader.answer(REQUEST) == ReadResult(verified(VerifyOutcome.IN_FLIGHT))


async def test_listing_that_fails_proves_nothing() -> None:
    def refuse(*_: object) -> None:
        raise CallFailed("ListObjectVersions", "AccessDenied", 403)

    reads = Reads(Superseded(TASK, "Overwritten"))
    reads.engine.hook = refuse  # type: ignore[assignment]
    assert await reads.reader.answer(REQUEST) == ReadResult(verified(VerifyOutcome.UNREADABLE, code="AccessDenied"))


async def test_digests_are_recorded_where_they_are_wanted_and_the_bytes_are_right() -> None:
    reads = Reads(HASHED)
    keep = replace(REQUEST, keep=True)
    assert await reads.reader.answer(keep) == ReadResult(verified(VerifyOutcome.MATCH), 7, recorded=True)
    assert reads.asked == [(TASK, ("sha256", "md5"))]
    (entry,) = reads.records.entries
    assert (entry.bucket, entry.key, entry.digests, entry.bytes_read) == ("bucket", "key", HASHED.digests, 7)
    wrong = replace(keep, claims=(replace(CLAIM, digest="cc"),))
    found = await reads.reader.answer(wrong)
    assert isinstance(found, ReadResult)
    assert (found.verified.outcome, found.recorded) == (VerifyOutcome.MISMATCH, False)
    assert len(reads.records.entries) == 1


async def test_digest_that_another_process_recorded_meanwhile_is_a_mismatch() -> None:
    reads = Reads(HASHED, error=DigestConflict("another digest"))
    found = await reads.reader.answer(replace(REQUEST, keep=True))
    assert found == ReadResult(verified(VerifyOutcome.MISMATCH, code="DigestConflict"), 7)
