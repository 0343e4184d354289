"""A queue that refuses messages: the run that is resumed sends what was not sent, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.aws.sqs import Outgoing, RefusedEntry
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import QueueError
from auditor.hashing.limits import LARGE
from auditor.hashing.queue.message import decode
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from tests.support.audit_runs import check, read_back
from tests.support.fakes.hashing import MemoryQueue
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer


@pytest.fixture
async def ledger() -> AsyncIterator[Ledger]:
    async with open_ledger("sqlite::memory:") as opened:
        yield opened


def refuse(*indexes: int) -> Any:
    def choose(entries: Sequence[Outgoing]) -> list[RefusedEntry]:
        return [RefusedEntry(entries[index], "Trouble", True) for index in indexes]

    return choose


class Night:
    """Audits of the stub's bucket with a queue in memory, of which the first one makes a run."""

    def __init__(self, stub: StubServer, out: Path, ledger: Ledger, **settings: Any) -> None:
        self.queue = MemoryQueue()
        self._settings = Settings(endpoint_url=stub.url, out=str(out), max_rate=None, only=("K01",), **settings)
        self._places = Resources(store=LocalStore(out), ledger=ledger, queue=self.queue)
        self._target = Target(BUCKET, versions=self._settings.versions)
        self._run: str | None = None

    async def audit(self, *, part_lines: int = 50_000) -> dict[str, Any]:
        audit = Audit(self._target, self._settings, self._places, Stop(), run_id=self._run, part_lines=part_lines)
        self._run = audit.run_id
        return check(read_back((await audit.run()).to_dict())).summary

    @property
    def sent(self) -> list[tuple[str, str | None]]:
        """The objects that the queue has accepted, in order."""
        tasks = [task for entry in self.queue.sent for task in decode(entry.body).tasks]
        return sorted((task.key, task.version_id) for task in tasks)


def listed(stub: StubServer, versions: bool) -> list[tuple[str, str | None]]:
    objects = stub.world.buckets[BUCKET].objects
    every = [item for key in objects.keys for item in objects.versions(key)]
    return sorted((item.key, item.version_id if versions else None) for item in every)


@pytest.mark.parametrize(
    ("versions", "small", "large", "part_lines"),
    [(False, 250, 0, 50_000), (True, 250, 0, 20), (False, 30, 11, 20), (True, 7, 14, 50_000)],
)
async def test_resumed_run_sends_what_the_queue_refused_and_nothing_twice(
    stub: StubServer, ledger: Ledger, tmp_path: Path, versions: bool, small: int, large: int, part_lines: int
) -> None:
    stub.world.buckets[BUCKET].versioning = "Enabled" if versions else None
    for number in range(small + large):
        stub.put(BUCKET, f"{number:04}", None, size=LARGE if number % 3 == 1 and number < 3 * large else 1)
    night = Night(stub, tmp_path, ledger, versions=versions)
    night.queue.refusals = [refuse(0)]
    with pytest.raises(QueueError, match="refused 1 of"):
        await night.audit(part_lines=part_lines)
    assert len(night.sent) < small + large
    summary = await night.audit(part_lines=part_lines)
    assert (summary["complete"], summary["coverage"]["listed"]) == (True, small + large)
    assert {name: number for name, number in summary["hashing"].items() if number and isinstance(number, int)} == {
        "queued": small + large
    }
    assert sorted(set(night.sent)) == listed(stub, versions)
    # The lines of the last key are dropped, because it may have more versions: the resumed run reads it again.
    assert len(night.sent) - len(set(night.sent)) <= versions


async def test_queue_that_refuses_the_resumed_run_too_loses_nothing(
    stub: StubServer, ledger: Ledger, tmp_path: Path
) -> None:
    for number in range(120):
        stub.put(BUCKET, f"{number:04}", b"x")
    night = Night(stub, tmp_path, ledger)
    night.queue.refusals = [refuse(0, 1), refuse(0, 1), refuse(1)]
    for accepted in (0, 0, 100):
        with pytest.raises(QueueError, match="refused"):
            await night.audit()
        assert len(night.sent) == accepted
    summary = await night.audit()
    assert (summary["complete"], summary["hashing"]["queued"], summary["hashing"]["pending"]) == (True, 120, 0)
    assert night.sent == listed(stub, versions=False)
