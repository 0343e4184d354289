"""What every ledger promises, run over each kind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from auditor.errors import DigestConflict
from auditor.ledger.base import Entry, Ledger
from auditor.model.object import ObjectRef
from tests.ledger.conftest import Open

SHA = "aa" * 32
OTHER = "bb" * 32
MD5 = "cc" * 16
ENTRY = Entry(
    bucket="bucket",
    key="a/key",
    version_id=None,
    etag="etag",
    size=5,
    digests={"sha256": SHA},
    hashed_at="2026-01-02T03:04:05Z",
)
REF = ObjectRef("a/key", "etag", 5, "2026-01-01T00:00:00Z")
ODD_KEYS = [
    " ",
    "a+b %41?x#y",
    "naïve",
    "nai\u0308ve",
    "\N{PILE OF POO}" * 256,
    "k" * 1024,
    "new\nline\r\ttab",
    "nul\0inside",
    "nul\0",
    "nul",
    "\x01\x7f\ufffe",
    "/leading//double/../up\\",
    "trailing ",
    "'\"<b>&;--",
    "=cmd()",
]


async def known(ledger: Ledger, ref: ObjectRef, *algorithms: str) -> Mapping[str, str]:
    (answer,) = await ledger.known("bucket", [ref], algorithms or ("sha256",))
    return answer


async def test_recorded_digest_is_known(ledger: Ledger) -> None:
    assert await ledger.record(ENTRY) is True
    assert await known(ledger, REF) == {"sha256": SHA}


async def test_empty_ledger_knows_nothing_and_no_refs_have_no_answers(ledger: Ledger) -> None:
    assert await known(ledger, REF) == {}
    assert await ledger.known("bucket", [], ["sha256"]) == []


@pytest.mark.parametrize(
    ("recorded", "listed", "match"),
    [
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
    ],
)
async def test_versions_match_when_equal_or_not_known_to_both(
    ledger: Ledger, recorded: str | None, listed: str | None, match: bool
) -> None:
    await ledger.record(replace(ENTRY, version_id=recorded))
    assert await known(ledger, replace(REF, version_id=listed)) == ({"sha256": SHA} if match else {})


@pytest.mark.parametrize("other", [{"key": "another"}, {"etag": "another"}, {"size": 6}, {"key": "a/KEY"}])
async def test_another_key_etag_or_size_is_another_object(ledger: Ledger, other: dict[str, object]) -> None:
    await ledger.record(ENTRY)
    assert await known(ledger, replace(REF, **other)) == {}  # type: ignore[arg-type]


async def test_another_bucket_is_another_object(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    assert await ledger.known("bucket2", [REF], ["sha256"]) == [{}]


async def test_bucket_and_key_are_not_confused_at_the_slash(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, bucket="bucket", key="b/c"))
    assert await ledger.known("bucke", [replace(REF, key="t/b/c")], ["sha256"]) == [{}]


async def test_same_record_twice_writes_nothing_new(ledger: Ledger) -> None:
    assert await ledger.record(ENTRY) is True
    assert await ledger.record(replace(ENTRY, hashed_at="2027-01-01T00:00:00Z")) is False
    assert await ledger.record(replace(ENTRY, version_id="null")) is False


async def test_another_digest_is_a_conflict_and_the_first_one_stays(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    with pytest.raises(DigestConflict, match=r"another sha256 .* 'a/key' in bucket 'bucket'"):
        await ledger.record(replace(ENTRY, digests={"sha256": OTHER, "md5": MD5}))
    assert await known(ledger, REF, "sha256", "md5") == {"sha256": SHA}


async def test_another_size_of_the_same_version_is_a_conflict(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    with pytest.raises(DigestConflict, match="another size"):
        await ledger.record(replace(ENTRY, size=6))


async def test_algorithm_added_later_stands_beside_the_first(ledger: Ledger) -> None:
    await ledger.record(ENTRY)
    assert await known(ledger, REF, "sha256", "md5") == {"sha256": SHA}
    assert await ledger.record(replace(ENTRY, digests={"sha256": SHA, "md5": MD5})) is True
    assert await known(ledger, REF, "sha256", "md5") == {"sha256": SHA, "md5": MD5}
    assert await known(ledger, REF, "md5") == {"md5": MD5}


async def test_digests_of_one_object_come_from_rows_with_and_without_its_version(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.record(replace(ENTRY, digests={"md5": MD5}))
    for version in (None, "v1"):
        ref = replace(REF, version_id=version)
        assert await known(ledger, ref, "sha256", "md5") == {"sha256": SHA, "md5": MD5}


async def test_versions_that_disagree_say_nothing_of_a_listing_without_versions(ledger: Ledger) -> None:
    await ledger.record(replace(ENTRY, version_id="v1"))
    await ledger.record(replace(ENTRY, version_id="v2", digests={"sha256": OTHER}))
    assert await known(ledger, REF) == {}
    assert await known(ledger, replace(REF, version_id="v2")) == {"sha256": OTHER}


async def test_odd_keys_come_back_unchanged(ledger: Ledger) -> None:
    for number, key in enumerate(ODD_KEYS):
        await ledger.record(replace(ENTRY, key=key, digests={"sha256": f"{number:064x}"}))
    answers = await ledger.known("bucket", [replace(REF, key=key) for key in ODD_KEYS], ["sha256"])
    assert answers == [{"sha256": f"{number:064x}"} for number in range(len(ODD_KEYS))]


async def test_250_refs_in_one_look_up_are_answered_in_order(ledger: Ledger) -> None:
    keys = [f"key-{number}" for number in range(250)]
    for number, key in enumerate(keys[::2]):
        await ledger.record(replace(ENTRY, key=key, digests={"sha256": f"{number:064x}"}))
    refs = [replace(REF, key=key) for key in keys]
    answers = await ledger.known("bucket", [*refs, refs[0]], ["sha256"])
    assert answers[:250:2] == [{"sha256": f"{number:064x}"} for number in range(125)]
    assert answers[1:250:2] == [{}] * 125
    assert answers[250] == answers[0]


async def test_two_writers_at_once_leave_one_truth(opener: Open) -> None:
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


async def test_what_was_recorded_is_there_for_the_next_process(opener: Open) -> None:
    async with opener() as ledger:
        await ledger.record(ENTRY)
    async with opener() as ledger:
        assert await known(ledger, REF) == {"sha256": SHA}
