"""A whole audit with a ledger that knows every object, as a user starts it."""

from __future__ import annotations

import tempfile
from typing import Any
from uuid import uuid4

from auditor.aio import loop as loops
from auditor.ledger import open_ledger
from benchmarks.clients.ours import audit
from benchmarks.clients.verifying import RECORDED, entry_of
from benchmarks.meter import Meter


def audited(
    meter: Meter, *, url: str, engine: str, concurrency: str, ledger: str, objects: int, size: int
) -> dict[str, Any]:
    """Measure an audit with a ledger, in which each object of the listing has its digest.

    ledger: "sqlite" or "dynamodb", a new table of the server.
    """

    async def record(uri: str) -> None:
        async with open_ledger(uri, endpoint_url=url) as opened:
            for start in range(0, objects, RECORDED):
                numbers = range(start, min(start + RECORDED, objects))
                await opened.record_many([entry_of(number, size, {"sha256": f"{number:064x}"}) for number in numbers])

    with tempfile.TemporaryDirectory() as folder:
        uri = f"dynamodb:{uuid4().hex}" if ledger == "dynamodb" else f"sqlite:{folder}/ledger.db"
        loops.run(record(uri))
        options = ("--max-rate", "unlimited", "--ledger", uri)
        found = audit(meter, url=url, engine=engine, concurrency=concurrency, options=options)
    if found["hashing"]["known"] != objects:
        raise RuntimeError(f"of {objects} objects: {found['hashing']}")
    return found
