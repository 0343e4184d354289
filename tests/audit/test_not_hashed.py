"""Objects that `audit --hash` could not hash are counted by code, named, and a hole, wherever the run is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.aio.stop import Stop
from auditor.cli.main import main
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry, Ledger
from auditor.model.exception import ExceptionEntry
from tests.support.audit_runs import audit
from tests.support.divided_runs import Divided
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault, error

FAILED = {"AccessDenied": 2, "AllAccessDisabled": 1, "SSE-C": 1}
HOLE = "4 objects not hashed (2 AccessDenied, 1 AllAccessDisabled, 1 SSE-C)"
EXPOSURE: Final[dict[str, Any]] = {"hash": True, "level": "exposure", "retry_attempts": 2}


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async with open_ledger(f"sqlite:{tmp_path / 'digests.db'}") as opened:
        yield opened


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDITOR_RETRY_ATTEMPTS", "2")
    monkeypatch.setenv("AUDITOR_LEVEL", "exposure")
    monkeypatch.setenv("AUDITOR_FAIL_ON", "never")


@pytest.fixture(autouse=True)
def bucket(stub: StubServer) -> None:
    """Of five objects, one can be hashed."""
    stub.put(BUCKET, "a/denied", b"data").deny = {"get"}
    stub.put(BUCKET, "b/denied", b"data").deny = {"get"}
    stub.put(BUCKET, "c/refused", b"data")
    stub.put(BUCKET, "d/sse-c", b"data").sse_c = True
    stub.put(BUCKET, "e/sound", b"data")

    def refused(operation: str, key: str, nth: int) -> Fault | None:
        return error(403, "AllAccessDisabled") if (operation, key) == ("GetObject", "c/refused") else None

    stub.faults = [refused]


def mend(stub: StubServer) -> None:
    stub.faults = []
    for item in ("a/denied", "b/denied"):
        stub.put(BUCKET, item, b"data")
    stub.put(BUCKET, "d/sse-c", b"data")


async def test_each_code_is_counted_among_the_pending_and_is_a_hole(
    stub: StubServer, tmp_path: Path, ledger: Ledger
) -> None:
    found = await audit(stub, tmp_path, ledger=ledger, **EXPOSURE)
    hashing = found.summary["hashing"]
    assert hashing["failed"] == FAILED
    assert (hashing["hashed_now"], hashing["pending"], hashing["unhashable"]) == (1, 4, 0)
    assert found.code == 4


async def test_object_whose_head_could_not_be_read_is_undecided_and_not_asked_for(
    stub: StubServer, tmp_path: Path, ledger: Ledger
) -> None:
    stub.put(BUCKET, "f/denied", b"data").deny = {"head", "get"}
    found = await audit(stub, tmp_path, ledger=ledger, hash=True)
    hashing = found.summary["hashing"]
    assert (hashing["failed"], hashing["unhashable"]) == ({"AccessDenied": 2, "AllAccessDisabled": 1}, 2)
    assert (found.coverage["undecided"], found.code) == (2, 4)
    assert not [one for one in stub.calls if one.operation == "GetObject" and one.key in {"d/sse-c", "f/denied"}]


async def test_only_objects_that_can_be_read_and_are_there_are_failures(
    stub: StubServer, tmp_path: Path, ledger: Ledger
) -> None:
    mend(stub)
    stub.put(BUCKET, "f/archived", b"data", storage_class="GLACIER")
    # The one that S3 fails at comes last: S3 has sent others by then, however many are read at once.
    answers = {"e/sound": error(503, "ServiceUnavailable"), "b/denied": error(404, "NoSuchKey")}

    def failing(operation: str, key: str, nth: int) -> Fault | None:
        if (operation, key) == ("GetObject", "c/refused"):
            stub.world.buckets[BUCKET].delete(key)
        return answers.get(key) if operation == "GetObject" else None

    stub.faults = [failing]
    found = await audit(stub, tmp_path, ledger=ledger, hash=True, retry_attempts=2)
    hashing = found.summary["hashing"]
    assert (hashing["failed"], found.code) == ({"ServiceUnavailable": 1, "Vanished": 1}, 4)
    assert (hashing["pending"], hashing["unhashable"], hashing["hashed_now"]) == (3, 1, 2)


async def test_resumed_run_keeps_the_count_and_adds_the_rest(stub: StubServer, tmp_path: Path, ledger: Ledger) -> None:
    for number in range(60):
        stub.put(BUCKET, f"e/{number:04}", None, size=0)
    stub.put(BUCKET, "f/denied", b"data").deny = {"get"}
    stub.put(BUCKET, "g/late", b"data").deny = {"get"}
    stop, plans = Stop(), stub.faults

    def stopping(operation: str, key: str, nth: int) -> Fault | None:
        if (operation, key) == ("GetObjectAcl", "e/0020"):
            stop.set("a signal")
        return None

    stub.faults = [*plans, stopping]
    begun = await audit(stub, tmp_path, ledger=ledger, stop=stop, concurrency=4, **EXPOSURE)
    stub.faults = plans
    assert (begun.summary["complete"], begun.summary["hashing"]["failed"]) == (False, FAILED)
    stub.put(BUCKET, "g/late", b"data")
    ended = await audit(stub, tmp_path, ledger=ledger, resume=begun.summary["run"], **EXPOSURE)
    assert (ended.summary["complete"], ended.code) == (True, 4)
    assert ended.summary["hashing"]["failed"] == FAILED | {"AccessDenied": 3}


async def test_ranges_of_a_divided_run_are_added_up(stub: StubServer, tmp_path: Path, ledger: Ledger) -> None:
    found = await Divided(stub, tmp_path, ledger=ledger, **EXPOSURE).whole(3)
    assert (found.summary["hashing"]["failed"], found.code) == (FAILED, 4)


async def test_accepted_failures_stay_counted_and_are_no_hole(stub: StubServer, tmp_path: Path, ledger: Ledger) -> None:
    accepting = partial(ExceptionEntry, owner="me", until="2999-12-31")
    known = (accepting("theirs", prefix="a/", action="GetObject"), accepting("old", code="SSE-C"))
    found = await audit(stub, tmp_path, ledger=ledger, exceptions=known, **EXPOSURE)
    assert (found.summary["hashing"]["failed"], found.code) == (FAILED, 4)
    assert found.summary["accepted"]["hashing"] == {"AccessDenied": 1, "SSE-C": 1}
    assert [one["state"] for one in found.summary["exceptions"]] == ["active", "active"]
    rest = (*known, accepting("theirs", prefix="b/", action="GetObject"), accepting("odd", code="AllAccessDisabled"))
    found = await audit(stub, tmp_path, ledger=ledger, exceptions=rest, **EXPOSURE)
    assert (found.summary["hashing"]["failed"], found.code) == (FAILED, 3)


async def test_failures_that_no_exception_accepts(stub: StubServer, tmp_path: Path, ledger: Ledger) -> None:
    """Bytes that contradict the ledger; and an unread ACL that is accepted accepts no failure of the read."""
    mend(stub)
    item = stub.put(BUCKET, "e/sound", b"data")
    digests, at = {"sha1": "0" * 40}, "2026-01-02T03:04:05Z"
    entry = Entry(bucket=BUCKET, key="e/sound", version_id=None, etag=item.etag, size=4, digests=digests, hashed_at=at)
    await ledger.record(entry)
    accepting = partial(ExceptionEntry, owner="me", until="2999-12-31")
    known = (accepting("all of it", code="DigestConflict"), accepting("the ACL", action="GetObjectAcl"))
    denied: set[str]
    for denied, failure in ((set(), "DigestConflict"), ({"acl"}, "DigestConflict"), ({"acl", "get"}, "AccessDenied")):
        item.deny = denied
        settings = {**EXPOSURE, "algorithms": ("sha256", "sha1"), "exceptions": known}
        found = await audit(stub, tmp_path, ledger=ledger, **settings)
        assert (found.summary["hashing"]["failed"], found.code) == ({failure: 1}, 4)
        accepted = found.summary["accepted"]
        assert (accepted["undecided"], accepted["hashing"]) == (bool(denied), {})


def test_table_names_codes_and_keys_and_every_format_tells_them(
    stub: StubServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    common = ["audit", f"s3://{BUCKET}", "--endpoint-url", stub.url, "--out", str(tmp_path / "runs")]
    assert main([*common, "--ledger", f"sqlite:{tmp_path / 'digests.db'}", "--hash"]) == 4
    assert HOLE in " ".join(capfd.readouterr().out.split())
    for key in ("a/denied", "b/denied", "c/refused", "d/sse-c"):
        assert f"'{key}' of {BUCKET} could not be hashed: " in caplog.text
    (place,) = (tmp_path / "runs").glob(f"bucket={BUCKET}/run=*")
    page, folder = (place / "report.html").read_text(), str(place)
    assert "4 objects not hashed" in page
    assert "GetObject: AccessDenied" in page
    assert main(["judge", folder]) == 4
    assert HOLE in " ".join(capfd.readouterr().out.split())
    assert main(["judge", folder, "--format", "markdown"]) == 4
    assert "| AccessDenied | 2 |" in capfd.readouterr().out
    where = ["--account", "123456789012", "--region", "us-east-1"]
    for name, account in (("jsonl", []), ("csv", []), ("ocsf", []), ("asff", where)):
        assert main(["export", folder, "--format", name, *account]) == 0
        told = capfd.readouterr().out
        assert "4 objects not hashed" in told, name
        assert name == "asff" or "2 objects not hashed: AccessDenied" in told
