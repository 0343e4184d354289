"""Write the generated blocks of docs/scale.md, and its picture; the page's other text is written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.launch import ROOT
from benchmarks.page import between
from benchmarks.scale import tables
from benchmarks.scale.assumed import SIZES, usual
from benchmarks.scale.assumptions import assumptions, classes, in_short, price_table
from benchmarks.scale.bill import simulate
from benchmarks.scale.measured import Measured, Mode, measured
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
    "machine": tables.machine,
    "crossings": tables.crossings,
    "estate": tables.estate,
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
    nights = {mode.value: [simulate(usual(mode, one), found) for one in SIZES] for mode in Mode}
    bills = Panel(
        title="Dollars a night",
        across=SIZES,
        series={name: [one.dollars for one in row] for name, row in nights.items()},
        low=-2,
        high=4,
        unit="${}",
    )
    hours = Panel(
        title="Hours a night",
        across=SIZES,
        series={name: [one.course.seconds / 3600 for one in row] for name, row in nights.items()},
        low=-3,
        high=4,
        unit="{} h",
        marks=((1.0, "an hour"), (24.0, "a day")),
    )
    return picture("A night by the number of objects", in_short(), (bills, hours))
