"""Make the parts of the index page that only an estate has: its line, its notes, and a row for each account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.model.estate import EarlierEstate, EstateReport
from auditor.reports.page.index_data import AccountRow

AnyEstate = EstateReport | EarlierEstate


def sum_line(estates: Sequence[AnyEstate]) -> str:
    """Return the line that adds up the buckets of the page; "" if it has those of several estates, or of none."""
    return f"{estates[0].line}." if len(estates) == 1 else ""


def estate_notes(estates: Sequence[AnyEstate]) -> list[str]:
    """Return the sentences below the headline, each once."""
    lines = [f"{one.folder}: {one.line}" if one.folder else one.line for one in estates] if len(estates) > 1 else []
    notes = [note for one in estates for note in one.notes]
    unseen = [f"Not looked at: {words}" for one in estates for words in one.not_looked_at]
    return list(dict.fromkeys([*lines, *notes, *unseen]))


def account_rows(estates: Sequence[AnyEstate]) -> tuple[AccountRow, ...]:
    """Return the rows of the accounts, those with holes first."""
    return tuple(sorted(_rows(estates), key=lambda row: (row.hole is None, -row.counts.holes, row.name)))


def _rows(estates: Sequence[AnyEstate]) -> Iterator[AccountRow]:
    several = len(estates) > 1
    for estate in estates:
        for one in estate.accounts:
            of = f", {estate.folder}" if several and estate.folder else ""
            yield AccountRow(name=f"{one.words}{of}", role=one.role or "", counts=one.counts, hole=one.hole)
