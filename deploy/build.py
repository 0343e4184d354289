"""Build the package for Lambda: `python -m deploy.build --architecture arm64`; one zip, or code and a layer."""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from auditor.aws.session import SERVICES
from deploy import budget, python, stamp
from deploy.archive import pack, replace
from deploy.bytecode import compiled, in_place_of_sources
from deploy.config import config_files, outvoted
from deploy.cut import Files, installed_files
from deploy.errors import BuildError
from deploy.install import install
from deploy.options import PLATFORMS, PYTHON, Options, read_options
from deploy.sources import source_files

Install = Callable[[Path, Options], None]
"""Installs the requirements into a folder."""


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
    inputs = stamp.input_digest(options, sources, interpreter)
    if stamp.is_current(options, inputs):
        return [*notes, f"{options.output}: unchanged"]
    if interpreter is None:
        notes.append(f"no python{PYTHON} is on the PATH: without its bytecode each cold start takes twice the CPU")
    with tempfile.TemporaryDirectory(prefix="package-") as folder:
        installer(Path(folder), options)
        dependencies = installed_files(Path(folder), SERVICES, options.architecture)
    dependencies = in_place_of_sources(dependencies, compiled(dependencies, interpreter))
    archives = _archives(options, dependencies, sources | compiled(sources, interpreter))
    weight = budget.weigh(archives.values())
    budget.check(weight, limits or budget.Budget())
    for path, content in archives.items():
        replace(path, content)
    stamp.write(options, inputs)
    lines = [f"{path}: sha256 {hashlib.sha256(content).hexdigest()}" for path, content in archives.items()]
    return [*notes, *lines, f"{options.architecture}: {weight}"]


def _archives(options: Options, dependencies: Files, sources: Files) -> dict[Path, bytes]:
    if options.layer is None:
        return {options.output: pack(dependencies | sources, options.time)}
    layer = {f"python/{name}": content for name, content in dependencies.items()}
    return {options.output: pack(sources, options.time), options.layer: pack(layer, options.time)}


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command's options."""
    made = argparse.ArgumentParser(prog="python -m deploy.build", description=__doc__)
    target = made.add_mutually_exclusive_group(required=True)
    target.add_argument("--architecture", choices=sorted(PLATFORMS), help="Lambda's architecture")
    target.add_argument("--local", action="store_true", help="for this machine, from the same lock")
    made.add_argument("--layer", action="store_true", help="dependencies in a layer, beside the function's zip")
    made.add_argument("--config", type=Path, help="an auditor.toml for the functions (default: none)")
    made.add_argument("--buckets", default="", help="the functions' targets, commas between them (default: none)")
    made.add_argument("--output", type=Path, help="the function's zip (default: .build/function-ARCHITECTURE.zip)")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 0 if the package is built or up to date, 1 if it is not built, 2 for wrong usage."""
    given = parser().parse_args(arguments)
    try:
        options = read_options(
            given.architecture, layer=given.layer, output=given.output, config=given.config, buckets=given.buckets
        )
        lines = build(options, interpreter=python.find())
    except (BuildError, OSError) as error:
        sys.stderr.write(f"no package was made: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
