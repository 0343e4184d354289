"""`auditor hash` ends where --max-calls or a stop says, between two keys, and says what it did not hash."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.config.settings import Settings
from auditor.hashing.limits import MIB
from auditor.hashing.run import BATCH, HashRun, HashRunSummary
from auditor.ledger.base import Ledger
from auditor.model.exception import ExceptionEntry
from auditor.model.target import Target
from tests.support.fakes.ledger import versions_of
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault, error, latency
from tests.support.servers.world import StubObject
from tests.support.verification import Bench, entry

accepting = partial(ExceptionEntry, owner="me", until="2999-12-31")


async def hash_all(
    stub: StubServer, ledger: Ledger, stop: Stop | None = None, *, versions: bool = False, **settings: Any
) -> HashRunSummary:
    given = Settings(endpoint_url=stub.url, max_rate=None, **settings)
    return await HashRun(Target(BUCKET, versions=versions), given, ledger, Stop() if stop is None else stop).run()


def promised(stub: StubServer, key: str, body: bytes, **fields: Any) -> StubObject:
    """The listing names the algorithm of its checksum, without the value."""
    checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
    return stub.put(BUCKET, key, body, checksums={"SHA256": checksum}, checksum_type="FULL_OBJECT", **fields)


def when_read(stub: StubServer, act: Any) -> None:
    """Call `act` before each GetObject is answered."""

    def watch(operation: str, key: str, nth: int) -> None:
        if operation == "GetObject":
            act(key)

    stub.faults = [watch]


def reasons(summary: HashRunSummary) -> dict[str, int]:
    return {item.code: item.count for item in summary.not_hashed}


def stop_at_the_first_read(stub: StubServer, stop: Stop) -> None:
    when_read(stub, lambda key: stop.set("stopped by a test"))


async def test_every_listed_page_is_hashed_and_the_limit_is_named(stub: StubServer, ledger: Ledger) -> None:
    for number in range(1010):
        stub.put(BUCKET, f"{number:04}", b"data")
    stop = Stop()
    summary = await hash_all(stub, ledger, stop, max_calls=1)
    assert (summary.hashing.hashed_now, summary.complete) == (1000, False)
    assert stop.reason == "the limit of --max-calls was reached (MaxCalls)"
    rest = await hash_all(stub, ledger, Stop())
    assert (rest.hashing.known, rest.hashing.hashed_now, rest.complete) == (1000, 10, True)


async def test_stop_ends_the_run_after_the_batch_in_hand(stub: StubServer, ledger: Ledger) -> None:
    for number in range(BATCH + 1):
        stub.put(BUCKET, f"{number:04}", b"data")
    stop = Stop()
    stop_at_the_first_read(stub, stop)
    summary = await hash_all(stub, ledger, stop)
    assert (summary.hashing.hashed_now, summary.complete) == (BATCH, False)


async def test_versions_of_a_begun_key_are_hashed_to_the_last(stub: StubServer, ledger: Ledger) -> None:
    stub.world.buckets[BUCKET].versioning = "Enabled"
    for number in range(BATCH + 7):
        stub.put(BUCKET, "many", b"%d" % number)
    stub.put(BUCKET, "next", b"data")
    stop = Stop()
    stop_at_the_first_read(stub, stop)
    summary = await hash_all(stub, ledger, stop, versions=True)
    assert (summary.hashing.hashed_now, summary.complete) == (BATCH + 7, False)


async def test_streams_of_one_object_have_connections_beyond_the_runs_concurrency(
    stub: StubServer, ledger: Ledger
) -> None:
    stub.put(BUCKET, "large", None, size=16 * MIB)
    at_once: list[int] = []

    def watch(operation: str, key: str, nth: int) -> Fault | None:
        at_once.append(stub.in_flight)
        return latency(0.5) if operation == "GetObject" else None  # or a range is read before the next is asked for

    stub.faults = [watch]
    summary = await hash_all(stub, ledger, streams=4, engine="direct", concurrency=1)
    assert (summary.hashing.hashed_now, max(at_once) > 1) == (1, True)


class TestPromisedChecksum:
    """A checksum that the listing only names is no knowledge of the object."""

    async def test_head_takes_it_into_the_ledger_and_a_flipped_bit_is_found(
        self, stub: StubServer, ledger: Ledger, tmp_path: Path
    ) -> None:
        """Archived objects, and those whose reading is charged, are known by it too."""
        item = promised(stub, "key", b"what was uploaded")
        promised(stub, "archived", b"data", storage_class="GLACIER")
        promised(stub, "charged", b"data", storage_class="STANDARD_IA")
        for _ in range(2):
            summary = await hash_all(stub, ledger)
            assert (summary.hashing.known, summary.exit_code) == (3, 0)
            assert (stub.count("HeadObject"), stub.count("GetObject")) == (3, 0)
        item.body, item.checksums = b"what was uploadec", {}
        found = await Bench(stub, ledger, tmp_path).verify(grace=0.0)
        assert (found.lines, found.code) == (["a archived", "$ charged", "* key"], 4)
        assert found.detail("key")["recorded"] == hashlib.sha256(b"what was uploaded").hexdigest()

    @pytest.mark.parametrize("algorithm", ["md5", "sha512"])
    async def test_those_of_2026_are_digests_of_whole_objects_and_never_of_parts(
        self, stub: StubServer, ledger: Ledger, algorithm: str
    ) -> None:
        for key, kind, etag in (("whole", "FULL_OBJECT", "e" * 32), ("parts", "COMPOSITE", "e" * 32 + "-2")):
            checksum = base64.b64encode(hashlib.new(algorithm, key.encode(), usedforsecurity=False).digest()).decode()
            sums = {algorithm.upper(): checksum, "XXHASH3": "eHgz", "NEWER": "bmV3"}
            stub.put(BUCKET, key, key.encode(), etag=etag, checksums=sums, checksum_type=kind)
        summary = await hash_all(stub, ledger, algorithms=(algorithm,))
        assert (summary.hashing.known, summary.hashing.hashed_now, summary.exit_code) == (1, 1, 0)
        read = [call.key for call in stub.calls if call.operation == "GetObject"]
        assert read == ["parts"]
        (version,) = await versions_of(ledger, BUCKET, "whole")
        digest = hashlib.new(algorithm, b"whole", usedforsecurity=False).hexdigest()
        assert (version.digests[algorithm].digest, version.digests[algorithm].source) == (digest, "s3")

    async def test_object_is_read_when_head_does_not_tell_the_value(self, stub: StubServer, ledger: Ledger) -> None:
        item = promised(stub, "key", b"data")

        def forget(operation: str, key: str, nth: int) -> None:
            item.checksums = {} if operation == "HeadObject" else item.checksums

        stub.faults = [forget]
        summary = await hash_all(stub, ledger)
        assert (summary.hashing.hashed_now, stub.count("GetObject")) == (1, 1)
        (version,) = await versions_of(ledger, BUCKET, "key")
        assert (version.etag, version.digests["sha256"].source) == (item.etag, "auditor")

    async def test_object_whose_checksum_and_bytes_are_denied_is_a_hole(self, stub: StubServer, ledger: Ledger) -> None:
        """As without kms:Decrypt."""
        promised(stub, "key", b"data", deny={"checksum", "get"})
        summary = await hash_all(stub, ledger)
        assert (summary.hashing.known, summary.failed, summary.exit_code) == (0, 1, 4)
        assert await ledger.subject(BUCKET, "key") is None

    async def test_object_that_was_overwritten_since_is_known_as_what_it_is_now(
        self, stub: StubServer, ledger: Ledger
    ) -> None:
        promised(stub, "key", b"before")

        def overwrite(operation: str, key: str, nth: int) -> None:
            if operation == "HeadObject" and nth == 1:
                promised(stub, "key", b"after")

        stub.faults = [overwrite]
        assert (await hash_all(stub, ledger)).hashing.known == 1
        (version,) = await versions_of(ledger, BUCKET, "key")
        assert version.digests["sha256"].digest == hashlib.sha256(b"after").hexdigest()


class TestNotHashed:
    async def test_each_reason_is_counted_and_is_a_hole(self, stub: StubServer, ledger: Ledger) -> None:
        stub.put(BUCKET, "archived", b"data", storage_class="GLACIER")
        stub.put(BUCKET, "charged", b"data", storage_class="STANDARD_IA")
        stub.put(BUCKET, "denied", b"data").deny = {"get"}
        stub.put(BUCKET, "sse-c", b"data").sse_c = True
        stub.put(BUCKET, "sound", b"data")
        summary = await hash_all(stub, ledger)
        assert summary.hashing.hashed_now == 1
        assert summary.holes == ("4 objects not hashed (1 AccessDenied, 1 SSE-C, 1 archived, 1 left_for_cost)",)
        assert summary.exit_code == 4
        assert reasons(summary) == {"AccessDenied": 1, "SSE-C": 1, "archived": 1, "left_for_cost": 1}
        known = [accepting("known", code=code) for code in ("archived", "SSE-C", "left_for_cost")]
        known.append(accepting("theirs", prefix="den", action="GetObject"))
        summary = await hash_all(stub, ledger, exceptions=tuple(known))
        assert (summary.accepted, summary.holes, summary.exit_code) == (4, (), 0)
        assert reasons(summary) == {"AccessDenied": 1, "SSE-C": 1, "archived": 1, "left_for_cost": 1}

    async def test_object_that_was_replaced_between_listing_and_read_stands_in_a_count(
        self, stub: StubServer, ledger: Ledger
    ) -> None:
        stub.put(BUCKET, "key", b"before")
        when_read(stub, lambda key: stub.put(BUCKET, key, b"after"))
        summary = await hash_all(stub, ledger)
        assert (summary.replaced, summary.hashing.pending, summary.exit_code) == (1, 1, 4)
        assert summary.holes == ("1 object not hashed (1 Overwritten)",)

    async def test_object_that_was_deleted_between_listing_and_read_is_no_hole(
        self, stub: StubServer, ledger: Ledger
    ) -> None:
        stub.put(BUCKET, "key", b"data")
        objects = stub.world.buckets[BUCKET].objects
        when_read(stub, lambda key: objects.remove(key) if objects.versions(key) else None)
        summary = await hash_all(stub, ledger)
        assert (summary.vanished, sum(summary.hashing.counts.values()), summary.exit_code) == (1, 0, 0)

    async def test_object_that_is_listed_and_not_there_has_failed(self, stub: StubServer, ledger: Ledger) -> None:
        stub.put(BUCKET, "key", b"data")
        stub.faults = [lambda operation, key, nth: error(404, "NoSuchKey") if operation == "GetObject" else None]
        summary = await hash_all(stub, ledger)
        assert (summary.failed, reasons(summary), summary.exit_code) == (1, {"Vanished": 1}, 4)

    async def test_digest_that_contradicts_the_ledger_stays_out_and_its_neighbours_are_hashed(
        self, stub: StubServer, ledger: Ledger
    ) -> None:
        item = stub.put(BUCKET, "key", b"data")
        stub.put(BUCKET, "sound", b"data")
        wrong = replace(entry(item), digests={"sha256": "0" * 64})
        await ledger.record(wrong)
        summary = await hash_all(stub, ledger, algorithms=("sha256", "md5"))
        assert (reasons(summary), summary.hashing.hashed_now) == ({"DigestConflict": 1}, 1)
        (version,) = await versions_of(ledger, BUCKET, "key")
        assert {name: known.digest for name, known in version.digests.items()} == wrong.digests

    async def test_digest_that_contradicts_s3s_checksum_is_accepted_by_nobody(
        self, stub: StubServer, ledger: Ledger
    ) -> None:
        stub.put(BUCKET, "key", b"data", checksums={"SHA256": "A" * 43 + "="}, checksum_type="FULL_OBJECT")
        accept = (accepting("all", prefix="k", action="GetObject"),)
        summary = await hash_all(stub, ledger, algorithms=("sha256", "md5"), exceptions=accept)
        assert (reasons(summary), summary.accepted, summary.exit_code) == ({"ChecksumMismatch": 1}, 0, 4)
