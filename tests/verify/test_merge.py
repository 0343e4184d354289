"""The merge of listing and ledger: what a dictionary would say, whatever the pages, and never out of order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from auditor.errors import LedgerError
from auditor.ledger.base import Expectation, KeyRecord, Known, Version
from auditor.model.target import Target
from auditor.s3.listing import pages
from auditor.verify.merge import Pair, merged
from tests.conformance.memory import Entry, MemoryEngine
from tests.support.fakes.caller import make_caller, ref
from tests.support.odd_keys import ODD_KEYS

KEYS = st.one_of(
    st.sampled_from(list(ODD_KEYS.values())),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
)
DIGEST = Known(digest="00", source="auditor", recorded_at="", verified_at=None, bytes_read=0)


def version(name: str, key: str = "a") -> Version:
    return Version(version_id=name, etag=ref(key).etag, size=1, digests={"sha256": DIGEST}, first_seen="")


def subject(key: str, *names: str) -> KeyRecord:
    return KeyRecord(key=key, versions=tuple(version(name, key) for name in names))


class Told:
    """A ledger's subjects; closed: it was let go."""

    def __init__(self, subjects: Sequence[KeyRecord]) -> None:
        self.closed = False
        self._subjects = subjects

    async def all(self) -> AsyncGenerator[KeyRecord, None]:
        try:
            for one in self._subjects:
                yield one
        finally:
            self.closed = True


async def pairs_of(
    entries: Sequence[Entry], subjects: Sequence[KeyRecord], target: Target, page_size: int = 1000
) -> list[Pair]:
    listing = pages(MemoryEngine(entries, page_size=page_size), make_caller(), target)
    return [pair async for batch in merged(listing, Told(subjects).all(), target) for pair in batch]


def shown(pair: Pair) -> tuple[str, str, bool, str | None]:
    kind = "absent" if pair.absent else "listed" if pair.ref else "marker"
    return pair.key, kind, pair.subject is not None, None if pair.version is None else pair.version.version_id


@given(listed=st.sets(KEYS, max_size=12), known=st.sets(KEYS, max_size=12), page_size=st.integers(1, 5))
def test_merge_says_what_sets_say(listed: set[str], known: set[str], page_size: int) -> None:
    in_order = sorted(listed, key=str.encode)
    told = [subject(key, "null") for key in sorted(known, key=str.encode)]
    pairs = asyncio.run(pairs_of([ref(key) for key in in_order], told, Target("audited"), page_size))
    assert [pair.key for pair in pairs] == sorted(listed | known, key=str.encode)
    for pair in pairs:
        assert (pair.ref is not None, pair.subject is not None) == (pair.key in listed, pair.key in known)
        assert pair.absent == (pair.key not in listed)


async def test_versions_that_are_not_listed_follow_those_that_are() -> None:
    entries: list[Entry] = [ref("b", "2"), ref("b", "1", latest=False), "c", ref("d", "1")]
    told = [subject("a", "1", "2"), subject("b", "0", "1", "null"), subject("c", "1"), subject("e", "null")]
    pairs = await pairs_of(entries, told, Target("audited", versions=True), page_size=1)
    assert [shown(pair) for pair in pairs if shown(pair)[1] != "marker"] == [
        ("a", "absent", True, "1"),
        ("a", "absent", True, "2"),
        ("b", "listed", True, None),
        ("b", "listed", True, None),
        ("b", "absent", True, "0"),
        ("c", "absent", True, "1"),
        ("d", "listed", False, None),
        ("e", "absent", True, None),
    ]


async def test_one_version_with_two_etags_is_missed_once() -> None:
    told = [replace(subject("a", "1"), versions=(version("1"), replace(version("1"), etag="f")))]
    pairs = await pairs_of([], told, Target("audited", versions=True))
    assert [shown(pair) for pair in pairs] == [("a", "absent", True, "1")]


