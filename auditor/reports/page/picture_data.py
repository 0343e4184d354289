"""The pictures of a report page: shapes with their places, and the signs of the kinds of objects in them."""

from __future__ import annotations

from msgspec import Struct


class Sign(Struct, frozen=True):
    """A kind of objects that the page shows with a colour and a mark: a verdict, or a word such as "accepted". name:
    name of its colour in the style sheet. mark: a character that shows the kind without the colour. words: the meaning.
    """

    name: str
    label: str
    mark: str
    words: str


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


class Box(Struct, frozen=True):
    """A box of the map: a prefix and a verdict, and its number of objects. group: the id of its element in the list of
    groups. vertical: True if the label is turned.
    """

    x: float
    y: float
    width: float
    height: float
    sign: Sign
    prefix: str
    number: int
    new: int
    group: str
    label: str = ""
    words: str = ""
    vertical: bool = False


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
    total: int
    bar: tuple[tuple[str, float, float], ...]


class Places(Struct, frozen=True, kw_only=True):
    """The prefixes of the objects that are not private: maps, and the same numbers as a table."""

    maps: tuple[Map, ...]
    columns: tuple[Sign, ...]
    rows: tuple[PlaceRow, ...]
    totals: tuple[int, ...]
    total: int
    more: int
