"""The renewer reads the versions of one key, of which there may be any number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, cast

from auditor.audit.renewal.renew import CALLS_AT_ONCE, Renewed, Renewer
from auditor.model.object import Evidence, ObjectRef, Skipped
from auditor.model.target import Target
from auditor.s3.object_reader import ObjectReader
from tests.support.fakes.caller import ref


class GoneObjects:
    """A reader that finds each object gone, and counts the reads that are alive at once."""

    def __init__(self) -> None:
        self.reads = self.most = self._alive = 0

    async def read(self, ref: ObjectRef) -> Evidence:
        self.reads += 1
        self._alive += 1
        self.most = max(self.most, self._alive)
        await asyncio.sleep(0)
        self._alive -= 1
        return Evidence(ref, Skipped("gone"), Skipped("gone"), vanished=True)


async def test_many_versions_of_a_key_are_read_few_at_a_time() -> None:
    reader, number, unused = GoneObjects(), 5 * CALLS_AT_ONCE + 1, cast(Any, None)

    async def listing(target: Target) -> AsyncIterator[ObjectRef]:
        for version in range(number):
            yield ref("key", str(version))

    async def told(renewed: Renewed) -> None:
        raise AssertionError("nothing was read")

    target, read = Target("audited", versions=True), cast(ObjectReader, reader)
    renewer = Renewer(unused, unused, unused, read, listing, target, lambda: datetime.now(UTC), sure=True)
    assert await renewer.renew(["key"], told) == Renewed()
    assert (reader.reads, reader.most) == (number, CALLS_AT_ONCE)
