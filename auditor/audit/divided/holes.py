"""Name the ranges of a run that are not complete, for its summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from auditor.audit.divided.state import RangeState
from auditor.text import counted, visible

_NAMED: Final = 20
"""Number of unfinished ranges that the summary names one by one."""


def hole_of(one: RangeState) -> str:
    """Return a phrase on a range that is not complete: its keys, and the reason."""
    low, high = one.range.start_after, one.range.stop_at
    keys = " ".join(
        [*([] if low is None else [f"after {visible(low)}"]), *([] if high is None else [f"up to {visible(high)}"])]
    )
    return f"the rest of range {one.range.id}, keys {keys or 'of the whole target'}: {one.fault}"


def named_holes(holes: Iterable[str]) -> Iterator[str]:
    """Yield the first phrases, and one on the number of the others."""
    found = list(holes)
    yield from found[:_NAMED]
    if len(found) > _NAMED:
        yield f"the rest of {counted(len(found) - _NAMED, 'further range')}"
