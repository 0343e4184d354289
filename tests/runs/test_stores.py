"""Both stores keep the same promises: a file is whole or absent, nothing is lost between two writers."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from auditor.aws.connection import Connection
from auditor.aws.session import make_client
from auditor.errors import OutputError, UsageError
from auditor.model.target import Target
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.folder import RunFolder
from auditor.runs.latest import last_run
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from auditor.runs.stores.base import PIECE, LockingStore, Store
from auditor.runs.stores.s3 import UPDATES, S3Store
from auditor.runs.stores.sdk_objects import SdkObjects
from auditor.runs.tally import Tally
from tests.support.killed_run import PART, judgements, put_all
from tests.support.log_lines import logged
from tests.support.paths import ROOT
from tests.support.samples.reports import ROLLED_UP, RUN, sample_summary, target

Json = dict[str, Any] | None


@pytest.fixture
def s3(moto_url: str) -> Iterator[Any]:
    """A client, and an empty bucket "results"."""
    client = make_client("s3", Connection(bucket="results", endpoint_url=moto_url), endpoint_url=moto_url)
    client.create_bucket(Bucket="results")
    yield client
    for item in client.list_objects_v2(Bucket="results").get("Contents", ()):
        client.delete_object(Bucket="results", Key=item["Key"])
    client.delete_bucket(Bucket="results")
    client.close()


@pytest.fixture(params=["local", "s3", "s3 by the SDK"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    sdk = request.param == "s3 by the SDK"
    if request.param == "local":
        uri, endpoint = str(tmp_path / "out"), None
    else:
        request.getfixturevalue("s3")
        uri, endpoint = "s3://results/some/where", request.getfixturevalue("moto_url")
    with open_store(uri, endpoint_url=endpoint, sdk=sdk) as opened:
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


def test_written_and_read_back(store: Store) -> None:
    assert store.get("run/a.json") is None
    store.put("run/a.json", b"one")
    store.put("run/a.json", b"two")
    assert store.get("run/a.json") == b"two"
    store.delete("run/a.json")
    store.delete("run/a.json")
    assert store.get("run/a.json") is None


def test_streamed_in_pieces(store: Store) -> None:
    data = bytes(range(256)) * 5000
    store.put("reports/large.csv", data)
    pieces = store.stream("reports/large.csv")
    assert pieces is not None
    read = list(pieces)
    assert b"".join(read) == data
    assert max(map(len, read)) <= PIECE
    assert store.stream("reports/none.csv") is None


def test_file_is_moved_into_place(store: Store) -> None:
    local = spooled(store, b"lines")
    assert moved(store, "run/objects/part.gz", local)
    assert store.get("run/objects/part.gz") == b"lines"
    assert not local.exists()


def test_large_file(store: Store) -> None:
    data = os.urandom(1024) * (17 * 1024 + 1)
    assert moved(store, "run/large", spooled(store, data))
    assert store.get("run/large") == data


def test_only_whole_files_are_listed_and_none_of_a_neighbour(store: Store) -> None:
    spooled(store, b"half")
    for path in ("run/b", "run/a", "run/deep/c", "runner/d"):
        store.put(path, b"x")
    assert store.list("run/") == ["run/a", "run/b", "run/deep/c"]
    assert store.list("run/d") == ["run/deep/c"]
    assert store.list("run") == ["run/a", "run/b", "run/deep/c", "runner/d"]
    assert store.list("nowhere/") == []


def test_check_leaves_nothing(store: Store) -> None:
    store.check_writable()
    store.check_writable()
    assert store.list("") == []
    assert list(store.spool_dir("x").glob("**/.*probe*")) == []


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
    assert [value for number, value in enumerate(seen) if value not in seen[:number]] == [
        None,
        {"runs": {}},
        {"runs": {"": "x"}},
    ]
    assert json.loads(store.get("latest.json") or b"") == {"format": 1, "runs": {"": "x"}}


@pytest.mark.parametrize("data", [b"{}", b'{"v": 1, "runs": {"": "old"}}'])
def test_json_of_a_development_version_counts_as_none(store: Store, data: bytes) -> None:
    store.put("latest.json", data)
    store.update_json("latest.json", adding("x"))
    assert json.loads(store.get("latest.json") or b"") == {"format": 1, "x": 1}


@pytest.mark.parametrize("data", [b"{", b"[]", b"\xff"])
def test_json_that_is_none_is_named(store: Store, data: bytes) -> None:
    store.put("latest.json", data)
    with pytest.raises(OutputError, match=r"latest\.json is damaged \(it is not .*\): move it away"):
        store.update_json("latest.json", lambda value: value)
    assert store.get("latest.json") == data


@pytest.mark.parametrize("path", ["../up", "/abs", "a/../../b", "a//b", "", "a/.", "a\0b"])
def test_path_that_leads_out_is_a_bug(store: Store, path: str) -> None:
    with pytest.raises(ValueError, match="not a path inside a store"):
        store.put(path, b"")


def test_two_local_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    def write(name: str) -> None:
        with open_store(str(tmp_path)) as store:
            for number in range(20):
                store.update_json("latest.json", adding(f"{name}{number}"))

    together(write)
    found = open_store(str(tmp_path)).get("latest.json") or b""
    assert len(json.loads(found)) == 41


def test_two_writers_in_a_bucket_lose_nothing() -> None:
    client = FakeClient()

    def write(name: str) -> None:
        store = in_bucket(client, sleep=lambda seconds: None)
        for number in range(5):
            store.update_json("latest.json", adding(f"{name}{number}"))

    client.between = lambda: write("b")  # the other one writes five times between our first read and our first write
    write("a")
    names = {f"{name}{number}" for name in "ab" for number in range(5)}
    assert set(json.loads(client.files["latest.json"])) == {"format", *names}
    assert client.refused == 1


def adding(name: str) -> Callable[[Json], Json]:
    return lambda value: {**(value or {}), name: 1}


def once(name: str) -> Callable[[Json], Json]:
    def change(value: Json) -> Json:
        return None if name in (value or {}) else adding(name)(value)

    return change


def together(write: Callable[[str], None]) -> None:
    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_bucket(client: Any, prefix: str = "", sleep: Callable[[float], None] = time.sleep) -> S3Store:
    """A store in the bucket `results` of this boto3 client, or of a fake of one."""
    return S3Store(SdkObjects(client, "results"), "results", prefix, sleep)


class FakeClient:
    """GetObject and conditional PutObject as the S3 API reference describes them. between: runs before the next put."""

    def __init__(self, *faults: str) -> None:
        self.files: dict[str, bytes] = {}
        self.between: Callable[[], None] | None = None
        self.refused = self.reads = 0
        self._faults = list(faults)

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - the API's own names
        self.reads += 1
        if Key not in self.files:
            raise fault("NoSuchKey", "GetObject")
        return {"Body": BytesIO(self.files[Key]), "ETag": etag(self.files[Key])}

    def put_object(self, **given: Any) -> dict[str, Any]:
        if between := self.between:
            self.between = None
            between()
        if self._faults:
            raise fault(self._faults.pop(0), "PutObject")
        there = self.files.get(given["Key"])
        absent_wanted = given.get("IfNoneMatch") == "*" and there is not None
        other_there = "IfMatch" in given and (there is None or etag(there) != given["IfMatch"])
        if absent_wanted or other_there:
            self.refused += 1
            raise fault("PreconditionFailed", "PutObject")
        body = given["Body"]
        self.files[given["Key"]] = body if isinstance(body, bytes) else body.read()
        return {"ETag": etag(self.files[given["Key"]])}


def etag(data: bytes) -> str:
    return f'"{hash(data):x}"'


def fault(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, operation)


@pytest.mark.parametrize("code", ["PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey", "412", "409"])
def test_refused_condition_is_tried_again(code: str) -> None:
    client, pauses = FakeClient(code, code), list[float]()
    in_bucket(client, sleep=pauses.append).update_json("latest.json", lambda value: {"n": 1})
    assert json.loads(client.files["latest.json"]) == {"format": 1, "n": 1}
    assert len(pauses) == 2


@pytest.mark.parametrize("found", [{}, {"other": 1}])
@pytest.mark.parametrize("seen", [{}, {"mine": 1}, {"first": 1}])
def test_json_that_was_seen_is_read_again_only_if_it_is_another_one(seen: Json, found: Json) -> None:
    client, pauses = FakeClient(), list[float]()
    store = in_bucket(client, sleep=pauses.append)
    client.files = {"latest.json": json.dumps({"format": 1, **seen}).encode()} if seen else {}
    store.get("latest.json")
    if found:
        client.files["latest.json"] = json.dumps({"format": 1, **found}).encode()
    for name in ("mine", "next"):
        store.update_json("latest.json", once(name))
    assert json.loads(client.files["latest.json"]) == {"format": 1, **(found or seen or {}), "mine": 1, "next": 1}
    assert (client.reads > 1, pauses) == (bool(found) or "mine" in (seen or {}), [])


def test_update_among_endless_writers_gives_up() -> None:
    pauses: list[float] = []
    store = in_bucket(FakeClient(*["PreconditionFailed"] * 99), sleep=pauses.append)
    with pytest.raises(OutputError, match="too many processes"):
        store.update_json("latest.json", lambda value: {"n": 1})
    assert len(pauses) == UPDATES


def test_other_refusals_are_not_tried_again() -> None:
    pauses: list[float] = []
    with pytest.raises(OutputError, match="AccessDenied"):
        in_bucket(FakeClient("AccessDenied"), sleep=pauses.append).update_json("a.json", lambda value: {})
    assert pauses == []


class Careless(FakeClient):
    """A server without conditions: it ignores them, or (refuses) says that it has none."""

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__()
        self.refuses = refuses

    def put_object(self, **given: Any) -> dict[str, Any]:
        conditions = [given.pop(name, None) for name in ("IfMatch", "IfNoneMatch")]
        if self.refuses and any(conditions):
            raise fault("NotImplemented", "PutObject")
        return super().put_object(**given)

    def delete_object(self, Bucket: str, Key: str) -> None:  # noqa: N803 - the API's own names
        del self.files[Key]


@pytest.mark.parametrize("refuses", [False, True])
def test_a_server_without_conditions_is_named_and_looked_at_before_each_write(refuses: bool, tmp_path: Path) -> None:
    client = Careless(refuses=refuses)
    store = in_bucket(client, "some", sleep=lambda seconds: None)
    with logged() as lines:
        store.check_writable()
        store.check_writable()
    assert client.files == {}
    assert {line["level"] for line in lines} == {"WARNING"}
    assert len(lines) == 1
    assert "s3://results/some does not support conditional writes" in lines[0]["message"]
    first = store.put_if("a", b"1", None)
    assert first is not None
    assert store.put_if("a", b"2", None) is None
    assert store.put_if("a", b"3", first) is not None
    assert store.put_if("a", b"4", first) is None
    (tmp_path / "file").write_bytes(b"mine")
    assert not store.put_new_file("a", tmp_path / "file")
    assert store.put_new_file("b", tmp_path / "file")
    store.update_json("c.json", adding("x"))
    assert set(client.files) == {"some/a", "some/b", "some/c.json"}
    assert (client.files["some/a"], client.files["some/b"]) == (b"3", b"mine")


class Literal(FakeClient):
    """Compares the condition's text with the bare ETag, as Ceph RGW 16 does; or (never) finds none equal."""

    def __init__(self, *, never: bool = False) -> None:
        super().__init__()
        self.never = never

    def put_object(self, **given: Any) -> dict[str, Any]:
        if "IfMatch" in given:
            literal = given["IfMatch"]
            given["IfMatch"] = "" if self.never or literal.startswith('"') else f'"{literal}"'
        return super().put_object(**given)


