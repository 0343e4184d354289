"""Reports of S3 Inventory for tests: made of the stub's buckets or of rows, in CSV or Parquet, as S3 writes them.

Source of the forms: S3 User Guide, "Amazon S3 Inventory list", "Locating your inventory list" and "Working with the
Object ACL field".
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote_plus

from auditor.model.object import Acl
from auditor.s3.inventory.fields import CSV, OPTIONAL_FIELDS, PARQUET
from tests.support.servers.world import StubBucket, StubObject, canned

CURRENT: Final = ("Bucket", "Key", *OPTIONAL_FIELDS)
ALL: Final = ("Bucket", "Key", "VersionId", "IsLatest", "IsDeleteMarker", *OPTIONAL_FIELDS)
CREATED: Final = datetime(2026, 3, 4, 1, 2, tzinfo=UTC)
SNAKE: Final = {"ETag": "e_tag", "LastModifiedDate": "last_modified_date"}
_ENCRYPTION: Final = {"AES256": "SSE-S3", "aws:kms": "SSE-KMS", "aws:kms:dsse": "DSSE-KMS", None: "NOT-SSE"}

Row = Mapping[str, str]
"""The cells of a row by their columns, with the key as it is; "" for a missing value."""
Put = Callable[[str, bytes], object]


def acl_field(acl: Acl | None) -> str:
    """The field ObjectAccessControlList; of an ACL that is not available for None."""
    document: dict[str, Any] = {"version": "2022-11-10", "status": "UNAVAILABLE" if acl is None else "AVAILABLE"}
    document["grants"] = [] if acl is None else [_grant(one.grantee, one.permission) for one in acl.grants]
    return base64.b64encode(json.dumps(document).encode()).decode()


def _grant(grantee: str, permission: str) -> dict[str, str]:
    group = grantee.startswith("http")
    named = {"uri": grantee, "type": "Group"} if group else {"canonicalId": grantee, "type": "CanonicalUser"}
    return {**named, "permission": permission}


def stored_acl(item: StubObject) -> Acl:
    """The ACL of an object as it is stored, whatever hides its grants."""
    return Acl(item.owner, item.grants if item.grants is not None else canned("private", item.owner))


def rows_of(bucket: StubBucket, *, versions: bool = False) -> list[dict[str, str]]:
    """The rows of all objects of a bucket of the stub, delete markers too, with all fields."""
    found = []
    for key in bucket.objects.keys:
        for number, item in enumerate(bucket.objects.versions(key)):
            if versions or (not number and not item.delete_marker):
                found.append(row_of(bucket.name, item, latest=not number))
    return found


def row_of(bucket: str, item: StubObject, *, latest: bool = True) -> dict[str, str]:
    headers = {name.lower(): value for name, value in item.headers.items()}
    marker = item.delete_marker
    kms = item.sse is not None and item.sse.startswith("aws:kms")
    return {
        "Bucket": bucket,
        "Key": item.key,
        "VersionId": "" if item.version_id in (None, "null") else str(item.version_id),
        "IsLatest": _bool(latest),
        "IsDeleteMarker": _bool(marker),
        "Size": "" if marker else str(item.size),
        "LastModifiedDate": item.last_modified.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
        "ETag": "" if marker else item.etag,
        "StorageClass": "" if marker else item.storage_class,
        "IsMultipartUploaded": _bool("-" in item.etag),
        "ReplicationStatus": headers.get("x-amz-replication-status", ""),
        "EncryptionStatus": "" if marker else "SSE-C" if item.sse_c else _ENCRYPTION[item.sse],
        "ObjectLockRetainUntilDate": headers.get("x-amz-object-lock-retain-until-date", ""),
        "ObjectLockMode": headers.get("x-amz-object-lock-mode", ""),
        "ObjectLockLegalHoldStatus": headers.get("x-amz-object-lock-legal-hold", ""),
        "ObjectLockEventHoldStatus": headers.get("x-amz-object-lock-event-hold", ""),
        "ObjectLockEventHoldDuration": headers.get("x-amz-object-lock-event-hold-duration-days", ""),
        "IntelligentTieringAccessTier": "",
        "BucketKeyStatus": ("ENABLED" if item.bucket_key else "DISABLED") if kms else "",
        "ChecksumAlgorithm": "",
        "ObjectAccessControlList": "" if marker else acl_field(stored_acl(item)),
        "ObjectOwner": "" if marker else item.owner,
        "LifecycleExpirationDate": "",
        "IntelligentTieringReferenceDate": "",
    }


def _bool(value: bool) -> str:
    return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report in a place. manifest: key of its manifest.json. files: keys of its data files."""

    manifest: str
    files: tuple[str, ...]

    @property
    def checksum(self) -> str:
        return self.manifest.replace("manifest.json", "manifest.checksum")


