"""Ranges of keys together are the whole listing, no key is in two, and they are about as large as each other."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.audit.ranges.cuts import KeyCuts, exact_cuts, find_cuts
from auditor.audit.ranges.pieces import LAST, KeysFound
from auditor.audit.ranges.plan import _planned
from auditor.audit.ranges.rounds import call_budget
from auditor.errors import BucketError, CallFailed
from auditor.model.target import Target
from tests.audit.ranges.hard_sets import HARD_SETS
from tests.audit.ranges.key_sets import SETS, keys_of_set
from tests.audit.ranges.listing import MemoryListing, sizes

RANGES = 64


async def cuts_of(keys: Sequence[str], page: int, most: int | None = None) -> tuple[KeyCuts, MemoryListing]:
    listing = MemoryListing(keys)
    return await find_cuts(listing, RANGES, None, None, page=page, most=most), listing


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
    whole = Target("audited", start_after=after, stop_at=upto)
    found = await find_cuts(MemoryListing(keys), ranges, after, upto, page=page)
    plan = _planned(whole, found, None, 0)
    inside = [key for key in keys if whole.covers(key)]
    parts = [Target("audited", start_after=one.start_after, stop_at=one.stop_at) for one in plan.ranges]
    assert [key for part in parts for key in keys if part.covers(key)] == inside
    assert 1 <= len(parts) <= ranges
    assert {key for key, _ in found.cuts} <= set(inside)
    if found.exact and len(set(keys)) == len(keys) and not any(LAST in key for key in keys):
        assert found.keys == len(inside)


async def balanced(name: str, number: int, page: int) -> tuple[float, int]:
    """Return the largest range as a multiple of the mean, and the number of listing calls."""
    keys = keys_of_set(name, number)
    found, listing = await cuts_of(keys, page)
    parts = sizes(keys, found)
    assert sum(parts) == len(keys)
    assert len(parts) == RANGES
    assert listing.calls <= call_budget(RANGES)
    return max(parts) * RANGES / len(keys), listing.calls


@pytest.mark.parametrize("name", ["dates", "hidden at depth 3", "the last prefix"])
async def test_ranges_are_about_as_large_as_each_other(name: str) -> None:
    """As where S3's pages have a thousand keys and the bucket has 200,000."""
    largest, calls = await balanced(name, 20_000, 100)
    assert largest < 1.1
    assert calls < 500


