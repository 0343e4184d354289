"""The target of a run: bucket, prefix, range of object keys, and current or all versions."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from msgspec import Struct

from auditor.errors import UsageError
from auditor.text import counted

NOTHING_LISTED: Final = "nothing is listed"
"""The words for the hole of a run whose target lists nothing."""


class Target(Struct, frozen=True):
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
            f"{bucket[:100]!r} is not a bucket name ({_fault_of(bucket)}): write the target like s3://my-bucket or"
            " s3://my-bucket/prefix/"
        )
    if bucket.endswith("--x-s3"):
        raise UsageError(
            f"{bucket!r} is a directory bucket: it has no ACLs and lists in no order, and is not supported"
        )
    return bucket


def _fault_of(bucket: str) -> str:
    """Return why S3 allows no bucket of this name (S3 User Guide, "General purpose bucket naming rules")."""
    if not 3 <= len(bucket) <= 255:
        return f"it has {counted(len(bucket), 'character')}, and a bucket name has 3 to 63"
    if odd := _NOT_IN_NAMES.search(bucket):
        return f"{odd[0]!r} is in no name"
    return "two dots follow each other" if ".." in bucket else "a name begins and ends with a letter or a digit"


def _check_key(text: str) -> None:
    """Raise UsageError for a key or prefix that is too long, or not UTF-8. Python decodes such an argument to lone
    surrogates.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"{text[:100]!r} cannot begin a key: keys are UTF-8, and this is not") from error
    if size > LONGEST_KEY:
        raise UsageError(f"{text[:100]!r}.. has {size:,} bytes, and no key has more than {LONGEST_KEY:,}: shorten it")


def parse_target(
    uri: str, *, versions: bool = False, start_after: str | None = None, stop_at: str | None = None
) -> Target:
    """Parse `s3://BUCKET[/PREFIX]` into a Target. The prefix is all text after the slash, unchanged. The ARN of a
    bucket or of its keys, and the https URL of a bucket at AWS, mean the same; in a URL the prefix is percent-encoded.

    Raises UsageError for any other text, and for a range without keys.
    """
    bucket, prefix = _bucket_and_prefix(uri)
    for text in (prefix, start_after or "", stop_at or ""):
        _check_key(text)
    if start_after is not None and stop_at is not None and stop_at <= start_after:
        raise UsageError(f"the range is empty: --stop-at {stop_at!r} does not come after --start-after {start_after!r}")
    return Target(check_bucket_name(bucket), prefix, versions, start_after, stop_at)


def _bucket_and_prefix(uri: str) -> tuple[str, str]:
    scheme, separator, rest = uri.partition("://")
    if separator and scheme.lower() == "s3":
        bucket, _, prefix = rest.partition("/")
        return bucket, prefix
    if found := _ARN.fullmatch(uri):
        return found["bucket"], found["key"] or ""
    if separator and scheme.lower() in ("http", "https"):
        return _of_url(uri)
    meant = _SLIP.sub("", uri)
    named = BUCKET_NAME.fullmatch(meant.partition("/")[0])
    write = f"s3://{meant[:100]}" if named else "s3://BUCKET or s3://BUCKET/PREFIX"
    raise UsageError(f"{uri[:100]!r} is not an S3 URI: write {write}")


def _of_url(url: str) -> tuple[str, str]:
    """Return bucket and prefix of the URL of a bucket at AWS: `https://BUCKET.s3.REGION.amazonaws.com/PREFIX`,
    `https://s3.REGION.amazonaws.com/BUCKET/PREFIX` (S3 User Guide, "Virtual hosting"), or that of its console page.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise UsageError(f"{url[:100]!r} is not a URL ({error}): write s3://BUCKET/PREFIX") from error
    path = unquote(parts.path.removeprefix("/"), errors="surrogateescape")
    named, _, rest = path.partition("/")
    if _CONSOLE.fullmatch(parts.netloc) and (page := _CONSOLE_PAGE.fullmatch(path)):
        return page["bucket"], parse_qs(parts.query, errors="surrogateescape").get("prefix", [""])[0]
    found = _HOST.fullmatch(parts.netloc.lower())
    if found is not None and not parts.query and not parts.fragment:
        return (found["bucket"], path) if found["bucket"] else (named, rest)
    server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    hint = "" if found else f", and --endpoint-url {server[:100]} if this is an S3 server"
    raise UsageError(f"a URL that begins with {server[:100]!r} is not an S3 URI: write s3://BUCKET/PREFIX{hint}")


BUCKET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
"""Pattern of a bucket name: one that S3 allows today, or one from before 2018, with capitals and underscores. No
matching text can be read as a path."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_ARN: Final = re.compile(r"arn:aws[a-z-]*:s3:::(?P<bucket>[^/]*)(?:/(?P<key>.*?)\*?)?", re.DOTALL)
"""The ARN of a bucket, or of its keys with a prefix, such as arn:aws:s3:::my-bucket/logs/* in a policy."""
_HOST: Final = re.compile(
    r"(?:(?P<bucket>[a-z0-9._-]+)\.)?s3(?:[.-](?:dualstack\.)?[a-z]{2}(?:-[a-z]+)+-[0-9]+)?\.amazonaws\.com(?:\.cn)?"
)
"""The host names of S3 at AWS, in lower case."""
_SLIP: Final = re.compile(r"[sS]3:?/+")
"""A scheme with a mistake, such as s3:/ or s3//."""
_CONSOLE: Final = re.compile(r"(?:[a-z0-9.-]+\.)?console\.aws\.amazon\.com")
_CONSOLE_PAGE: Final = re.compile(r"s3/(?:buckets|object)/(?P<bucket>[^/]+)/?")
LONGEST_KEY: Final = 1024
"""Largest number of bytes of a key in UTF-8 (S3 User Guide, "Naming Amazon S3 objects")."""
