"""The table of the exceptions and accepted holes of auditor.toml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.reports import words
from auditor.reports.page.data import ExceptionRow

_WORDS: Final = {
    ExceptionState.EXPIRED: "has ended: it counts again",
    ExceptionState.UNUSED: "matched nothing: remove it",
    ExceptionState.SHADOWED: "others cover all of it: remove it",
}


def exception_rows(found: Iterable[ExceptionUse]) -> Iterator[ExceptionRow]:
    """Yield a row for each entry, with a word on the work that it leaves to its owner."""
    for one in found:
        until, word = words.short_date(one.until), _WORDS.get(one.state, "")
        ends = ", ".join(part for part in (until, word) if part) or "no end"
        yield ExceptionRow(one.id, _covered(one), one.matched, one.owner or "–", one.reason, ends, bool(word))


def _covered(one: ExceptionUse) -> str:
    what = one.rule or (one.verdict.value if one.verdict else "holes" if one.hole else "everything")
    parts = [what if not (one.hole and one.rule) else f"holes of {one.rule}"]
    if one.prefix:
        parts.append(f"below {one.prefix}")
    if one.pattern:
        parts.append(f"matching {one.pattern}")
    if who := words.grantee(one.grantee) or words.audience(one.audience):
        parts.append(f"for {who}")
    return " ".join(parts)
