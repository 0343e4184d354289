"""A report of S3 Inventory in CSV, as S3 writes it, read and sorted as a mixed audit does."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from auditor.audit.sources.inventory_reports import load_newest
from auditor.model.object import ObjectRef
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from auditor.s3.inventory.fields import CSV, OPTIONAL_FIELDS
from auditor.s3.inventory.place import parse_place
from benchmarks.meter import Meter
from benchmarks.server.documents import LAST_MODIFIED, PAGE
from benchmarks.server.objects import BUCKET, OWNER, etag_of, key_of, size_of

_FOLDER: Final = f"inventory/{BUCKET}/nightly/2026-03-04T01-00Z"
_CREATED: Final = 1772586000000
"""The same time, in milliseconds since 1970."""
_COLUMNS: Final = ("Bucket", "Key", *OPTIONAL_FIELDS)
_ACL: Final = {
    "version": "2022-11-10",
    "status": "AVAILABLE",
    "grants": [{"canonicalId": OWNER, "type": "CanonicalUser", "permission": "FULL_CONTROL"}],
}
_EQUAL: Final = {
    "Bucket": BUCKET,
    "LastModifiedDate": LAST_MODIFIED,
    "StorageClass": "STANDARD",
    "IsMultipartUploaded": "false",
    "EncryptionStatus": "SSE-S3",
    "BucketKeyStatus": "DISABLED",
    "ChecksumAlgorithm": "CRC64NVME",
    "ObjectAccessControlList": base64.b64encode(json.dumps(_ACL).encode()).decode(),
    "ObjectOwner": OWNER,
}
"""The cells that all objects share."""
_FILE_ROWS: Final = 1_000_000


def rows(meter: Meter, *, objects: int, inside: bool) -> dict[str, Any]:
    """Measure the reading of a whole report.

    inside: True for a report of the audited range, whose rows are sorted and then looked up page by page; False for
    one without any row of it. Returns the number of rows, and the bytes of a compressed one.
    """
    target = Target(BUCKET) if inside else Target(BUCKET, start_after=f"{key_of(objects)}~")
    with tempfile.TemporaryDirectory() as place:
        written = write_report(Path(place), objects)
        store = LocalStore(Path(place))
        with meter.measuring(), load_newest(store, parse_place("s3://reports/inventory"), target) as loaded:
            found = sum(_looked_up(loaded.lookup.facts_of_page, objects)) if inside else 0
    if found != objects * inside:
        raise RuntimeError(f"{found} of {objects} rows were found")
    return {"objects": objects, "bytes": written / objects}


def _looked_up(facts_of_page: Any, objects: int) -> Iterator[int]:
    for start in range(0, objects, PAGE):
        refs = [_ref(number) for number in range(start, min(start + PAGE, objects))]
        yield sum(facts is not None for facts in facts_of_page(refs))


def _ref(number: int) -> ObjectRef:
    return ObjectRef(key_of(number), etag_of(number), size_of(number), LAST_MODIFIED, owner=OWNER)


def write_report(place: Path, objects: int) -> int:
    """Write a report with its rows in no order. Return the bytes of its data files."""
    numbers = list(range(objects))
    random.Random(1).shuffle(numbers)
    files: list[dict[str, str | int]] = []
    for start in range(0, objects, _FILE_ROWS):
        data = gzip.compress("".join(map(_row, numbers[start : start + _FILE_ROWS])).encode(), 6, mtime=0)
        name = f"inventory/{BUCKET}/nightly/data/{len(files)}.csv.gz"
        _put(place / name, data)
        files.append({"key": name, "size": len(data), "MD5checksum": hashlib.md5(data).hexdigest()})
    manifest = {
        "sourceBucket": BUCKET,
        "destinationBucket": "arn:aws:s3:::reports",
        "version": "2016-11-30",
        "creationTimestamp": str(_CREATED),
        "fileFormat": CSV,
        "fileSchema": ", ".join(_COLUMNS),
        "files": files,
    }
    data = json.dumps(manifest).encode()
    _put(place / _FOLDER / "manifest.json", data)
    _put(place / _FOLDER / "manifest.checksum", hashlib.md5(data).hexdigest().encode())
    return sum(int(str(file["size"])) for file in files)


def _row(number: int) -> str:
    cells = {**_EQUAL, "Key": key_of(number), "ETag": etag_of(number), "Size": str(size_of(number))}
    return ",".join(f'"{cells.get(column, "")}"' for column in _COLUMNS) + "\n"


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
