"""Two processes on one run in a directory: the second is refused until the first ends or is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from auditor.errors import OutputError
from auditor.runs.folder import RunFolder
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.paths import ROOT
from tests.support.samples.reports import RUN, target

HOLDER = """
import sys
from pathlib import Path
from auditor.runs.stores.local import LocalStore
release = LocalStore(Path(sys.argv[1])).hold(sys.argv[2], sys.argv[3])
print("held", flush=True)
sys.stdin.read()
"""


def folder(root: Path, range_id: str = "00000", run: str = RUN) -> RunFolder:
    return RunFolder(LocalStore(root), "audited", run, range_id, target=target(), tally=Tally())


def test_second_writer_is_refused_until_the_first_closes(tmp_path: Path) -> None:
    with folder(tmp_path, "00001") as first, folder(tmp_path, "00002") as other_range:
        first.prepare()
        other_range.prepare()
        with folder(tmp_path, "00001", RUN.replace("0a1b2c", "ffffff")) as another:
            another.prepare()
        with folder(tmp_path, "00001") as second, pytest.raises(OutputError, match="another process"):
            second.prepare()
    with folder(tmp_path, "00001") as third:
        third.prepare()


def test_killed_writer_holds_nothing(tmp_path: Path) -> None:
    with folder(tmp_path) as mine:
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path), mine.path, "00000"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(OutputError, match="another process"):
                mine.prepare()
        finally:
            holder.kill()
            holder.communicate()
        mine.prepare()
