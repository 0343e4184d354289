"""A budget too small for one object is refused; the smallest budget that suffices lets a run end."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.errors import UsageError
from tests.support.audit_runs import audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

KEYS = [f"{number:02}" for number in range(4)]


@pytest.fixture(autouse=True)
def _objects(stub: StubServer) -> None:
    for key in KEYS:
        stub.put(BUCKET, key, b"x")


async def refused(stub: StubServer, out: Path, calls: int) -> str | None:
    """The reason to refuse a run with so many calls; None where it is accepted."""
    try:
        await audit(stub, out, max_calls=calls, concurrency=1)
    except UsageError as error:
        return str(error)
    return None


async def test_too_few_for_one_object_are_refused_by_name_and_leave_no_run(stub: StubServer, tmp_path: Path) -> None:
    calls = 1
    while (said := await refused(stub, tmp_path / str(calls), calls)) is not None:
        assert f"--max-calls {calls} is too few" in said
        assert "give more" in said
        assert list((tmp_path / str(calls)).iterdir()) == []
        calls += 1
    assert calls > 5

    result = await audit(stub, tmp_path / "slices", max_calls=calls, concurrency=1)
    slices = 1
    while not result.summary["complete"]:
        before = result.coverage["listed"]
        run = result.summary["run"]
        result = await audit(stub, tmp_path / "slices", max_calls=calls, concurrency=1, resume=run)
        assert result.summary["complete"] or result.coverage["listed"] > before
        slices += 1
    assert slices > 1
    assert [line["key"] for line in result.objects] == KEYS
