"""The files below renewals/ of a bucket: what was read of single objects between two runs, because of an event.

One file has the lines of the objects that one batch of events named. A file is never changed."""

from __future__ import annotations

import gzip
import logging
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.tasks import in_order
from auditor.errors import OutputError, UsageError
from auditor.model.dates import iso_date, seconds_in_utc
from auditor.model.json_codec import JsonError, decode, encode_line
from auditor.model.line_records import ObjectRecord, object_of
from auditor.model.run_lines import FindingLine, ObjectLine
from auditor.runs.parts import packed_lines
from auditor.runs.paths import began_at, bucket_path, new_run_id
from auditor.runs.reading import latest_runs
from auditor.runs.stores.base import Store
from auditor.text import visible

MOST: Final = 200_000
"""Largest number of renewed objects that are read: they are kept in memory, 2 KB each."""
FOLDER: Final = "renewals"
log = logging.getLogger(__name__)

SPARED: Final = timedelta(days=1)
"""Renewals of this time before the oldest of the last runs are spared: an audit that began before one of these ended
may still read them."""
MOST_DELETED: Final = 2_000
"""Largest number of files that one run deletes, which takes a few seconds. The next run deletes further ones."""
_AT_ONCE: Final = 16
_SUFFIX: Final = ".jsonl.gz"

ObjectId = tuple[str, str | None]
"""Key and version ID of an object; None without versions."""


CLOSE: Final = 60.0
"""Seconds within which two readings by different processes are in no order, because their clocks may differ."""


class RenewedObject(Struct, frozen=True):
    """One object as it was read after an event.

    at: when, in ISO 8601 in UTC. findings: those of the object, by the rules of the last run. sure: False if the ACL
    may be another one than it shows: another process saw another ACL at about the same time, or public grants may be
    hidden.
    """

    at: str
    line: ObjectLine
    findings: tuple[FindingLine, ...]
    sure: bool = True

    def after(self, before: RenewedObject | None) -> RenewedObject:
        """Return what is known of the object after two readings, this one and one that is not later by its clock."""
        if before is None or _seconds(self.at) - _seconds(before.at) > CLOSE:
            return self
        if before.sure and before.line.acl == self.line.acl:
            return self
        return replace(self, sure=False)


class _RenewalRecord(Struct, frozen=True):
    """A line of a file of renewals."""

    sure: bool
    object: ObjectRecord
    findings: tuple[FindingLine, ...]


def write_renewals(
    store: Store,
    bucket: str,
    at: datetime,
    entropy: bytes,
    lines: Iterable[tuple[ObjectRecord, Sequence[FindingLine]]],
    *,
    sure: bool,
) -> str:
    """Write the lines of objects, each with the lines of its findings, into a new file, and return its path. Blocks.

    sure: False if S3 may have hidden public grants of the ACLs.
    """
    path = f"{_folder(bucket)}{new_run_id(at, entropy)}{_SUFFIX}"
    text = b"".join(encode_line(_RenewalRecord(sure, line, tuple(found))) for line, found in lines)
    store.put(path, gzip.compress(text, mtime=0))
    return path


def read_renewals(
    store: Store, bucket: str, since: str, *, key: str | None = None, most: int = MOST
) -> Mapping[ObjectId, RenewedObject] | None:
    """Return the newest renewal of each object; None if there are more than `most`. Blocks.

    since: the time from which on files count, in ISO 8601 in UTC. key: read the renewals of this key alone; None for
    all. Raises OutputError if a file is damaged.
    """
    found: dict[ObjectId, RenewedObject] = {}
    for at, path in renewal_files(store, bucket, since):
        for one in _lines(store, path, at):
            if key is None or one.line.key == key:
                name = (one.line.key, one.line.version_id)
                found[name] = one.after(found.get(name))
            if len(found) > most:
                return None
    return found


def is_renewal(store: Store, bucket: str, key: str) -> bool:
    """True if this object of the bucket is itself a file of the bucket's renewals."""
    return f"s3://{bucket}/{key}".startswith(f"{store.uri(_folder(bucket).rstrip('/'))}/")


def _folder(bucket: str) -> str:
    return f"{bucket_path(bucket)}/{FOLDER}/"


def renewal_files(store: Store, bucket: str, since: str) -> Iterator[tuple[str, str]]:
    """Yield the times and paths of the files from `since` on, the oldest first."""
    for path in store.list(_folder(bucket)):
        name = path.rpartition("/")[2]
        if name.endswith(_SUFFIX):
            try:
                at = began_at(name.removesuffix(_SUFFIX))
            except UsageError:
                continue  # not a file of ours
            if at >= since:
                yield at, path


def _seconds(at: str) -> float:
    return iso_date(at).timestamp()


def _lines(store: Store, path: str, at: str) -> Iterator[RenewedObject]:
    data = store.get(path)
    try:
        if data is None:
            raise EOFError("it is gone")
        for line in packed_lines(data):
            found = decode(_RenewalRecord, line)
            yield RenewedObject(at, object_of(found.object), found.findings, found.sure)
    except (OSError, EOFError, zlib.error, JsonError) as error:
        raise OutputError(f"{store.uri(path)} is damaged ({error}): delete it, and audit without --keep") from error


def delete_outdated(store: Store, bucket: str) -> int:
    """Delete the files of renewals that every target's last complete run has taken in, and return their number. Blocks.

    A run takes in what was read before it began: it lists everything anew. So a file is outdated if the last complete
    runs of all targets of the bucket began after it. If this fails, the log says so, and the next run does it.
    """
    try:
        began = [began_at(run.run_id) for run in latest_runs(store, bucket)]
        if not began:
            return 0
        before = seconds_in_utc(iso_date(min(began)) - SPARED)
        outdated = (path for at, path in renewal_files(store, bucket, "") if at < before)
        return sum(
            1 for _ in in_order((partial(store.delete, path) for path in islice(outdated, MOST_DELETED)), _AT_ONCE)
        )
    except OutputError as error:
        log.warning("outdated renewals of the bucket %s were not all deleted: %s", bucket, visible(str(error)))
        return 0
