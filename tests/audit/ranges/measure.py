"""Print how equal ranges by the listing are, and their calls: `python -m tests.audit.ranges.measure`."""

from __future__ import annotations

import argparse
import asyncio
import sys

from auditor.audit.ranges.cuts import find_cuts
from tests.audit.ranges.hard_sets import HARD_SETS
from tests.audit.ranges.key_sets import SETS, keys_of_set
from tests.audit.ranges.listing import MemoryListing, sizes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.audit.ranges.measure", description=__doc__)
    parser.add_argument("sets", nargs="*", default=[*SETS, *HARD_SETS], metavar="SET", help="name of a set of keys")
    parser.add_argument("--keys", type=int, default=100_000, help="number of keys of each set")
    parser.add_argument("--page", type=int, action="append", help="number of keys on a page; may be repeated")
    parser.add_argument("--ranges", type=int, default=64)
    options = parser.parse_args()
    pages = options.page or [50, 100, 1000]
    heads = [f"{word}, {page} a page" for page in pages for word in ("largest / mean", "calls")]
    sys.stdout.write("| keys | " + " | ".join(heads) + " |\n|---|" + "---:|" * len(heads) + "\n")
    for name in options.sets:
        keys = keys_of_set(name, options.keys)
        cells = (measured(keys, page, options.ranges) for page in pages)
        sys.stdout.write(f"| {name} | " + " | ".join(cells) + " |\n")
        sys.stdout.flush()


def measured(keys: list[str], page: int, ranges: int) -> str:
    """Return two cells of the table: the largest range as a multiple of the mean, and the number of calls."""
    listing = MemoryListing(keys)
    found = asyncio.run(find_cuts(listing, ranges, None, None, page=page))
    return f"{max(sizes(keys, found)) * ranges / len(keys):.2f} | {listing.calls:,}"


if __name__ == "__main__":
    main()