def write_report(
    put: Put,
    rows: Iterable[Row],
    *,
    bucket: str,
    columns: Sequence[str] = CURRENT,
    form: str = CSV,
    created: datetime = CREATED,
    prefix: str = "inventory",
    name: str = "auditor",
    files: int = 2,
) -> WrittenReport:
    """Write a report as S3 does: the data files, with the rows in no order, the manifest and its checksum. put: writes
    a file.
    """
    given = list(rows)
    random.Random(7).shuffle(given)
    folder = f"{prefix}/{bucket}/{name}" if prefix else f"{bucket}/{name}"
    entries: list[dict[str, Any]] = []
    for number in range(files):
        data = encoded(given[number::files], columns, form)
        key = f"{folder}/data/{created:%Y%m%d%H%M}-{number}.{'csv.gz' if form == CSV else 'parquet'}"
        put(key, data)
        entries.append({"key": key, "size": len(data), "MD5checksum": hashlib.md5(data).hexdigest()})
    manifest = json.dumps(
        {
            "sourceBucket": bucket,
            "destinationBucket": "arn:aws:s3:::reports",
            "version": "2016-11-30",
            "creationTimestamp": str(int(created.timestamp() * 1000)),
            "fileFormat": form,
            "fileSchema": ", ".join(columns) if form == CSV else parquet_schema(columns),
            "files": entries,
        }
    ).encode()
    report = WrittenReport(f"{folder}/{created:%Y-%m-%dT%H-%MZ}/manifest.json", tuple(one["key"] for one in entries))
    put(report.manifest, manifest)
    put(report.checksum, hashlib.md5(manifest).hexdigest().encode() + b"\n")
    return report


def encoded(rows: Sequence[Row], columns: Sequence[str], form: str) -> bytes:
    return gzip.compress(csv_bytes(rows, columns)) if form == CSV else parquet_bytes(rows, columns)


def csv_bytes(rows: Iterable[Row], columns: Sequence[str]) -> bytes:
    """The rows as CSV: every cell in quotes, no header, keys URL-encoded."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for row in rows:
        writer.writerow([quote_plus(row[one], safe="/") if one == "Key" else row[one] for one in columns])
    return text.getvalue().encode()


def snake(column: str) -> str:
    """The name of a column in Parquet."""
    return SNAKE.get(column) or "".join(f"_{c.lower()}" if c.isupper() else c for c in column).lstrip("_")


_TYPES: Final = {
    "IsLatest": "boolean",
    "IsDeleteMarker": "boolean",
    "IsMultipartUploaded": "boolean",
    "Size": "int64",
    "LastModifiedDate": "int64 (TIMESTAMP(MILLIS,true))",
    "ObjectLockRetainUntilDate": "int64 (TIMESTAMP(MILLIS,true))",
}
_SQL: Final = {"boolean": "BOOLEAN", "int64": "BIGINT"}


def parquet_schema(columns: Sequence[str]) -> str:
    fields = (f"{'required' if one in ('Bucket', 'Key') else 'optional'} {_type(one, snake(one))};" for one in columns)
    return f"message s3.inventory {{  {' '.join(fields)} }}"


def _type(column: str, name: str) -> str:
    kind, _, of = _TYPES.get(column, "binary (UTF8)").partition(" ")
    return f"{kind} {name} {of}".rstrip()


def parquet_bytes(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    import duckdb

    with tempfile.TemporaryDirectory(prefix="auditor-") as folder, duckdb.connect() as connection:
        lines = Path(folder) / "rows.json"
        lines.write_text("".join(json.dumps({snake(one): row[one] for one in columns}) + "\n" for row in rows))
        names = {snake(one): "VARCHAR" for one in columns}
        cells = ", ".join(_parquet_cell(one) for one in columns)
        file = Path(folder) / "rows.parquet"
        source = f"read_json('{lines}', format = 'newline_delimited', columns = {names!r})" if rows else _none(names)
        connection.execute(f"COPY (SELECT {cells} FROM {source}) TO '{file}' (FORMAT parquet)")
        return file.read_bytes()


def _none(names: Mapping[str, str]) -> str:
    return f"(SELECT {', '.join(f'NULL::{kind} AS {name}' for name, kind in names.items())} WHERE false)"


def _parquet_cell(column: str) -> str:
    name, kind = snake(column), _TYPES.get(column, "")
    if kind.startswith("int64 ("):
        return f"CAST(nullif({name}, '') AS TIMESTAMP) AS {name}"
    return f"CAST(nullif({name}, '') AS {_SQL.get(kind, 'VARCHAR')}) AS {name}"


FORMS: Final = (CSV, PARQUET)


def into(folder: Path) -> Put:
    """Return a function that writes files below a folder."""

    def put(key: str, data: bytes) -> None:
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    return put


def into_bucket(bucket: StubBucket) -> Put:
    """Return a function that writes objects to a bucket of the stub."""
    return lambda key, data: bucket.put(key, data)


def plain_rows(bucket: str, keys: Iterable[str], **cells: str) -> Iterator[dict[str, str]]:
    """The rows of private objects with these keys. cells: those that are other than usual."""
    for key in keys:
        yield {**row_of(bucket, StubObject(key=key)), **cells}
