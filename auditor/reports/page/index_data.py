"""The content of the index page of several targets: what its template prints, with every count and sentence ready."""

from __future__ import annotations

from msgspec import Struct

from auditor.model.estate import BucketCounts
from auditor.reports.page.data import Headline, NumberCard
from auditor.reports.page.pictures import CoverageBar, Spark
from auditor.reports.page.signs import Sign


class AccountRow(Struct, frozen=True, kw_only=True):
    """One account of an estate. role: ARN of the role by which it was read; "" for the own credentials. counts: of its
    buckets. hole: why its buckets are not all known, or None.
    """

    name: str
    role: str
    counts: BucketCounts
    hole: str | None


class TargetRow(Struct, frozen=True):
    """One target. sign: its worst objects, or its failure. link: relative address of its report; None if it has none.
    sentence: its verdict in words. numbers: in the order of the columns; None for one that is not known. bad: True for
    a hole. aside: the hole in words, or "". day: when its run began, in words. account: in words; "" if the page
    has one only.
    """

    sign: Sign
    target: str
    link: str | None
    sentence: str
    numbers: tuple[int | None, ...]
    bad: bool = False
    aside: str = ""
    day: str = ""
    spark: Spark | None = None
    account: str = ""


class TargetList(Struct, frozen=True):
    """The targets of one sign, the largest numbers first. rows: those that the page shows. more: those that it shows
    once the list is opened. has_numbers: False for targets without a run, which have a reason in place of numbers.
    """

    sign: Sign
    rows: tuple[TargetRow, ...]
    more: tuple[TargetRow, ...]
    has_numbers: bool

    @property
    def length(self) -> int:
        return len(self.rows) + len(self.more)


class IndexPage(Struct, frozen=True, kw_only=True):
    """The whole content of the index page. columns: the names of the numbers. lists: of the targets, those with exposed
    objects first, then those that were not audited. totals: the sums of the numbers over all rows; None for one that no
    row knows. accounts: of the estates on the page.
    """

    title: str
    headline: Headline
    cards: tuple[NumberCard, ...]
    coverage: CoverageBar
    columns: tuple[str, ...]
    lists: tuple[TargetList, ...]
    totals: tuple[int | None, ...]
    footer: str
    accounts: tuple[AccountRow, ...] = ()

    @property
    def rows(self) -> tuple[TargetRow, ...]:
        """The rows of all lists."""
        return tuple(row for one in self.lists for row in (*one.rows, *one.more))
