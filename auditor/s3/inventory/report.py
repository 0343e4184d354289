"""An S3 Inventory report: its manifest, and the columns of its data files.

Source: S3 User Guide, "Locating your inventory list" (storage-inventory-location) and "Cataloging and analyzing your
data with S3 Inventory" (storage-inventory). S3 writes manifest.json and then manifest.checksum, its MD5, when the data
files of a report are complete.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from auditor.errors import InventoryError
from auditor.model.dates import seconds_in_utc
from auditor.model.json_codec import JsonError, parse_object
from auditor.s3.inventory.fields import CSV, OPTIONAL_FIELDS, PARQUET
from auditor.text import counted, visible

MANIFEST: Final = "manifest.json"
CHECKSUM: Final = "manifest.checksum"

FOLDER: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}Z")
"""The name of a report's folder: the time at which S3 began to scan the bucket."""

IDENTITY: Final = ("Size", "LastModifiedDate", "ETag")
"""The optional fields that show whether an object was written again since the report. A report without one of them
cannot be matched with a listing."""

VERSION_FIELDS: Final = ("VersionId", "IsLatest", "IsDeleteMarker")
"""The fields of a report on all versions, beside the optional ones."""

_NAMES: Final = {name.lower(): name for name in ("Bucket", "Key", *VERSION_FIELDS, *OPTIONAL_FIELDS)}
_PARQUET_COLUMN: Final = re.compile(r"(?:required|optional)\s+\w+\s+(\w+)")
_MD5: Final = re.compile(r"[0-9a-f]{32}")


class InventoryFile(Struct, frozen=True):
    """A data file of a report. key: in the destination bucket. size: in bytes. md5: lower-case hex."""

    key: str
    size: int
    md5: str


class InventoryReport(Struct, frozen=True):
    """A complete report.

    bucket: the bucket that it is of. created: the time at which S3 began to scan the bucket, in ISO 8601 in UTC. It is
    the time of the facts. form: CSV or PARQUET. columns: the columns of a file, in order; a column that is not known
    keeps its own name.
    """

    bucket: str
    created: str
    form: str
    columns: tuple[str, ...]
    files: tuple[InventoryFile, ...]

    @property
    def versions(self) -> bool:
        """True if the report names versions, not only current objects."""
        return "VersionId" in self.columns and "IsLatest" in self.columns


class ReportOrigin(Struct, frozen=True):
    """The report that the facts of a run come from. uri: of its manifest. created: the time of the facts, in ISO 8601
    in UTC. refused: one sentence on each newer report that was refused.
    """

    uri: str
    created: str
    refused: tuple[str, ...] = ()

    def unseen(self, unreported: int) -> list[str]:
        """Return phrases on what an audit that used the report did not look at, for the summary. unreported: the number
        of objects whose stored ACL the report does not tell (Tally.unreported).
        """
        words = [f"changes since {self.created} of what the S3 Inventory report {visible(self.uri)} says of an object"]
        if unreported:
            of = counted(unreported, "object")
            words.append(f"hidden grants of {of} whose ACL the report does not have as they are listed")
        if self.refused:
            newer = counted(len(self.refused), "newer S3 Inventory report")
            words.append(f"{newer}, refused: {visible(self.refused[0])}")
        return words


def read_manifest(manifest: bytes, checksum: bytes | None, folder: str, name: str) -> InventoryReport:
    """Return the report that a manifest.json names.

    checksum: the bytes of manifest.checksum; None if there is no such file. folder: the name of the report's folder, a
    time. name: the URI of the manifest, for messages. Raises InventoryError if the report is incomplete or damaged, or
    in a format that is not read.
    """
    if checksum is None:
        raise InventoryError(f"{name} has no {CHECKSUM} beside it, so the report is incomplete")
    if hashlib.md5(manifest, usedforsecurity=False).hexdigest() != checksum.decode("latin-1").strip().lower():
        raise InventoryError(f"{name} does not have the MD5 of its {CHECKSUM}, so it is damaged")
    try:
        document = parse_object(manifest, name)
        form = document["fileFormat"]
        if form == "ORC":
            raise InventoryError(
                f"{name} belongs to a report in ORC, which is not supported: set the format to CSV or Parquet"
            )
        if form not in (CSV, PARQUET):
            raise InventoryError(f"{name} belongs to a report in a format other than CSV and Parquet")
        return InventoryReport(
            bucket=_text(document["sourceBucket"]).rpartition(":")[2],  # its name, or an ARN of any partition
            created=_created(document["creationTimestamp"], folder),
            form=form,
            columns=_columns(_text(document["fileSchema"]), form),
            files=tuple([_file(one) for one in document["files"]]),
        )
    except (JsonError, KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise InventoryError(f"{name} is not the manifest of an inventory report, so it is damaged") from error


def known_column(name: str) -> str:
    """Return the name of a column in the form of a CSV report: `e_tag` becomes `ETag`. An unknown name stays."""
    return _NAMES.get(name.strip().replace("_", "").lower(), name.strip())


def _columns(schema: str, form: str) -> tuple[str, ...]:
    names = schema.split(",") if form == CSV else _PARQUET_COLUMN.findall(schema)
    columns = tuple([known_column(name) for name in names])
    if "Bucket" not in columns or "Key" not in columns or len(set(columns)) < len(columns):
        raise ValueError("the schema names a column twice, or lacks Bucket or Key")
    return columns


def _created(value: object, folder: str) -> str:
    """Return the earlier one of the two times of a report: no fact may look younger than it is."""
    stated = datetime.fromtimestamp(int(_text(value)) / 1000, UTC)
    begun = datetime.strptime(folder, "%Y-%m-%dT%H-%MZ").replace(tzinfo=UTC) if FOLDER.fullmatch(folder) else stated
    return seconds_in_utc(min(stated, begun))


def _file(entry: Mapping[str, Any]) -> InventoryFile:
    key, size, md5 = _text(entry["key"]), int(entry["size"]), _text(entry["MD5checksum"]).strip().lower()
    if not key or size < 0 or not _MD5.fullmatch(md5):
        raise ValueError("a file has no key, size or MD5")
    return InventoryFile(key, size, md5)


def _text(value: object) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError("is not a text")
    return str(value)
