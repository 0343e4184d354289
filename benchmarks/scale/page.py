"""Write the generated blocks of docs/scale.md, and its picture; the page's other text is written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.launch import ROOT
from benchmarks.page import between
from benchmarks.scale import tables
from benchmarks.scale.assumed import usual
from benchmarks.scale.assumptions import assumptions, classes, in_short, price_table
from benchmarks.scale.crossings import crossings
from benchmarks.scale.find import advised, first_size, mapped
from benchmarks.scale.measured import Measured, measured
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import LONGEST_CHAIN, Night, pace
from benchmarks.scale.picture import Panel, picture

PAGE: Final = "docs/scale.md"
PICTURE: Final = "docs/performance/scale.svg"

BLOCKS: Final[Mapping[str, Callable[[Measured], str]]] = {
    "ways": tables.ways,
    "bills": tables.bills,
    "classes": classes,
    "options": tables.options,
    "assumptions": assumptions,
    "prices": price_table,
    "crossings": crossings,
}
"""The generated blocks of the page, by the name between their markers."""


def page() -> str:
    """Return docs/scale.md with its blocks written anew."""
    text, found = (ROOT / PAGE).read_text(encoding="utf-8"), measured()
    for name, block in BLOCKS.items():
        text = between(text, name, block(found).replace("| ", "|").replace(" |", "|"))  # as the tables by hand
    return text


def drawing() -> str:
    """Return the picture of the page."""
    found = measured()
    alone = {mode.value: _to_its_end(mode, found) for mode in (Mode.LIVE, Mode.INCREMENTAL)}
    bills = Panel(
        title="Dollars a night",
        across=tables.SIZES,
        series={mode.value: [advised(usual(mode, one), found).dollars for one in tables.SIZES] for mode in Mode},
        low=-2,
        high=4,
        unit="${}",
    )
    hours = Panel(
        title=f"Hours a night in ranges; dashed: one function, up to {LONGEST_CHAIN} hops",
        across=tables.SIZES,
        series={mode.value: [_in_ranges(usual(mode, one), found) for one in tables.SIZES] for mode in Mode},
        dashed=alone,
        low=-3,
        high=4,
        unit="{} h",
        marks=((1.0, "an hour"), (24.0, "a day")),
    )
    return picture("A night by the number of objects", in_short(), (bills, hours))


def _hours(night: Night, found: Measured) -> float:
    return pace(night, found).seconds / 3600


def _in_ranges(night: Night, found: Measured) -> float:
    """Return the hours over ranges."""
    return _hours(mapped(night, found), found)


def _to_its_end(mode: Mode, found: Measured) -> list[tuple[float, float]]:
    """Return numbers of objects and the hours of one function, up to the largest number with which it ends."""
    end = first_size(lambda objects: pace(usual(mode, objects), found).too_long) or tables.SIZES[-1]
    sizes = [*(one for one in tables.SIZES if one < 0.95 * end), round(0.98 * end)]
    return [(one, _hours(usual(mode, one), found)) for one in sizes]
