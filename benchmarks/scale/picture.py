"""The picture of a night by the number of objects: dollars and hours, each with logarithmic axes, as one SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH, HEIGHT = 920, 458
_TOP, _BOTTOM = 74, 350
_STYLE: Final = """
 .back{fill:#fff} .text{fill:#24292f} .quiet{fill:#57606a} .grid{stroke:#d8dee4} .mark{stroke:#57606a}
 .live{stroke:#b3423a} .mixed{stroke:#1b6ca8} .incremental{stroke:#2f7d3b}
 .live-fill{fill:#b3423a} .mixed-fill{fill:#1b6ca8} .incremental-fill{fill:#2f7d3b}
 @media (prefers-color-scheme:dark){
 .back{fill:#0d1117} .text{fill:#e6edf3} .quiet{fill:#9da7b1} .grid{stroke:#30363d} .mark{stroke:#9da7b1}
 .live{stroke:#ff8077} .mixed{stroke:#6cb6ff} .incremental{stroke:#6bc46d}
 .live-fill{fill:#ff8077} .mixed-fill{fill:#6cb6ff} .incremental-fill{fill:#6bc46d}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One plot. across: numbers of objects. series: values of each mode over `across`. low, high: powers of ten at the
    ends of the height. marks: heights with their names.
    """

    title: str
    across: Sequence[int]
    series: Mapping[str, Sequence[float]]
    low: int
    high: int
    unit: str
    marks: Sequence[tuple[float, str]] = ()


def picture(title: str, under: Sequence[str], panels: Sequence[Panel]) -> str:
    """Return the SVG with the panels side by side, and lines of text under them."""
    parts = [_text(20, 28, title, size=16, weight="600")]
    width = WIDTH / len(panels)
    for number, panel in enumerate(panels):
        parts += _panel(panel, number * width + 66, (number + 1) * width - 26)
    parts += [_text(20, HEIGHT - 45 + 17 * at, line, kind="quiet") for at, line in enumerate(under)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}</title><style>{_STYLE}</style>\n'
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}" rx="6"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(
    x: float, y: float, text: str, *, kind: str = "text", anchor: str = "start", size: int = 12, weight: str = "400"
) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' font-weight="{weight}">{escape(text)}</text>'
    )


def _panel(panel: Panel, left: float, right: float) -> Iterator[str]:
    first, last = math.log10(panel.across[0]), math.log10(panel.across[-1])

    def x(objects: float) -> float:
        return left + (right - left) * (math.log10(objects) - first) / (last - first)

    def y(value: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (math.log10(value) - panel.low) / (panel.high - panel.low)

    yield _text(left - 46, _TOP - 20, panel.title, weight="600")
    for exponent in range(panel.low, panel.high + 1):
        level = y(10.0**exponent)
        yield _level("grid", left, right, level)
        yield _text(left - 8, level + 4, panel.unit.format(f"{10.0**exponent:,g}"), kind="quiet", anchor="end")
    for objects in panel.across:
        yield _exponent(x(objects), _BOTTOM + 20, round(math.log10(objects)))
    yield _text((left + right) / 2, _BOTTOM + 38, "objects", kind="quiet", anchor="middle")
    for value, name in panel.marks:
        level = y(value)
        yield _level("mark", left, right, level, ' stroke-dasharray="2 4"')
        yield _text(left + 4, level - 4, name, kind="quiet")
    for name, values in panel.series.items():
        points = [(x(at), y(value)) for at, value in zip(panel.across, values, strict=True)]
        yield _line(points, f'class="{name}" stroke-width="2.4"')
        yield from (f'<circle class="{name}-fill" cx="{at:.1f}" cy="{up:.1f}" r="3.2"/>' for at, up in points)
    yield from _legend(panel, left, right)


def _legend(panel: Panel, left: float, right: float) -> Iterator[str]:
    """Name each line at the panel's lower right, where a line that rises is not."""
    for number, name in enumerate(panel.series):
        level = _BOTTOM - 14 - 18 * (len(panel.series) - 1 - number)
        yield f'<rect class="{name}-fill" x="{right - 96:.1f}" y="{level - 9:.1f}" width="10" height="10" rx="2"/>'
        yield _text(right - 80, level, name)


def _level(kind: str, left: float, right: float, y: float, more: str = "") -> str:
    return f'<line class="{kind}" x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}"{more}/>'


def _line(points: Sequence[tuple[float, float]], attributes: str) -> str:
    return f'<polyline points="{" ".join(f"{at:.1f},{up:.1f}" for at, up in points)}" fill="none" {attributes}/>'


def _exponent(x: float, y: float, exponent: int) -> str:
    return (
        f'<text class="quiet" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">10'
        f'<tspan dy="-5" font-size="9">{exponent}</tspan></text>'
    )
