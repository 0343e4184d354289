"""Print the counts of a what-if question as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from auditor.model.access import Audience, Reason
from auditor.reports.explain import ReasonGroup, sentences_of, words_of
from auditor.reports.tally_summary import largest_first
from auditor.reports.text_table import MOST, TableLayout
from auditor.reports.what_if import OTHERS, WhatIfCounts
from auditor.text import counted, shorten, visible


def render(head: Iterable[tuple[str, str]], counts: WhatIfCounts, remarks: Sequence[str], columns: int) -> str:
    """Return the counts as a table for a terminal, safe to print. head: labels and words of the first lines, safe to
    print. remarks: sentences on the change.
    """
    layout = TableLayout(max(columns, 40))
    sections = [
        *(layout.listed(label, [words]) for label, words in head),
        _moves(counts, layout),
        layout.listed("Gain access", _audiences(counts.gains)),
        layout.listed("Lose access", _audiences(counts.loses)),
        layout.listed("Not predictable", _unpredictable(counts)),
        layout.listed("Remarks", remarks),
        layout.listed("Result", [_result(counts)]),
    ]
    return "".join(f"{line}\n" for section in sections for line in section)


def _moves(counts: WhatIfCounts, layout: TableLayout) -> Iterator[str]:
    for move, moved in counts.ordered:
        words = f"from {move.before} to {move.after}: {counted(moved.objects, 'object')}"
        if move.before is move.after:
            words = f"{move.before} as before, for others: {counted(moved.objects, 'object')}"
        yield from layout.listed("Objects", [words])
        yield from layout.pairs("", ((prefix or "no folder", n) for prefix, n in largest_first(moved.prefixes).items()))
        for key, version_id in moved.samples:
            version = "" if version_id is None else f" (version {visible(version_id)})"
            yield from layout.listed("", [shorten(f"  {visible(key)}{version}", layout.room)])
    if not counts.moves:
        yield from layout.listed("Objects", ["no object is opened or closed to anybody"])


def _audiences(counts: Mapping[str, int]) -> Iterator[str]:
    for text, number in list(largest_first(counts).items())[:MOST]:
        words = text if text == OTHERS else words_of(Audience.parse(text))
        yield f"{words}: {counted(number, 'object')}"
    if (more := len(counts) - MOST) > 0:
        yield f"and {more:,} more"


def _unpredictable(counts: WhatIfCounts) -> Iterator[str]:
    if not counts.unpredictable:
        return
    before = f", {counts.unknown_before:,} of them unknown already" if counts.unknown_before else ""
    yield f"{counted(counts.unpredictable, 'object')}{before}"
    for cause, number in largest_first(counts.causes).items():
        yield f"{counted(number, 'object')}: {_cause(cause)}"


def _cause(text: str) -> str:
    try:
        (sentence,) = sentences_of([Reason.parse(text)], ReasonGroup.LEAVES_OPEN)
    except ValueError:
        return visible(text)
    return sentence


def _result(counts: WhatIfCounts) -> str:
    opened = f"{counted(counts.wider, 'object')} opened to somebody" if counts.wider else "no new exposure"
    closed = f"{counted(counts.narrower, 'object')} closed to somebody"
    unsure = f", {counted(counts.unpredictable, 'object')} not predictable" if counts.unpredictable else ""
    return f"{opened}, {closed}{unsure}, of {counted(counts.objects, 'object')}"
