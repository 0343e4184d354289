"""Lay out where the objects are that are not private, as maps of prefixes and as a table with the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from auditor.reports.page import signs
from auditor.reports.page.picture_data import Box, Map, PlaceRow, Places, Sign
from auditor.reports.page.treemap import Rectangle, squarified
from auditor.text import visible

_WIDTH: Final = 1080
_HEIGHT: Final = 320
_EDGE: Final = 3.0
_MOST_BOXES: Final = 60
_MOST_ROWS: Final = 60
_LETTER: Final = 8.2
_BAR: Final = 110.0
_VIEWS: Final[tuple[tuple[str, str, tuple[Sign, ...]], ...]] = (
    ("exposed", "exposed", (signs.EXPOSED,)),
    ("risk", "exposed, shared, unknown", signs.OPEN),
    ("all", "all that are not private", signs.NOT_PRIVATE),
)


class PlaceCount(Struct, frozen=True):
    """Objects of one sign below a prefix that no longer prefix counts. group: the id of their element in the list."""

    prefix: str
    sign: Sign
    number: int
    new: int
    group: str


def places_of(counts: Iterable[PlaceCount]) -> Places | None:
    """Return the maps and the table; None if there are no objects. Equal maps are left out."""
    found = [one for one in counts if one.number]
    if not found:
        return None
    columns = tuple(sign for sign in signs.NOT_PRIVATE if any(one.sign is sign for one in found))
    rows = _rows(found, columns)
    maps: list[Map] = []
    for name, label, kinds in _VIEWS:
        chosen = [one for one in found if one.sign in kinds]
        if chosen and (not maps or len(chosen) > len(maps[-1].boxes)):
            maps.append(Map(name, label, _boxes(chosen), _HEIGHT))
    totals = tuple(sum(one.number for one in found if one.sign is sign) for sign in columns)
    return Places(
        maps=tuple(maps),
        columns=columns,
        rows=tuple(rows[:_MOST_ROWS]),
        totals=totals,
        total=sum(totals),
        more=max(len(rows) - _MOST_ROWS, 0),
    )


def _rows(counts: Sequence[PlaceCount], columns: tuple[Sign, ...]) -> list[PlaceRow]:
    by_prefix: dict[str, dict[str, int]] = {}
    for one in counts:
        numbers = by_prefix.setdefault(one.prefix, {})
        numbers[one.sign.name] = numbers.get(one.sign.name, 0) + one.number
    rows = []
    for prefix, numbers in by_prefix.items():
        each = tuple(numbers.get(sign.name, 0) for sign in columns)
        rows.append(PlaceRow(_named(prefix), each, sum(each), _bar(columns, each)))
    return sorted(rows, key=lambda row: ([-number for number in row.numbers], row.prefix))


def _bar(columns: tuple[Sign, ...], numbers: tuple[int, ...]) -> tuple[tuple[str, float, float], ...]:
    total, x, pieces = sum(numbers), 0.0, []
    for sign, number in zip(columns, numbers, strict=True):
        width = _BAR * number / total
        if number:
            pieces.append((sign.name, round(x, 1), round(width, 1)))
        x += width
    return tuple(pieces)


def _named(prefix: str) -> str:
    return prefix or "(the whole bucket)"


def _boxes(counts: Sequence[PlaceCount]) -> tuple[Box, ...]:
    """Return the boxes: first an area for each first folder, and in it one for each prefix and sign."""
    largest = sorted(counts, key=lambda one: -one.number)[:_MOST_BOXES]
    boxes: list[Box] = []
    room = (_EDGE, _EDGE, _WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE)
    folders = _grouped(largest, lambda one: one.prefix.partition("/")[0])
    for inside, area in zip(folders, squarified([_sum(one) for one in folders], room), strict=True):
        for one, box in zip(inside, squarified([one.number for one in inside], area), strict=True):
            boxes.append(_box(one, box))
    return tuple(boxes)


def _grouped(counts: Sequence[PlaceCount], name: Callable[[PlaceCount], str]) -> list[list[PlaceCount]]:
    groups: dict[str, list[PlaceCount]] = {}
    for one in counts:
        groups.setdefault(name(one), []).append(one)
    return sorted(groups.values(), key=_sum, reverse=True)


def _sum(counts: Sequence[PlaceCount]) -> int:
    return sum(one.number for one in counts)


def _box(one: PlaceCount, at: Rectangle) -> Box:
    x, y, width, height = at
    width, height = max(width - 2, 1.0), max(height - 2, 1.0)
    label, vertical = _label(one, width, height)
    fresh = f", {one.new:,} of them new" if one.new else ""
    return Box(
        round(x, 1),
        round(y, 1),
        round(width, 1),
        round(height, 1),
        one.sign,
        one.prefix,
        one.number,
        one.new,
        one.group,
        label,
        f"{visible(_named(one.prefix))}: {one.number:,} {one.sign.label}{fresh}",
        vertical,
    )


def _label(one: PlaceCount, width: float, height: float) -> tuple[str, bool]:
    """Return the longest label that fits the box, and if it is turned. The prefix is shown from its last folders."""
    whole = _named(one.prefix)
    if width >= 40 and height >= 26:
        return _fitting(whole, int((width - 12) / _LETTER)), False
    if width >= 18 and height >= 70:
        return _fitting(f"{whole} {one.sign.mark} {one.number:,}", int((height - 20) / _LETTER)), True
    return "", False


def _fitting(text: str, letters: int) -> str:
    """Return the text, or its last folders, if that many letters have room; else ""."""
    while len(visible(text)) > letters:
        _, slash, text = text.partition("/")
        if not slash or not text.strip("/"):
            return ""
    return text
