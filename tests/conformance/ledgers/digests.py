"""The checks of digests: what a ledger records of object versions, and what it answers for a listing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from auditor.errors import DigestConflict
from auditor.ledger.base import Ledger
from auditor.model.object import ObjectRef

from .base import ENTRY, MD5, ODD_KEYS, OTHER, REF, SHA, OpenLedger, check, opened, raises

_VERSIONS: Final = [
    (None, None, True),
    (None, "null", True),
    ("null", None, True),
    (None, "v1", True),
    ("null", "v1", True),
    ("v1", None, True),
    ("v1", "null", True),
    ("v1", "v1", True),
    ("v1", "v2", False),
    ("v1", "v1#etag", False),
]
"""The version that was recorded, the one that is listed, and whether they match."""
_OTHER_OBJECTS: Final[list[dict[str, Any]]] = [{"key": "another"}, {"etag": "another"}, {"size": 6}, {"key": "a/KEY"}]


async def known(ledger: Ledger, ref: ObjectRef, *algorithms: str) -> Mapping[str, str]:
    (answer,) = await ledger.known("bucket", [ref], algorithms or ("sha256",))
    return answer


@opened
async def recorded_digest_is_known_and_an_empty_ledger_knows_nothing(ledger: Ledger) -> None:
    assert await known(ledger, REF) == {}
    assert await ledger.known("bucket", [], ["sha256"]) == []
    assert await ledger.record(ENTRY) is True
    assert await known(ledger, REF) == {"sha256": SHA}


@opened
async def versions_match_when_equal_or_not_known_to_both(ledger: Ledger) -> None:
    for number, (recorded, listed, match) in enumerate(_VERSIONS):
        key = f"key-{number}"
        await ledger.record(replace(ENTRY, key=key, version_id=recorded))
        found = await known(ledger, replace(REF, key=key, version_id=listed))
        assert found == ({"sha256": SHA} if match else {}), (recorded, listed)


@opened
async def another_bucket_key_etag_or_size_is_another_object(ledger: Ledger) -> None:
    await ledger.record_many([ENTRY, replace(ENTRY, key="b/c")])
    for other in _OTHER_OBJECTS:
        assert await known(ledger, replace(REF, **other)) == {}, other
    assert await ledger.known("bucket2", [REF], ["sha256"]) == [{}]
    assert await ledger.known("bucke", [replace(REF, key="t/b/c")], ["sha256"]) == [{}]


@opened
async def same_record_twice_writes_nothing_new(ledger: Ledger) -> None:
    assert await ledger.record(ENTRY) is True
    assert await ledger.record(replace(ENTRY, hashed_at="2027-01-01T00:00:00Z")) is False
    assert await ledger.record(replace(ENTRY, version_id="null")) is False


@opened
async def another_digest_or_size_is_a_conflict_and_the_first_one_stays(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    with raises(DigestConflict, r"another sha256 .* 'a/key' in bucket 'bucket'"):
        await ledger.record(replace(ENTRY, digests={"sha256": OTHER, "md5": MD5}))
    with raises(DigestConflict, "another size"):
        await ledger.record(replace(ENTRY, size=6))
    assert await known(ledger, REF, "sha256", "md5") == {"sha256": SHA}


@opened
async def algorithm_added_later_stands_beside_the_first(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    assert await known(ledger, REF, "sha256", "md5") == {"sha256": SHA}
    assert await ledger.record(replace(ENTRY, digests={"sha256": SHA, "md5": MD5})) is True
    assert await known(ledger, REF, "sha256", "md5") == {"sha256": SHA, "md5": MD5}
    assert await known(ledger, REF, "md5") == {"md5": MD5}


@opened
async def digests_of_one_object_come_from_rows_with_and_without_its_version(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.record(replace(ENTRY, digests={"md5": MD5}))
    for version in (None, "v1"):
        ref = replace(REF, version_id=version)
        assert await known(ledger, ref, "sha256", "md5") == {"sha256": SHA, "md5": MD5}


@opened
async def versions_that_disagree_say_nothing_of_a_listing_without_versions(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.record(replace(ENTRY, version_id="v2", digests={"sha256": OTHER}))
    assert await known(ledger, REF) == {}
    assert await known(ledger, replace(REF, version_id="v2")) == {"sha256": OTHER}
    await ledger.record(replace(ENTRY, digests={"sha256": MD5 * 2}))
    for version, digest in (("v2", OTHER), ("v3", MD5 * 2), (None, MD5 * 2)):
        assert await known(ledger, replace(REF, version_id=version)) == {"sha256": digest}, version


@opened
async def odd_keys_come_back_unchanged(ledger: Ledger) -> None:
    for number, key in enumerate(ODD_KEYS):
        await ledger.record(replace(ENTRY, key=key, digests={"sha256": f"{number:064x}"}))
    answers = await ledger.known("bucket", [replace(REF, key=key) for key in ODD_KEYS], ["sha256"])
    assert answers == [{"sha256": f"{number:064x}"} for number in range(len(ODD_KEYS))]


@opened
async def refs_of_one_look_up_are_answered_in_order(ledger: Ledger) -> None:
    keys = [f"key-{number}" for number in range(250)]
    written = {key: {"sha256": f"{number:064x}"} for number, key in enumerate(keys) if number % 7 == 0}
    await ledger.record_many([replace(ENTRY, key=key, digests=digests) for key, digests in written.items()])
    refs = [replace(REF, key=key) for key in [*keys, keys[0]]]
    answers = await ledger.known("bucket", refs, ["sha256"])
    assert answers == [written.get(ref.key, {}) for ref in refs]


@opened
async def reader_along_the_listing_answers_as_a_look_up_does(ledger: Ledger) -> None:
    for number, (recorded, _, _) in enumerate(_VERSIONS):
        await ledger.record(replace(ENTRY, key=f"key-{number}", version_id=recorded))
        await ledger.record(replace(ENTRY, key=f"key-{number}", version_id=recorded, etag="another"))
    for versions in (False, True):
        refs = [
            replace(REF, key=f"key-{number}", version_id=version, etag=etag)
            for number in range(len(_VERSIONS) + 2)
            for version in (["v1", "v2", "null"] if versions else [None])
            for etag in ("etag", "another", "a third one")
        ]
        reader, found = ledger.in_order("bucket"), []
        for start in range(0, len(refs), 4):
            found += await reader.known(refs[start : start + 4], ["sha256"])
        await reader.close()
        assert found == await ledger.known("bucket", refs, ["sha256"])
        assert await reader.known([], ["sha256"]) == []
        await reader.close()


@check
async def two_writers_at_once_leave_one_truth(opener: OpenLedger) -> None:
    async def write(ledger: Ledger, digest: str) -> list[object]:
        entries = [replace(ENTRY, key=f"key-{number}", digests={"sha256": digest}) for number in range(20)]
        return list(await asyncio.gather(*(ledger.record(entry) for entry in entries), return_exceptions=True))

    async with opener() as first, opener() as second:
        one, two = await asyncio.gather(write(first, SHA), write(second, OTHER))
        for mine, theirs in zip(one, two, strict=True):
            assert (mine is True) != (theirs is True)
            assert isinstance(theirs if mine is True else mine, DigestConflict)
        refs = [replace(REF, key=f"key-{number}") for number in range(20)]
        answers = await first.known("bucket", refs, ["sha256"])
        assert answers == [{"sha256": SHA if mine is True else OTHER} for mine in one]


@check
async def record_is_there_for_the_next_process(opener: OpenLedger) -> None:
    async with opener() as ledger:
        await ledger.record(ENTRY)
    async with opener() as ledger:
        assert await known(ledger, REF) == {"sha256": SHA}
