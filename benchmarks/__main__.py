"""Run the benchmarks, and write the page, its plots and its data: `python -m benchmarks`, or `make bench`."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import gates, machine, page
from benchmarks.harness import Bench
from benchmarks.launch import ROOT, serving
from benchmarks.parts import PARTS

TEMPLATE: Final = ROOT / "docs" / "performance.md"
QUICK_OUT: Final = ROOT / ".build" / "bench"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", default="all", help=f"with commas between them: {', '.join(PARTS)} (all)")
    parser.add_argument("--repeat", type=int, help="how often each row is measured (5; quick: 1)")
    parser.add_argument("--quick", action="store_true", help="the whole picture in minutes, coarser")
    parser.add_argument("--out", type=Path, help="the folder of the page (docs; quick: .build/bench)")
    parser.add_argument("--strict", action="store_true", help="fail unless every gate is met")
    options = parser.parse_args()
    options.parts = list(PARTS) if options.part == "all" else options.part.split(",")
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}: use {', '.join(PARTS)}")
    return options


def main() -> int:
    options = parse()
    out = options.out or (QUICK_OUT if options.quick else TEMPLATE.parent)
    repeat = options.repeat or (1 if options.quick else 5)
    with serving() as server:
        bench = Bench(server, repeat, options.quick)
        for name in options.parts:
            bench.say(f"-- {name}")
            found = PARTS[name].measure(bench)
            results = page.load(out)  # what another run has measured meanwhile is kept
            results[name] = {
                "date": datetime.now(UTC).date().isoformat(),
                "repeat": repeat,
                "quick": options.quick,
                "machine": machine.describe(),
                **found,
            }
            _save(out, results)
            print(f"\n## {name}\n\n{PARTS[name].page(results[name])}\n", flush=True)
    judged = gates.evaluate(page.load(out))
    gates.show(judged)
    return int(options.strict and not all(gate.met for gate in judged))


def _save(out: Path, results: dict[str, object]) -> None:
    rows = [gate.cells() for gate in gates.evaluate(results)]
    page.save(out, TEMPLATE, results, page.gate_table(rows))


if __name__ == "__main__":
    sys.exit(main())