def test_a_server_that_compares_etags_without_quotes_gets_them_without() -> None:
    client = Literal()
    store = in_bucket(client)
    first = store.put_if("a", b"1", None)
    with logged() as lines:
        second = store.put_if("a", b"2", first)
        assert second is not None
        assert store.put_if("a", b"3", first) is None
        store.update_json("b.json", adding("x"))
        store.update_json("b.json", adding("y"))
    assert client.files["a"] == b"2"
    assert json.loads(client.files["b.json"]) == {"format": 1, "x": 1, "y": 1}
    assert lines == []


def test_a_server_that_refuses_a_condition_that_holds_is_named() -> None:
    client = Literal(never=True)
    store = in_bucket(client)
    first = store.put_if("a", b"1", None)
    with logged() as lines:
        assert store.put_if("a", b"2", first) is not None
    assert store.put_if("a", b"3", first) is None
    assert client.files["a"] == b"2"
    assert len(lines) == 1


def test_a_server_that_refuses_conditions_late_is_named_then(tmp_path: Path) -> None:
    store = in_bucket(Careless(refuses=True))
    (tmp_path / "file").write_bytes(b"mine")
    with logged() as lines:
        assert store.put_new_file("a", tmp_path / "file")
    assert store.get("a") == b"mine"
    assert ["does not support conditional writes" in line["message"] for line in lines] == [True]


