"""Both stores keep the same promises: a file is whole or absent, nothing is lost between two writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BufferedReader
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from auditor.errors import CallFailed, OutputError, UsageError
from auditor.model.target import Target
from auditor.runs.reading import last_run
from auditor.runs.stores import open_store
from auditor.runs.stores.base import PIECE, BucketObjects, LockingStore, Store
from auditor.runs.stores.s3 import UPDATES, S3Store
from tests.support.failing_stores import MemoryObjects
from tests.support.log_lines import logged
from tests.support.paths import ROOT
from tests.support.servers.clients import client

Json = dict[str, Any] | None


@pytest.fixture(scope="module")
def results(moto_url: str) -> str:
    """A bucket; each test has a prefix of its own there."""
    with closing(client("s3", moto_url)) as s3:
        s3.create_bucket(Bucket="results")
    return "s3://results"


@pytest.fixture
def place(results: str) -> str:
    return f"{results}/{uuid4().hex}"


@pytest.fixture(params=["local", "s3", "s3 by the SDK"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "local":
        uri, endpoint = str(tmp_path / "out"), None
    else:
        uri, endpoint = request.getfixturevalue("place"), request.getfixturevalue("moto_url")
    with open_store(uri, endpoint_url=endpoint, sdk=request.param == "s3 by the SDK") as opened:
        yield opened


def spooled(store: Store, data: bytes, name: str = ".growing.tmp") -> Path:
    path = store.spool_dir("run") / name
    path.write_bytes(data)
    return path


def moved(store: Store, path: str, local: Path) -> bool:
    """Move a file as the writer of a run in this store does."""
    if isinstance(store, LockingStore):
        store.replace_file(path, local)
        return True
    assert isinstance(store, S3Store)
    return store.put_new_file(path, local)


def test_file_is_written_replaced_read_and_deleted(store: Store) -> None:
    assert store.get("run/a.json") is None
    for data in (b"one", b"two"):
        store.put("run/a.json", data)
        assert store.get("run/a.json") == data
    for _ in range(2):
        store.delete("run/a.json")
    assert store.get("run/a.json") is None
    data = bytes(range(256)) * 5000
    store.put("reports/large.csv", data)
    pieces = store.stream("reports/large.csv")
    assert pieces is not None
    read = list(pieces)
    assert b"".join(read) == data
    assert max(map(len, read)) <= PIECE
    assert store.stream("reports/none.csv") is None


def test_file_is_moved_into_place(store: Store) -> None:
    for data in (b"lines", os.urandom(1024) * (9 * 1024 + 1)):
        local = spooled(store, data)
        assert moved(store, f"run/objects/{len(data)}.gz", local)
        assert store.get(f"run/objects/{len(data)}.gz") == data
        assert not local.exists()


def test_only_whole_files_are_listed_and_none_of_a_neighbour(store: Store) -> None:
    for _ in range(2):
        store.check_writable()
    assert store.list("") == [], "the check leaves nothing"
    assert [*store.spool_dir("x").glob("**/.*probe*")] == []
    spooled(store, b"half")
    for path in ("run/b", "run/a", "run/deep/c", "runner/d"):
        store.put(path, b"x")
    assert store.list("run/") == ["run/a", "run/b", "run/deep/c"]
    assert store.list("run/d") == ["run/deep/c"]
    assert store.list("run") == ["run/a", "run/b", "run/deep/c", "runner/d"]
    assert store.list("nowhere/") == []


def test_json_is_changed_or_left(store: Store) -> None:
    seen: list[Json] = []

    def change(value: Json, new: Json) -> Json:
        seen.append(value)
        return new

    store.update_json("latest.json", lambda value: change(value, None))
    assert store.get("latest.json") is None
    store.update_json("latest.json", lambda value: change(value, {"runs": {}}))
    store.update_json("latest.json", lambda value: change(value, {"runs": {"": "x"}}))
    store.update_json("latest.json", lambda value: change(value, None))
    distinct = [value for number, value in enumerate(seen) if value not in seen[:number]]
    assert distinct == [None, {"runs": {}}, {"runs": {"": "x"}}]
    assert json.loads(store.get("latest.json") or b"") == {"format": 1, "runs": {"": "x"}}
    for data in (b"{}", b'{"v": 1, "runs": {"": "old"}}'):  # of a development version
        store.put("latest.json", data)
        store.update_json("latest.json", adding("x"))
        assert json.loads(store.get("latest.json") or b"") == {"format": 1, "x": 1}
    for data in (b"{", b"[]", b"\xff"):
        store.put("latest.json", data)
        with pytest.raises(OutputError, match=r"latest\.json is damaged \(it is not .*\): move it away"):
            store.update_json("latest.json", lambda value: value)
        assert store.get("latest.json") == data


def test_path_that_leads_out_is_a_bug(store: Store) -> None:
    for path in ("../up", "/abs", "a/../../b", "a//b", "", "a/.", "a\0b"):
        with pytest.raises(ValueError, match="not a path inside a store"):
            store.put(path, b"")


def test_two_local_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    def write(name: str) -> None:
        with open_store(str(tmp_path)) as store:
            for number in range(20):
                store.update_json("latest.json", adding(f"{name}{number}"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = open_store(str(tmp_path)).get("latest.json") or b""
    assert len(json.loads(found)) == 41


def adding(name: str) -> Callable[[Json], Json]:
    return lambda value: {**(value or {}), name: 1}


def in_bucket(objects: BucketObjects, pauses: list[float] | None = None, prefix: str = "") -> S3Store:
    """A store in this bucket. pauses: takes the seconds of each wait."""
    return S3Store(objects, "results", prefix, ([] if pauses is None else pauses).append)


def refusing(code: str, times: int = 99, status: int = 400) -> MemoryObjects:
    """A bucket that refuses so many writes."""
    return MemoryObjects(lambda number, _: number <= times, code, status)


class Objects(MemoryObjects):
    """A bucket in memory. between: runs before the next write. readable: the keys that may be read; None for all."""

    def __init__(self, readable: tuple[str, ...] | None = None) -> None:
        super().__init__()
        self.between: Callable[[], None] | None = None
        self._readable = readable

    def get(self, key: str) -> tuple[bytes, str]:
        if self._readable is not None and key not in self._readable:
            raise CallFailed("GetObject", "AccessDenied", 403)
        return super().get(key)

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        if between := self.between:
            self.between = None
            between()
        return super().put(key, body, kind=kind, md5=md5, **condition)


def test_two_writers_in_a_bucket_lose_nothing() -> None:
    objects = Objects()

    def write(name: str) -> None:
        store = in_bucket(objects)
        for number in range(5):
            store.update_json("latest.json", adding(f"{name}{number}"))

    objects.between = lambda: write("b")  # the other one writes five times between our first read and our first write
    write("a")
    names = {f"{name}{number}" for name in "ab" for number in range(5)}
    assert set(json.loads(objects.held["latest.json"])) == {"format", *names}


def test_refused_condition_is_tried_again_and_no_other_refusal(tmp_path: Path) -> None:
    for code in ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412", "409"):
        objects, pauses = refusing(code, 2), list[float]()
        in_bucket(objects, pauses).update_json("latest.json", lambda value: {"n": 1})
        assert (json.loads(objects.held["latest.json"]), len(pauses)) == ({"format": 1, "n": 1}, 2), code
    pauses = []
    with pytest.raises(OutputError, match="too many processes"):
        in_bucket(refusing("PreconditionFailed"), pauses).update_json("latest.json", lambda value: {"n": 1})
    assert len(pauses) == UPDATES
    pauses.clear()
    with pytest.raises(OutputError, match="AccessDenied"):
        in_bucket(refusing("AccessDenied"), pauses).update_json("a.json", lambda value: {})
    assert pauses == []
    for code in ("ConditionalRequestConflict", "409"):  # the place of a new file is just being emptied
        (tmp_path / "file").write_bytes(b"mine")
        pauses.clear()
        assert in_bucket(refusing(code, 2), pauses).put_new_file("a", tmp_path / "file")
        assert len(pauses) == 2
        (tmp_path / "file").write_bytes(b"mine")
        with pytest.raises(OutputError, match="too many processes"):
            in_bucket(refusing(code), pauses).put_new_file("a", tmp_path / "file")


class Careless(MemoryObjects):
    """A server without conditions: it ignores them, or (refuses) says that it has none."""

    def __init__(self, *, says_so: bool) -> None:
        super().__init__()
        self._says_so = says_so

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        if self._says_so and condition:
            raise CallFailed("PutObject", "NotImplemented", 501)
        return super().put(key, body, kind=kind, md5=md5)


@pytest.mark.parametrize("says_so", [False, True])
def test_a_server_without_conditions_is_named_and_looked_at_before_each_write(says_so: bool, tmp_path: Path) -> None:
    objects = Careless(says_so=says_so)
    store = in_bucket(objects, prefix="some")
    with logged() as lines:
        store.check_writable()
        store.check_writable()
    assert objects.held == {}
    ((level, message),) = [(line["level"], line["message"]) for line in lines]
    assert level == "WARNING"
    assert "s3://results/some does not support conditional writes" in message
    first = store.put_if("a", b"1", None)
    assert first is not None
    assert store.put_if("a", b"2", None) is None
    assert store.put_if("a", b"3", first) is not None
    assert store.put_if("a", b"4", first) is None
    (tmp_path / "file").write_bytes(b"mine")
    assert not store.put_new_file("a", tmp_path / "file")
    assert store.put_new_file("b", tmp_path / "file")
    store.update_json("c.json", adding("x"))
    assert set(objects.held) == {"some/a", "some/b", "some/c.json"}
    assert (objects.held["some/a"], objects.held["some/b"]) == (b"3", b"mine")


class Literal(MemoryObjects):
    """Compares the condition's text with the bare ETag, as Ceph RGW 16 does; or (never) finds none equal."""

    def __init__(self, *, never: bool = False) -> None:
        super().__init__()
        self._never = never

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        if literal := condition.get("IfMatch"):
            condition["IfMatch"] = "none" if self._never or literal.startswith('"') else f'"{literal}"'
        return super().put(key, body, kind=kind, md5=md5, **condition)


