"""Build the layer with DuckDB, for S3 Inventory in Parquet: `python -m deploy.parquet --architecture arm64`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy import budget, python
from deploy.archive import pack
from deploy.cut import Files
from deploy.install import install, locked
from deploy.making import Install, below_python, make, tell
from deploy.options import PLATFORMS, PYTHON, PYTHONS, Options, read_options

SELECTION: Final = ("--only-group", "parquet")
"""The options of `uv export` that choose what the layer has."""
LIMITS: Final = budget.Budget(zipped=30 * budget.MB, unzipped=80 * budget.MB)
"""Largest sizes of the layer. With the largest package of the functions it must be below budget.LAMBDA."""


def build_layer(options: Options, *, installer: Install = install, interpreter: Path | None = None) -> list[str]:
    """Make the layer if it is not up to date. Return lines for the user that say what was done. Raises BuildError.

    interpreter: a Python of the functions' version, which makes the bytecode; None: the layer has no bytecode.
    """

    def archives(files: Files) -> dict[Path, bytes]:
        return {options.output: pack(below_python(files), options.time)}

    return make(options, {}, archives, limits=LIMITS, installer=installer, interpreter=interpreter)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 0 if the layer is built or up to date, 1 if it is not built, 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m deploy.parquet", description=__doc__)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--architecture", choices=sorted(PLATFORMS), help="Lambda's architecture")
    target.add_argument("--local", action="store_true", help="for this machine, from the same lock")
    parser.add_argument(
        "--python", choices=PYTHONS, default=PYTHON, help="the functions' Python (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, help="the layer's zip (default: .build/parquet-ARCHITECTURE.zip)")
    given = parser.parse_args(arguments)

    def work() -> list[str]:
        options = read_options(
            given.architecture,
            layer=False,
            output=given.output,
            kind="parquet",
            requirements=locked("parquet", SELECTION),
            python=given.python,
        )
        return build_layer(options, interpreter=python.find(given.python))

    return tell(work, "layer")


if __name__ == "__main__":
    sys.exit(main())