def test_written_only_if_nobody_did_in_between(s3: Any, moto_url: str, tmp_path: Path) -> None:
    with open_store("s3://results/x", endpoint_url=moto_url) as store:
        assert isinstance(store, S3Store)
        assert store.get_tagged("a") == (None, None)
        first = store.put_if("a", b"1", None)
        assert store.get_tagged("a") == (b"1", first)
        assert store.put_if("a", b"2", None) is None
        second = store.put_if("a", b"3", first)
        assert second not in (None, first)
        assert store.put_if("a", b"4", first) is None
        assert store.put_if("gone", b"5", first) is None
        assert store.get("a") == b"3"


def test_a_new_file_takes_no_others_place_and_its_own_twice_is_no_fault(s3: Any, moto_url: str, tmp_path: Path) -> None:
    with open_store("s3://results/x", endpoint_url=moto_url) as store:
        assert isinstance(store, S3Store)
        assert store.put_new_file("part", spooled(store, b"mine"))
        other = spooled(store, b"other")
        assert not store.put_new_file("part", other)
        assert other.exists()
        assert store.put_new_file("part", spooled(store, b"mine"))
        assert store.get("part") == b"mine"


@pytest.mark.parametrize("code", ["ConditionalRequestConflict", "409"])
def test_a_new_file_whose_place_is_just_being_emptied_is_tried_again(code: str, tmp_path: Path) -> None:
    pauses: list[float] = []
    (tmp_path / "file").write_bytes(b"mine")
    store = in_bucket(FakeClient(code, code), sleep=pauses.append)
    assert store.put_new_file("a", tmp_path / "file")
    assert len(pauses) == 2
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(OutputError, match="too many processes"):
        in_bucket(FakeClient(*[code] * 99), sleep=pauses.append).put_new_file("a", tmp_path / "file")


