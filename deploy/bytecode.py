"""Compile the packed modules for the functions' Python: otherwise each cold start would compile.

An `unchecked-hash` file (PEP 552) is valid whatever dates the unzipped files have, and holds no date itself.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path, PurePosixPath
from typing import Final

from deploy.cut import Files
from deploy.errors import BuildError

_TASK: Final = "/var/task"
"""The folder of a function's code, which tracebacks name."""
_COMPILE: Final = """
import compileall, py_compile, sys
done = compileall.compile_dir(
    sys.argv[1], quiet=2, force=True, workers=1, stripdir=sys.argv[1], prependdir=sys.argv[2],
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
)
sys.exit(not done)
"""


def in_place_of_sources(files: Files, bytecode: Files) -> Files:
    """Return the files with each module's bytecode in the place of its source, where Python imports it without one.

    files: of other people's packages: their lines in a traceback lose their text, and keep file, number and function.
    bytecode: from compiled(); if it is empty, the sources stay.
    """
    if not bytecode:
        return files
    kept = {name: content for name, content in files.items() if not name.endswith(".py")}
    return kept | {_beside(PurePosixPath(name)): content for name, content in bytecode.items()}


def _beside(cached: PurePosixPath) -> str:
    """Return the name in the module's place, a/b.pyc, of a file such as `a/__pycache__/b.cpython-313.pyc`."""
    return (cached.parent.parent / f"{cached.name.partition('.')[0]}.pyc").as_posix()


def compiled(files: Files, interpreter: Path | None) -> Files:
    """Return the bytecode of the modules in `files`. interpreter: of the functions' version; None: no bytecode."""
    if interpreter is None:
        return {}
    with tempfile.TemporaryDirectory(prefix="bytecode-") as name:
        folder = Path(name)
        for path, content in files.items():
            if path.endswith(".py"):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(content)
        command = [str(interpreter), "-I", "-S", "-c", _COMPILE, name, _TASK]
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - an interpreter that we found
            raise BuildError(f"{interpreter} does not compile the package: give the functions' version of Python")
        made = sorted(folder.rglob("*.pyc"))
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in made}
