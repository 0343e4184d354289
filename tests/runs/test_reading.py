"""Run folders are read back in typed lines, wherever they lie and however far the run came."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from auditor.errors import NotStored, OutputError, UsageError
from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.object import ALL_USERS, Acl, Grant, Head, Outcome, Skipped, Unread
from auditor.model.run_lines import FindingLine, UndecidedLine
from auditor.offline.folder_place import open_run
from auditor.offline.library import run as past_runs
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.parts import KINDS
from auditor.runs.paths import FIRST
from auditor.runs.reading import RunReader
from auditor.runs.segment import Segment
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.killed_run import end, judgements, put, put_all
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import OWNER, RUN, denied, finding, gone, judged, sample_summary

FOLDER = f"bucket=audited/run={RUN}"
JUDGEMENTS = [
    judged("a", finding("a"), verdict=Verdict.EXPOSED),
    judged("b", acl=Acl(OWNER, (Grant(ALL_USERS, "READ"),)), version_id="v"),
    denied("c"),
    gone("d"),
]


def write_run(store: LocalStore, *, ends: bool = True) -> None:
    tally = Tally()
    with Segment(store, "audited", RUN, tally=tally, part_lines=2) as folder:
        folder.prepare()
        for judgement in JUDGEMENTS:
            put(folder, tally, judgement)
            folder.check_due()
            folder.flush()
        if ends:
            end(store, folder, sample_summary(tally))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def test_every_kind_of_line_is_typed(store: LocalStore) -> None:
    write_run(store)
    run = RunReader(store, "audited", RUN)
    first, second, third, last = run.objects()
    assert (first.key, first.verdict, first.rules, first.outcome) == ("a", Verdict.EXPOSED, ("O02",), Outcome.AUDITED)
    assert isinstance(first.head, Head)
    assert (first.head.etag, first.head.content_length) == ("e" * 32, 3)
    assert list(first.head.metadata) == ["build", "team"]
    with pytest.raises(NotStored):
        first.head.metadata["team"]
    assert (second.acl, second.version_id) == (Acl(OWNER, (Grant(ALL_USERS, "READ"),)), "v")
    assert (third.acl, third.head) == (
        Unread("GetObjectAcl", "AccessDenied"),
        Skipped("no selected rule needs it"),
    )
    assert (last.outcome, last.verdict, last.hashed) == (Outcome.VANISHED, None, None)
    message = "its ACL lets anyone on the internet read it"
    assert list(run.findings()) == [
        FindingLine("f" * 32, "O02", Severity.HIGH, "a", None, ALL_USERS, "READ", message, None, None, None)
    ]
    assert list(run.undecided()) == [
        UndecidedLine("c", None, (Unread("GetObjectAcl", "AccessDenied"),), ("O01", "O02"))
    ]
    assert list(run.routed()) == []


def test_lines_of_one_key_are_found_among_keys_that_begin_alike(tmp_path: Path) -> None:
    for number, key in enumerate(ODD_KEYS.values()):
        store, tally = LocalStore(tmp_path / str(number)), Tally()
        with Segment(store, "audited", RUN, tally=tally, part_lines=2) as folder:
            folder.prepare()
            for name in sorted({key, f"{key}0", f'{key}"', "0", "zz"}):
                for version_id in ("v2", "v1"):
                    put(folder, tally, judged(name, version_id=version_id))
                    folder.check_due()
                    folder.flush()
            end(store, folder, sample_summary(tally))
        run = RunReader(store, "audited", RUN)
        assert [(line.key, line.version_id) for line in run.of_key(key)] == [(key, "v2"), (key, "v1")], key
        assert run.of_key(f"{key}-") == [], key


def test_a_complete_run_that_lost_a_part_or_its_seal_is_no_smaller_run(store: LocalStore, tmp_path: Path) -> None:
    """An answer on the parts that are left would call a bucket clean whose other objects nobody looked at."""
    write_run(store)
    for kind in ("objects", "findings", "undecided"):
        first = min((tmp_path / FOLDER / kind).iterdir())
        whole = first.read_bytes()
        first.unlink()
        run = RunReader(store, "audited", RUN)
        for read in (run.by_part, getattr(run, kind)):
            with pytest.raises(OutputError, match=f"{kind}/{first.name} is gone"):
                list(read())
        first.write_bytes(whole)
    store.delete(f"{FOLDER}/seal.json")
    for data in (None, b"{"):
        if data is not None:
            store.put(f"{FOLDER}/seal.json", data)
        with pytest.raises(OutputError, match=r"/seal\.json is gone or damaged: `auditor check` says"):
            RunReader(store, "audited", RUN).by_part()


def test_a_run_that_is_complete_interrupted_or_not_there(store: LocalStore) -> None:
    run = RunReader(store, "audited", RUN)
    assert (run.exists, run.complete, run.checkpoint(FIRST), list(run.objects())) == (False, False, None, [])
    write_run(store, ends=False)
    run = RunReader(store, "audited", RUN)
    assert (run.exists, run.complete, run.summary) == (True, False, None)
    assert run.checkpoint(FIRST) is not None
    assert [line.key for line in run.objects()] == ["a", "b", "c", "d"]
    write_run(LocalStore(Path(store.uri()) / "other"))
    run = RunReader(LocalStore(Path(store.uri()) / "other"), "audited", RUN)
    assert (run.exists, run.complete) == (True, True)
    assert run.summary is not None
    assert run.summary.coverage.listed == 4
    assert run.checkpoint(FIRST) is None, "a complete run needs none"
    assert run.last_key == "d"


def test_a_damaged_summary_is_named(store: LocalStore) -> None:
    for data in (b"", b"[]", b'{"format": 1}', b'{"format": 1, "run": 1}', b"[" * 100_000):
        store.put(f"{FOLDER}/summary.json", data)
        with pytest.raises(OutputError, match=r"/summary\.json is damaged \(.+\): audit again"):
            _ = RunReader(store, "audited", RUN).summary


def test_opened_by_its_path(store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(store)
    for ending in ("", "/"):
        with open_run(f"{tmp_path}/{FOLDER}{ending}") as run:
            assert run.complete
    monkeypatch.chdir(tmp_path / FOLDER)
    with open_run(".") as run:
        assert [line.key for line in run.objects()] == ["a", "b", "c", "d"]


def test_a_place_without_a_run() -> None:
    for place, sentence in (
        ("", "is not a run folder"),
        ("runs", "is not a run folder"),
        ("s3://results", "is not a run folder"),
        (f"runs/{FOLDER}/objects", "is not a run folder"),
        ("runs/bucket=b/run=20260102T030405Z-0a1b2c", "is not a bucket name"),
        ("runs/bucket=audited/run=1", "is not a run ID"),
        (f"runs/{FOLDER}", "there is no run at .*runs/bucket=audited/run="),
        (f"ftp://host/{FOLDER}", "is not an output place"),
    ):
        with pytest.raises(UsageError, match=sentence), open_run(place):
            pass


@pytest.fixture
def stopped(tmp_path: Path) -> LocalStore:
    """A store with a run that was stopped."""
    made = LocalStore(tmp_path)
    tally = Tally()
    with Segment(made, "audited", RUN, tally=tally, part_lines=5) as folder:
        folder.prepare()
        put_all(folder, tally, judgements())
        folder.save()
    return made


def resume(store: LocalStore) -> None:
    state = load_checkpoint(store, "audited", RUN, FIRST)
    assert state is not None
    with Segment(store, "audited", RUN, tally=state.tally, state=state) as folder:
        folder.prepare()


def test_part_that_is_gone_ends_the_run(stopped: LocalStore, tmp_path: Path) -> None:
    resume(stopped)  # as it was
    for number, kinds in ((0, KINDS), (2, KINDS), (1, ("objects",))):
        names = [f"part-00000-0000{number}.jsonl.gz" for _ in kinds]
        files = [tmp_path / FOLDER / kind / name for kind, name in zip(kinds, names, strict=True)]
        whole = {file: file.read_bytes() for file in files if file.exists()}
        for file in whole:
            file.unlink()
        with pytest.raises(OutputError, match=f"{names[0]} is gone.*start a new run"):
            resume(stopped)
        for file, data in whole.items():
            file.write_bytes(data)


def test_line_that_is_no_object_or_names_none_is_damage(stopped: LocalStore) -> None:
    for line in (b"[1]", b'"text"', b"7", b"[" * 100_000):
        stopped.put(f"{FOLDER}/findings/part-00000-00000.jsonl.gz", gzip.compress(line + b"\n"))
        with pytest.raises(OutputError, match=r"part-00000-00000\.jsonl\.gz is damaged"):
            list(RunReader(stopped, "audited", RUN).findings())
    path = f"{FOLDER}/objects/part-00000-00000.jsonl.gz"
    whole = gzip.decompress(stopped.get(path) or b"").splitlines(keepends=True)[1]
    for old, new in (
        (b'"version_id":null,', b""),
        (b'"key":"k001"', b'"key":7'),
        (b'"key":"k001"', b'"key":"\xff"'),
    ):
        stopped.put(path, gzip.compress(b"".join([whole, whole.replace(old, new)])))
        with pytest.raises(OutputError, match="is damaged"):
            list(past_runs.open_run(Path(stopped.uri(FOLDER))).results())