def test_bucket_keys_types_and_uri(s3: Any, moto_url: str) -> None:
    with open_store("s3://results/a//b/", endpoint_url=moto_url) as store:
        store.put("run/report.html", b"<!DOCTYPE html>")
        assert store.uri("run/report.html") == "s3://results/a//b/run/report.html"
        assert store.bucket == "results"
    reply = s3.get_object(Bucket="results", Key="a//b/run/report.html")
    with reply["Body"] as body:
        body.read()
    assert reply["ContentType"] == "text/html; charset=utf-8"


def test_more_files_than_one_page_of_a_listing(s3: Any, moto_url: str) -> None:
    client = make_client("s3", Connection(bucket="results", endpoint_url=moto_url), endpoint_url=moto_url)
    pages: list[str] = []

    def two_a_page(params: dict[str, Any], **_: Any) -> None:
        params["MaxKeys"] = 2
        pages.append("page")

    client.meta.events.register("provide-client-params.s3.ListObjectsV2", two_a_page)
    with in_bucket(client) as store:
        names = [f"objects/{number}" for number in range(5)]
        for name in names:
            store.put(name, b"")
        assert store.list("objects/") == names
    assert len(pages) == 3


def test_run_in_a_bucket_is_killed_and_resumed(s3: Any, moto_url: str) -> None:
    with open_store("s3://results/runs", endpoint_url=moto_url) as store:
        tally = Tally()
        folder = RunFolder(store, "audited", RUN, target=target(), tally=tally, part_lines=PART)
        folder.prepare()
        put_all(folder, tally, judgements()[:12])
        stale = f"{folder.path}/findings/part-00000-00002.jsonl.gz"  # put in place just before the end
        store.put(stale, b"stale")
        folder.close()
    with open_store("s3://results/runs", endpoint_url=moto_url) as store:
        state = load_checkpoint(store, "audited", RUN)
        assert state is not None
        assert state.start_after == "k009"
        tally = state.tally
        with RunFolder(store, "audited", RUN, target=target(), tally=tally, state=state, part_lines=PART) as folder:
            folder.prepare()
            assert gzip.decompress(store.get(stale) or b"") == b""
            put_all(folder, tally, judgements()[10:])
            folder.finish(sample_summary(), "<p>", ROLLED_UP, update_latest=True)
        lines = [line.key for line in RunReader(store, "audited", RUN).objects()]
        assert lines == [judgement.evidence.ref.key for judgement in judgements()]
        assert tally.coverage["listed"] == len(lines)
        latest = json.loads(store.get("bucket=audited/latest.json") or b"")
        assert latest == {"format": 1, "runs": {"current": {"": RUN}, "versions": {}}}


