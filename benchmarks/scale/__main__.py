"""Simulate a night at scale: `python -m benchmarks.scale`, or `make scale`, writes docs/scale.md and its picture.

With --objects it prints the bill of one night instead, for your own numbers.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import replace

from auditor.s3.prices import prices_with
from benchmarks.launch import ROOT
from benchmarks.scale import page, tables, words
from benchmarks.scale.assumed import ACL_DAYS, HEAD_DAYS, usual
from benchmarks.scale.bill import NIGHTS, simulate
from benchmarks.scale.measured import Mode, measured
from benchmarks.scale.night import Night

DOCUMENTS = {page.PAGE: page.page, page.PICTURE: page.drawing}


MOST_OBJECTS = 1e12


def between(least: float, most: float) -> Callable[[str], float]:
    """Return a reader of numbers from `least` to `most`: `300000000` or `3e8`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:  # nan is outside too
            raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a number from {least:g} to {most:g}")
        return value

    return read


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=between(1, MOST_OBJECTS), help="print the bill of such a night alone")
    parser.add_argument("--buckets", type=between(1, 10_000), default=1, help="buckets of so many objects each (1)")
    parser.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.LIVE, help="where facts come from (live)")
    plain = usual(Mode.LIVE)
    parser.add_argument(
        "--changed", type=between(0, 1), default=plain.changed, help=f"share that changed ({plain.changed})"
    )
    parser.add_argument("--acl-days", type=between(1, 10_000), default=ACL_DAYS, help="incremental: acl of keep (8)")
    parser.add_argument(
        "--head-days", type=between(1, 10_000), default=HEAD_DAYS, help="incremental: head of keep (31)"
    )
    parser.add_argument(
        "--max-rate", type=between(1, 1e9), default=plain.max_rate, help="calls a second on a bucket (2000)"
    )
    parser.add_argument("--map-concurrency", type=between(1, 1000), help="functions at once (auto)")
    parser.add_argument("--memory", type=int, choices=tables.MEMORIES, default=plain.memory, help="MB of a function")
    known = sorted(prices_with({}).get)
    parser.add_argument("--storage-class", choices=known, default=plain.storage_class, help="of all objects")
    parser.add_argument(
        "--kept-nights", type=between(0, 10_000), default=plain.kept_nights, help="of run folders (400)"
    )
    return parser.parse_args(arguments)


def shown(night: Night) -> str:
    """Return the course and the bill of a night as lines of text."""
    found = simulate(night, measured())
    course = found.course
    way = f"{night.buckets * night.ranges:,} ranges, {night.at_once} at once" if course.transitions else "one function"
    lines = [
        f"{night.objects:,} objects, {night.mode.value}: {way}, {course.invocations:,} invocations,"
        f" {words.duration(course.seconds)}, held back by {course.limit}",
    ]
    if course.too_long:
        lines.append("the state machine cannot end it")
    lines += [
        f"{one.service:<16}{one.what:<28}{words.counted(one.number):>16}{words.dollars(one.dollars):>14}"
        for one in found.terms
    ]
    lines.append(f"{'a night':<60}{words.dollars(found.dollars):>14}")
    lines.append(f"{'a month':<60}{words.dollars(NIGHTS * found.dollars):>14}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    given = parse(arguments)
    if given.objects is None:
        for name, make in DOCUMENTS.items():
            (ROOT / name).write_text(make(), encoding="utf-8")
            print(f"wrote {name}")
        return 0
    night = replace(
        usual(given.mode, round(given.objects)),
        buckets=round(given.buckets),
        changed=given.changed,
        max_rate=given.max_rate,
        concurrency=None if given.map_concurrency is None else round(given.map_concurrency),
        memory=given.memory,
        storage_class=given.storage_class,
        kept_nights=round(given.kept_nights),
    )
    if given.mode is Mode.INCREMENTAL:
        night = replace(night, acl_days=given.acl_days, head_days=given.head_days)
    print(shown(night))
    return 0


if __name__ == "__main__":
    sys.exit(main())
