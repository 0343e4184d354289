"""The hashing within an audit that has a ledger: by the audit itself, by a queue, or by S3 Batch Operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from auditor.aws.partition import partition_of
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.hashing.batch.job import JobOwner, write_batch
from auditor.hashing.queue.send import Dispatcher
from auditor.model.object import ObjectVersion
from auditor.model.target import Target
from auditor.runs.paths import run_path
from auditor.runs.reading import RunReader


def dispatcher_of(bucket: str, run_id: str, settings: Settings, places: Resources) -> Dispatcher | None:
    """Return the sender to the hashing queue; None if the audit has no ledger or no queue."""
    if places.ledger is None or places.queue is None:
        return None
    return Dispatcher(places.queue, run_id, bucket, settings.algorithms)


def write_routed(
    places: Resources,
    settings: Settings,
    target: Target,
    run_id: str,
    region: str | None,
    account: str | None,
    *,
    objects: Iterable[ObjectVersion] | None = None,
    **how: Any,
) -> None:
    """Write the manifests and jobs for S3 Batch Operations, for the objects that the run leaves to it.

    They are written into the run folder, or under its path into the place for manifests. A resumed run writes all of
    them again. account: the caller's 12-digit account; None if unknown. objects: those of the manifests to write; None
    for all that the run leaves. how: passed to write_batch(). Blocks.
    """
    if objects is None:
        objects = RunReader(places.store, target.bucket, run_id).routed()
    write_batch(
        places.manifests or places.store,
        run_path(target.bucket, run_id),
        objects,
        bucket=target.bucket,
        run_id=run_id,
        versions=target.versions,
        algorithms=settings.algorithms,
        owner=JobOwner(partition=partition_of(region), account=account, role=settings.batch_role),
        **how,
    )