def test_spool_of_a_bucket_is_gone_when_closed(s3: Any, moto_url: str) -> None:
    with open_store("s3://results", endpoint_url=moto_url) as store:
        spool = store.spool_dir("run")
        (spool / ".left.tmp").write_bytes(b"x")
        assert store.spool_dir("other") == spool
    assert not spool.exists()


def test_no_such_bucket(moto_url: str) -> None:
    with open_store("s3://missing-bucket/x", endpoint_url=moto_url) as store:
        for use in uses(store):
            with pytest.raises(OutputError, match=r"s3://missing-bucket/x.* does not exist \(NoSuchBucket\)"):
                use()


def uses(store: Store) -> list[Callable[[], object]]:
    return [
        store.check_writable,
        lambda: store.put("a", b""),
        lambda: moved(store, "a", spooled(store, b"")),
        lambda: store.list("a"),
        lambda: store.update_json("a", lambda value: {}),
    ]


def test_nobody_answers() -> None:
    class Dead(FakeClient):
        def put_object(self, **given: Any) -> dict[str, Any]:
            from botocore.exceptions import EndpointConnectionError

            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")

    with pytest.raises(OutputError, match=r"s3://results/a cannot be reached"):
        in_bucket(Dead()).put("a", b"")


def test_denied_and_without_credentials() -> None:
    class Naked(FakeClient):
        def put_object(self, **given: Any) -> dict[str, Any]:
            from botocore.exceptions import NoCredentialsError

            raise NoCredentialsError

    with pytest.raises(OutputError, match=r"s3://results refuses PutObject \(AccessDenied\): allow s3:PutObject"):
        in_bucket(FakeClient("AccessDenied")).check_writable()
    with pytest.raises(OutputError, match="no usable AWS credentials"):
        in_bucket(Naked()).check_writable()


class WriteOnly(FakeClient):
    """A client that may write everything and read only `readable`."""

    def __init__(self, *readable: str) -> None:
        super().__init__()
        self._readable = readable

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - the API's own names
        if Key not in self._readable:
            raise fault("AccessDenied", "GetObject")
        return super().get_object(Bucket, Key)


def test_a_store_that_cannot_be_read_back_is_refused_before_any_write() -> None:
    client = WriteOnly()
    with pytest.raises(OutputError, match=r"s3://results refuses GetObject .*: allow s3:GetObject"):
        in_bucket(client).check_writable()
    assert client.refused == 0


def test_an_unreadable_latest_json_is_refused_at_the_start() -> None:
    """S3 answers 403, not 404, to a caller who may read the object but not use its KMS key."""
    store = in_bucket(WriteOnly(".auditor-probe"))
    store.check_writable()
    with pytest.raises(OutputError, match=r"latest\.json refuses GetObject .* kms:Decrypt where a key"):
        last_run(store, Target("audited"))


@pytest.mark.parametrize(
    "uri", ["", "  ", "s3://", "s3:///x", "s3:bucket", "s3://a b", "s3://x/y", "http://x/y", "a\0b"]
)
def test_uri_that_is_no_place(uri: str) -> None:
    with pytest.raises(UsageError):
        open_store(uri)


def test_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in ("file", "file/below", "file/below/that"):
        store = open_store(str(tmp_path / place))
        for use in (store.check_writable, lambda s=store: s.put("a/b", b""), lambda s=store: s.spool_dir("run")):
            with pytest.raises(OutputError, match=r"file.* a file is in the way"):
                use()


def test_place_that_the_system_refuses() -> None:
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
