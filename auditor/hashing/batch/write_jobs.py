"""Write batch manifests and job requests for the objects that are left to S3 Batch Operations, in bounded memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Final

from auditor.hashing.batch.job import MOST_ROWS, JobOwner, Manifest, create_job, row
from auditor.model.object import ObjectVersion
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import output_errors, private

FOLDER: Final = "batch"


def write_batch(
    store: Store,
    folder: str,
    objects: Iterable[ObjectVersion],
    *,
    bucket: str,
    run_id: str,
    versions: bool,
    algorithms: Sequence[str],
    owner: JobOwner,
    most_rows: int = MOST_ROWS,
    written: int = 0,
    noted: Callable[[int], None] = lambda number: None,
) -> list[str]:
    """Write `batch/manifest.csv` and `batch/job.json` into `folder` of the store, and return the URIs of the job
    requests.

    After each `most_rows` objects, a further manifest begins: manifest-2.csv and so on. Each pair of a manifest and an
    algorithm has one job request: job.json, job-2.json and so on. Without objects, nothing is written. This function
    blocks.

    written: number of manifests that an earlier call has written with their jobs; `objects` begin behind theirs.
    noted: called after each manifest and its jobs, with the number of manifests by then. It may raise an error to stop.
    """
    jobs: list[str] = []
    spool = store.spool_dir(f"{folder}/{FOLDER}") / f".manifest-{run_id}.tmp"
    for number, part in enumerate(_parts(objects, most_rows), written + 1):
        name = f"{FOLDER}/{_numbered('manifest', number)}.csv"
        etag = _put_manifest(store, f"{folder}/{name}", spool, bucket, part, versions)
        manifest = Manifest(
            bucket=store.bucket,
            key=f"{store.prefix}{folder}/{name}",
            etag=etag,
            report=f"{store.prefix}{folder}/{FOLDER}/report",
            versions=versions,
        )
        for algorithm in algorithms:
            count = written * len(algorithms) + len(jobs) + 1
            job = create_job(manifest, algorithm, owner, audited=bucket, token=f"{run_id}-{count}")
            path = f"{folder}/{FOLDER}/{_numbered('job', count)}.json"
            store.put(path, json.dumps(job, indent=1).encode() + b"\n")
            jobs.append(store.uri(path))
        noted(number)
    return jobs


def _numbered(stem: str, number: int) -> str:
    return stem if number == 1 else f"{stem}-{number}"


def _parts(objects: Iterable[ObjectVersion], most: int) -> Iterator[Iterator[ObjectVersion]]:
    """Yield the objects in parts of at most `most`. Read each part to its end before asking for the next part."""
    rest = iter(objects)
    for first in rest:
        yield chain((first,), islice(rest, most - 1))


def _put_manifest(
    store: Store, path: str, local: Path, bucket: str, objects: Iterable[ObjectVersion], versions: bool
) -> str:
    """Write a batch manifest into the store, by way of the temporary file `local`, and return the manifest's ETag.

    For a store in a local folder, the ETag is the MD5: S3 will give the manifest this ETag if it is uploaded in one
    piece.
    """
    digest = hashlib.md5(usedforsecurity=False)
    with output_errors(local):
        local.unlink(missing_ok=True)
    with output_errors(local), open(local, "xb", opener=private) as file:
        for item in objects:
            line = row(bucket, item.key, (item.version_id or "null") if versions else None).encode()
            digest.update(line)
            file.write(line)
    return store.replace_file(path, local) or digest.hexdigest()
