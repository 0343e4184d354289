"""Write results as Markdown tables and SVG plots, without a library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

WIDTH: Final = 760
COLOURS: Final = ("#1b6ca8", "#c8553d", "#4a8c3f", "#8a5fb0", "#b8860b", "#3b9c9c", "#7a7a7a", "#a83279")
_BAR: Final = 22
_LEFT: Final = 250


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table. A column is right-aligned if its first row has a number."""
    right = [bool(rows) and isinstance(rows[0][at], int | float) for at in range(len(columns))]
    lines = [columns, ["---:" if is_right else "---" for is_right in right]]
    lines += [[shown(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown(value: Any) -> str:
    """A number with about three digits, and commas; None is a dash."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _svg(height: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}</title>\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n'
        f"{_text(12, 20, title, size=14)}\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}" fill="#222">{escape(text)}</text>'


def bars(title: str, unit: str, values: Sequence[tuple[str, float]]) -> str:
    """A plot of horizontal bars, each with its value."""
    longest = max((value for _, value in values), default=1.0) or 1.0
    room = WIDTH - _LEFT - 110
    parts = []
    for number, (label, value) in enumerate(values):
        top = 36 + number * _BAR
        length = max(1.0, room * value / longest)
        parts.append(_text(_LEFT - 8, top + 13, label, anchor="end"))
        parts.append(f'<rect x="{_LEFT}" y="{top + 2}" width="{length:.1f}" height="{_BAR - 7}" fill="{COLOURS[0]}"/>')
        parts.append(_text(_LEFT + length + 6, top + 13, f"{shown(float(value))} {unit}"))
    return _svg(46 + len(values) * _BAR, title, parts)


def lines(title: str, unit: str, across: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> str:
    """A plot of one line a series, with a logarithmic height; None leaves a gap."""
    values = [value for points in series.values() for value in points if value]
    low, high = math.floor(math.log10(min(values, default=1))), math.ceil(math.log10(max(values, default=10)))
    high = max(high, low + 1)
    top, bottom, left, right = 40, 300, 70, WIDTH - 190

    def x(at: int) -> float:
        return left + (right - left) * at / max(1, len(across) - 1)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (math.log10(value) - low) / (high - low)

    parts = []
    for power in range(low, high + 1):
        level = y(10.0**power)
        parts.append(f'<line x1="{left}" y1="{level:.1f}" x2="{right}" y2="{level:.1f}" stroke="#ddd"/>')
        parts.append(_text(left - 8, level + 4, f"{10.0**power:g}", anchor="end"))
    parts += [_text(x(at), bottom + 18, name, anchor="middle") for at, name in enumerate(across)]
    parts.append(_text(left, top - 6, unit))
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        found = [(f"{x(at):.1f}", f"{y(value):.1f}") for at, value in enumerate(points) if value]
        path = " ".join(map(",".join, found))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{left_by}" cy="{up}" r="3" fill="{colour}"/>' for left_by, up in found]
        parts.append(f'<rect x="{right + 14}" y="{top + 20 * number}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(right + 32, top + 20 * number + 11, name))
    return _svg(max(330, top + 20 * len(series) + 10), title, parts)
