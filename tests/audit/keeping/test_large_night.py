"""A night on a hundred thousand unchanged objects: the listing, and exactly the calls that are due."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from auditor.aio.stop import Stop
from auditor.audit.keeping.turns import FactTurns
from auditor.audit.run import Audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import CallFailed
from auditor.model.object import Acl, Grant, Head, ObjectRef
from auditor.model.reuse import Keep
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.reading import RunReader
from auditor.runs.stores.local import LocalStore
from auditor.s3.engines.base import EngineChoice, ListQuery, Page, Position
from tests.support.fakes.hashing import GetOnly
from tests.support.nights import DAY
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, StubBucket

NUMBER: Final = 100_000
START: Final = 1_803_866_400.0
PRIVATE: Final = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
WRITTEN: Final = "2026-01-02T03:04:05Z"
KEYS: Final = [f"logs/{number:06d}.json" for number in range(NUMBER)]


class Unchanging(GetOnly):
    """An engine of a bucket whose objects are computed. asked: the calls, by their name and key."""

    open_connections = 0

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.keys: dict[str, set[str]] = {"acl": set(), "head": set()}

    def keep_idle(self, connections: int) -> None:
        """Nothing is kept open."""

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        self.asked["list"] += 1
        first = 0 if position is None or position.token is None else int(position.token)
        refs = tuple(ObjectRef(key, "e", 1, WRITTEN, owner=OWNER) for key in KEYS[first : first + query.page_size])
        end = first + query.page_size
        return Page(refs, Position(token=str(end)) if end < NUMBER else None)

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        self._count("acl", key)
        return PRIVATE

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        self._count("head", key)
        return Head(etag="e", content_length=1, last_modified=WRITTEN, server_side_encryption="AES256")

    def _count(self, name: str, key: str) -> None:
        if key in self.keys[name]:
            raise CallFailed(name, "Twice")
        self.asked[name] += 1
        self.keys[name].add(key)


async def night(stub: StubServer, out: Path, now: float, keep: Keep | None) -> tuple[Unchanging, Summary]:
    """Audit at this time. The settings of the bucket come from the stub, its objects from the engine."""
    engine = Unchanging()

    @asynccontextmanager
    async def opened(choice: EngineChoice) -> AsyncIterator[Unchanging]:
        yield engine

    settings = Settings(endpoint_url=stub.url, out=str(out), max_rate=None, engine="boto3", keep=keep)
    places = Resources(store=LocalStore(out), engines=opened)  # type: ignore[arg-type]
    summary = await Audit(Target(BUCKET), settings, places, Stop(), clock=lambda: now).run()
    return engine, summary


def lines(out: Path, summary: Summary) -> list[tuple[object, ...]]:
    run = RunReader(LocalStore(out), BUCKET, summary.run)
    return [(one.key, one.acl, one.head, one.verdict, one.reasons, one.rules, one.outcome) for one in run.objects()]


@pytest.mark.slow
async def test_listing_and_exactly_the_due_calls(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    keep = Keep({"acl": 3 * DAY, "head": 8 * DAY})
    live, first = await night(stub, tmp_path, START, keep)
    assert live.asked == {"list": 100, "acl": NUMBER, "head": NUMBER}
    now = START + DAY
    kept, second = await night(stub, tmp_path, now, keep)
    acls, heads = (
        {key for key in KEYS if FactTurns(limit, DAY, now).due(key, None, START, now)}
        for limit in (keep.limits["acl"], keep.limits["head"])
    )
    assert kept.keys == {"acl": acls, "head": heads}
    assert kept.asked == {"list": 100, "acl": len(acls), "head": len(heads)}
    assert abs(len(acls) - NUMBER / 2) < NUMBER / 50
    assert abs(len(heads) - NUMBER / 7) < NUMBER / 50
    assert lines(tmp_path, second) == lines(tmp_path, first)
    assert (second.findings, second.verdicts) == (first.findings, first.verdicts)
    assert (second.kept.acl.run, second.kept.head.run) == (NUMBER - len(acls), NUMBER - len(heads))
