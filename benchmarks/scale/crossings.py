"""The sizes at which one way of running a night becomes better than another one, as a table of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from benchmarks.scale import words
from benchmarks.scale.assumed import USUAL_OBJECTS, usual
from benchmarks.scale.find import HOUR, advised, first_size, largest_share, mapped
from benchmarks.scale.measured import Measured
from benchmarks.scale.mode import Mode
from benchmarks.scale.night import Night, Pace, pace
from benchmarks.tables import table

DAY: Final = 24 * 3600.0
_MOST_RATE: Final = 1_000_000
"""Calls a second at which a search ends."""
_MOST_DAYS: Final = 1000


def crossings(found: Measured) -> str:
    """Return the table of crossover points."""
    return table(("question", *(mode.value for mode in Mode)), list(_rows(found)))


def _rows(found: Measured) -> Iterator[tuple[str, ...]]:
    live, mixed = partial(_dollars, found, Mode.LIVE), partial(_dollars, found, Mode.MIXED)
    cheap = first_size(lambda objects: mixed(objects=objects) < live(objects=objects), USUAL_OBJECTS)
    share = largest_share(lambda changed: mixed(changed=changed) < live(changed=changed))
    yield "cheaper than live from", "-", _size(cheap), _size(first_size(partial(_kept_is_cheaper, found)))
    yield "cheaper than live while less changes than", "-", words.percent(share or 0.0), "-"
    days = first_size(lambda days: _kept(found, days) < mixed(), _MOST_DAYS)
    yield "cheaper than mixed if `keep` is at least", "-", "-", f"acl={days}d,head={days}d" if days else "never"
    yield ("one function takes over an hour from", *_first(found, lambda course: course.seconds > HOUR))
    yield ("one function cannot end from", *_first(found, lambda course: course.too_long))
    yield ("ranges take over a day from", *_ranges_first(found, lambda course: course.seconds > DAY))
    yield ("ranges cannot end from", *_ranges_first(found, lambda course: course.too_long))
    yield ("ranges are twice as fast at 10⁸ from a ceiling of", *(_ceiling(mode, found) for mode in Mode))


def _dollars(found: Measured, mode: Mode, objects: int = USUAL_OBJECTS, **choices: Any) -> float:
    return advised(replace(usual(mode, objects), **choices), found).dollars


def _kept_is_cheaper(found: Measured, objects: int) -> bool:
    return _dollars(found, Mode.INCREMENTAL, objects) < _dollars(found, Mode.LIVE, objects)


def _kept(found: Measured, days: int) -> float:
    return _dollars(found, Mode.INCREMENTAL, acl_days=float(days), head_days=float(days))


def _size(objects: int | None) -> str:
    return "the first object" if objects == 1 else f"{words.rounded(objects)} objects"


def _first(found: Measured, is_so: Callable[[Pace], bool]) -> Iterator[str]:
    """Yield the size of each mode from which on something is so of one function."""

    def reached(mode: Mode, objects: int) -> bool:
        return is_so(pace(usual(mode, objects), found))

    for mode in Mode:
        yield _size(first_size(partial(reached, mode)))


def _ranges_first(found: Measured, is_so: Callable[[Pace], bool]) -> Iterator[str]:
    """Yield the size of each mode from which on something is so of a map."""

    def reached(mode: Mode, objects: int) -> bool:
        return is_so(pace(mapped(usual(mode, objects), found), found))

    for mode in Mode:
        yield _size(first_size(partial(reached, mode)))


def _ceiling(mode: Mode, found: Measured) -> str:
    """Return the ceiling from which on ranges halve the time of one function, which may then be too long for it."""

    def twice(rate: int) -> bool:
        night: Night = replace(usual(mode), max_rate=float(max(1, rate)))
        return pace(night, found).seconds >= 2 * pace(mapped(night, found), found).seconds

    if pace(usual(mode), found).too_long:
        return "-"
    rate = first_size(twice, _MOST_RATE)
    return f"{float(f'{rate:.2g}'):,.0f} calls a second" if rate else "none"
