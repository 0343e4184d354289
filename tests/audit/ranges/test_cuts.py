"""Ranges of keys together are the whole listing, no key is in two, and they are about as large as each other."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.audit.plan_ranges import LAST, KeyCuts, KeysFound, call_budget, find_cuts
from auditor.errors import BucketError, CallFailed
from auditor.model.target import Target
from tests.audit.ranges.key_sets import SETS, keys_of_set

RANGES = 64
GIANTS = ("one giant prefix", "one prefix of uuids", "one prefix of numbers")
Cuts = Sequence[tuple[str, int]]


class MemoryListing:
    """Lists keys in memory, and counts its calls."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self.calls = 0

    async def __call__(self, after: str | None, count: int) -> KeysFound:
        self.calls += 1
        await asyncio.sleep(0)
        begin = 0 if after is None else bisect_right(self.keys, after)
        return KeysFound(self.keys[begin : begin + count], begin + count < len(self.keys))


class FailingListing(MemoryListing):
    """Fails from one call on."""

    def __init__(self, keys: Sequence[str], good: int, failure: Exception) -> None:
        super().__init__(keys)
        self.good = good
        self.failure = failure

    async def __call__(self, after: str | None, count: int) -> KeysFound:
        if self.calls >= self.good:
            raise self.failure
        return await super().__call__(after, count)


def sizes(keys: Sequence[str], cuts: Cuts) -> list[int]:
    """The numbers of keys in the ranges, of which each but the last one ends with a key of the listing."""
    assert {key for key, _ in cuts} <= set(keys)
    ends = [0, *(bisect_right(keys, key) for key, _ in cuts), len(keys)]
    return [end - begin for begin, end in pairwise(ends)]


KEYS = st.text(st.sampled_from("ab/0\u00e9\ud7ff\ue000\uffff\U00010000\U0010ffff"), min_size=1, max_size=6)


@given(
    st.lists(KEYS, max_size=80).map(sorted),  # a key twice: it has two versions
    st.integers(1, 9),
    st.integers(2, 9),
    st.one_of(st.none(), KEYS),
    st.one_of(st.none(), KEYS),
)
async def test_each_key_is_in_one_range(
    keys: list[str], ranges: int, page: int, after: str | None, upto: str | None
) -> None:
    if after is not None and upto is not None and after >= upto:
        after, upto = None, after
    inside = [key for key in keys if Target("audited", start_after=after, stop_at=upto).covers(key)]
    found = await find_cuts(MemoryListing(keys), ranges, after, upto, page=page)
    limits = pairwise([after, *(key for key, _ in found.cuts), upto])
    parts = [Target("audited", start_after=low, stop_at=high) for low, high in limits]
    assert [key for part in parts for key in keys if part.covers(key)] == inside
    assert 1 <= len(parts) <= ranges
    assert {key for key, _ in found.cuts} <= set(inside)
    if found.exact and len(set(keys)) == len(keys) and not any(LAST in key for key in keys):
        assert found.keys == len(inside)


async def unbalanced(
    names: Sequence[str], number: int, page: int, most: int, *, budget: int | None = None, largest: float = 1.1
) -> dict[str, tuple[float, int, bool]]:
    """By the name of a set of keys that is cut badly: the largest range as a multiple of the mean, the calls, and
    whether the plan calls itself exact. most: number of calls to send. budget: number of calls that the search may
    send, too few for an exact plan; None for an exact one. largest: the limit of the ratio.
    """
    failures = {}
    for name in names:
        keys, listing = (keys := keys_of_set(name, number)), MemoryListing(keys)
        found = await find_cuts(listing, RANGES, None, None, page=page, most=budget)
        parts = sizes(keys, found.cuts)
        ratio = max(parts) * RANGES / len(keys)
        whole = (sum(parts), len(parts), found.exact) == (len(keys), RANGES, budget is None)
        if not whole or ratio > largest or listing.calls > most:
            failures[name] = (ratio, listing.calls, found.exact)
    return failures


