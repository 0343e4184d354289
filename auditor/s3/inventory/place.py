"""The place of S3 Inventory's reports: the destination that a configuration names."""

from __future__ import annotations

from msgspec import Struct

from auditor.errors import UsageError
from auditor.model.target import BUCKET_NAME


class InventoryPlace(Struct, frozen=True):
    """Where reports lie. prefix: of their keys in the bucket, without a slash at its end; "" for the whole bucket."""

    bucket: str
    prefix: str

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def parse_place(uri: str) -> InventoryPlace:
    """Parse s3://BUCKET[/PREFIX]. Raises UsageError if the text is no such URI."""
    scheme, _, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not BUCKET_NAME.fullmatch(bucket):
        raise UsageError(f"--inventory is {uri[:200]!r}: give s3://BUCKET/PREFIX, the destination of the reports")
    return InventoryPlace(bucket, prefix.strip("/"))
