"""Whole verifications for tests: a stub's bucket, a SQLite ledger with independently made digests, and the results."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry, Event, Expectation, Ledger, Notice
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from auditor.verify.run import Verification
from auditor.verify.summary import exit_code
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubObject

LONG_AGO: Final = "2026-01-03T00:00:00Z"


def now() -> datetime:
    return datetime.now(UTC)


def entry(item: StubObject, *algorithms: str, bucket: str = BUCKET, hashed_at: str = LONG_AGO) -> Entry:
    """The digest that an earlier hashing would have recorded, by hashlib."""
    data = item.read()
    return Entry(
        bucket=bucket,
        key=item.key,
        version_id=item.version_id,
        etag=item.etag,
        size=len(data),
        digests={name: hashlib.new(name, data).hexdigest() for name in algorithms or ("sha256",)},
        hashed_at=hashed_at,
        bytes_read=len(data),
    )


def expectation(key: str, data: bytes, algorithm: str = "sha256", *, size: int | None = None) -> Expectation:
    return Expectation(
        key=key,
        algorithm=algorithm,
        digest=hashlib.new(algorithm, data).hexdigest(),
        origin="manifest-sha256.txt",
        imported_at=LONG_AGO,
        size=size,
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The visible results of one verification. lines: of the combined report. documents: of its file."""

    summary: dict[str, Any]
    code: int
    lines: list[str]
    documents: list[dict[str, Any]]

    @property
    def outcomes(self) -> dict[str, int]:
        """The outcomes with a count above 0."""
        return {name: count for name, count in self.summary["outcomes"].items() if count}

    def detail(self, key: str) -> dict[str, str]:
        (found,) = (one for one in self.documents if one["key"] == key)
        detail: dict[str, str] = found["detail"]
        return detail


class Bench:
    """A stub's bucket and a ledger, and verifications of the one with the other."""

    def __init__(self, stub: StubServer, ledger: Ledger, out: Path) -> None:
        self.stub = stub
        self.ledger = ledger
        self.out = out

    def put(self, key: str, body: bytes = b"data", **fields: Any) -> StubObject:
        return self.stub.put(BUCKET, key, body, **fields)

    async def recorded(
        self, *items: StubObject, algorithms: Sequence[str] = ("sha256",), hashed_at: str = LONG_AGO
    ) -> None:
        entries = [entry(item, *algorithms, hashed_at=hashed_at) for item in items]
        assert all(written is True for written in await self.ledger.record_many(entries))

    async def deleted(self, key: str, version_id: str | None = None) -> None:
        """S3 said so."""
        notice = Notice(key=key, sequencer="0A", deleted=True, at=LONG_AGO, version_id=version_id)
        assert await self.ledger.arrived(BUCKET, notice)

    async def expected(self, *expectations: Expectation) -> None:
        await self.ledger.expect(BUCKET, expectations)

    async def verify(
        self,
        *,
        target: Target | None = None,
        stop: Stop | None = None,
        compared: Iterable[str] | None = None,
        verify_id: str | None = None,
        **settings: Any,
    ) -> Verdict:
        told = Settings(**{"endpoint_url": self.stub.url, "max_rate": None, "concurrency": 8, **settings})
        combined = StringIO()
        summary = await Verification(
            target or Target(BUCKET, versions=told.versions),
            told,
            Resources(store=LocalStore(self.out), ledger=self.ledger),
            Stop() if stop is None else stop,
            compared=None if compared is None else tuple(compared),
            combined=combined,
            verify_id=verify_id,
        ).run()
        code = exit_code(summary, told.fail_on_outcomes)
        lines = combined.getvalue().splitlines()
        verdict = Verdict(summary.to_dict(), code, lines, read_documents(Path(summary.out)))
        check(verdict)
        return verdict

    async def noted(self, key: str) -> list[Event]:
        """The events that verifying wrote into the key's history."""
        states = {"verified", "mismatch", "changed", "missing", "lost", "unreadable"}
        return [event for event in await self.ledger.history(BUCKET, key) if event.what in states]


def read_documents(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(folder.glob("combined-*.jsonl.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def check(verdict: Verdict) -> None:
    """Check everything that must hold for any verification."""
    summary = verdict.summary
    assert sum(summary["outcomes"].values()) == summary["listed"] + summary["ledger_only"]
    gone = sum(summary["outcomes"][name] for name in ("missing", "deleted", "retired", "lost"))
    undecided = ("in_flight", "acknowledged", "ledger_fault", "unreadable")
    assert 0 <= summary["ledger_only"] - gone <= sum(summary["outcomes"][name] for name in undecided)
    assert sum(item["count"] for item in summary["unreadable"]) == summary["outcomes"]["unreadable"]
    assert json.loads((Path(summary["out"]) / "summary.json").read_text()) == summary
    assert not list(Path(summary["out"]).glob(".*.tmp"))


@asynccontextmanager
async def make_bench(stub: StubServer, folder: Path) -> AsyncIterator[Bench]:
    async with open_ledger(f"sqlite:{folder / 'digests.db'}") as ledger:
        yield Bench(stub, ledger, folder / "out")


def days_ago(days: float) -> str:
    return (now() - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
