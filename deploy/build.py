"""Build the package for Lambda: `python -m deploy.build --architecture arm64`; one zip, or code and a layer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from auditor.aws.session import SERVICES
from deploy import budget, python
from deploy.archive import pack
from deploy.bytecode import compiled
from deploy.config import config_files, outvoted
from deploy.cut import Files
from deploy.install import install, locked
from deploy.making import Install, below_python, make, tell
from deploy.options import PLATFORMS, PYTHON, PYTHONS, REQUIREMENTS, Options, read_options
from deploy.sources import source_files

NEWEST: Final = ("--extra", "crc64", "--group", "newest")
"""The options of `uv export` that choose what functions with the engines direct and boto3 depend on."""


def build(
    options: Options,
    *,
    installer: Install = install,
    limits: budget.Budget | None = None,
    interpreter: Path | None = None,
) -> list[str]:
    """Make the package if it is not up to date. Return lines for the user that say what was done. Raises BuildError.

    interpreter: a Python of the functions' version, which makes the bytecode; None: the package has no bytecode.
    """
    sources = source_files(options.root) | config_files(options.config, options.buckets)
    notes = [
        f"{options.config}: the deployment has a parameter for {name}, which wins over the file where it is not empty"
        for name in outvoted(options.config, options.root)
    ]

    def archives(dependencies: Files) -> dict[Path, bytes]:
        code = sources | compiled(sources, interpreter)
        if options.layer is None:
            return {options.output: pack(dependencies | code, options.time)}
        layer = pack(below_python(dependencies), options.time)
        return {options.output: pack(code, options.time), options.layer: layer}

    lines = make(
        options,
        sources,
        archives,
        services=SERVICES,
        limits=limits or budget.Budget(),
        installer=installer,
        interpreter=interpreter,
    )
    return [*notes, *lines]


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command's options."""
    made = argparse.ArgumentParser(prog="python -m deploy.build", description=__doc__)
    target = made.add_mutually_exclusive_group(required=True)
    target.add_argument("--architecture", choices=sorted(PLATFORMS), help="Lambda's architecture")
    target.add_argument("--local", action="store_true", help="for this machine, from the same lock")
    made.add_argument(
        "--engines",
        choices=("default", "all"),
        default="default",
        help="default: direct and boto3, with the newest botocore; all: aioboto3 too, with the botocore that it needs",
    )
    made.add_argument("--python", choices=PYTHONS, default=PYTHON, help="the functions' Python (default: %(default)s)")
    made.add_argument("--layer", action="store_true", help="dependencies in a layer, beside the function's zip")
    made.add_argument("--config", type=Path, help="an auditor.toml for the functions (default: none)")
    made.add_argument("--buckets", default="", help="the functions' targets, separated by commas (default: none)")
    made.add_argument("--output", type=Path, help="the function's zip (default: .build/function-ARCHITECTURE.zip)")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 0 if the package is built or up to date, 1 if it is not built, 2 for wrong usage."""
    given = parser().parse_args(arguments)

    def work() -> list[str]:
        options = read_options(
            given.architecture,
            layer=given.layer,
            output=given.output,
            config=given.config,
            buckets=given.buckets,
            requirements=REQUIREMENTS if given.engines == "all" else locked("newest", NEWEST),
            python=given.python,
        )
        return build(options, interpreter=python.find(given.python))

    return tell(work, "package")


if __name__ == "__main__":
    sys.exit(main())
