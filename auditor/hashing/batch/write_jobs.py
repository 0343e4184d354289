"""Writes the manifests and jobs of a run from its routed objects, in bounded memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from auditor.hashing.batch.job import MOST_ROWS, Manifest, create_job, row
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import output_errors

FOLDER: Final = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOwner:
    """Whose jobs they are. account: 12 digits. role: its ARN. None: not known, to be filled in by hand."""

    partition: str = "aws"
    account: str | None = None
    role: str | None = None


def write_batch(
    store: Store,
    folder: str,
    objects: Iterable[Mapping[str, Any]],
    *,
    bucket: str,
    run_id: str,
    versions: bool,
    algorithms: Sequence[str],
    owner: JobOwner,
    most_rows: int = MOST_ROWS,
) -> list[str]:
    """Put `batch/manifest.csv` and `batch/job.json` into `folder` of the store, and say where each job lies.

    objects: lines with key and version_id. More than `most_rows` of them begin manifest-2.csv, and each further
    algorithm of a manifest is a job of its own, job-2.json and so on. No object, no file. Blocks.
    """
    jobs: list[str] = []
    spool = store.spool_dir(f"{folder}/{FOLDER}") / f".manifest-{run_id}.tmp"
    for number, part in enumerate(_parts(objects, most_rows), 1):
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
            count = len(jobs) + 1
            job = create_job(
                manifest,
                algorithm,
                audited=bucket,
                token=f"{run_id}-{count}",
                partition=owner.partition,
                account=owner.account,
                role=owner.role,
            )
            path = f"{folder}/{FOLDER}/{_numbered('job', count)}.json"
            store.put(path, json.dumps(job, indent=1).encode() + b"\n")
            jobs.append(store.uri(path))
    return jobs


def _numbered(stem: str, number: int) -> str:
    return stem if number == 1 else f"{stem}-{number}"


def _parts(objects: Iterable[Mapping[str, Any]], most: int) -> Iterator[Iterator[Mapping[str, Any]]]:
    """The objects in runs of at most that many; each must be used up before the next is taken."""
    left = iter(objects)
    for first in left:
        yield chain((first,), islice(left, most - 1))


def _put_manifest(
    store: Store, path: str, local: Path, bucket: str, objects: Iterable[Mapping[str, Any]], versions: bool
) -> str:
    """Its ETag: the bucket's word; of a local file what an upload in one piece would get, the MD5. local: its spool."""
    digest = hashlib.md5(usedforsecurity=False)
    with output_errors(local), local.open("wb") as file:
        for item in objects:
            line = row(bucket, item["key"], (item["version_id"] or "null") if versions else None).encode()
            digest.update(line)
            file.write(line)
    return store.replace_file(path, local) or digest.hexdigest()
