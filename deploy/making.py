"""Make zips of locked packages, unless those that are there were made from the same inputs."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from deploy import budget, stamp
from deploy.archive import replace
from deploy.bytecode import compiled, in_place_of_sources
from deploy.cut import Files, installed_files
from deploy.errors import BuildError
from deploy.options import Options

Install = Callable[[Path, Options], None]
"""Installs the requirements into a folder."""


def make(
    options: Options,
    sources: Files,
    archives: Callable[[Files], dict[Path, bytes]],
    *,
    services: Collection[str] = (),
    limits: budget.Budget,
    installer: Install,
    interpreter: Path | None,
) -> list[str]:
    """Write the zips if they are not up to date. Return lines for the user that say what was done. Raises BuildError.

    sources: our own files. archives: returns the zips by their paths; it gets the installed files that are needed.
    services: the AWS services whose API models are kept. limits: of all zips together. interpreter: a Python of the
    functions' version, which makes the bytecode; None: there is no bytecode.
    """
    inputs = stamp.input_digest(options, sources, interpreter)
    if stamp.is_current(options, inputs):
        return [f"{options.output}: unchanged"]
    notes = []
    if interpreter is None:
        notes.append(
            f"no python{options.python} is on the PATH: without its bytecode each cold start takes twice the CPU"
        )
    with tempfile.TemporaryDirectory(prefix="package-") as folder:
        installer(Path(folder), options)
        files = installed_files(Path(folder), services, options.architecture)
    made = archives(in_place_of_sources(files, compiled(files, interpreter)))
    weight = budget.weigh(made.values())
    budget.check(weight, limits)
    for path, content in made.items():
        replace(path, content)
    stamp.write(options, inputs)
    lines = [f"{path}: sha256 {hashlib.sha256(content).hexdigest()}" for path, content in made.items()]
    return [*notes, *lines, f"{options.architecture}: {weight}"]


def tell(work: Callable[[], Sequence[str]], named: str) -> int:
    """Do the work of a command, and print its lines. Return 0, or 1 with the reason on stderr if nothing is made.

    named: the zip that the work makes, as in "no package".
    """
    try:
        lines = work()
    except (BuildError, OSError) as error:
        sys.stderr.write(f"no {named} was made: {error}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def below_python(files: Files) -> Files:
    """Return the files as a layer has them: Lambda puts its `python/` on the path of the functions."""
    return {f"python/{name}": content for name, content in files.items()}
