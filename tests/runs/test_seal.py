"""The seal of a run names each file as it lies in the folder, however often the run was ended and gone on with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from auditor.audit.offline import check_run
from auditor.model.json_codec import JsonError, encode_line
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.folder import RunFolder
from auditor.runs.seal import Seal, key_of
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.killed_run import PART, judgements, put_all
from tests.support.odd_keys import ODD_KEYS
from tests.support.paths import ROOT
from tests.support.samples.reports import ROLLED_UP, RUN, sample_file, sample_summary, target

FOLDER = f"bucket=audited/run={RUN}"


def opened(store: Store, **changes: Any) -> RunFolder:
    """The folder of a process that begins the run, or goes on with it."""
    state = load_checkpoint(store, "audited", RUN)
    tally = state.tally if state else Tally()
    values = {
        "target": target(),
        "tally": tally,
        "state": state,
        "part_lines": PART,
        "describe": lambda part: sample_file().to_json(),
    }
    folder = RunFolder(store, "audited", RUN, **{**values, "described": store.get(f"{FOLDER}/bucket.json"), **changes})
    folder.prepare()
    return folder


def write(folder: RunFolder, until: int | None = None) -> None:
    tally = folder._pending._tally
    put_all(folder, tally, judgements()[tally.coverage["listed"] : until])


def end(folder: RunFolder) -> None:
    folder.finish(sample_summary(folder._pending._tally), "page", ROLLED_UP)


def seal_of(root: Path) -> Seal:
    return Seal.from_json((root / FOLDER / "parts.json").read_bytes())


def check_seal(root: Path) -> None:
    """Each file is as the seal says, and the seal has every file."""
    assert (check_run(root / FOLDER).faults, check_run(root / FOLDER).lacks) == ((), ())
    written = {str(file.relative_to(root / FOLDER)) for file in (root / FOLDER).glob("*/part-*")}
    assert {part.path for part in seal_of(root).parts} == written


def test_a_run_that_is_handed_on_reads_no_part_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for until in (7, 13):
        with opened(store) as folder:
            write(folder, until)
            folder.hand_on()
    assert not (tmp_path / FOLDER / "summary.json").exists()
    with opened(store) as folder:
        write(folder)
        gone = tmp_path / FOLDER / "objects" / "part-00000-00000.jsonl.gz"
        data = gone.read_bytes()
        gone.write_bytes(b"")  # the last process does not look at it
        end(folder)
    gone.write_bytes(data)
    check_seal(tmp_path)


@pytest.mark.parametrize("step", [3, 18])
def test_a_killed_process(tmp_path: Path, step: int) -> None:
    subprocess.run([sys.executable, "-m", "tests.support.killed_run", str(tmp_path), str(step)], cwd=ROOT, check=False)
    with opened(LocalStore(tmp_path)) as folder:
        write(folder)
        end(folder)
    check_seal(tmp_path)


def test_the_key_of_a_line() -> None:
    for key in ("k", 'a"b', "\\", "\u202e", "\U0001f600", "\x00\n", None, *ODD_KEYS.values()):
        assert key_of(encode_line({"key": key, "version_id": None})) == key
        assert key_of(encode_line({"fingerprint": "f", "key": key})) == key
    for line in (b'{"key":"', b'{"key":"\xff"}', b'{"key":"\\x"}', b'{"key":7}', b"[]"):
        with pytest.raises(JsonError):
            key_of(line)


def test_other_files_are_refused() -> None:
    for data in (b"", b"[]", b'{"format": 2}', b'{"v": 1}', b'{"format": 1, "run": "r"}'):
        with pytest.raises(JsonError):
            Seal.from_json(data)
