"""S3's checksums of an object: recorded without a read, and compared with the recorded digests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auditor.errors import DigestConflict
from auditor.hashing.digest.result import entry_of
from auditor.hashing.status import HashStatus, HashStatusFinder
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry, Ledger
from auditor.model.object import DigestSources, Evidence, Head, ObjectRef, Skipped
from tests.support.audit_runs import audit
from tests.support.fakes.ledger import Hooked
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

NOT_ASKED = Skipped("not asked")
BODY = b"what was uploaded"
SHA256 = hashlib.sha256(BODY)
SHA1 = hashlib.sha1(BODY, usedforsecurity=False)
OTHER = hashlib.sha256(b"what lies there now")


def told(digest: bytes) -> str:
    """As S3 writes it."""
    return base64.b64encode(digest).decode()


def evidence_of(key: str = "k", size: int = len(BODY), **head: Any) -> Evidence:
    etag = head.pop("etag", "e" * 32)
    ref = ObjectRef(key, etag, size, "2026-01-02T03:04:05Z", head.pop("version_id", None))
    return Evidence(ref, NOT_ASKED, Head(etag=etag, content_length=size, **head))


async def status_of(ledger: Ledger, evidence: Evidence) -> HashStatus:
    (status,) = await HashStatusFinder("bucket", ledger, ("sha256",)).find([evidence])
    assert status is not None
    return status


async def test_only_a_digest_of_the_whole_object_is_recorded() -> None:
    parts = f"{'e' * 32}-3"
    heads: dict[str, tuple[dict[str, Any], bool]] = {
        "full": ({"checksum_type": "FULL_OBJECT"}, True),
        "full of parts": ({"checksum_type": "FULL_OBJECT", "etag": parts}, True),
        "no type": ({}, True),
        "parts": ({"etag": parts}, False),
        "composite": ({"checksum_type": "COMPOSITE", "etag": parts}, False),
        "composite of one": ({"checksum_type": "COMPOSITE"}, False),
        "number of parts": ({"checksum_sha256": f"{told(SHA256.digest())}-3", "checksum_type": "FULL_OBJECT"}, False),
        "too short": ({"checksum_sha256": told(SHA1.digest()), "checksum_type": "FULL_OBJECT"}, False),
    }
    for name, (head, taken) in heads.items():
        async with open_ledger("sqlite::memory:") as ledger:
            evidence = evidence_of(**{"checksum_sha256": told(SHA256.digest()), **head})
            for _ in range(2):
                status = await status_of(ledger, evidence)
                assert status.state == ("known" if taken else "pending"), name
            (known,) = await ledger.known("bucket", [evidence.ref], ("sha256",))
            assert known == ({"sha256": SHA256.hexdigest()} if taken else {}), name
            events = [event.what for event in await ledger.history("bucket", "k")]
            assert events == ["recorded"] * taken, "once"
            subject = await ledger.subject("bucket", "k")
            if subject is not None:
                (digest,) = subject.versions[0].digests.values()
                assert (digest.source, digest.bytes_read) == ("s3", 0)


async def test_digest_that_another_process_records_meanwhile_stands(ledger: Ledger) -> None:
    evidence = evidence_of(checksum_sha256=told(OTHER.digest()))

    class Overtaken(Hooked):
        async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
            await remember(ledger, evidence, sha256=SHA256.hexdigest())
            return await super().record_many(entries)

    status = await status_of(Overtaken(ledger), evidence)
    assert status.digests == DigestSources(
        stored={"sha256": OTHER.hexdigest()}, recorded={"sha256": SHA256.hexdigest()}
    )
    assert [event.what for event in await ledger.history("bucket", "k")] == ["recorded", "conflict", "mismatch"]


async def remember(ledger: Ledger, evidence: Evidence, **digests: str) -> None:
    await ledger.record(entry_of("bucket", evidence.ref, digests))


async def test_digest_that_differs_from_the_recorded_one_is_noted_once_and_changes_nothing(ledger: Ledger) -> None:
    evidence = evidence_of(checksum_sha256=told(OTHER.digest()))
    await remember(ledger, evidence, sha256=SHA256.hexdigest())
    for _ in range(2):
        status = await status_of(ledger, evidence)
        assert status.digests == DigestSources(
            stored={"sha256": OTHER.hexdigest()}, recorded={"sha256": SHA256.hexdigest()}
        )
    (known,) = await ledger.known("bucket", [evidence.ref], ("sha256",))
    assert known == {"sha256": SHA256.hexdigest()}
    history = await ledger.history("bucket", "k")
    assert [event.what for event in history] == ["recorded", "mismatch"]
    assert history[1].detail == {
        "algorithm": "sha256",
        "digest": OTHER.hexdigest(),
        "recorded": SHA256.hexdigest(),
        "source": "s3",
    }


async def test_new_version_is_not_compared_with_an_older_one(ledger: Ledger) -> None:
    before = evidence_of(version_id="v1")
    await remember(ledger, before, sha256=SHA256.hexdigest())
    now = evidence_of(version_id="v2", etag="f" * 32, checksum_sha256=told(OTHER.digest()))
    status = await status_of(ledger, now)
    assert status.digests.recorded in ({}, {"sha256": OTHER.hexdigest()})
    assert [event.what for event in await ledger.history("bucket", "k")] == ["recorded", "recorded"]


async def test_audit_says_what_was_left_for_its_cost(stub: StubServer, tmp_path: Path) -> None:
    for key, name in (("a", "STANDARD"), ("b", "STANDARD_IA"), ("c", "STANDARD_IA"), ("d", "GLACIER_IR")):
        stub.put(BUCKET, key, key.encode() * 10, storage_class=name)
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        left = await audit(stub, tmp_path, ledger=ledger, hash=True)
        read = await audit(stub, tmp_path, ledger=ledger, hash=True, accept_cost=True)
    assert (left.summary["hashing"]["hashed_now"], left.summary["hashing"]["pending"]) == (1, 3)
    assert left.summary["hashing"]["left_for_cost"] == {
        "GLACIER_IR": {"objects": 1, "bytes": 10},
        "STANDARD_IA": {"objects": 2, "bytes": 20},
    }
    assert (read.summary["hashing"]["hashed_now"], read.summary["hashing"]["left_for_cost"]) == (3, {})
    page = (left.folder / "report.html").read_text()
    assert "STANDARD_IA 2 objects of 20 bytes" in page
