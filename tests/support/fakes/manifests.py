"""A ledger in memory for exporting and importing, and key records to put into it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from hashlib import new

from msgspec.structs import replace

from auditor.ledger.base import AUDITOR, Event, Expectation, KeyRecord, Known, Notice, Version

THEN = "2026-01-02T03:04:05Z"


@dataclass
class MemoryLedger:
    """The ledger of one bucket. It keeps expectations by key, algorithm and origin, as the protocol says.

    reading: the number of readers at the moment.
    """

    held: dict[str, KeyRecord] = field(default_factory=dict)
    expected: dict[tuple[str, str, str], Expectation] = field(default_factory=dict)
    reading: int = 0

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        raise AssertionError("no manifest notes anything")

    async def history(self, bucket: str, key: str) -> list[Event]:
        raise AssertionError("no manifest asks for a history")

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        raise AssertionError("no manifest is a notification")

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        other = 0
        for one in expectations:
            place = (one.key, one.algorithm, one.origin)
            before = self.expected.get(place)
            if before is None or replace(before, imported_at=one.imported_at) != one:
                self.expected[place] = one
                other += 1
        return other

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        return self.held.get(key)

    async def subjects(self, bucket: str, prefix: str = "", start_after: str = "") -> AsyncGenerator[KeyRecord, None]:
        self.reading += 1
        try:
            for key in sorted(self.held, key=str.encode):
                if key.startswith(prefix) and key > start_after:
                    yield self.held[key]
        finally:
            self.reading -= 1


def version(content: bytes, *algorithms: str, version_id: str = "null") -> Version:
    return Version(
        version_id=version_id,
        etag=new("md5", content, usedforsecurity=False).hexdigest(),
        size=len(content),
        digests={
            name: Known(
                digest=new(name, content, usedforsecurity=False).hexdigest(),
                source=AUDITOR,
                recorded_at=THEN,
                verified_at=None,
                bytes_read=len(content),
            )
            for name in algorithms or ("sha256",)
        },
        first_seen=THEN,
    )


def ledger_with(contents: dict[str, bytes], *algorithms: str) -> MemoryLedger:
    """Each key with one version of that content."""
    return MemoryLedger(
        {key: KeyRecord(key=key, versions=(version(body, *algorithms),)) for key, body in contents.items()}
    )
