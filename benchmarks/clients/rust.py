"""obstore: Rust's object_store under Python. It has no GetObjectAcl, so it makes HEADs alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import uvloop

from benchmarks.clients.workers import work_through
from benchmarks.meter import Meter
from benchmarks.server.objects import BUCKET, key_of

WARM_UP: int = 2


def calls(
    meter: Meter, *, url: str, authority: str, operations: Sequence[str], concurrency: int, objects: int
) -> dict[str, Any]:
    """Measure the HEADs of so many objects, on open connections. Raises ValueError for any other operation."""
    if list(operations) != ["head"]:
        raise ValueError(f"obstore has no call for {operations}")
    if url.startswith("https"):
        os.environ["SSL_CERT_FILE"] = authority  # Rust's TLS reads it when the store opens
    from obstore.store import S3Store

    keys = [key_of(number % 1000) for number in range(objects)]
    store = S3Store(
        BUCKET,
        endpoint=url,
        region="us-east-1",
        access_key_id="testing",
        secret_access_key="testing",
        client_options={"allow_http": url.startswith("http:")},
    )

    async def measure() -> None:
        await work_through(keys[: WARM_UP * concurrency], store.head_async, concurrency)
        with meter.measuring():
            await work_through(keys, store.head_async, concurrency)

    uvloop.run(measure())
    return {"calls": objects, "versions": {"obstore": version("obstore")}}
