"""The target of a run: bucket, prefix, range of object keys, and current or all versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from auditor.errors import UsageError

NOTHING_LISTED: Final = "nothing is listed"
"""The words for the hole of a run whose target lists nothing."""


@dataclass(frozen=True, slots=True)
class Target:
    """The objects that a run covers: those of `bucket` whose keys begin with `prefix` and lie in a range.

    The range begins after the key start_after and ends with the key stop_at; None: no limit. versions: True for all
    versions, False for the current version of each object.
    """

    bucket: str
    prefix: str = ""
    versions: bool = False
    start_after: str | None = None
    stop_at: str | None = None

    def covers(self, key: str) -> bool:
        """True if the key lies in the target's range: after start_after, and not after stop_at. The prefix is not
        compared. Python orders str as S3 orders keys: by code points, which is also the order of their UTF-8 bytes.
        """
        after = self.start_after is None or key > self.start_after
        return after and not self.beyond(key)

    def beyond(self, key: str) -> bool:
        return self.stop_at is not None and key > self.stop_at

    def lists_nothing(self, entries: int) -> bool:
        """True if the target names a prefix, and nothing is listed under it: the prefix may have a mistake. A whole
        bucket may be empty, and a range that begins after a key. entries: number of listed object versions and delete
        markers.
        """
        return bool(self.prefix) and not self.start_after and not entries

    @property
    def whole(self) -> bool:
        """True if the target has neither start_after nor stop_at. Only a run of a whole target may become the "latest"
        run.
        """
        return self.start_after is None and self.stop_at is None

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}" if self.prefix else f"s3://{self.bucket}"


def check_bucket_name(bucket: str) -> str:
    """Return the name if S3 allows it for a bucket, including the names of before 2018. Raises UsageError if not."""
    if "*" in bucket:
        raise UsageError(f"{bucket[:100]!r} has a `*`, and no bucket name has one: name each bucket")
    if not BUCKET_NAME.fullmatch(bucket) or ".." in bucket:
        raise UsageError(
            f"{bucket[:100]!r} is not a bucket name: write the target like s3://my-bucket or s3://my-bucket/prefix/"
        )
    if bucket.endswith("--x-s3"):
        raise UsageError(
            f"{bucket!r} is a directory bucket: it has no ACLs and lists in no order, and is not supported"
        )
    return bucket


def _check_key(text: str) -> None:
    """Raise UsageError for a key or prefix that is not UTF-8. Python decodes such an argument to lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{text[:100]!r} cannot begin a key: keys are UTF-8, and this is not") from error


def parse_target(
    uri: str, *, versions: bool = False, start_after: str | None = None, stop_at: str | None = None
) -> Target:
    """Parse `s3://BUCKET[/PREFIX]` into a Target. The prefix is all text after the slash, unchanged.

    Raises UsageError for any other URI, and for a range without keys.
    """
    scheme, separator, rest = uri.partition("://")
    if scheme.lower() != "s3" or not separator:
        raise UsageError(f"{uri!r} is not an S3 URI: write s3://BUCKET or s3://BUCKET/PREFIX")
    bucket, _, prefix = rest.partition("/")
    for text in (prefix, start_after or "", stop_at or ""):
        _check_key(text)
    if start_after is not None and stop_at is not None and stop_at <= start_after:
        raise UsageError(f"the range is empty: --stop-at {stop_at!r} does not come after --start-after {start_after!r}")
    return Target(check_bucket_name(bucket), prefix, versions, start_after, stop_at)


BUCKET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
"""Pattern of a bucket name: one that S3 allows today, or one from before 2018, with capitals and underscores. No
matching text can be read as a path."""
