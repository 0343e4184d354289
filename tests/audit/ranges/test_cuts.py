"""Ranges of keys together are the whole listing, no key is in two, and they are about as large as each other."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.audit.ranges.cuts import KeyCuts, exact_cuts, find_cuts
from auditor.audit.ranges.pieces import LAST, KeysFound
from auditor.audit.ranges.plan import _planned
from auditor.model.target import Target
from tests.audit.ranges.key_sets import SETS, keys_of_set

RANGES = 64


class Listing:
    """Lists keys in memory, and counts its calls."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self.calls = 0

    async def __call__(self, after: str | None, count: int) -> KeysFound:
        self.calls += 1
        await asyncio.sleep(0)
        begin = 0 if after is None else bisect_right(self.keys, after)
        return KeysFound(self.keys[begin : begin + count], begin + count < len(self.keys))


def sizes(keys: Sequence[str], found: KeyCuts) -> list[int]:
    ends = [0, *(bisect_right(keys, key) for key, _ in found.cuts), len(keys)]
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
    whole = Target("audited", start_after=after, stop_at=upto)
    found = await find_cuts(Listing(keys), ranges, after, upto, page=page)
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
    listing = Listing(keys)
    found = await find_cuts(listing, RANGES, None, None, page=page)
    parts = sizes(keys, found)
    assert sum(parts) == len(keys)
    assert len(parts) == RANGES
    return max(parts) * RANGES / len(keys), listing.calls


@pytest.mark.parametrize("name", ["dates", "one giant prefix", "the last prefix"])
async def test_ranges_are_about_as_large_as_each_other(name: str) -> None:
    """As where S3's pages have a thousand keys and the bucket has 200,000."""
    largest, calls = await balanced(name, 20_000, 100)
    assert largest < 3
    assert calls < 40 * RANGES


@pytest.mark.slow
@pytest.mark.parametrize("page", [50, 1000])
@pytest.mark.parametrize("name", SETS)
async def test_hundred_thousand_keys_of_each_kind(name: str, page: int) -> None:
    """As in buckets of 2,000,000 and of 100,000 keys."""
    largest, calls = await balanced(name, 100_000, page)
    assert largest < 3
    assert calls < 100 * RANGES


async def test_few_keys_are_cut_exactly() -> None:
    keys = [f"{number:02}" for number in range(40)]
    found = await find_cuts(Listing(keys), 4, None, None)
    assert found == KeyCuts((("09", 10), ("19", 20), ("29", 30)), 40, True)
    assert await find_cuts(Listing(keys), 1, None, None) == KeyCuts((), 40, True)
    assert await find_cuts(Listing([]), 4, None, None) == KeyCuts((), 0, True)


@pytest.mark.parametrize("name", ["uuids", "unicode", "one giant prefix"])
async def test_all_keys_of_a_small_bucket_are_listed(name: str) -> None:
    keys = keys_of_set(name, 5500)
    listing = Listing(keys)
    found = await exact_cuts(listing, 8, None, keys[5000], pages=6)
    assert found is not None
    assert max(sizes(keys[:5001], found)) - min(sizes(keys[:5001], found)) <= 1
    assert (found.keys, found.exact, listing.calls) == (5001, True, 6)
    assert await exact_cuts(Listing(keys), 8, None, None, pages=5) is None
    assert await exact_cuts(Listing([]), 8, None, None, pages=5) == KeyCuts((), 0, True)
    assert await exact_cuts(Listing(["a", "a", "b"]), 8, None, None, pages=1) == KeyCuts((("a", 1),), 3, True)


async def test_keys_as_long_as_s3_allows() -> None:
    keys = ["\u00e9" * 509 + f"{number:06}" for number in range(2000)]
    found = await find_cuts(Listing(keys), 8, None, None, page=50)
    assert max(sizes(keys, found)) < 3 * len(keys) / 8
