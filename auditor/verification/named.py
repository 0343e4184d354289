"""The objects that a verification's table names: the first that are damaged, gone or unreadable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from auditor.verification.outcomes import FINDINGS, SIGNS, Outcome

_NAMED: Final = (*FINDINGS, Outcome.UNREADABLE)
_MOST: Final = 10


class Lines(Protocol):
    """Takes the combined report, a line at a time."""

    def write(self, text: str, /) -> object: ...


class Named:
    """Keeps the first lines of each kind that it names, and hands every line on. lines: None: nobody takes them."""

    def __init__(self, lines: Lines | None) -> None:
        self._lines = lines
        self._kept: dict[str, list[str]] = {SIGNS[outcome]: [] for outcome in _NAMED}

    def write(self, text: str, /) -> None:
        kept = self._kept.get(text[0])
        if kept is not None and len(kept) < _MOST:
            kept.append(text)
        if self._lines is not None:
            self._lines.write(text)

    def table(self, summary: Mapping[str, Any]) -> Iterator[str]:
        """Lines with their ends, the mismatches first; nothing where nothing is wrong."""
        shown = [text for kept in self._kept.values() for text in kept][:_MOST]
        for text in shown:
            yield f"{'':16}{text.replace(chr(9), ' version ')}"
        rest = sum(summary["outcomes"][outcome.value] for outcome in _NAMED) - len(shown)
        if rest:
            yield f"{'':16}and {rest:,} more: see the report\n"
