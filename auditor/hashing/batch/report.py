"""Read a completion report of S3 Batch Operations: CSV with one row for each object, whose checksum is a cell
of JSON.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_plus

from msgspec import Struct

from auditor.errors import UsageError
from auditor.hashing.batch.job import S3_NAMES
from auditor.model.digest import of_base64, of_hex
from auditor.model.json_codec import JsonError, parse_object
from auditor.model.target import BUCKET_NAME

COLUMNS: Final = ("Bucket", "Key", "VersionId", "TaskStatus", "ErrorCode", "HTTPStatusCode", "ResultMessage")
_NEEDED: Final = ("Bucket", "Key", "TaskStatus", "ResultMessage")
_OURS: Final = {name: ours for ours, name in S3_NAMES.items()}
_LONGEST_CODE: Final = 100


class Task(Struct, frozen=True):
    """One row of a completion report: the result of the job for one object."""

    bucket: str
    key: str
    version_id: str | None
    """ID of the object version; None if the job's manifest named no version."""
    succeeded: bool
    code: str
    """Error code of the failure; "" after success."""
    message: str
    """Content of the column ResultMessage: the checksum as JSON, if the task succeeded."""


class Checksum(Struct, frozen=True):
    """A checksum that S3 computed of a whole object.

    digest: lower-case hex. etag: ETag of the object, without quotes.
    """

    algorithm: str
    digest: str
    etag: str


def columns_of(schema: object) -> tuple[str, ...]:
    """Return the column names of a report.

    schema: ReportSchema of the report's manifest.json. If it is missing, return COLUMNS.
    """
    if not isinstance(schema, str) or not schema.strip():
        return COLUMNS
    return tuple(name.strip() for name in schema.split(","))


def tasks(lines: Iterable[str], columns: Sequence[str], name: str) -> Iterator[Task]:
    """Yield the rows of one CSV file of a completion report, in order, without header lines.

    name: name of the file, for messages. Raises UsageError, with the line's number, at the first line that is not a row
    of a report.
    """
    if missing := [column for column in _NEEDED if column not in columns]:
        raise UsageError(f"{name} has no column {missing[0]}: give the completion report of a compute checksum job")
    reader = csv.reader(lines, strict=True)
    try:
        for cells in reader:
            if not cells or [cell.strip() for cell in cells] == list(columns):
                continue
            if len(cells) != len(columns):
                raise UsageError(
                    f"{name}, line {reader.line_num}: {len(cells)} columns where {len(columns)} belong:"
                    " give the completion report of a compute checksum job"
                )
            task = _task(dict(zip(columns, cells, strict=True)))
            if not BUCKET_NAME.fullmatch(task.bucket):
                raise UsageError(
                    f"{name}, line {reader.line_num}: {task.bucket[:100]!r} is no bucket: fetch the report again"
                )
            yield task
    except csv.Error as error:
        raise UsageError(f"{name}, line {reader.line_num}: it is no CSV ({error}): fetch the report again") from error


def _task(cells: Mapping[str, str]) -> Task:
    version = cells.get("VersionId", "").strip()
    succeeded = cells["TaskStatus"].strip().lower() == "succeeded"
    # Some real reports have the error code under HTTPStatusCode, and the status under ErrorCode.
    codes = [cells.get(column, "").strip() for column in ("ErrorCode", "HTTPStatusCode")]
    code = next((one for one in sorted(codes, key=str.isdecimal) if one), "failed")
    return Task(
        bucket=cells["Bucket"].strip(),
        key=unquote_plus(cells["Key"], errors="surrogatepass"),
        version_id=unquote_plus(version) or None,
        succeeded=succeeded,
        code="" if succeeded else code[:_LONGEST_CODE],
        message=cells["ResultMessage"],
    )


def checksum_of(task: Task) -> Checksum | str:
    """Return the checksum in a successful row.

    If the row has no usable checksum, return the reason: "composite", "unknown" (algorithm) or "unreadable".
    """
    try:
        result = parse_object(task.message)
    except JsonError:
        return "unreadable"
    if _text(result, "checksumType").upper() != "FULL_OBJECT":
        return "composite"
    algorithm = _OURS.get(_text(result, "checksumAlgorithm").upper())
    if algorithm is None:
        return "unknown"
    etag = _text(result, "etag").strip('"')
    digest = _digest(_text(result, "checksum_base64"), _text(result, "checksum_hex"), algorithm)
    if digest is None or not etag:
        return "unreadable"
    return Checksum(algorithm, digest, etag)


def _text(result: Mapping[str, Any], name: str) -> str:
    value = result.get(name)
    return value.strip() if isinstance(value, str) else ""


def _digest(in_base64: str, in_hex: str, algorithm: str) -> str | None:
    """Return a checksum in hex; None if both texts are empty, if one is malformed, or if the two disagree."""
    found: set[str | None] = {of_base64(in_base64, algorithm)} if in_base64 else set()
    found |= {of_hex(in_hex, algorithm)} if in_hex else set()
    return found.pop() if len(found) == 1 else None
