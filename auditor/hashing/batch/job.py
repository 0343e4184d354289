"""A job that computes checksums, as the request that creates it: described for its owner, never sent by us."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

REPORT_FORMAT: Final = "Report_CSV_20180820"
ALGORITHMS: Final[Mapping[str, str]] = {"sha256": "SHA256", "sha1": "SHA1", "md5": "MD5", "crc64nvme": "CRC64NVME"}
"""Ours to S3's names (S3ComputeObjectChecksumOperation, S3 Control API reference)."""

NO_ACCOUNT: Final = "000000000000"
NO_BUCKET: Final = "REPLACE-WITH-THE-BUCKET-OF-THE-MANIFEST"
NO_ROLE: Final = "REPLACE-WITH-THE-ROLE-OF-THE-JOB"
PRIORITY: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Where a manifest lies. bucket: None where it is a local file, to be uploaded by its owner. key: in that bucket.

    etag: without quotes. report: prefix of the completion report's keys. versions: it names versions.
    """

    bucket: str | None
    key: str
    etag: str
    report: str
    versions: bool


def create_job(
    manifest: Manifest,
    algorithm: str,
    *,
    audited: str,
    token: str,
    partition: str = "aws",
    account: str | None = None,
    role: str | None = None,
) -> dict[str, Any]:
    """The input of S3 Control's CreateJob. algorithm: a name of ALGORITHMS. audited: the bucket of the objects.

    token: the same for the same job, so that it is created once. account, role: None: left for the owner to replace.
    """
    bucket = f"arn:{partition}:s3:::{manifest.bucket or NO_BUCKET}"
    return {
        "AccountId": account or NO_ACCOUNT,
        "ConfirmationRequired": False,
        "Operation": {
            "S3ComputeObjectChecksum": {"ChecksumAlgorithm": ALGORITHMS[algorithm], "ChecksumType": "FULL_OBJECT"}
        },
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
        "Description": f"{ALGORITHMS[algorithm]} of objects of {audited}"[:256],
        "Priority": PRIORITY,
        "RoleArn": role or f"arn:{partition}:iam::{account or NO_ACCOUNT}:role/{NO_ROLE}",
    }


FORMAT: Final = "S3BatchOperations_CSV_20180820"
MOST_ROWS: Final = 5_000_000
"""Objects of one manifest; more begin another, so that no file outgrows the disk of a function."""


def fields(versions: bool) -> list[str]:
    """The columns' names (JobManifestSpec, S3 Control API reference)."""
    return ["Bucket", "Key", "VersionId"] if versions else ["Bucket", "Key"]


def row(bucket: str, key: str, version_id: str | None) -> str:
    """One line with its end. version_id: only where versions were listed; the null version is "null".

    Everything but letters, digits and `-._~/` is encoded, the space as %20: however a reader decodes it, by the rules
    of URLs or of forms, it comes back the same, and no cell needs a quote.
    """
    cells = [bucket, quote(key, safe="/", errors="surrogatepass")]
    if version_id is not None:
        cells.append(quote(version_id, safe=""))
    return ",".join(cells) + "\n"