@pytest.mark.parametrize("versions", [False, True])
async def test_bytes_that_no_listed_version_has_are_replaced_by_the_current_object(versions: bool) -> None:
    other = replace(DIGEST, digest="11")
    old = replace(version("null"), etag="old", digests={"sha256": other})
    known = [
        old,
        replace(old, etag="same bytes", digests={"sha256": DIGEST, "md5": other}),
        replace(old, etag="of a version", version_id="1"),
        replace(old, etag="deleted and told", removed_at="2026"),
        replace(old, etag="retired", retired_at="2026"),
        replace(old, etag="without digests", digests={}),
        version("null"),
    ]
    current = ref("a", "null" if versions else None)
    told = [KeyRecord(key="a", versions=tuple(known))]
    pairs = await pairs_of([current, ref("b", current.version_id)], told, Target("audited", versions=versions))
    replaced = [pair for pair in pairs if pair.replaced_by is not None]
    assert [(pair.key, pair.version, pair.replaced_by) for pair in replaced] == [("a", old, current)]
    assert [pair.key for pair in pairs] == (["a", "a", "a", "b"] if versions else ["a", "a", "b"])


async def test_bytes_without_a_digest_in_common_are_not_known_to_be_the_same() -> None:
    old = replace(version("null"), etag="old", digests={"sha256": DIGEST})
    current = replace(version("null"), digests={"md5": DIGEST})
    skipped = (replace(old, version_id="1"), replace(old, etag="retired", retired_at="2026"))
    pairs = await pairs_of([ref("a")], [KeyRecord(key="a", versions=(*skipped, old, current))], Target("audited"))
    assert [pair.version for pair in pairs if pair.replaced_by is not None] == [old]


async def test_object_is_listed_at_the_time_before_its_page_was_asked_for() -> None:
    times = iter(f"t{number}" for number in range(9))
    target = Target("audited", versions=True)
    listing = pages(MemoryEngine([ref("a"), "b", ref("c")], page_size=1), make_caller(), target)
    told = Told([subject("aa", "null")]).all()
    found = [pair async for part in merged(listing, told, target, lambda: next(times)) for pair in part]
    assert [(pair.key, pair.listed_at) for pair in found] == [("a", "t0"), ("aa", ""), ("b", ""), ("c", "t2")]


async def test_bytes_of_an_older_version_that_is_listed_are_not_replaced() -> None:
    old = replace(version("null"), etag="old", digests={"sha256": replace(DIGEST, digest="11")})
    entries = [ref("a", "2"), replace(ref("a", "1", latest=False), etag="old")]
    pairs = await pairs_of(entries, [KeyRecord(key="a", versions=(old,))], Target("audited", versions=True))
    assert [shown(pair)[1] for pair in pairs] == ["listed", "listed"]


async def test_delete_marker_over_an_older_version_leaves_what_a_manifest_expects() -> None:
    expected = Expectation(key="a", algorithm="md5", digest="00", origin="sums", imported_at="2026")
    entries: list[Entry] = ["a", ref("a", "1", latest=False)]
    for expectations in ((), (expected,)):
        told = [replace(subject("a", "1"), expectations=expectations)]
        *_, last = await pairs_of(entries, told, Target("audited", versions=True))
        assert last.absent is bool(expectations)
        assert last.subject is not None
        assert (last.version, last.subject.versions == ()) == (None, bool(expectations))


async def test_ledger_that_goes_back_proves_nothing() -> None:
    said = r"^the ledger does not list its keys in order \(a\): nothing can be compared with it$"
    for before in ("a", "b"):
        with pytest.raises(LedgerError, match=said):
            await pairs_of([ref("z")], [subject(before, "null"), subject("a", "null")], Target("audited"))


async def test_what_comes_behind_the_listings_last_page_is_not_called_absent_before_that_page_came() -> None:
    engine = MemoryEngine([ref("a"), ref("b"), ref("z")], page_size=1)
    told = Told([subject("a", "null"), subject("c", "null"), subject("zz", "null")])
    target = Target("audited")
    merging = merged(pages(engine, make_caller(), target), told.all(), target)
    batches = [await anext(merging), await anext(merging)]
    assert [shown(pair)[:2] for batch in batches for pair in batch] == [("a", "listed"), ("b", "listed")]
    await merging.aclose()
    assert told.closed


async def test_many_absent_keys_are_handed_on_before_they_fill_the_memory() -> None:
    told = [subject(f"{number:06}", "null") for number in range(5000)]
    for listed, lengths in ((ref("z"), [1000] * 5 + [1, 0]), (ref("001500"), [1000, 501, 1000, 1000, 1000, 499])):
        listing = pages(MemoryEngine([listed]), make_caller(), Target("audited"))
        assert [len(part) async for part in merged(listing, Told(told).all(), Target("audited"))] == lengths
