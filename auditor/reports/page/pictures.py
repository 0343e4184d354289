"""The pictures of a report page: shapes with their places, laid out for the templates that draw them as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.summary import Summary
from auditor.reports.page import signs
from auditor.reports.page.signs import Sign
from auditor.text import counted, visible

NO_PREFIX: Final = "(no prefix)"


class Spark(Struct, frozen=True):
    """The small curve of a card: its unbroken pieces, as points of an SVG polyline, and the last point."""

    pieces: tuple[str, ...]
    x: float
    y: float


class Label(Struct, frozen=True):
    """A text in a picture, at a place."""

    x: float
    y: float
    text: str


class Curve(Struct, frozen=True):
    """The picture of a count, night by night. areas, lines: SVG paths of the unbroken pieces. ticks: of the counts.
    days: labels below. gaps: x and width of the nights without a run. words: the same in a sentence.
    """

    areas: tuple[str, ...]
    lines: tuple[str, ...]
    ticks: tuple[Label, ...]
    days: tuple[Label, ...]
    gaps: tuple[tuple[float, float], ...]
    end: Label
    words: str


class Share(Struct, frozen=True):
    """The objects of one sign among all listed ones. x, width: of its part in the bar, in a width of 1080."""

    sign: Sign
    number: int
    x: float = 0
    width: float = 0
    inside: str = ""


class CoverageBar(Struct, frozen=True, kw_only=True):
    """The bar of all listed objects, divided by verdict. parts: the parts of the bar, which add up to `listed`. below:
    the parts of the magnified bar. private_from: x at which the private objects begin in the whole bar.
    """

    listed: int
    parts: tuple[Share, ...]
    below: tuple[Share, ...]
    private: int
    private_from: float
    caption: str
    markers: int


class PlaceCount(Struct, frozen=True):
    """Objects of one sign below a prefix that no longer prefix counts. group: the id of their element in the list."""

    prefix: str
    sign: Sign
    number: int
    new: int
    group: str

    @property
    def name(self) -> str:
        return self.prefix or NO_PREFIX


class Box(Struct, frozen=True):
    """A box of the map. vertical: True if the label is turned."""

    x: float
    y: float
    width: float
    height: float
    count: PlaceCount
    label: str
    vertical: bool


class Map(Struct, frozen=True):
    """One picture of where the objects are: boxes whose area is their number of objects."""

    name: str
    label: str
    boxes: tuple[Box, ...]
    height: int


class PlaceRow(Struct, frozen=True):
    """The numbers of one prefix, in the order of the columns. bar: pieces of a bar 110 wide: name, x and width."""

    prefix: str
    numbers: tuple[int, ...]
    bar: tuple[tuple[str, float, float], ...]


class Places(Struct, frozen=True, kw_only=True):
    """The prefixes of the objects that are not private: maps, and the same numbers as a table."""

    maps: tuple[Map, ...]
    columns: tuple[Sign, ...]
    rows: tuple[PlaceRow, ...]
    totals: tuple[int, ...]
    more: int


WIDTH: Final = 1080.0
_GAP: Final = 1.5
_LEAST: Final = 5.0
"""Width of the smallest part: a single object is seen too."""
_LETTER: Final = 7.6
_ORDER: Final = (*signs.NOT_PRIVATE, signs.VANISHED)


def coverage_bar(summary: Summary) -> CoverageBar:
    """Return the bar. The objects that an exception covers are counted separately."""
    numbers = counts(summary)
    listed, private = summary.coverage.listed, numbers[signs.PRIVATE]
    parts = [Share(sign, numbers[sign]) for sign in _ORDER if numbers[sign]]
    rest = sum(part.number for part in parts)
    begin = 0.0
    if rest:
        begin = WIDTH if not private else min(max(WIDTH * rest / listed, _LEAST), WIDTH - _LEAST)
    return CoverageBar(
        listed=listed,
        parts=(*parts, Share(signs.PRIVATE, private)),
        below=laid(parts),
        private=private,
        private_from=round(begin, 1),
        caption=_caption(listed, private, begin),
        markers=summary.coverage.delete_markers,
    )


def counts(summary: Summary) -> dict[Sign, int]:
    """Return the number of listed objects of each sign: their sum is the number of listed objects."""
    intended = summary.excepted.verdicts
    left = {sign: summary.verdicts[name] - intended.get(name, 0) for name, sign in signs.BY_VERDICT.items()}
    return {
        **left,
        signs.INTENDED: sum(intended.get(verdict, 0) for verdict in Verdict),
        signs.VANISHED: summary.coverage.vanished,
    }


def _caption(listed: int, private: int, begin: float) -> str:
    if not listed:
        return ""
    words = f"{private:,} private, {100 * private / listed:.1f} % of {listed:,} listed"
    return words if WIDTH - begin > len(words) * _LETTER + 24 else ""


def laid(parts: Sequence[Share]) -> tuple[Share, ...]:
    """Return the parts with their places in a bar of the whole width; each is wide enough to be seen."""
    total = sum(part.number for part in parts)
    if not total:
        return ()
    room = WIDTH - _GAP * (len(parts) - 1)
    widths = [max(room * part.number / total, _LEAST) for part in parts]
    largest = max(range(len(widths)), key=widths.__getitem__)
    widths[largest] -= sum(widths) - room
    laid, x = [], 0.0
    for part, width in zip(parts, widths, strict=True):
        words = f"{part.sign.mark} {part.number:,} {part.sign.label}"
        inside = words if width > len(words) * _LETTER + 16 else ""
        laid.append(replace(part, x=round(x, 1), width=round(width, 1), inside=inside))
        x += width + _GAP
    return tuple(laid)


_LEFT: Final = 56.0
_RIGHT: Final = 1068.0
_TOP: Final = 36.0
_BOTTOM: Final = 184.0


class Night(Struct, frozen=True):
    """One day of the trend. counts: numbers by name, such as those of the verdicts; None if no run ended that day."""

    day: date
    counts: Mapping[str, int] | None


def spark(nights: Sequence[Night], name: str) -> Spark | None:
    """Return the small curve of one count; None if there are not two nights to compare."""
    values = _values(nights, name)
    known = [value for value in values if value is not None]
    if len(known) < 2 or values[-1] is None:
        return None
    low, high = min(known), max(known)
    step = 116 / max(len(values) - 1, 1)
    points = [
        None if value is None else (2 + at * step, 26.0 if high == low else 26 - 22 * (value - low) / (high - low))
        for at, value in enumerate(values)
    ]
    pieces = [" ".join(f"{x:.1f},{y:.1f}" for x, y in piece) for piece in _unbroken(points) if len(piece) > 1]
    last = points[-1]
    assert last is not None
    return Spark(tuple(pieces), round(last[0], 1), round(last[1], 1))


def curve(nights: Sequence[Night], name: str) -> Curve | None:
    """Return the large curve of one count; None if there are not two nights to compare."""
    values = _values(nights, name)
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    step = (_RIGHT - _LEFT) / (len(values) - 1)
    top, marks = _scale(max(known))
    down = (_BOTTOM - _TOP) / top
    points = [None if value is None else (_LEFT + at * step, _BOTTOM - value * down) for at, value in enumerate(values)]
    areas, lines = [], []
    for piece in _unbroken(points):
        path = f"M{piece[0][0]:.1f},{piece[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in piece[1:])
        lines.append(path)
        areas.append(f"{path}V{_BOTTOM}H{piece[0][0]:.1f}Z")
    at, end = next((at, point) for at, point in reversed(list(enumerate(points))) if point is not None)
    last = (
        f"{values[at]:,} in this run" if at == len(values) - 1 else f"{values[at]:,} on {day_and_month(nights[at].day)}"
    )
    return Curve(
        tuple(areas),
        tuple(lines),
        tuple(Label(_LEFT - 8, round(_BOTTOM - mark * down, 1), f"{mark:,}") for mark in marks),
        _days(nights, step),
        tuple(
            (round(_LEFT + at * step - step / 2, 1), round(step, 1)) for at, value in enumerate(values) if value is None
        ),
        Label(round(end[0], 1), round(end[1], 1), last),
        _in_words(nights, values),
    )


def _values(nights: Sequence[Night], name: str) -> list[int | None]:
    return [None if night.counts is None else night.counts.get(name, 0) for night in nights]


def _unbroken(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    runs = (list(piece) for known, piece in groupby(points, key=lambda point: point is not None) if known)
    return [[point for point in piece if point is not None] for piece in runs]


def _scale(most: int) -> tuple[float, list[int]]:
    """Return the value at the top of the picture, and two to five round values for its lines."""
    step = 1
    while step * 4 < most:
        step = step * 5 // 2 if str(step).startswith("2") else step * 2
    return max(most, step), list(range(0, most + 1, step))


def _days(nights: Sequence[Night], step: float) -> tuple[Label, ...]:
    every = max(len(nights) // 4, 1)
    last = len(nights) - 1
    shown = [at for at in range(0, last, every) if last - at >= every * 0.7] + [last]
    return tuple(Label(round(_LEFT + at * step, 1), 204, day_and_month(nights[at].day)) for at in shown)


def _in_words(nights: Sequence[Night], values: Sequence[int | None]) -> str:
    words, before = [], None
    for night, value in zip(nights, values, strict=True):
        if value is not None and value != before:
            words.append(f"{value:,} on {day_and_month(night.day)}")
            before = value
    if len(words) > 6:
        words = [*words[:2], "…", *words[-3:]]
    missing = [day_and_month(night.day) for night in nights if night.counts is None]
    gaps = f" No complete run on {counted(len(missing), 'day')}: {', '.join(missing[:5])}." if missing else ""
    return f"{', '.join(words)}.{gaps}"


def day_and_month(day: date) -> str:
    return f"{day.day} {day:%b}"


Rectangle = tuple[float, float, float, float]
"""x, y, width and height."""


def squarified(numbers: Sequence[int], room: Rectangle) -> list[Rectangle]:
    """Return a rectangle for each number, which are positive and sorted, the largest first. Together they fill `room`.

    Each row is laid along the shorter side of the rest of the room, and takes numbers while its boxes get more square.
    """
    x, y, width, height = room
    total = sum(numbers)
    if not total or width <= 0 or height <= 0:
        return [(x, y, 0.0, 0.0) for _ in numbers]
    areas = [number * width * height / total for number in numbers]
    found: list[Rectangle] = []
    start = 0
    while start < len(areas):
        side = min(width, height)
        end = start + 1
        while end < len(areas) and _worst(areas[start : end + 1], side) <= _worst(areas[start:end], side):
            end += 1
        row = areas[start:end]
        thick = min(sum(row) / side, max(width, height)) if side > 0 else 0.0  # what is rounded stays within the room
        at = 0.0
        for area in row:
            long = min(area / thick if thick > 0 else 0.0, side - at)
            found.append((x, y + at, thick, long) if width >= height else (x + at, y, long, thick))
            at += long
        if width >= height:
            x, width = x + thick, max(width - thick, 0.0)
        else:
            y, height = y + thick, max(height - thick, 0.0)
        start = end
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """Return the largest ratio of the sides of the boxes in a row."""
    if side <= 0:
        return 0.0
    thick = sum(row) / side
    return max(max(thick * thick / area, area / (thick * thick)) for area in row)


_WIDTH: Final = 1080
_HEIGHT: Final = 320
_EDGE: Final = 3.0
_MOST_BOXES: Final = 60
_MOST_ROWS: Final = 60
_MAP_LETTER: Final = 8.2
_BAR: Final = 110.0
_VIEWS: Final[tuple[tuple[str, str, tuple[Sign, ...]], ...]] = (
    ("risk", "exposed, shared, unknown", signs.OPEN),
    ("exposed", "exposed", (signs.EXPOSED,)),
    ("all", "all that are not private", signs.NOT_PRIVATE),
)


def places_of(counts: Iterable[PlaceCount]) -> Places | None:
    """Return the maps and the table; None if there are no objects. Equal maps are left out."""
    found = _joined(counts)
    if not found:
        return None
    columns = tuple(sign for sign in signs.NOT_PRIVATE if any(one.sign is sign for one in found))
    rows = _rows(found, columns)
    maps: dict[int, Map] = {}
    for name, label, kinds in _VIEWS:
        chosen = [one for one in found if one.sign in kinds]
        if chosen and len(chosen) not in maps:  # each view is a part of another: of one size, they are equal
            maps[len(chosen)] = Map(name, label, _boxes(chosen), _HEIGHT)
    return Places(
        maps=tuple(maps.values()),
        columns=columns,
        rows=tuple(rows[:_MOST_ROWS]),
        totals=tuple(sum(one.number for one in found if one.sign is sign) for sign in columns),
        more=max(len(rows) - _MOST_ROWS, 0),
    )


def _joined(counts: Iterable[PlaceCount]) -> list[PlaceCount]:
    """Return one count for each prefix and sign that has objects; it leads to the first of those that it joins."""
    found: dict[tuple[str, Sign], PlaceCount] = {}
    for one in counts:
        if one.number:
            first = found.get((one.prefix, one.sign), replace(one, number=0, new=0))
            joined = replace(first, number=first.number + one.number, new=first.new + one.new)
            found[one.prefix, one.sign] = joined
    return list(found.values())


def _rows(counts: Sequence[PlaceCount], columns: tuple[Sign, ...]) -> list[PlaceRow]:
    by_prefix: dict[str, dict[str, int]] = {}
    for one in counts:
        by_prefix.setdefault(one.prefix, {})[one.sign.name] = one.number
    rows = []
    for prefix, numbers in by_prefix.items():
        each = tuple(numbers.get(sign.name, 0) for sign in columns)
        rows.append(PlaceRow(prefix or NO_PREFIX, each, _bar(columns, each)))
    return sorted(rows, key=lambda row: ([-number for number in row.numbers], row.prefix))


def _bar(columns: tuple[Sign, ...], numbers: tuple[int, ...]) -> tuple[tuple[str, float, float], ...]:
    total, x, pieces = sum(numbers), 0.0, []
    for sign, number in zip(columns, numbers, strict=True):
        width = _BAR * number / total
        if number:
            pieces.append((sign.name, round(x, 1), round(width, 1)))
        x += width
    return tuple(pieces)


def _boxes(counts: Sequence[PlaceCount]) -> tuple[Box, ...]:
    """Return the boxes: first an area for each first folder, and in it one for each prefix and sign."""
    largest = sorted(counts, key=lambda one: -one.number)[:_MOST_BOXES]
    room = (_EDGE, _EDGE, _WIDTH - 2 * _EDGE, _HEIGHT - 2 * _EDGE)
    folders = _by_folder(largest)
    areas = zip(folders, squarified([_sum(one) for one in folders], room), strict=True)
    return tuple(
        _box(one, box)
        for inside, area in areas
        for one, box in zip(inside, squarified([one.number for one in inside], area), strict=True)
    )


def _by_folder(counts: Sequence[PlaceCount]) -> list[list[PlaceCount]]:
    folders: dict[str, list[PlaceCount]] = {}
    for one in counts:
        folders.setdefault(one.prefix.partition("/")[0], []).append(one)
    return sorted(folders.values(), key=_sum, reverse=True)


def _sum(counts: Sequence[PlaceCount]) -> int:
    return sum(one.number for one in counts)


def _box(one: PlaceCount, at: Rectangle) -> Box:
    x, y, width, height = (round(side, 1) for side in at)
    width, height = max(width - 2, 1.0), max(height - 2, 1.0)
    return Box(x, y, width, height, one, *_label(one, width, height))


def _label(one: PlaceCount, width: float, height: float) -> tuple[str, bool]:
    """Return the longest label that fits the box, and if it is turned. The prefix is shown from its last folders."""
    whole = one.name
    if width >= 40 and height >= 26:
        return _fitting(whole, int((width - 12) / _MAP_LETTER)), False
    if width >= 18 and height >= 70:
        return _fitting(f"{whole} {one.sign.mark} {one.number:,}", int((height - 20) / _MAP_LETTER)), True
    return "", False


def _fitting(text: str, letters: int) -> str:
    """Return the text, or its last folders, if that many letters have room; else ""."""
    while len(visible(text)) > letters:
        _, slash, text = text.partition("/")
        if not slash or not text.strip("/"):
            return ""
    return text
