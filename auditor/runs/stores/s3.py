"""A store in a bucket. Each file is written by one PutObject, on a condition if the caller needs one."""

from __future__ import annotations

import logging
import time
from builtins import list as List  # noqa: N812 - the store has a method of that name
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Final, Self

from auditor.aio.backoff import backoff
from auditor.aws.failures import explain
from auditor.errors import CallFailed, CredentialsError, OutputError, UsageError
from auditor.runs.stores.base import BucketObjects, Change, checked, content_type, json_file, md5_of, members_of
from auditor.runs.stores.local import output_errors
from auditor.text import visible

UPDATES: Final = 12
"""Number of attempts of a conditional write before it gives up. The waits between them sum to 10 to 20 s."""
SEEN_BYTES: Final = 64 * 1024
"""Largest JSON file that is kept in memory for its next change."""
ABSENT: Final = "create the bucket, or choose another --out"
_REFUSED: Final = frozenset({"PreconditionFailed", "412"})
CONFLICTS: Final = _REFUSED | {"ConditionalRequestConflict", "409"}
_MISSING: Final = frozenset({"NoSuchKey", "404"})
_NO_CONDITIONS: Final = frozenset({"NotImplemented", "501"})
_WRITES: Final = "s3:PutObject, s3:GetObject, s3:DeleteObject and s3:ListBucket there"
_READS: Final = (
    "s3:GetObject and s3:ListBucket, by the policy of this identity or of the bucket, and kms:Decrypt where a key"
    " encrypts it (docs/deploy.md, Levels and roles)"
)

log = logging.getLogger(__name__)


