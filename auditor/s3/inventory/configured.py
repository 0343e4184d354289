"""Choose among the S3 Inventory configurations of a bucket the one whose reports an audit can use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from auditor.errors import UsageError
from auditor.model.target import BUCKET_NAME, Target
from auditor.s3.inventory.place import InventoryPlace

ACTION: Final = "ListBucketInventoryConfigurations"
_READ: Final = frozenset({"CSV", "Parquet"})


def configured_place(reply: Mapping[str, Any], target: Target) -> InventoryPlace:
    """Return the place of the reports of one configuration, in a reply of ListBucketInventoryConfigurations.

    A configuration is of use if it is enabled, in CSV or Parquet, covers the target, and has versions if the target
    has. One with ACLs goes before the others, then the first by its ID. Raises UsageError if there is none.
    """
    found = sorted(_usable(reply, target))
    if not found:
        raise UsageError(
            f"{target.uri} has no S3 Inventory of use: `auditor inventory {target.uri}` prints one to set up, or name"
            " the destination of its reports by --inventory s3://BUCKET/PREFIX"
        )
    _, _, bucket, prefix = found[0]
    return InventoryPlace(bucket, prefix)


def _usable(reply: Mapping[str, Any], target: Target) -> Iterator[tuple[bool, str, str, str]]:
    """Yield of each configuration that is of use: True if it lacks ACLs, its ID, and the bucket and folder of its
    reports.
    """
    for one in reply.get("InventoryConfigurationList", ()):
        place = one.get("Destination", {}).get("S3BucketDestination", {})
        filtered = (one.get("Filter") or {}).get("Prefix") or ""
        bucket = str(place.get("Bucket", "")).rpartition(":")[2]
        name = str(one.get("Id", ""))
        covers = target.prefix.startswith(filtered) and (
            not target.versions or one.get("IncludedObjectVersions") == "All"
        )
        if one.get("IsEnabled") is True and place.get("Format") in _READ and covers and BUCKET_NAME.fullmatch(bucket):
            above = str(place.get("Prefix") or "").strip("/")
            folder = "/".join(part for part in (above, target.bucket, name) if part)
            yield "ObjectAccessControlList" not in (one.get("OptionalFields") or ()), name, bucket, folder
