"""Read a completion report of S3 Batch Operations: CSV with one row for each object, whose checksum is a cell
of JSON. The CSV files are in a directory or a bucket, and each is copied to a temporary file, with its MD5 checked.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any, Final
from urllib.parse import unquote_plus

from msgspec import Struct

from auditor.config.settings import Settings
from auditor.errors import OutputError, RunError, UsageError
from auditor.hashing.batch.job import S3_NAMES
from auditor.hashing.limits import MIB
from auditor.model.digest import of_base64, of_hex
from auditor.model.json_codec import JsonError, parse_object
from auditor.model.target import BUCKET_NAME
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store

COLUMNS: Final = ("Bucket", "Key", "VersionId", "TaskStatus", "ErrorCode", "HTTPStatusCode", "ResultMessage")
_NEEDED: Final = ("Bucket", "Key", "TaskStatus", "ResultMessage")
_OURS: Final = {name: ours for ours, name in S3_NAMES.items()}
_LONGEST_CODE: Final = 100
MANIFEST: Final = "manifest.json"
LARGEST_MANIFEST: Final = 64 * MIB


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
                    f"{name}, line {reader.line_num}: {len(cells)} columns instead of {len(columns)}:"
                    " give the completion report of a compute checksum job"
                )
            task = _task(dict(zip(columns, cells, strict=True)))
            if not BUCKET_NAME.fullmatch(task.bucket):
                raise UsageError(
                    f"{name}, line {reader.line_num}: {task.bucket[:100]!r} is not a bucket: fetch the report again"
                )
            yield task
    except csv.Error as error:
        raise UsageError(f"{name}, line {reader.line_num}: it is not CSV ({error}): fetch the report again") from error


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


class ReportFile(Struct, frozen=True):
    """One CSV file of a completion report.

    path: path of the file in the report's store. md5: lower-case hex, from the report's manifest.json; None if unknown.
    columns: names of the file's columns.
    """

    path: str
    md5: str | None = None
    columns: tuple[str, ...] = COLUMNS


def open_report(given: str, settings: Settings) -> tuple[Store, str]:
    """Return the store that holds a completion report, and the report's path in it. The caller closes the store.

    given: a local path or an s3:// URI. Raises UsageError for any other URI.
    """
    scheme, found, rest = given.partition("://")
    if not found:
        return open_store("/"), os.path.abspath(given).lstrip("/")
    bucket, _, key = rest.partition("/")
    if scheme != "s3" or not BUCKET_NAME.fullmatch(bucket):
        raise UsageError(f"{given[:200]} is not a report: give a file, a directory, or s3://BUCKET/KEY")
    return open_store(f"s3://{bucket}", **settings.connection), key


def report_files(store: Store, given: str) -> list[ReportFile]:
    """Return the CSV files of a completion report.

    given: a path in the store: of the report's manifest.json, of its folder, of the folder `results` in it, or of one
    CSV file.
    """
    if given.endswith(".csv"):
        return [ReportFile(given)]
    if given.endswith(".json"):
        return _of_manifest(store, given, _opened(store, given))
    folder = given.rstrip("/")
    above, _, last = folder.rpartition("/")
    for place in (folder, above) if last == "results" else (folder,):
        manifest = _inside(place, MANIFEST)
        if (pieces := store.stream(manifest)) is not None:
            return _of_manifest(store, manifest, pieces)
    prefix = _inside(folder, "")
    paths = [path for path in store.list(prefix) if path.endswith(".csv")]
    if store.bucket is None:
        paths = [path for path in paths if "/" not in path.removeprefix(prefix)]
    if paths:
        return [ReportFile(path) for path in paths]
    raise UsageError(
        f"{store.uri(folder)[:200]} has no completion report: give its folder, its manifest.json or a CSV of it"
    )


@contextmanager
def fetched(store: Store, file: ReportFile) -> Iterator[IO[bytes]]:
    """Copy the file to a temporary file, and yield the copy, open at its start. Raises RunError if the MD5 is wrong."""
    digest = hashlib.md5(usedforsecurity=False)
    with _spooling():
        spool = TemporaryFile(prefix="auditor-")  # noqa: SIM115 - closed below
    with spool:
        for piece in _opened(store, file.path):
            digest.update(piece)
            with _spooling():
                spool.write(piece)
        with _spooling():
            spool.flush()
        if file.md5 is not None and digest.hexdigest() != file.md5:
            raise RunError(
                f"{store.uri(file.path)} does not have the MD5 that its manifest gives: it is damaged; fetch it again"
            )
        spool.seek(0)
        yield spool


def _opened(store: Store, path: str) -> Iterator[bytes]:
    pieces = store.stream(path)
    if pieces is None:
        raise RunError(f"{store.uri(path)} does not exist: check its name")
    return pieces


def _of_manifest(store: Store, path: str, pieces: Iterator[bytes]) -> list[ReportFile]:
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > LARGEST_MANIFEST:
            raise RunError(f"{store.uri(path)} is too large for a report's manifest: give the CSVs themselves")
    try:
        document = parse_object(bytes(data))
        entries = document["Results"]
        columns = columns_of(document.get("ReportSchema"))
        return [ReportFile(_path_of(store, path, entry), _md5(entry), columns) for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{store.uri(path)} is not the manifest of a completion report: fetch it again") from error


def _path_of(store: Store, manifest: str, entry: dict[str, Any]) -> str:
    """Return the path of a CSV file that the report's manifest.json names by bucket and key.

    Raises RunError if the file is missing or outside the report's folder. In a local copy of a report, the file is in
    the folder `results` or beside manifest.json, and its name is the last part of the key.
    """
    key, folder = str(entry.get("Key", "")), manifest.rpartition("/")[0]
    if store.bucket is not None:
        if entry.get("Bucket", store.bucket) != store.bucket or not key.startswith(_inside(folder, "")):
            raise RunError(f"{store.uri(manifest)} names a file outside its folder: give that file itself")
        return key
    name = PurePosixPath(key).name
    for path in (_inside(folder, f"results/{name}"), _inside(folder, name)):
        if name not in ("", "..") and store.stream(path) is not None:
            return path
    raise RunError(f"{store.uri(manifest)} names {name[:200]!r}, which is not beside it: copy the whole report")


def _inside(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _md5(entry: dict[str, Any]) -> str | None:
    value = entry.get("MD5Checksum")
    return value.strip().lower() if isinstance(value, str) and value.strip() else None


@contextmanager
def _spooling() -> Iterator[None]:
    """Convert an OSError in this `with` block to an OutputError that names the temporary file."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"the temporary file of a report cannot be written ({error.strerror}): free some space, or set TMPDIR"
        ) from error
