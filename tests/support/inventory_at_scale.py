"""Write a large report of S3 Inventory, and join it with a listing: `python -m tests.support.inventory_at_scale`.

write FOLDER COUNT [FILES]   write a report of COUNT rows in no order
join FOLDER COUNT            find the facts of all COUNT objects; print numbers, the process's peak and seconds
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from math import gcd
from pathlib import Path
from typing import Final

from auditor.audit.mixed.reports import load_newest
from auditor.model.object import Acl, Grant, ObjectRef
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from auditor.s3.inventory.place import InventoryPlace
from tests.support.inventory_reports import CURRENT, acl_field
from tests.support.servers.world import OWNER

BUCKET: Final = "audited"
CREATED: Final = "2026-03-04T01-02Z"
FOLDER: Final = f"inventory/{BUCKET}/auditor"
PAGE: Final = 1000
ACLS: Final = 40
"""Number of different ACLs in the report."""
_STEP: Final = 7_368_787  # a prime: the rows come in no order
_MODIFIED: Final = "2026-01-02T03:04:05"


def key_of(number: int) -> str:
    return f"photos/{number // 10_000:06d}/ä {number:010d}+.jpg"


def etag_of(number: int) -> str:
    return f"{number * 2_654_435_761 % 2**64:032x}"


def write(folder: Path, count: int, files: int = 4) -> None:
    """Write a report of `count` rows in so many files, in bounded memory."""
    fields = [acl_field(Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(f"{n:064x}", "READ")))) for n in range(ACLS)]
    data = folder / FOLDER / "data"
    data.mkdir(parents=True)
    step = next(one for one in range(_STEP, _STEP + 1000) if gcd(one, count) == 1)
    entries = []
    for file in range(files):
        path = data / f"{file}.csv.gz"
        with gzip.open(path, "wb", compresslevel=1) as lines:
            for number in range(file, count, files):
                lines.write(_row(number * step % count, fields))
        with path.open("rb") as written:
            md5 = hashlib.file_digest(written, "md5").hexdigest()
        entries.append({"key": f"{FOLDER}/data/{path.name}", "size": path.stat().st_size, "MD5checksum": md5})
    manifest = json.dumps(
        {
            "sourceBucket": BUCKET,
            "creationTimestamp": "1772586120000",
            "fileFormat": "CSV",
            "fileSchema": ", ".join(CURRENT),
            "files": entries,
        }
    ).encode()
    (folder / FOLDER / CREATED).mkdir()
    (folder / FOLDER / CREATED / "manifest.json").write_bytes(manifest)
    (folder / FOLDER / CREATED / "manifest.checksum").write_text(hashlib.md5(manifest).hexdigest())


def _row(number: int, fields: list[str]) -> bytes:
    key = key_of(number).replace("ä", "%C3%A4").replace(" ", "+").replace("+.", "%2B.")
    cells = (
        *(
            BUCKET,
            key,
            str(number),
            f"{_MODIFIED}.000Z",
            etag_of(number),
            "STANDARD",
            "false",
            "",
            "SSE-S3",
            "",
            "",
            "",
        ),
        *("", "", "", "", "", fields[number % ACLS], OWNER, "", ""),
    )
    return ('"' + '","'.join(cells) + '"\n').encode()


def pages(count: int) -> Iterator[list[ObjectRef]]:
    """The pages of the listing of the same objects."""
    for first in range(0, count, PAGE):
        numbers = range(first, min(first + PAGE, count))
        yield [ObjectRef(key_of(one), etag_of(one), one, f"{_MODIFIED}Z", owner=OWNER) for one in numbers]


def join(folder: Path, count: int) -> dict[str, object]:
    """Find the facts of all objects, and return the numbers of it. The peak is that of this process, in MiB."""
    began = time.monotonic()
    wrong = 0
    with load_newest(LocalStore(folder), InventoryPlace("reports", "inventory"), Target(BUCKET)) as loaded:
        sorted_after = time.monotonic() - began
        for page in pages(count):
            for ref, facts in zip(page, loaded.lookup.facts_of_page(page), strict=True):
                if facts is None or facts.acl is None or facts.acl.grants[1].grantee != f"{ref.size % ACLS:064x}":
                    wrong += 1
    return {
        "matches": {str(match): number for match, number in loaded.lookup.matches.items()},
        "wrong": wrong,
        "peak_mib": peak_kib() / 1024,
        "sorted_after": round(sorted_after, 1),
        "seconds": round(time.monotonic() - began, 1),
    }


def peak_kib() -> int:
    """The largest memory that this process had. ru_maxrss would count that of the parent before the exec, too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def main() -> int:
    action, folder, count, *rest = sys.argv[1:]
    if action == "write":
        write(Path(folder), int(count), *map(int, rest))
    else:
        print(json.dumps(join(Path(folder), int(count))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