async def test_ranges_are_about_as_large_as_each_other() -> None:
    """As where S3's pages have a thousand keys and the bucket has 200,000."""
    names = ["dates", "hidden at depth 3", "the last prefix", "folders of a hundred keys"]
    assert not await unbalanced(names, 20_000, 100, 500)


@pytest.mark.slow
@pytest.mark.parametrize("page", [50, 300])
async def test_many_keys_of_each_kind(page: int) -> None:
    """As in buckets of 600,000 and of 100,000 keys: the calls suffice to read all keys."""
    assert not await unbalanced(list(SETS), 30_000, page, call_budget(RANGES))


async def test_few_keys_that_mislead_are_each_in_one_range() -> None:
    failures = {}
    for name in SETS:
        for number in (1, 65, 1000):
            keys, listing = (keys := keys_of_set(name, number)), MemoryListing(keys)
            found = await find_cuts(listing, RANGES, None, None, page=10)
            parts = sizes(keys, found.cuts)
            whole = (sum(parts), found.keys, found.exact) == (len(keys), len(keys), True) and len(parts) <= RANGES
            if not whole or max(parts) >= 2 * len(keys) / RANGES + 2 or listing.calls > 3 * len(keys) / 10 + 300:
                failures[name, number] = (parts, listing.calls)
    assert not failures


FAILURES = (BucketError("the listing is denied"), CallFailed("x", "SlowDown"))
SPENT = CallFailed("ListObjectsV2", "MaxCalls")


async def test_a_call_that_fails_later_leaves_the_keys_that_are_known_and_the_first_is_told() -> None:
    keys = keys_of_set("one giant prefix", 10_000)
    for failure in (*FAILURES, SPENT):
        for good in (60, 150):
            found = await find_cuts(FailingListing(keys, good, failure), 8, None, None, page=17)
            parts = sizes(keys, found.cuts)
            assert (sum(parts), found.exact) == (len(keys), False)
            assert len(parts) > 1
    for failure in FAILURES:
        with pytest.raises(type(failure)):
            await find_cuts(FailingListing(["a"], 0, failure), 8, None, None)


async def test_no_more_calls_than_allowed() -> None:
    keys = keys_of_set("uuids", 10_000)
    listing = MemoryListing(keys)
    found = await find_cuts(listing, RANGES, None, None, page=10, most=200)
    assert 150 < listing.calls <= 200
    assert len(found.cuts) > 8
    assert not found.exact
    for without in (
        find_cuts(listing, 8, None, None, most=0),
        find_cuts(FailingListing(keys, 0, SPENT), 8, None, None),
    ):
        assert await without == KeyCuts((), 0, exact=False), "the whole is one range"


async def test_one_giant_prefix_beyond_the_exact_budget() -> None:
    """The calls suffice for half of the pages. With equal ranges and one ceiling, the time is that of the largest."""
    assert not await unbalanced(GIANTS, 40_000, 100, 200, budget=200, largest=1.5)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "most"), [(1000, 200), (40, 5000)])
async def test_one_giant_prefix_of_400_000_keys(page: int, most: int) -> None:
    """As before, by pages of S3 and few calls for each range, and by as many calls for each range as a plan has."""
    assert not await unbalanced(GIANTS, 400_000, page, most, budget=most, largest=1.5)


async def test_all_keys_of_a_small_bucket_are_listed() -> None:
    keys = keys_of_set("one giant prefix", 5500)
    listing = MemoryListing(keys)
    found = await find_cuts(listing, 8, None, keys[5000])
    parts = sizes(keys[:5001], found.cuts)
    assert max(parts) - min(parts) <= 1
    assert (found.keys, found.exact, listing.calls) == (5001, True, 6)
    twice = await find_cuts(MemoryListing(["a", "a", "b"]), 8, None, None)
    assert tuple(twice.cuts) == (("a", 1),)