@pytest.mark.slow
@pytest.mark.parametrize("page", [50, 1000])
@pytest.mark.parametrize("name", [*SETS, *HARD_SETS])
async def test_hundred_thousand_keys_of_each_kind(name: str, page: int) -> None:
    """As in buckets of 2,000,000 and of 100,000 keys: the calls suffice to read all keys."""
    largest, calls = await balanced(name, 100_000, page)
    assert largest < 1.1
    assert calls < call_budget(RANGES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed", "deep folders"])
async def test_many_keys_below_a_prefix_that_few_pages_show(name: str) -> None:
    """As in a bucket of 4,000,000 keys. A third of those of "mixed" are hidden between flat keys."""
    largest, calls = await balanced(name, 400_000, 100)
    assert largest < 1.1
    assert calls < call_budget(RANGES)


@pytest.mark.parametrize("name", HARD_SETS)
@pytest.mark.parametrize("number", [1, 65, 1000])
async def test_few_keys_that_mislead_are_each_in_one_range(name: str, number: int) -> None:
    keys = keys_of_set(name, number)
    found, listing = await cuts_of(keys, 10)
    parts = sizes(keys, found)
    assert sum(parts) == len(keys)
    assert len(parts) <= RANGES
    assert {key for key, _ in found.cuts} <= set(keys)
    assert max(parts) < 2 * len(keys) / RANGES + 2
    assert (found.exact, found.keys) == (True, len(keys))
    assert listing.calls <= 3 * len(keys) / 10 + 300


async def test_sixty_five_keys_have_sixty_four_ranges() -> None:
    keys = [f"{number:03}" for number in range(65)]
    found = await exact_cuts(MemoryListing(keys), RANGES, None, None, pages=1)
    assert found is not None
    assert sorted(sizes(keys, found)) == [1] * 63 + [2]


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


FAILURES = [BucketError("the listing is denied"), CallFailed("ListObjectsV2", "MaxCalls"), CallFailed("x", "SlowDown")]


@pytest.mark.parametrize("failure", FAILURES, ids=str)
@pytest.mark.parametrize("good", [60, 150, 300])
async def test_a_call_that_fails_later_leaves_the_keys_that_are_known(good: int, failure: Exception) -> None:
    keys = keys_of_set("one giant prefix", 30_000)
    found = await find_cuts(FailingListing(keys, good, failure), 8, None, None, page=50)
    parts = sizes(keys, found)
    assert sum(parts) == len(keys)
    assert len(parts) > 1
    assert not found.exact
    assert {key for key, _ in found.cuts} <= set(keys)


@pytest.mark.parametrize("failure", FAILURES, ids=str)
async def test_a_first_call_that_fails_is_told(failure: Exception) -> None:
    with pytest.raises(type(failure)):
        await find_cuts(FailingListing(["a"], 0, failure), 8, None, None)


async def test_no_more_calls_than_allowed() -> None:
    keys = keys_of_set("uuids", 30_000)
    found, listing = await cuts_of(keys, 10, most=200)
    assert 150 < listing.calls <= 200
    assert len(found.cuts) > 8
    assert not found.exact


class MovingListing(MemoryListing):
    """Lists keys that are added and deleted between the calls."""

    def __init__(self, keys: Sequence[str], chance: random.Random) -> None:
        super().__init__(keys)
        self.all = keys
        self.chance = chance

    async def __call__(self, after: str | None, count: int) -> KeysFound:
        self.keys = [key for key in self.all if self.chance.random() < 0.7]
        return await super().__call__(after, count)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("page", [3, 20])
async def test_keys_that_come_and_go_while_planning(seed: int, page: int) -> None:
    chance = random.Random(seed)
    keys = keys_of_set(chance.choice(list(HARD_SETS)), 500)
    found = await find_cuts(MovingListing(keys, chance), 8, None, None, page=page)
    ends = [key for key, _ in found.cuts]
    assert ends == sorted(set(ends))
    assert set(ends) <= set(keys)
    plan = _planned(Target("audited"), found, None, 0)
    parts = [Target("audited", start_after=one.start_after, stop_at=one.stop_at) for one in plan.ranges]
    assert [key for part in parts for key in keys if part.covers(key)] == keys
    assert all(one.keys >= 0 for one in plan.ranges)


async def test_few_keys_are_cut_exactly() -> None:
    keys = [f"{number:02}" for number in range(40)]
    found = await find_cuts(MemoryListing(keys), 4, None, None)
    assert found == KeyCuts((("09", 10), ("19", 20), ("29", 30)), 40, True)
    assert await find_cuts(MemoryListing(keys), 1, None, None) == KeyCuts((), 40, True)
    assert await find_cuts(MemoryListing([]), 4, None, None) == KeyCuts((), 0, True)


@pytest.mark.parametrize("name", ["uuids", "unicode", "one giant prefix"])
async def test_all_keys_of_a_small_bucket_are_listed(name: str) -> None:
    keys = keys_of_set(name, 5500)
    listing = MemoryListing(keys)
    found = await exact_cuts(listing, 8, None, keys[5000], pages=6)
    assert found is not None
    assert max(sizes(keys[:5001], found)) - min(sizes(keys[:5001], found)) <= 1
    assert (found.keys, found.exact, listing.calls) == (5001, True, 6)
    assert await exact_cuts(MemoryListing(keys), 8, None, None, pages=5) is None
    assert await exact_cuts(MemoryListing([]), 8, None, None, pages=5) == KeyCuts((), 0, True)
    assert await exact_cuts(MemoryListing(["a", "a", "b"]), 8, None, None, pages=1) == KeyCuts((("a", 1),), 3, True)


async def test_keys_as_long_as_s3_allows() -> None:
    keys = ["\u00e9" * 509 + f"{number:06}" for number in range(2000)]
    found = await find_cuts(MemoryListing(keys), 8, None, None, page=50)
    assert max(sizes(keys, found)) < 3 * len(keys) / 8
