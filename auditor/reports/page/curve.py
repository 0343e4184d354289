"""Lay out a count night by night: the large curve, and the small one of a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Final

from msgspec import Struct

from auditor.reports.page.picture_data import Curve, Label, Spark
from auditor.text import counted

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
