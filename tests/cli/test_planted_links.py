"""Links, pipes and open directories that another user of the machine prepares: no file of the user is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from auditor.errors import LedgerError, OutputError, UsageError
from auditor.ledger import open_ledger
from auditor.runs.segment import Segment
from auditor.runs.stores.local import LocalStore
from auditor.runs.stores.outfile import OutFile
from auditor.runs.tally import Tally
from tests.cli.conftest import Run
from tests.support.killed_run import begin, end, judgements, put_all
from tests.support.samples.reports import RUN, sample_summary
from tests.support.servers.stub import StubServer

FOLDER: Final = f"bucket=audited/run={RUN}"
PRECIOUS: Final = b"a file of the user\n"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_bytes(PRECIOUS)
    return file


def write_run(out: Path) -> None:
    store, tally = LocalStore(out), Tally()
    begin(store)
    with Segment(store, "audited", RUN, tally=tally, fresh=True) as folder:
        folder.prepare()
        put_all(folder, tally, judgements())
        end(store, folder, sample_summary(tally, complete=True), "page", update_latest=True)


def test_a_link_in_the_place_of_a_file_empties_no_file_of_the_user(tmp_path: Path, precious: Path) -> None:
    for number, name in enumerate(
        (
            "bucket=audited/.latest.json.lock",
            f"{FOLDER}/.00000.lock",
            f"{FOLDER}/.objects-part-00000-00000.tmp",
            f"{FOLDER}/checkpoint/00000.json",
            f"{FOLDER}/summary.json",
            "bucket=audited/latest.json",
        )
    ):
        link = tmp_path / f"out-{number}" / name
        link.parent.mkdir(parents=True)
        link.symlink_to(precious)
        try:
            write_run(tmp_path / f"out-{number}")
        except OutputError as error:
            words = ("is a symbolic link", "move it away", "is damaged")
            assert any(one in str(error) for one in words)  # noqa: PT017 - or it is replaced
        assert precious.read_bytes() == PRECIOUS, name


def test_a_link_in_the_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for number, name in enumerate(("bucket=audited", FOLDER, f"{FOLDER}/objects", f"{FOLDER}/checkpoint")):
        link = tmp_path / f"out-{number}" / name
        link.parent.mkdir(parents=True)
        link.symlink_to(elsewhere)
        with pytest.raises(OutputError, match="is a symbolic link, through which the auditor writes nothing"):
            write_run(tmp_path / f"out-{number}")
        assert list(elsewhere.iterdir()) == []


def test_a_hard_link_in_the_place_of_a_file_keeps_its_bytes(tmp_path: Path) -> None:
    names = ("bucket=audited/.latest.json.lock", f"{FOLDER}/.00000.lock", f"{FOLDER}/.objects-part-00000-00000.tmp")
    files = [tmp_path / f"precious-{number}" for number in range(len(names))]
    for file, name in zip(files, names, strict=True):
        file.write_bytes(PRECIOUS)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(file, tmp_path / name)
    write_run(tmp_path)
    assert [file.read_bytes() for file in files] == [PRECIOUS] * len(files)


def test_every_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write_run(tmp_path / "out")
        with OutFile(str(tmp_path / "manifest")) as file:
            file.write(b"one")
            file.keep()
    finally:
        os.umask(old)
    files = [file for file in (*(tmp_path / "out").rglob("*"), tmp_path / "manifest") if file.is_file()]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert {".latest.json.lock", ".00000.lock", "summary.json", "seal.json"} <= {file.name for file in files}
    write_run(tmp_path / "out")  # the directories are none that every user may write


def test_an_export_writes_through_no_link(run: Run, stub: StubServer, tmp_path: Path, precious: Path) -> None:
    stub.put("audited", "a")
    code, _, err = run("audit", "s3://audited", "--endpoint-url", stub.url, "--only", "O02")
    assert code == 0, err
    (folder,) = (tmp_path / "auditor-runs").glob("bucket=*/run=*")
    link = tmp_path / "link"
    assert run("hash", "s3://audited", "--ledger", "sqlite:ledger.db", "--endpoint-url", stub.url)[0] == 0
    for command in (
        ("report", str(folder), "--out"),
        ("export", str(folder), "--format", "csv", "--out"),
        ("verify", "s3://audited", "--ledger", "sqlite:ledger.db", "--endpoint-url", stub.url, "--combined"),
    ):
        link.unlink(missing_ok=True)
        link.symlink_to(precious)
        run(*command, str(link))
        assert precious.read_bytes() == PRECIOUS, command


async def test_a_ledger_is_for_its_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        async with open_ledger(f"sqlite:{tmp_path}/ledger.db") as ledger:
            await ledger.history("b", "k")
            modes = _modes(tmp_path)
    finally:
        os.umask(old)
    assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}


def _modes(place: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in place.iterdir()}


async def test_a_link_to_no_file_is_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LedgerError, match="is a symbolic link to a missing file"):
        async with open_ledger(f"sqlite:{tmp_path}/ledger.db") as ledger:
            await ledger.history("b", "k")
    assert not (tmp_path / "elsewhere").exists()


def test_an_open_directory_is_refused_unless_sticky(run: Run, stub: StubServer, tmp_path: Path) -> None:
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o777)
    audit = ("audit", "s3://audited", "--out", str(place), "--endpoint-url", stub.url)
    code, out, err = run(*audit)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"--out {place} may be written by every user" in err
    assert list(place.iterdir()) == []
    with pytest.raises(UsageError, match="chmod o-w"):
        LocalStore(place).put("a", b"")
    place.chmod(0o1777)
    assert run(*audit)[0] == 3
