"""Audits of one bucket on two nights, with a call for each fact or with every fact known, and a listing alone."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from auditor.aio import loop as loops
from auditor.aio.stop import Stop
from auditor.audit import work_range
from auditor.audit.audit_run import Audit
from auditor.audit.sources.walk import ObjectWalk, RunObjects
from auditor.config import values
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.object import Acl, Evidence, Grant, Head, ObjectRef
from auditor.model.reuse import NO_FACTS, KnownFacts
from auditor.model.target import Target
from auditor.offline.estimate import EstimateRun
from auditor.runs.paths import bucket_path
from auditor.runs.stores.local import LocalStore
from auditor.s3.engines import load
from auditor.s3.listing import Listed
from benchmarks.in_process import put_for
from benchmarks.meter import Meter
from benchmarks.server.objects import BUCKET, OWNER

NIGHTS: Final = 2
TARGET: Final = Target(BUCKET)
_FEW: Final = 0.01
"""Largest number of calls on an object of which nearly all facts are known."""
_ACL: Final = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))


class _KnownObjects:
    """The objects of a run, each with all of its facts."""

    def __init__(self, objects: RunObjects) -> None:
        self._objects = objects

    async def pages(self, target: Target) -> AsyncGenerator[list[Listed], None]:
        async for page in self._objects.pages(target):
            yield [replace(step, known=_evidence(step.ref)) if step.ref else step for step in page]

    async def read(self, ref: ObjectRef, facts: KnownFacts = NO_FACTS) -> Evidence:
        return await self._objects.read(ref, facts)


def _known_walk(*arguments: Any, **more: Any) -> _KnownObjects:
    """The walk of a run that lists, judges and writes as any other, and finds the facts of each object known."""
    return _KnownObjects(ObjectWalk(*arguments, **more))


def _evidence(ref: ObjectRef) -> Evidence:
    """The facts that the server would have answered with."""
    head = Head(
        etag=ref.etag,
        content_length=ref.size,
        last_modified=ref.last_modified,
        content_type="application/octet-stream",
        server_side_encryption="AES256",
        storage_class=ref.storage_class,
    )
    return Evidence(ref, _ACL, head)


def _settings(url: str) -> Settings:
    settings = Settings(endpoint_url=url, max_rate=None)
    load(settings.engine)
    return settings


def nights(meter: Meter, *, url: str, known: bool = False, keep: str | None = None) -> dict[str, Any]:
    """Measure two whole audits into one place: the second one compares each object with the first.

    known: True to find each fact known from nowhere. keep: limits by which the second audit takes the facts of the
    first; None to send a call for each fact again. Returns the number of objects, and the bytes of their compressed
    lines.
    """
    settings = replace(_settings(url), keep=values.keep(keep, "keep") if keep else None)
    with tempfile.TemporaryDirectory() as out:
        places = Resources(store=LocalStore(Path(out)), ledger=None)
        for _ in range(NIGHTS):
            finding = put_for(work_range, "ObjectWalk", _known_walk) if known else nullcontext()
            with finding, meter.measuring():
                summary = loops.run(Audit(TARGET, settings, places, Stop()).run())
        asked = (summary.calls.acl + summary.calls.head) / summary.coverage.audited
        if not summary.complete or ((known or keep) and asked > _FEW):
            raise RuntimeError(f"the audit is not the one to measure: {summary}")
        runs = Path(out, bucket_path(BUCKET)).glob("run=*/objects/*")
        written = sum(file.stat().st_size for file in runs)
    objects = summary.coverage.audited
    return {"objects": objects, "bytes": written / (NIGHTS * objects)}


def listing(meter: Meter, *, url: str) -> dict[str, Any]:
    """Measure the listing of all keys, as `auditor estimate` does it."""
    settings = _settings(url)
    with meter.measuring():
        found = loops.run(EstimateRun(TARGET, settings, None, Stop()).run())
    return {"objects": found.objects, "bytes": None}
