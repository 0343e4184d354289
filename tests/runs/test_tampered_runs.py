"""Run folders that somebody changed: resuming such a run fails with a sentence that names the damage."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from auditor.errors import OutputError
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.folder import RunFolder
from auditor.runs.parts import KINDS
from auditor.runs.reading import RunReader
from auditor.runs.run import open_run
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.killed_run import judgements, put_all
from tests.support.samples.reports import RUN, target

FOLDER = f"bucket=audited/run={RUN}"


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A store with a run that was stopped."""
    made = LocalStore(tmp_path)
    tally = Tally()
    with RunFolder(made, "audited", RUN, target=target(), tally=tally, part_lines=5) as folder:
        folder.prepare()
        put_all(folder, tally, judgements())
        folder.save()
    return made


def resume(store: LocalStore) -> None:
    state = load_checkpoint(store, "audited", RUN)
    assert state is not None
    with RunFolder(store, "audited", RUN, target=target(), tally=state.tally, state=state) as folder:
        folder.prepare()


def test_part_that_is_gone_ends_the_run(store: LocalStore, tmp_path: Path) -> None:
    resume(store)  # as it was
    for number, kinds in ((0, KINDS), (2, KINDS), (1, ("objects",))):
        names = [f"part-00000-0000{number}.jsonl.gz" for _ in kinds]
        files = [tmp_path / FOLDER / kind / name for kind, name in zip(kinds, names, strict=True)]
        whole = {file: file.read_bytes() for file in files if file.exists()}
        for file in whole:
            file.unlink()
        with pytest.raises(OutputError, match=f"{names[0]} is gone.*start a new run"):
            resume(store)
        for file, data in whole.items():
            file.write_bytes(data)


def test_line_that_is_no_object_or_names_none_is_damage(store: LocalStore) -> None:
    for line in (b"[1]", b'"text"', b"7", b"[" * 100_000):
        store.put(f"{FOLDER}/findings/part-00000-00000.jsonl.gz", gzip.compress(line + b"\n"))
        with pytest.raises(OutputError, match=r"part-00000-00000\.jsonl\.gz is damaged"):
            list(RunReader(store, "audited", RUN).findings())
    path = f"{FOLDER}/objects/part-00000-00000.jsonl.gz"
    whole = gzip.decompress(store.get(path) or b"").splitlines(keepends=True)[1]
    for old, new in (
        (b'"version_id":null,', b""),
        (b'"key":"k001"', b'"key":7'),
        (b'"key":"k001"', b'"key":"\xff"'),
    ):
        store.put(path, gzip.compress(b"".join([whole, whole.replace(old, new)])))
        with pytest.raises(OutputError, match="is damaged"):
            list(open_run(Path(store.uri(FOLDER))).results())