class S3Store:
    """A store of objects in a bucket, below the key prefix `prefix`.

    sleep: waits for so many seconds between two attempts to write. absent: what to do if there is no such bucket.
    """

    def __init__(
        self,
        objects: BucketObjects,
        bucket: str,
        prefix: str = "",
        sleep: Callable[[float], None] = time.sleep,
        absent: str = ABSENT,
    ) -> None:
        self._absent = absent
        self._objects = objects
        self.bucket: str | None = bucket
        self.prefix = f"{prefix}/" if prefix else ""
        self._sleep = sleep
        self._conditional = True
        self._readable = False
        self._seen: dict[str, tuple[bytes | None, str | None]] = {}
        self._spool: Path | None = None

    def uri(self, path: str = "") -> str:
        return f"s3://{self.bucket}/{self.prefix}{path}".rstrip("/")

    def check_writable(self) -> None:
        """Test the permissions by a write whose condition cannot hold: S3 checks permissions first, and writes no file.

        The store reads a file before, unless a read has succeeded already: a conditional write needs the permission to
        read too, and S3 does not say which of the two permissions is missing.
        """
        key = f"{self.prefix}.auditor-probe"
        with self._errors(self.uri()):
            if not self._readable:
                self._read(".auditor-probe")
            try:
                self._objects.put(key, b"", kind=content_type(key), md5=md5_of(b""), IfMatch=f'"{"0" * 32}"')
            except CallFailed as failure:
                if failure.code not in CONFLICTS | _MISSING:
                    self._do_without_conditions(failure)
            else:  # the server ignores conditions and has written the file
                self._objects.delete(key)
                self._do_without_conditions()

    def put(self, path: str, data: bytes) -> None:
        with self._errors(self.uri(path)):
            self._put(path, data)

    def get(self, path: str) -> bytes | None:
        with self._errors(self.uri(path)):
            found = self._read(path)
        if path.endswith(".json"):
            self._see(path, *found)
        return found[0]

    def stream(self, path: str) -> Iterator[bytes] | None:
        with self._errors(self.uri(path)):
            try:
                pieces = self._objects.stream(f"{self.prefix}{path}")
            except CallFailed as failure:
                if failure.code in _MISSING:
                    return None
                raise
        return self._pieces(path, pieces)

    def list(self, prefix: str) -> List[str]:
        wanted = f"{self.prefix}{prefix}"
        with self._errors(self.uri(prefix)):
            keys = list(self._objects.keys(wanted))
        if stray := next((key for key in keys if not key.startswith(wanted)), None):  # listed files may be deleted
            raise OutputError(
                f"the listing of {self.uri(prefix)} names {visible(stray)}, which does not begin with the prefix that"
                " was asked for: it proves nothing"
            )
        found = [key[len(self.prefix) :] for key in keys]
        return sorted(path for path in found if not path.rpartition("/")[2].startswith("."))

    def delete(self, path: str) -> None:
        with self._errors(self.uri(path)):
            self._objects.delete(self._key(path))

    def update_json(self, path: str, change: Change) -> None:
        """Change a JSON file.

        If this store has read or written the file before, it begins with the value that it remembers. If the file has
        changed since, read it and try again.
        """
        uri = self.uri(path)
        seen = self._seen.pop(path, None)
        if seen is not None and self._conditional and self._changed(path, change, *seen) is True:
            return
        for attempt in range(UPDATES):
            with self._errors(uri):
                found = self._read(path)
            if self._changed(path, change, *found) is not False:
                return
            self._sleep(_pause(attempt))
        raise OutputError(f"{uri} is being written by too many processes at once: run again")

    def _changed(self, path: str, change: Change, data: bytes | None, tag: str | None) -> bool | None:
        """Call `change` with `data`, and write the result if the file still has the tag `tag`.

        Return True if the file was written, False if it has another tag; None if nothing is to be changed.
        """
        uri = self.uri(path)
        with self._errors(uri):
            value = change(members_of(data, uri))
            if value is None:
                return None
            written = json_file(value)
            new = self._put_where(path, written, tag)
        if new is not None:
            self._see(path, written, new)
        return new is not None

    def _see(self, path: str, data: bytes | None, tag: str | None) -> None:
        if len(data or b"") <= SEEN_BYTES:
            self._seen[path] = data, tag

    def get_tagged(self, path: str) -> tuple[bytes | None, str | None]:
        with self._errors(self.uri(path)):
            return self._read(path)

    def put_if(self, path: str, data: bytes, tag: str | None) -> str | None:
        with self._errors(self.uri(path)):
            return self._put_where(path, data, tag)

    def put_new_file(self, path: str, local: Path) -> bool:
        """Move a local file, of 5 GB at most, to the path `path`. Return False if another file has this path.

        If a file with the same bytes has the path, return True: it is this process's own write, whose answer was lost.
        """
        uri = self.uri(path)
        for attempt in range(UPDATES):
            with self._errors(uri), output_errors(local):
                placed = self._placed(path, local)
                if placed:
                    local.unlink()
            if placed is not None:
                return placed
            self._sleep(_pause(attempt))
        raise OutputError(f"{uri} is being written by too many processes at once: run again")

    def replace_file(self, path: str, local: Path) -> str | None:
        with self._errors(self.uri(path)), output_errors(local):
            with local.open("rb") as body:
                tag = self._put(path, body)
            local.unlink()
        return tag.strip('"')

    def spool_dir(self, folder: str) -> Path:
        """Return a temporary directory, the same for all folders. close() deletes it."""
        checked(folder)
        if self._spool is None:
            import tempfile  # a run in a directory and the hashing function do without its two milliseconds

            with output_errors(tempfile.gettempdir()):
                self._spool = Path(tempfile.mkdtemp(prefix="auditor-"))
        return self._spool

    def close(self) -> None:
        if self._spool is not None:
            from shutil import rmtree  # which tempfile has imported

            rmtree(self._spool, ignore_errors=True)
            self._spool = None
        self._objects.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _key(self, path: str) -> str:
        return self.prefix + checked(path)

    def _put(self, path: str, body: bytes | BufferedReader, **condition: str) -> str:
        # Buckets with Object Lock require Content-MD5, and every S3 checks it.
        return self._objects.put(self._key(path), body, kind=content_type(path), md5=md5_of(body), **condition)

    def _put_where(self, path: str, body: bytes | BufferedReader, tag: str | None) -> str | None:
        """Write the file if it still has the tag `tag` (None: if it does not exist), and return its new tag.

        Return None if the file has another tag. If the server has no conditional writes, the tag is read before the
        write.
        """
        if self._conditional:
            try:
                return self._put_on(path, body, tag)
            except CallFailed as failure:
                self._do_without_conditions(failure)
        return self._put(path, body) if self._read(path)[1] == tag else None

    def _put_on(self, path: str, body: bytes | BufferedReader, tag: str | None) -> str | None:
        """Write the file by a conditional write: only if its ETag is `tag`, or with None, only if it does not exist.

        Return the new ETag; None if the condition does not hold. If the server refuses a condition that holds, try the
        ETag without quotes, as Ceph compares it.
        """
        bare = None if tag is None else tag.strip('"')
        for form in dict.fromkeys((tag, bare)):
            try:
                return self._put(path, body, **({"IfNoneMatch": "*"} if form is None else {"IfMatch": form}))
            except CallFailed as failure:
                code = failure.code
                if code not in CONFLICTS | _MISSING:  # missing: another process removed the file since we read it
                    raise
                if tag is None or code not in _REFUSED or self._read(path)[1] != tag:
                    return None
        self._do_without_conditions()
        return self._put(path, body)

    def _placed(self, path: str, local: Path) -> bool | None:
        """Try to write a new file. Return True if it is in place, False if a file with other bytes is there.

        Return None if another process is writing the file at this moment, so that the caller has to try again.
        """
        with local.open("rb") as body:
            if self._put_where(path, body, None) is not None:
                return True
            there = self._read(path)[0]
            body.seek(0)
            return None if there is None else there == body.read()

    def _do_without_conditions(self, error: CallFailed | None = None) -> None:
        """Log that the server has no conditional writes, and from now on read before each write.

        error: the server's refusal of a conditional write. If it has another cause, it is raised.
        """
        if error is not None and error.code not in _NO_CONDITIONS:
            raise error
        if self._conditional:
            self._conditional = False
            log.warning(
                "%s does not support conditional writes: two processes on one run could both write it; run only one",
                self.uri(),
            )

    def _read(self, path: str) -> tuple[bytes | None, str | None]:
        """Return the file's bytes, and its ETag in quotes, as conditions need it; (None, None) without a file."""
        found: tuple[bytes | None, str | None] = None, None
        try:
            found = self._objects.get(self._key(path))
        except CallFailed as failure:
            if failure.code not in _MISSING:
                raise
        self._readable = True
        return found

    def _pieces(self, path: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        with self._errors(self.uri(path)):
            yield from pieces

    @contextmanager
    def _errors(self, uri: str) -> Iterator[None]:
        """Convert the errors of calls in this `with` block to an OutputError, which is one sentence with the fix."""
        try:
            yield
        except CallFailed as failure:
            allow = _READS if failure.action in ("GetObject", "ListObjectsV2") else _WRITES
            raise OutputError(explain(uri, failure, allow=allow, absent=self._absent)) from failure
        except (CredentialsError, UsageError) as error:
            raise OutputError(f"{uri} cannot be used: {error}") from error


def _pause(attempt: int) -> float:
    return backoff(attempt, first=0.05, longest=3.0)
