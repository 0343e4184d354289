"""Places that fail while an audit works: a bucket that refuses writes at random, a ledger that is deleted, a clock that
is set back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from auditor.errors import LedgerError
from auditor.ledger import open_ledger
from auditor.model.target import Target
from auditor.offline.library.runs import check_run
from auditor.runs.reading import last_run
from auditor.runs.stores.local import LocalStore
from tests.support.audit_runs import audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault

NOW: Final = 1_767_323_045.0
DAY: Final = 86_400.0


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
