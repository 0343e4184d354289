"""Servers that list out of order, in circles or without end cause an error, never a silent gap or a loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import auditor
from auditor.errors import BucketError
from auditor.model.target import Target
from auditor.s3.engines.base import ListQuery, Page, Position
from auditor.s3.listing import EMPTY_PAGES, pages
from tests.conformance.memory import MemoryEngine
from tests.support.fakes.caller import make_caller, ref

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
    return [step.key async for page in pages(engine, make_caller(), target) for step in page]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([(["c", "a", "b"], None)], id="in one page"),
        pytest.param([(["a", "z"], "1"), (["b"], None)], id="from page to page"),
        pytest.param([(["a", "a"], None)], id="a key twice in a page"),
        pytest.param([(["a", "b"], "1"), (["b", "c"], None)], id="a key on two pages"),
        pytest.param([(["a"], "1"), (["b"], "2")], id="two pages in a circle"),
    ],
)
async def test_keys_out_of_turn_are_an_error(script: Script) -> None:
    with pytest.raises(BucketError, match="order"):
        await keys_of(Scripted(script), Target("audited"))


async def test_key_behind_the_end_of_the_range_hides_no_later_one() -> None:
    """The first key behind the range ends the listing, which is right only if keys are in order."""
    engine = Scripted([(["a", "z", "b"], "1"), (["c"], None)])
    with pytest.raises(BucketError, match="order"):
        await keys_of(engine, Target("audited", stop_at="m"))


@pytest.mark.parametrize("tokens", [1, 2, 3])
async def test_empty_pages_in_a_circle_are_an_error_after_one_round(tokens: int) -> None:
    engine = Scripted([([], str(number)) for number in range(tokens)])
    with pytest.raises(BucketError, match="does not advance"):
        await keys_of(engine, Target("audited"))
    assert engine.pages == tokens + 1


async def test_empty_pages_without_an_end_are_an_error() -> None:
    engine = Scripted([([], str(number)) for number in range(2 * EMPTY_PAGES)])
    with pytest.raises(BucketError, match="does not advance"):
        await keys_of(engine, Target("audited"))
    assert engine.pages == EMPTY_PAGES + 1


async def test_some_empty_pages_are_passed_over() -> None:
    script = [(["a"], "1"), ([], "2"), ([], "3"), (["b"], None)]
    assert await keys_of(Scripted(script), Target("audited")) == ["a", "b"]


@pytest.mark.parametrize("versions", [2, 3])
async def test_versions_of_one_key_in_a_circle_are_an_error(versions: int) -> None:
    engine = Scripted([(["a"], str(number)) for number in range(versions)])
    with pytest.raises(BucketError, match="does not advance"):
        await keys_of(engine, Target("audited", versions=True))


async def test_versions_of_one_key_on_many_pages_are_all_listed() -> None:
    script = [(["a", "a"], "1"), (["a"], "2"), (["a", "b"], None)]
    assert await keys_of(Scripted(script), Target("audited", versions=True)) == ["a", "a", "a", "a", "b"]


def test_every_listing_passes_the_check() -> None:
    """One function asks an engine for a page, and it checks the page."""
    package = Path(auditor.__file__).parent
    asking = [path.relative_to(package) for path in package.rglob("*.py") if ".list_page" in path.read_text()]
    assert asking == [Path("s3/listing.py")]
    assert (package / asking[0]).read_text().count(".list_page") == 1
