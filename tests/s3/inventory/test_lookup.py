"""Rows that are sorted on disk are found again, object by object, and only for the object that they are of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from auditor.errors import OutputError
from auditor.model.object import ObjectRef
from auditor.s3.inventory.facts import FACT_COLUMNS, Shape
from auditor.s3.inventory.lookup import InventoryLookup, Match
from auditor.s3.inventory.rows import NO_SHAPE, encode_key
from auditor.s3.inventory.sorting import SortedLines
from tests.support.odd_keys import ODD_KEYS

WRITTEN: Final = "2026-01-02T03:04:05"


def shape(number: int) -> Shape:
    """A shape whose facts are those of no other number."""
    return tuple({"ObjectOwner": f"S{number}"}.get(column, "") for column in FACT_COLUMNS)


def line(key: str, shape_number: int = 0, *, version: str = "", etag: str = "e", size: object = 1) -> bytes:
    return encode_key(key) + f"{version},{etag},{size},{WRITTEN},{shape_number}".encode()


def ref(key: str, version: str | None = None, *, etag: str = "e", size: int = 1) -> ObjectRef:
    return ObjectRef(key, etag, size, f"{WRITTEN}Z", version)


def lookup(lines: Iterable[bytes], *, versions: bool = False, shapes: int = 8) -> InventoryLookup:
    return InventoryLookup(iter(sorted(lines)), [shape(number) for number in range(shapes)], versions=versions)


def owner_of(found: InventoryLookup, *refs: ObjectRef) -> list[object]:
    return [facts and facts.owner for facts in found.facts_of_page(refs)]


class TestSorting:
    @given(st.lists(st.binary(max_size=6).filter(lambda data: b"\n" not in data)), st.integers(1, 300))
    def test_lines_come_back_in_order_each_as_often(self, lines: list[bytes], run_bytes: int) -> None:
        with SortedLines(run_bytes, fan_in=3) as found:
            found.add(lines[: len(lines) // 2])
            found.add(lines[len(lines) // 2 :])
            assert list(found.sorted()) == sorted(lines)

    def test_full_disk_is_one_sentence(self) -> None:
        def refuse() -> IO[bytes]:
            raise OSError(28, "No space left on device")

        with (
            SortedLines(1, new_file=refuse) as found,
            pytest.raises(OutputError, match="free some space, or set TMPDIR"),
        ):
            found.add([b"a"])


class TestMatching:
    def test_each_object_gets_the_facts_of_its_own_row(self) -> None:
        keys = sorted(ODD_KEYS.values())
        found = lookup([line(key, number % 8) for number, key in enumerate(keys)])
        assert owner_of(found, *map(ref, keys)) == [f"S{number % 8}" for number in range(len(keys))]
        assert found.matches == {Match.FOUND: len(keys)}

    def test_rows_of_other_keys_are_passed_over(self) -> None:
        found = lookup([line(key) for key in ("a", "ab", "b", "c")])
        assert owner_of(found, ref("aa"), ref("ab"), ref("c")) == [None, "S0", "S0"]
        assert owner_of(found, ref("d")) == [None]

    @pytest.mark.parametrize(
        "listed", [ref("k", etag="f"), ref("k", size=2), replace(ref("k"), last_modified="2026-01-02T03:04:06Z")]
    )
    def test_object_that_was_written_again_has_no_facts(self, listed: ObjectRef) -> None:
        found = lookup([line("k")])
        assert owner_of(found, listed) == [None]
        assert found.matches == {Match.CHANGED: 1}

    def test_equal_rows_are_one(self) -> None:
        assert owner_of(lookup([line("k", 3)] * 3), ref("k")) == ["S3"]

    @pytest.mark.parametrize("second", [line("k", 4), line("k", 3, etag="f"), line("k", 3, size="many")])
    def test_rows_that_differ_say_nothing(self, second: bytes) -> None:
        found = lookup([line("k", 3), second, line("l", 5)])
        assert owner_of(found, ref("k"), ref("l")) == [None, "S5"]
        assert found.matches == {Match.CONTRADICTED: 1, Match.FOUND: 1}

    def test_versions_are_told_apart_over_the_border_of_a_page(self) -> None:
        lines = [line("k", number, version=version) for number, version in enumerate(("v3", "v2", "null", "v1"))]
        found = lookup([*lines, line("l", 5, version="null")], versions=True)
        assert owner_of(found, ref("k", "v3"), ref("k", "v2")) == ["S0", "S1"]
        assert owner_of(found, ref("k", "null"), ref("k", "v9"), ref("l", "null")) == ["S2", None, "S5"]

    def test_row_without_a_shape_gives_no_facts(self) -> None:
        assert lookup([line("k", NO_SHAPE)]).facts_of_page([ref("k")]) == [None]

    def test_versions_beyond_the_limit_are_missing(self) -> None:
        lines = [line("k", 1, version=f"v{number}") for number in range(4)]
        found = InventoryLookup(iter(lines), [shape(0), shape(1)], versions=True, most_versions=2)
        assert owner_of(found, *(ref("k", f"v{number}") for number in range(4))) == ["S1", "S1", None, None]
