"""Break the product on purpose, one break of a list at a time, and say which break no test notices: `make breaks`.

tests/mutants/breaks.toml lists the breaks, each with the tests that must notice it. Unlike `make mutants` it draws no
sample: each break of the list would hurt a user.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

from msgspec import Struct

from tests.mutants.sample import NOTICED, SURVIVED, chosen, tested
from tests.support.paths import ROOT

LIST: Final = Path(__file__).with_name("breaks.toml")
PYTEST: Final = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow")
SECONDS: Final = 900.0
"""Time after which tests count as failed: a break may make them wait for ever."""


class Break(Struct, frozen=True, forbid_unknown_fields=True):
    """One break: the file `path` has `became` in place of `was`, which occurs in it once.

    hurts: the harm to a user, in a sentence. tests: files of tests, or single tests, that must notice it, by spaces.
    """

    path: str
    hurts: str
    was: str
    became: str
    tests: str

    def __str__(self) -> str:
        return f"{self.path}: {self.hurts}"

    def broken(self, text: str) -> str | None:
        """Return the text of the file with the break; None if the break is stale."""
        return text.replace(self.was, self.became) if text.count(self.was) == 1 else None


def breaks_of(text: str) -> list[Break]:
    return [Break(path, **entry) for path, entries in tomllib.loads(text).items() for entry in entries]


def copied(root: Path, folder: Path) -> Path:
    """Copy the files of the repository that git knows into the folder, and return it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)
    return folder


def passes(copy: Path, tests: Sequence[str]) -> bool:
    """Run tests in the copy. Raises SystemExit if they cannot be run, for instance because there is no such file."""
    # Bytecode is written: a test may start dozens of processes. The copy's code comes before an installed one.
    environ: Mapping[str, str] = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code = tested([*PYTEST, *tests], SECONDS, copy, {**environ, "PYTHONPATH": str(copy)})
    if code == 5 or code not in SURVIVED | NOTICED:
        raise SystemExit(f"pytest could not run {' '.join(tests)} (it ended with {code})")
    return code == 0


def fault_of(one: Break, copy: Path) -> str | None:
    """Try one break in the copy. Return why it does not count as noticed; None if a test notices it."""
    file = copy / one.path
    as_it_was = file.read_text(encoding="utf-8") if file.is_file() else ""
    if (broken := one.broken(as_it_was)) is None:
        return "stale"
    _write(file, broken)
    try:
        return "NOT NOTICED" if passes(copy, one.tests.split()) else None
    finally:
        _write(file, as_it_was)


def _write(file: Path, text: str) -> None:
    """Write a source, and remove its bytecode, which Python takes for that of any source of this size and second."""
    file.write_text(text, encoding="utf-8")
    Path(cache_from_source(str(file))).unlink(missing_ok=True)


def try_all(breaks: Sequence[Break], copy: Path) -> bool:
    """Try each break, print how it came out, and return True if each is noticed. The tests must pass unbroken."""
    tests = list(dict.fromkeys(name for one in breaks for name in one.tests.split()))
    if not passes(copy, tests):
        raise SystemExit(f"a test fails without any break: {' '.join(PYTEST[1:])} {' '.join(tests)}")
    faults = 0
    for one in breaks:
        fault = fault_of(one, copy)
        faults += fault is not None
        print(f"{fault or 'noticed'}  {one}  ({one.tests})", flush=True)
    print(f"{len(breaks)} breaks: {len(breaks) - faults} noticed, {faults} not")
    return not faults


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make breaks", description=__doc__)
    parser.add_argument("paths", nargs="*", help="files and folders of the code (all)")
    breaks = breaks_of(LIST.read_text(encoding="utf-8"))
    paths = chosen([one.path for one in breaks], parser.parse_args(arguments).paths)
    breaks = [one for one in breaks if one.path in paths]
    with tempfile.TemporaryDirectory() as folder:
        return 0 if try_all(breaks, copied(ROOT, Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
