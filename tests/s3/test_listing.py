"""The listing: ranges, delete markers, and servers that list out of order, in circles or without end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from auditor.errors import BucketError, CallFailed
from auditor.model.object import ObjectRef
from auditor.model.target import Target
from auditor.s3.engines.base import ListQuery, Page, Position
from auditor.s3.listing import EMPTY_PAGES, Listed, listed_still, pages
from tests.conformance.memory import MemoryEngine
from tests.support.fakes.caller import make_caller, ref
from tests.support.odd_keys import ODD_KEYS


async def steps_of(engine: MemoryEngine, target: Target, max_calls: int | None = None) -> list[Listed]:
    return [step async for page in pages(engine, make_caller(max_calls=max_calls), target) for step in page]


async def test_end_of_the_range_among_delete_markers_is_seen() -> None:
    engine = MemoryEngine([f"k{number:03d}" for number in range(100)], page_size=10)
    steps = await steps_of(engine, Target("audited", versions=True, stop_at="k014"))
    assert len(steps) == 15
    assert engine.count("list") == 2


class IgnoresStartAfter(MemoryEngine):
    """A server that ignores StartAfter and KeyMarker."""

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        return await super().list_page(ListQuery(query.prefix, None, query.versions), position)


async def test_server_that_ignores_start_after_makes_no_duplicates() -> None:
    engine = IgnoresStartAfter([ref("a"), "b", ref("b", "1"), "c", ref("c", "1")], page_size=2)
    steps = await steps_of(engine, Target("audited", versions=True, start_after="b"))
    assert [(step.key, step.ref is None, step.delete_markers) for step in steps] == [("c", True, 1), ("c", False, 0)]


async def test_delete_marker_counts_with_the_next_object_or_by_itself() -> None:
    entries: list[ObjectRef | str] = ["a", "b", ref("b", "1"), ref("c", "1"), "d", "d"]
    steps = await steps_of(MemoryEngine(entries), Target("audited", versions=True))
    assert [(step.key, step.ref is not None, step.delete_markers) for step in steps] == [
        ("b", True, 2),
        ("c", True, 0),
        ("d", False, 1),
        ("d", False, 1),
    ]


class TestFailures:
    @pytest.mark.parametrize(
        ("versions", "action", "permission"),
        [(False, "ListObjectsV2", "s3:ListBucket"), (True, "ListObjectVersions", "s3:ListBucketVersions")],
    )
    async def test_denied_listing_names_the_permission(self, versions: bool, action: str, permission: str) -> None:
        async def deny(asked: str, key: str) -> None:
            raise CallFailed(action, "AccessDenied", 403)

        with pytest.raises(
            BucketError, match=rf"s3://audited/p/ failed \({action}: AccessDenied\): grant {permission}$"
        ):
            await steps_of(MemoryEngine([], hook=deny), Target("audited", "p/", versions))

    async def test_versions_are_listed_to_the_end_of_the_key_past_the_budget(self) -> None:
        engine = MemoryEngine([ref("k", f"{number}") for number in range(9)], page_size=2)
        steps = await steps_of(engine, Target("audited", versions=True), max_calls=1)
        assert len(steps) == 9


KEYS: Final = st.one_of(
    st.sampled_from(list(ODD_KEYS.values())), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
)


@st.composite
def buckets(draw: st.DrawFn) -> list[ObjectRef | str]:
    """Versions and delete markers of some keys, in listing order."""
    entries: list[ObjectRef | str] = []
    for key in sorted(draw(st.sets(KEYS, max_size=25)), key=str.encode):
        for number, marker in enumerate(draw(st.lists(st.booleans(), min_size=1, max_size=3))):
            entries.append(key if marker else ref(key, f"v{number}", latest=number == 0))
    return entries


def _listed(entries: Sequence[ObjectRef | str], target: Target, page_size: int) -> tuple[list[ObjectRef], int]:
    steps = asyncio.run(steps_of(MemoryEngine(entries, page_size=page_size), target))
    assert [step.key for step in steps] == sorted((step.key for step in steps), key=str.encode)
    return [step.ref for step in steps if step.ref is not None], sum(step.delete_markers for step in steps)


@given(entries=buckets(), cuts=st.sets(KEYS, max_size=4), page_size=st.integers(1, 7))
def test_ranges_that_share_their_ends_are_together_the_flat_listing(
    entries: list[ObjectRef | str], cuts: set[str], page_size: int
) -> None:
    ends = sorted(cuts, key=str.encode)
    refs: list[ObjectRef] = []
    markers = 0
    for start, stop in zip([None, *ends], [*ends, None], strict=True):
        found, passed = _listed(entries, Target("audited", versions=True, start_after=start, stop_at=stop), page_size)
        refs += found
        markers += passed
    assert refs == [entry for entry in entries if isinstance(entry, ObjectRef)]
    assert markers == sum(isinstance(entry, str) for entry in entries)
    assert (refs, markers) == _listed(entries, Target("audited", versions=True), 1000)


Script = Sequence[tuple[Sequence[str], str | None]]


class Scripted(MemoryEngine):
    """Answers with the scripted pages of keys and next tokens, over and over."""

    def __init__(self, script: Script) -> None:
        super().__init__([])
        self._script = script
        self.pages = 0

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        keys, token = self._script[self.pages % len(self._script)]
        self.pages += 1
        return Page(tuple(map(ref, keys)), None if token is None else Position(token=token))


async def keys_of(engine: MemoryEngine, target: Target) -> list[str]:
    return [step.key for step in await steps_of(engine, target)]


OUT_OF_TURN: dict[str, Script] = {
    "in one page": [(["c", "a", "b"], None)],
    "from page to page": [(["a", "z"], "1"), (["b"], None)],
    "a key twice in a page": [(["a", "a"], None)],
    "a key on two pages": [(["a", "b"], "1"), (["b", "c"], None)],
    "two pages in a circle": [(["a"], "1"), (["b"], "2")],
    "behind the end of the range": [(["a", "z", "b"], "1"), (["c"], None)],
}


async def test_keys_out_of_turn_are_an_error() -> None:
    for script in OUT_OF_TURN.values():
        with pytest.raises(BucketError, match="order"):
            await keys_of(Scripted(script), Target("audited", stop_at="zz"))
    with pytest.raises(BucketError, match="order"):
        await keys_of(Scripted(OUT_OF_TURN["behind the end of the range"]), Target("audited", stop_at="m"))


async def test_empty_pages_in_a_circle_or_without_an_end_are_an_error() -> None:
    for tokens, read in ((1, 2), (2, 3), (3, 4), (2 * EMPTY_PAGES, EMPTY_PAGES + 1)):
        engine = Scripted([([], str(number)) for number in range(tokens)])
        with pytest.raises(BucketError, match="does not advance"):
            await keys_of(engine, Target("audited"))
        assert engine.pages == read


async def test_some_empty_pages_are_passed_over() -> None:
    script = [(["a"], "1"), ([], "2"), ([], "3"), (["b"], None)]
    assert await keys_of(Scripted(script), Target("audited")) == ["a", "b"]


async def test_versions_of_one_key_in_a_circle_are_an_error() -> None:
    for versions in (2, 3):
        engine = Scripted([(["a"], str(number)) for number in range(versions)])
        with pytest.raises(BucketError, match="does not advance"):
            await keys_of(engine, Target("audited", versions=True))


async def test_versions_of_one_key_on_many_pages_are_all_listed() -> None:
    script = [(["a", "a"], "1"), (["a"], "2"), (["a", "b"], None)]
    assert await keys_of(Scripted(script), Target("audited", versions=True)) == ["a", "a", "a", "a", "b"]


class Pages(MemoryEngine):
    """An engine that lists these pages, whatever is asked, and keeps the questions."""

    def __init__(self, *pages: Page) -> None:
        super().__init__([])
        self._pages = list(pages)
        self.queries: list[tuple[ListQuery, Position | None]] = []

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        self.queries.append((query, position))
        return self._pages.pop(0)


ONE, TWO = Position(token="1"), Position(token="2")
SAME, OTHER, LONGER = ref("k"), replace(ref("k"), etag="other"), ref("k/more")
FIRST, SECOND = ref("k", "1"), ref("k", "2")


@pytest.mark.parametrize(
    ("situation", "sought", "found", "still", "calls"),
    [
        ("there", SAME, [Page((SAME,), None)], True, 1),
        ("there, and more to list", SAME, [Page((SAME, LONGER), ONE)], True, 1),
        ("overwritten", SAME, [Page((OTHER,), None)], False, 1),
        ("gone", SAME, [Page((), None)], False, 1),
        ("gone, another key follows", SAME, [Page((LONGER,), ONE)], False, 1),
        ("on a later page", SAME, [Page((), ONE), Page((SAME,), None)], True, 2),
        ("an older version on a later page", FIRST, [Page((SECOND,), ONE), Page((FIRST,), None)], True, 2),
        ("a version that is gone", FIRST, [Page((SECOND,), ONE), Page((SECOND,), TWO), Page((), None)], False, 3),
        ("a version of another name", FIRST, [Page((SECOND, LONGER), ONE)], False, 1),
        ("the server repeats its page", SAME, [Page((), ONE), Page((), ONE)], False, 2),
    ],
)
async def test_object_that_a_new_listing_has_unchanged(
    situation: str, sought: ObjectRef, found: list[Page], still: bool, calls: int
) -> None:
    engine = Pages(*found)
    assert await listed_still(engine, make_caller(), sought) is still, situation
    assert len(engine.queries) == calls
    assert [position for _, position in engine.queries] == [None, *(page.next for page in found)][:calls]
    (query,) = {query for query, _ in engine.queries}
    assert (query.prefix, query.start_after, query.versions) == ("k", None, sought.version_id is not None)
    assert query.page_size < 1000


async def test_delete_marker_counts_for_the_order_and_the_end_of_the_listing() -> None:
    first = Page((ref("a", "1"),), ONE, ("z",))
    with pytest.raises(BucketError, match="not in the order of its keys"):
        await steps_of(Pages(first, Page((ref("m", "1"),), None)), Target("audited", versions=True))
    engine = Pages(first)
    await steps_of(engine, Target("audited", versions=True, stop_at="m"))
    assert len(engine.queries) == 1