def test_a_server_that_compares_etags_without_quotes_gets_them_without() -> None:
    objects = Literal()
    store = in_bucket(objects)
    first = store.put_if("a", b"1", None)
    with logged() as lines:
        assert store.put_if("a", b"2", first) is not None
        assert store.put_if("a", b"3", first) is None
        store.update_json("b.json", adding("x"))
        store.update_json("b.json", adding("y"))
    assert objects.held["a"] == b"2"
    assert json.loads(objects.held["b.json"]) == {"format": 1, "x": 1, "y": 1}
    assert lines == []
    store = in_bucket(objects := Literal(never=True))
    first = store.put_if("a", b"1", None)
    with logged() as lines:
        assert store.put_if("a", b"2", first) is not None
    assert store.put_if("a", b"3", first) is None
    assert (objects.held["a"], len(lines)) == (b"2", 1)


def test_more_files_than_one_page_of_a_listing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "2")
    names = [f"objects/{number}" for number in range(5)]
    for name in names:
        store.put(name, b"")
    assert store.list("objects/") == names


def denied() -> None:
    """S3 checks the permission before the condition."""
    raise CallFailed("PutObject", "AccessDenied", 403)


def test_refusals_are_one_sentence_that_says_what_to_allow() -> None:
    with pytest.raises(OutputError, match=r"s3://results/a cannot be reached"):
        in_bucket(refusing("ConnectionError")).put("a", b"")
    objects = Objects()
    objects.between = denied
    with pytest.raises(OutputError, match=r"s3://results refuses PutObject \(AccessDenied\): allow s3:PutObject"):
        in_bucket(objects).check_writable()
    with pytest.raises(OutputError, match=r"s3://results refuses GetObject .*: allow s3:GetObject"):
        in_bucket(Objects(readable=())).check_writable()
    store = in_bucket(Objects(readable=(".auditor-probe",)))
    store.check_writable()
    # S3 answers 403, not 404, to a caller who may read the object but not use its KMS key.
    with pytest.raises(OutputError, match=r"latest\.json refuses GetObject .* kms:Decrypt where a key"):
        last_run(store, Target("audited"))


def test_uri_that_is_no_place() -> None:
    for uri in ("", "  ", "s3://", "s3:///x", "s3:bucket", "s3://a b", "s3://x/y", "http://x/y", "a\0b"):
        with pytest.raises(UsageError):
            open_store(uri)


def test_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in ("file", "file/below", "file/below/that"):
        store = open_store(str(tmp_path / place))
        for use in (store.check_writable, lambda s=store: s.put("a/b", b""), lambda s=store: s.spool_dir("run")):
            with pytest.raises(OutputError, match=r"file.* a file is in the way"):
                use()
    with pytest.raises(OutputError, match="/proc/auditor"):
        open_store("/proc/auditor").check_writable()


def test_full_disk_leaves_the_old_file_and_no_half_one(tmp_path: Path) -> None:
    """A limit on the file's size stands for a full disk: write(2) fails in the middle in both cases."""
    script = """
import resource, sys
from auditor.errors import OutputError
from auditor.runs.stores import open_store
store = open_store(sys.argv[1])
store.put("a", b"old")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    store.put("a", b"x" * 5000)
except OutputError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert f"{tmp_path}/a would grow past the largest file" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"
