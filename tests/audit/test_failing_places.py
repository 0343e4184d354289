"""Places that fail while an audit works: a bucket that refuses writes at random, a ledger that is deleted, a clock that
is set back.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pytest

from auditor.aio.stop import Stop
from auditor.audit.offline import check_run
from auditor.audit.run import Audit
from auditor.aws.connection import Connection
from auditor.aws.endpoint import plain_origin
from auditor.aws.plain import plain
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import CallFailed, LedgerError
from auditor.ledger import open_ledger
from auditor.model.target import Target
from auditor.runs.checking import RunChecker
from auditor.runs.latest import last_run
from auditor.runs.stores.direct_objects import DirectObjects
from auditor.runs.stores.local import LocalStore
from auditor.runs.stores.s3 import S3Store
from auditor.s3.http.base import Request, Response
from tests.support.audit_runs import audit
from tests.support.failing_stores import MemoryObjects
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault

NOW: Final = 1_767_323_045.0
DAY: Final = 86_400.0


class RandomTransport:
    """A transport to a bucket in memory, whose server refuses this share of the writes of each file with 503."""

    def __init__(self, objects: MemoryObjects, share: float, seed: int) -> None:
        self.refused = 0
        self._objects = objects
        self._share = share
        self._seed = seed
        self._tried: Counter[str] = Counter()

    def send(self, request: Request, content: object = None) -> Response:
        body = request.body if content is None else content.read()  # type: ignore[attr-defined]
        path, _, query = request.target.partition("?")
        key = unquote(path).removeprefix("/results/")
        try:
            if request.method == "PUT":
                return self._put(request, key, body)
            if request.method == "DELETE":
                self._objects.delete(key)
                return Response(204, "", {}, b"")
            if query:
                return Response(200, "", {}, b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
            found, tag = self._objects.get(key)
            return Response(200, "", {b"etag": tag.encode()}, found)
        except CallFailed as failure:
            return Response(failure.status, "", {}, f"<Error><Code>{failure.code}</Code></Error>".encode())

    def _put(self, request: Request, key: str, body: bytes) -> Response:
        name = key.rpartition("/")[2]
        self._tried[name] += 1
        if random.Random(f"{self._seed} {name} {self._tried[name]}").random() < self._share:
            self.refused += 1
            return Response(503, "", {}, b"<Error><Code>SlowDown</Code></Error>")
        headers = dict(request.headers)
        names = {"if-match": "IfMatch", "if-none-match": "IfNoneMatch"}
        condition = {names[name]: headers[name] for name in names if name in headers}
        tag = self._objects.put(key, body, kind="", md5="", **condition)
        return Response(200, "", {b"etag": tag.encode()}, b"")

    def close(self) -> None:
        """Do nothing: there is no connection."""


@pytest.mark.parametrize("seed", [0, 1, 2, 38, 634, 794, 1077])
async def test_a_bucket_for_run_folders_that_refuses_30_of_100_writes(stub: StubServer, seed: int) -> None:
    for number in range(20):
        stub.put(BUCKET, f"k{number:03}", b"x", acl="public-read")
    held = MemoryObjects()
    transport = RandomTransport(held, 0.3, seed)
    where = Connection(bucket="results", region="us-east-1", endpoint_url="http://127.0.0.1:9")
    origin, found = plain_origin(where), plain(None)
    assert origin is not None
    assert found is not None
    objects = DirectObjects(origin, None, found, transport, sleep=lambda seconds: None)  # type: ignore[arg-type]
    store = S3Store(objects, "results", "runs", sleep=lambda seconds: None)
    settings = Settings(endpoint_url=stub.url, max_rate=None, concurrency=4)
    summary = await Audit(Target(BUCKET), settings, Resources(store=store), Stop(), part_lines=3).run()
    assert summary.complete
    assert transport.refused > 2
    run = last_run(S3Store(held, "results", "runs"), Target(BUCKET))
    assert run is not None
    assert RunChecker(run).run().exit_code == 0


async def test_a_ledger_that_is_deleted_while_an_audit_hashes_ends_the_run(stub: StubServer, tmp_path: Path) -> None:
    for number in range(20):
        stub.put(BUCKET, f"k{number:03}", b"data")
    file = tmp_path / "ledger.db"

    def deleting(operation: str, key: str, nth: int) -> Fault | None:
        if (operation, key) == ("GetObject", "k010"):
            file.unlink(missing_ok=True)
        return None

    stub.faults = [deleting]
    async with open_ledger(f"sqlite:{file}") as ledger:
        with pytest.raises(LedgerError, match=r"ledger\.db was deleted or replaced while it was open"):
            await audit(stub, tmp_path / "out", ledger=ledger, hash=True, concurrency=2)
    assert last_run(LocalStore(tmp_path / "out"), Target(BUCKET)) is None


@pytest.mark.parametrize("jump", [5.0, 3600.0, 2 * DAY, 400 * DAY])
async def test_a_clock_that_is_set_back_between_two_runs(stub: StubServer, tmp_path: Path, jump: float) -> None:
    """The second run is the later one, whatever the clock says, and is judged by the time of the clock."""
    stub.put(BUCKET, "k", b"x", acl="public-read")
    first = await audit(stub, tmp_path, clock=lambda: NOW + jump)
    second = await audit(stub, tmp_path, clock=lambda: NOW)
    assert second.summary["run"] > first.summary["run"]
    assert second.summary["changes"]["against"] == first.summary["run"]
    for run in (first, second):
        assert (check_run(run.folder).faults, check_run(run.folder).exit_code) == ((), 0)
    latest = last_run(LocalStore(tmp_path), Target(BUCKET))
    assert latest is not None
    assert latest.run_id == second.summary["run"]


async def test_a_clock_that_jumps_while_a_run_works(stub: StubServer, tmp_path: Path) -> None:
    for number in range(20):
        stub.put(BUCKET, f"k{number:03}", b"x")
    times = iter([NOW + DAY * number * (-1) ** number for number in range(10_000)])
    result = await audit(stub, tmp_path, clock=lambda: next(times), part_lines=5)
    assert result.coverage["audited"] == 20
    assert check_run(result.folder).exit_code == 0
