"""A divided run goes on only with the bucket's settings by which it judges all of its ranges."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.errors import RunChanged
from auditor.model.bucket import PublicAccessBlock
from auditor.model.object import Unread
from auditor.runs.reading import RunReader
from tests.support.divided_runs import Divided
from tests.support.servers.stub import StubServer
from tests.support.servers.world import Odd, StubBucket

RANGES: Final = 4
HIDDEN: Final = PublicAccessBlock(ignore_public_acls=True)


@pytest.fixture
def opened(bucket: StubBucket) -> StubBucket:
    for number in range(20):
        bucket.put(f"k{number:02}", b"x", acl="public-read")
    bucket.public_access_block = HIDDEN
    return bucket


async def killed_after(divided: Divided, ranges: int) -> list[str]:
    """Audit so many ranges, and return the IDs of the others."""
    ids = [one.id for one in (await divided.begin(RANGES)).plan.ranges]
    await divided.ranges(ids[:ranges])
    return ids[ranges:]


CHANGES: Final[dict[str, dict[str, Any]]] = {
    "(public_access_block)": {"public_access_block": None},
    "(ownership)": {"ownership": "BucketOwnerPreferred"},
    "(policy)": {"policy": '{"Version":"2012-10-17","Statement":[]}'},
}


async def test_a_run_whose_bucket_was_opened_meanwhile_does_not_call_its_objects_masked(
    stub: StubServer, opened: StubBucket, tmp_path: Path
) -> None:
    divided = Divided(stub, tmp_path, only=("O02",))
    await killed_after(divided, 1)
    for words, change in CHANGES.items():
        for member, value in change.items():
            before = getattr(opened, member)
            setattr(opened, member, value)
            with pytest.raises(RunChanged, match=f"{re.escape(words)}.*start a new run"):
                await divided.begin(RANGES, divided.run_id)
            setattr(opened, member, before)
    opened.odd["GetBucketOwnershipControls"] = Odd.DENIED
    with pytest.raises(RunChanged, match="ownership"):
        await divided.begin(RANGES, divided.run_id)
    opened.odd.clear()
    await divided.begin(RANGES, divided.run_id)


async def test_a_setting_that_was_not_read_then_ends_no_run(
    stub: StubServer, opened: StubBucket, tmp_path: Path
) -> None:
    opened.odd["GetPublicAccessBlock"] = Odd.DENIED
    divided = Divided(stub, tmp_path, only=("O02",))
    left = await killed_after(divided, 1)
    opened.odd.clear()
    await divided.begin(RANGES, divided.run_id)
    await divided.ranges(left)
    summary = await divided.combine()
    assert summary.complete
    file = RunReader(divided.places.store, opened.name, summary.run).bucket
    assert file is not None
    assert file.facts.public_access_block == Unread("GetPublicAccessBlock", "AccessDenied")
