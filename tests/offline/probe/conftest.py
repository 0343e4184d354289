"""A server that answers strangers, and the probe of an audit of its bucket."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from auditor.config.settings import Settings
from auditor.offline.folder_place import open_run
from auditor.offline.probe.probe_result import ProbeResult
from auditor.offline.probe.probe_run import ProbeOrder, ProbeRequest, probe
from auditor.s3.rate import RateLimit
from tests.support.audit_runs import Result, audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.strangers import StrangersServer
from tests.support.servers.world import StubBucket, World


@dataclass
class Probing:
    """Audits the server's bucket once, and probes the run. told: the sentences before the first request."""

    server: StrangersServer
    out: Path
    run: Result | None = None
    told: list[str] = field(default_factory=list)

    @property
    def bucket(self) -> StubBucket:
        return self.server.world.buckets[BUCKET]

    def put(self, key: str, **fields: Any) -> None:
        self.server.put(BUCKET, key, **fields)

    async def audit(self, **settings: Any) -> Result:
        self.run = await audit(self.server, self.out, **settings)
        self.server.forget()
        return self.run

    async def probe(
        self, order: ProbeOrder | None = None, rate: RateLimit | None = None, **settings: Any
    ) -> ProbeResult:
        run = self.run or await self.audit()
        told = Settings(endpoint_url=self.server.url, max_rate=None, **settings)
        with open_run(run.folder) as opened:
            unlimited = rate or RateLimit(None)
            request = ProbeRequest(order or ProbeOrder(), self.told.append)
            return await probe(opened, told, request, rate=unlimited)

    def plant(self, key: str, **members: Any) -> None:
        """Write other members into the line of an object, as a wrong verdict would have."""
        assert self.run is not None
        for path in (self.run.folder / "objects").glob("*.jsonl.gz"):
            lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
            changed = [{**line, **members} if line["key"] == key else line for line in lines]
            path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in changed).encode()))


@pytest.fixture
def probing(tmp_path: Path) -> Iterator[Probing]:
    world = World()
    world.add(BUCKET)
    with StrangersServer(world) as server:
        yield Probing(server, tmp_path / "runs")
