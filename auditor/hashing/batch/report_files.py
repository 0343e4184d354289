"""Where completion reports lie, a directory or a bucket, and how their files come here, each checked by its MD5."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any, Final, Protocol

from botocore import exceptions as sdk

from auditor.errors import OutputError, RunError, UsageError
from auditor.hashing.batch.report import COLUMNS, columns_of
from auditor.model.target import BUCKET_NAME

MANIFEST: Final = "manifest.json"
PIECE: Final = 1024 * 1024
LARGEST_MANIFEST: Final = 64 * PIECE


@dataclass(frozen=True, slots=True)
class ReportFile:
    """One CSV of a report. name: how its place calls it. md5: lower-case hex, None where nobody told it."""

    name: str
    md5: str | None = None
    columns: tuple[str, ...] = COLUMNS


class Place(Protocol):
    """Names are whole: a path, or a URI. What cannot be read raises RunError or UsageError naming it."""

    def open(self, name: str) -> Iterator[bytes]:
        """The file's bytes, a piece at a time."""
        ...

    def has(self, name: str) -> bool: ...

    def below(self, folder: str) -> list[str]:
        """The CSV files of a folder, sorted."""
        ...

    def result(self, manifest: str, entry: dict[str, Any]) -> str:
        """The name of a file that a manifest lists by Bucket and Key: never one outside the manifest's folder."""
        ...


class LocalPlace:
    """Files of a directory to which a report was copied."""

    def open(self, name: str) -> Iterator[bytes]:
        try:
            with Path(name).open("rb") as file:
                while piece := file.read(PIECE):
                    yield piece
        except OSError as error:
            raise RunError(f"{name} cannot be read ({error.strerror or error}): check the path") from error

    def has(self, name: str) -> bool:
        return Path(name).is_file()

    def below(self, folder: str) -> list[str]:
        return sorted(str(path) for path in Path(folder).glob("*.csv"))

    def result(self, manifest: str, entry: dict[str, Any]) -> str:
        """By its last name: beside the manifest, or in `results` there."""
        base = PurePosixPath(str(entry.get("Key", ""))).name
        folder = Path(manifest).parent
        for path in (folder / "results" / base, folder / base):
            if base and path.is_file():
                return str(path)
        raise RunError(f"{manifest} names {base[:200]!r}, which is not beside it: copy the whole report")


class BucketPlace:
    """Files of one bucket. client: a boto3 S3 client."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def open(self, name: str) -> Iterator[bytes]:
        with _errors(name):
            body = self._client.get_object(Bucket=self._bucket, Key=self._key(name))["Body"]
            with body:
                yield from body.iter_chunks(PIECE)

    def has(self, name: str) -> bool:
        try:
            with _errors(name):
                self._client.head_object(Bucket=self._bucket, Key=self._key(name))
        except _MissingError:
            return False
        return True

    def below(self, folder: str) -> list[str]:
        prefix = f"{self._key(folder).rstrip('/')}/".lstrip("/")
        found = []
        with _errors(folder):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
                found += [item["Key"] for item in page.get("Contents", ())]
        return [f"s3://{self._bucket}/{key}" for key in sorted(found) if key.endswith(".csv")]

    def result(self, manifest: str, entry: dict[str, Any]) -> str:
        key = str(entry.get("Key", ""))
        folder = self._key(manifest).rpartition("/")[0]
        if entry.get("Bucket", self._bucket) != self._bucket or not key.startswith(f"{folder}/" if folder else ""):
            raise RunError(f"{manifest} names a file outside its own folder: give that report by itself")
        return f"s3://{self._bucket}/{key}"

    def _key(self, name: str) -> str:
        return name.removeprefix(f"s3://{self._bucket}").lstrip("/")


class _MissingError(RunError):
    """There is no such object."""


@contextmanager
def _errors(name: str) -> Iterator[None]:
    try:
        yield
    except sdk.ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "Unknown"))
        kind = _MissingError if code in {"404", "NoSuchKey"} else RunError
        raise kind(
            f"{name} cannot be read ({code}): check its name, and s3:GetObject and s3:ListBucket there"
        ) from error
    except sdk.BotoCoreError as error:
        raise RunError(f"{name} cannot be reached ({error}): check the network and the credentials") from error


def bucket_of(uri: str) -> str | None:
    """The bucket of an s3:// URI; None for a path. Raises UsageError for a URI of something else."""
    scheme, found, rest = uri.partition("://")
    if not found:
        return None
    bucket = rest.partition("/")[0]
    if scheme != "s3" or not BUCKET_NAME.fullmatch(bucket):
        raise UsageError(f"{uri[:200]} is no report: give a file, a directory, or s3://BUCKET/KEY")
    return bucket


def report_files(place: Place, given: str) -> list[ReportFile]:
    """The files of a report: given by its manifest.json, its folder, the `results` in it, or one of the CSVs."""
    if given.endswith(".csv"):
        return [ReportFile(given)]
    if given.endswith(".json"):
        return _of_manifest(place, given)
    folder = given.rstrip("/")
    above = folder.rpartition("/")[0]
    for manifest in (f"{folder}/{MANIFEST}", *([f"{above}/{MANIFEST}"] if folder.endswith("/results") else [])):
        if place.has(manifest):
            return _of_manifest(place, manifest)
    if files := place.below(folder):
        return [ReportFile(name) for name in files]
    raise UsageError(f"{given[:200]} holds no completion report: give its folder, its manifest.json or a CSV of it")


def _of_manifest(place: Place, name: str) -> list[ReportFile]:
    data = bytearray()
    for piece in place.open(name):
        data += piece
        if len(data) > LARGEST_MANIFEST:
            raise RunError(f"{name} is larger than any report's manifest: give the CSVs by themselves")
    try:
        told = json.loads(bytes(data))
        entries = told["Results"]
        columns = columns_of(told.get("ReportSchema"))
        return [ReportFile(place.result(name, entry), _md5(entry), columns) for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{name} is not the manifest of a completion report: fetch it again") from error


def _md5(entry: dict[str, Any]) -> str | None:
    told = entry.get("MD5Checksum")
    return told.strip().lower() if isinstance(told, str) and told.strip() else None


@contextmanager
def fetched(place: Place, file: ReportFile) -> Iterator[IO[bytes]]:
    """The file as a temporary one of this machine, at its start; raises RunError when its MD5 is another."""
    digest = hashlib.md5(usedforsecurity=False)
    with _spooling():
        spool = TemporaryFile(prefix="auditor-")  # noqa: SIM115 - closed below
    with spool:
        for piece in place.open(file.name):
            digest.update(piece)
            with _spooling():
                spool.write(piece)
        with _spooling():
            spool.flush()
        if file.md5 is not None and digest.hexdigest() != file.md5:
            raise RunError(f"{file.name} has not the MD5 that its manifest tells: it is damaged, fetch it again")
        spool.seek(0)
        yield spool


@contextmanager
def _spooling() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"the temporary file of a report cannot be written ({error.strerror}): free some space, or set TMPDIR"
        ) from error
