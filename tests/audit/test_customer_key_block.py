"""The bucket's block of uploads under a customer's key (SSE-C): removed, there, or not told (B08)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.model.bucket import Semantics
from auditor.model.finding import FailOn, Severity
from auditor.model.summary import Summary
from auditor.reports.summary import exit_code
from tests.support.audit_runs import Result, audit
from tests.support.engine_names import INSTALLED
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

CLOSED = ("SSE-C",)
OPEN = ("NONE",)


async def night(
    stub: StubServer, out: Path, bucket: StubBucket, blocked: tuple[str, ...] | None, **settings: Any
) -> Result:
    bucket.blocked_encryption = blocked
    return await audit(stub, out, **{"only": ("B08",), "semantics": Semantics.AWS, **settings})


def unseen(result: Result) -> list[str]:
    return [words for words in result.summary["not_looked_at"] if "SSE-C" in words]


@pytest.mark.parametrize("engine", INSTALLED)
async def test_block_that_was_removed_since_the_last_run_is_worse(
    stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str
) -> None:
    closed = await night(stub, tmp_path, bucket, CLOSED, engine=engine)
    assert (closed.findings, unseen(closed), closed.code) == ([], [], 0)
    assert any("object annotations" in words for words in closed.summary["not_looked_at"])
    reopened = await night(stub, tmp_path, bucket, OPEN, engine=engine)
    (finding,) = reopened.findings
    assert (finding["rule"], finding["severity"], finding["key"]) == ("B08", "medium", None)
    assert reopened.summary["changes"]["findings"] == {"medium": {"worsened": 1}}
    assert exit_code(Summary.from_dict(reopened.summary), FailOn(Severity.MEDIUM, new=True)) == 3
    first, second = (auditor.open_run(one.folder) for one in (closed, reopened))
    assert [change.kind for change in auditor.diff(first, second)] == ["worsened"]
    still = await night(stub, tmp_path, bucket, OPEN, engine=engine)
    assert still.summary["changes"]["findings"] == {}
