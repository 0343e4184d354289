"""Make the requests that create jobs of S3 Batch Operations, and write them with batch manifests, in bounded memory.

A person sends a request, not the auditor.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from auditor.model.object import ObjectVersion
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import output_errors, private

REPORT_FORMAT: Final = "Report_CSV_20180820"
S3_NAMES: Final[Mapping[str, str]] = {
    "sha256": "SHA256",
    "sha512": "SHA512",
    "sha1": "SHA1",
    "md5": "MD5",
    "crc64nvme": "CRC64NVME",
}
"""S3's name of each algorithm, by the auditor's name (S3ComputeObjectChecksumOperation, S3 Control API reference)."""

NO_ACCOUNT: Final = "000000000000"
NO_BUCKET: Final = "REPLACE-WITH-THE-BUCKET-OF-THE-MANIFEST"
NO_ROLE: Final = "REPLACE-WITH-THE-ROLE-OF-THE-JOB"
PRIORITY: Final = 10


class Manifest(Struct, frozen=True, kw_only=True):
    """A batch manifest that was written: the list of the objects that a job of S3 Batch Operations reads."""

    bucket: str | None
    """Bucket that the manifest was written to; None for a local file, which a person has to upload."""
    key: str
    """Object key of the manifest in its bucket."""
    etag: str
    """The manifest's ETag, without quotes."""
    report: str
    """Prefix of the object keys under which S3 writes the job's completion report."""
    versions: bool
    """True if the manifest has a column of version IDs."""


class JobOwner(Struct, frozen=True, kw_only=True):
    """The AWS account (12 digits) and the role (ARN) that run the jobs.

    None stands for an unknown account or role: a person then has to write it into the request.
    """

    partition: str = "aws"
    account: str | None = None
    role: str | None = None


def create_job(manifest: Manifest, algorithm: str, owner: JobOwner, *, audited: str, token: str) -> dict[str, Any]:
    """Return the parameters of S3 Control's CreateJob, for a job that computes checksums.

    algorithm: a name in S3_NAMES. audited: the bucket with the objects. token: S3 creates only one job for equal
    tokens.
    """
    operation = {"S3ComputeObjectChecksum": {"ChecksumAlgorithm": S3_NAMES[algorithm], "ChecksumType": "FULL_OBJECT"}}
    words = f"{S3_NAMES[algorithm]} of objects of {audited}"
    return job_request(manifest, operation, owner, description=words, token=token)


def job_request(
    manifest: Manifest,
    operation: Mapping[str, Any],
    owner: JobOwner,
    *,
    description: str,
    token: str,
    confirm: bool = False,
) -> dict[str, Any]:
    """Return the parameters of S3 Control's CreateJob. operation: JobOperation of the S3 Control API. confirm: True if
    the job waits until a person confirms it. The others are as for create_job().
    """
    bucket, account = f"arn:{owner.partition}:s3:::{manifest.bucket or NO_BUCKET}", owner.account or NO_ACCOUNT
    return {
        "AccountId": account,
        "ConfirmationRequired": confirm,
        "Operation": operation,
        "Report": {
            "Bucket": bucket,
            "Format": REPORT_FORMAT,
            "Enabled": True,
            "Prefix": manifest.report,
            "ReportScope": "AllTasks",
        },
        "ClientRequestToken": token,
        "Manifest": {
            "Spec": {"Format": FORMAT, "Fields": fields(manifest.versions)},
            "Location": {"ObjectArn": f"{bucket}/{manifest.key}", "ETag": manifest.etag},
        },
        "Description": description[:256],
        "Priority": PRIORITY,
        "RoleArn": owner.role or f"arn:{owner.partition}:iam::{account}:role/{NO_ROLE}",
    }


FORMAT: Final = "S3BatchOperations_CSV_20180820"
MOST_ROWS: Final = 5_000_000
"""Largest number of objects in one manifest. A longer file could exceed the disk of a Lambda function."""


def fields(versions: bool) -> list[str]:
    """Return the names of a batch manifest's columns (JobManifestSpec, S3 Control API reference)."""
    return ["Bucket", "Key", "VersionId"] if versions else ["Bucket", "Key"]


def row(bucket: str, key: str, version_id: str | None) -> str:
    """Return one line of a batch manifest, with its newline.

    version_id: "null" for the null version; None for a manifest without a column of version IDs. All characters except
    letters, digits and `-._~/` are percent-encoded, a space as %20. The rules for URLs and the rules for HTML forms
    decode this to the same key, and no cell needs quotes.
    """
    cells = [bucket, quote(key, safe="/", errors="surrogatepass")]
    if version_id is not None:
        cells.append(quote(version_id, safe=""))
    return ",".join(cells) + "\n"


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
