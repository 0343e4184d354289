"""Lay out two bars: one of all listed objects by verdict, and a magnified one of the objects that are not private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.summary import Summary
from auditor.reports.page import signs
from auditor.reports.page.picture_data import CoverageBar, Share, Sign
from auditor.text import counted

WIDTH: Final = 1080.0
_GAP: Final = 1.5
_LEAST: Final = 5.0
"""Width of the smallest part: a single object is seen too."""
_LETTER: Final = 7.6
_ORDER: Final = (*signs.NOT_PRIVATE, signs.VANISHED)


def coverage_bar(summary: Summary, intended: Mapping[str, int]) -> CoverageBar:
    """Return the bar. intended: the number of objects that an exception covers, by verdict: they are counted apart."""
    numbers = counts(summary, intended)
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


def counts(summary: Summary, intended: Mapping[str, int]) -> dict[Sign, int]:
    """Return the number of listed objects of each sign: their sum is the number of listed objects."""
    left = {
        sign: summary.verdicts[verdict] - intended.get(verdict, 0)
        for verdict, sign in ((Verdict(name), sign) for name, sign in signs.BY_VERDICT.items())
    }
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


def in_words(bar: CoverageBar) -> str:
    """Return the counts in one sentence, for the bar's label."""
    each = ", ".join(f"{part.number:,} {part.sign.label}" for part in bar.parts)
    return f"{counted(bar.listed, 'object')} listed: {each}"
