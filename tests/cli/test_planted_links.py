"""Links, pipes and open directories that another user of the machine prepares: no file of the user is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from auditor.errors import LedgerError, OutputError, UsageError
from auditor.ledger import open_ledger
from auditor.runs.folder import RunFolder
from auditor.runs.parts import PartFile
from auditor.runs.stores.local import LocalStore
from auditor.runs.stores.outfile import OutFile
from auditor.runs.tally import Tally
from tests.cli.conftest import Run
from tests.support.killed_run import judgements, put_all
from tests.support.samples.reports import ROLLED_UP, RUN, sample_summary, target
from tests.support.servers.stub import StubServer

FOLDER: Final = f"bucket=audited/run={RUN}"
PRECIOUS: Final = b"a file of the user\n"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_bytes(PRECIOUS)
    return file


def write_run(out: Path) -> None:
    tally = Tally()
    with RunFolder(LocalStore(out), "audited", RUN, target=target(), tally=tally, fresh=True) as folder:
        folder.prepare()
        put_all(folder, tally, judgements())
        folder.finish(sample_summary(tally, complete=True), "page", ROLLED_UP, update_latest=True)


@pytest.mark.parametrize(
    "name",
    [
        "bucket=audited/.latest.json.lock",
        f"{FOLDER}/.00000.lock",
        f"{FOLDER}/.objects-part-00000-00000.tmp",
        f"{FOLDER}/state.json",
        f"{FOLDER}/summary.json",
        "bucket=audited/latest.json",
    ],
)
def test_a_link_in_the_place_of_a_file_empties_no_file_of_the_user(tmp_path: Path, precious: Path, name: str) -> None:
    link = tmp_path / "out" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(precious)
    try:
        write_run(tmp_path / "out")
    except OutputError as error:
        assert "is a symbolic link" in str(error) or "move it away" in str(error)  # noqa: PT017 - or it is replaced
    assert precious.read_bytes() == PRECIOUS


@pytest.mark.parametrize("name", ["bucket=audited", FOLDER, f"{FOLDER}/objects"])
def test_a_link_in_the_place_of_a_directory_is_refused(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = tmp_path / "out" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(OutputError, match="is a symbolic link, through which the auditor writes nothing"):
        write_run(tmp_path / "out")
    assert list(elsewhere.iterdir()) == []


def test_a_lock_file_keeps_the_bytes_that_it_has(tmp_path: Path) -> None:
    locks = [tmp_path / "bucket=audited/.latest.json.lock", tmp_path / FOLDER / ".00000.lock"]
    for lock in locks:
        lock.parent.mkdir(parents=True, exist_ok=True)
        os.link(_named(tmp_path / f"linked-{lock.name}"), lock)
    write_run(tmp_path)
    assert [lock.read_bytes() for lock in locks] == [PRECIOUS, PRECIOUS]


def _named(file: Path) -> Path:
    file.write_bytes(PRECIOUS)
    return file


def test_a_hard_link_in_the_place_of_a_growing_file_empties_nothing(tmp_path: Path, precious: Path) -> None:
    os.link(precious, tmp_path / ".growing.tmp")
    PartFile(tmp_path / ".growing.tmp").close()
    assert precious.read_bytes() == PRECIOUS


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
    assert {".latest.json.lock", ".00000.lock", "summary.json", "parts.json"} <= {file.name for file in files}
    write_run(tmp_path / "out")  # the directories are none that every user may write


@pytest.mark.parametrize("use", [lambda store: store.check_writable(), lambda store: store.put("a", b"")])
def test_a_directory_that_every_user_may_write_is_refused_unless_sticky(
    tmp_path: Path, use: Callable[[LocalStore], None]
) -> None:
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(UsageError, match=r"may be written by every user of this machine: .*chmod o-w"):
        use(LocalStore(place))
    place.chmod(0o1777)
    use(LocalStore(place))


def test_an_audit_into_an_open_directory_ends_with_one_sentence(run: Run, stub: StubServer, tmp_path: Path) -> None:
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(0o777)
    code, out, err = run("audit", "s3://audited", "--out", str(place), "--endpoint-url", stub.url)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert f"--out {place} may be written by every user" in err
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("option", [("report", "--out"), ("verify", "--combined"), ("export", "--out")])
def test_an_export_writes_through_no_link(
    run: Run, stub: StubServer, tmp_path: Path, precious: Path, option: tuple[str, str]
) -> None:
    stub.put("audited", "a")
    code, _, err = run("audit", "s3://audited", "--endpoint-url", stub.url, "--only", "O02", "--allow-empty")
    assert code == 0, err
    (folder,) = (tmp_path / "auditor-runs").glob("bucket=*/run=*")
    link = tmp_path / "link"
    link.symlink_to(precious)
    words = {
        "report": ("report", str(folder)),
        "export": ("export", str(folder), "--format", "csv"),
        "verify": ("verify", "s3://audited", "--ledger", "sqlite:ledger.db", "--endpoint-url", stub.url),
    }
    run(*words[option[0]], option[1], str(link))
    assert precious.read_bytes() == PRECIOUS


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


@pytest.mark.parametrize("name", ["summary.json", "state.json", "parts.json", "objects/part-00000-00000.jsonl.gz"])
@pytest.mark.parametrize("device", [None, "/dev/zero"])
@pytest.mark.parametrize("command", ["check", "diff", "export", "report"])
def test_a_pipe_or_a_device_in_a_run_folder_is_named_at_once(
    run: Run, tmp_path: Path, command: str, device: str | None, name: str
) -> None:
    write_run(tmp_path / "out")
    file = tmp_path / "out" / FOLDER / name
    file.unlink()
    if device is None:
        os.mkfifo(file)
    else:
        file.symlink_to(device)
    folder = f"{tmp_path}/out/{FOLDER}"
    words = {"diff": [folder, folder], "export": [folder, "--format", "csv"]}
    code, _, err = run(command, *words.get(command, [folder]))
    assert "Traceback" not in err
    assert code in (0, 1, 3, 4)
    assert command != "check" or code == 1
