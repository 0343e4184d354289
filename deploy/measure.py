"""Measure a package: `python -m deploy.measure ZIP` prints its sizes, and the CPU seconds to import its handlers."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from deploy import budget, python
from deploy.errors import BuildError
from deploy.options import PYTHON

HANDLERS: Final = ("handlers.audit", "handlers.hashing", "handlers.renew", "handlers.verify")
RUNS: Final = 3

_NOTHING: Final = "json"
_IMPORT: Final = """
import resource, sys
import {module}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, len(sys.modules))
"""


def measure(archives: Sequence[Path], interpreter: Path, runs: int = RUNS) -> dict[str, Any]:
    """archives: the function's zip, and its layer's if it has one. Raises BuildError if an import fails.

    Times are CPU seconds from the start of the interpreter, the least of `runs` fresh processes. `empty` is the start
    alone. As in Lambda, only the package's own bytecode is there. memory: the peak in MB.
    """
    weight = budget.weigh(path.read_bytes() for path in archives)
    with tempfile.TemporaryDirectory(prefix="measure-") as folder:
        for path in archives:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
        layer = Path(folder, "python")
        search = f"{folder}:{layer}" if layer.is_dir() else folder
        found = {name: _cheapest(interpreter, search, name, folder, runs) for name in (_NOTHING, *HANDLERS)}
    return {
        "zipped": weight.zipped,
        "unzipped": weight.unzipped,
        "largest": dict(weight.by_package.most_common(5)),
        "empty": found.pop(_NOTHING),
        "imports": found,
    }


def _cheapest(interpreter: Path, search: str, module: str, folder: str, runs: int) -> dict[str, Any]:
    lines = []
    for _ in range(runs):
        done = python.run(interpreter, search, _IMPORT.format(module=module), Path(folder))
        if done.returncode:
            raise BuildError(
                f"{module} cannot be imported from the package: {done.stderr.strip().rpartition(chr(10))[2]}"
            )
        lines.append(tuple(map(float, done.stdout.split())))
    seconds, memory, modules = min(lines)
    return {"cpu_seconds": round(seconds, 2), "memory": round(memory / 1024), "modules": int(modules)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if it measured, 1 without an interpreter of the functions' version or if an import fails."""
    parser = argparse.ArgumentParser(prog="python -m deploy.measure", description=__doc__)
    parser.add_argument("archives", type=Path, nargs="+", metavar="ZIP", help="built for this machine; then its layer")
    given = parser.parse_args(arguments)
    try:
        interpreter = python.find()
        if interpreter is None:
            raise BuildError(f"python{PYTHON} is not on the PATH, or does not start")
        sys.stdout.write(json.dumps(measure(given.archives, interpreter), indent=2) + "\n")
    except (BuildError, OSError, zipfile.BadZipFile) as error:
        sys.stderr.write(f"not measured: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
