"""Choose among the S3 Inventory configurations of a bucket the one whose reports an audit can use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from auditor.errors import CallFailed, InventoryMissing
from auditor.model.target import BUCKET_NAME, Target
from auditor.s3.inventory.place import InventoryPlace, parse_place

ACTION: Final = "ListBucketInventoryConfigurations"
RIGHT: Final = "s3:GetInventoryConfiguration"
MOST: Final = 1_000
"""Largest number of configurations of a bucket, and so of the pages that are read (S3 User Guide, "Amazon S3
Inventory"; a page has up to 100)."""
_READ: Final = frozenset({"CSV", "Parquet"})

AskPage = Callable[[str, str | None], Awaitable[Mapping[str, Any]]]
"""Makes a call on a setting of the bucket: its action, and the token of the page to read; None for the first one."""


async def inventory_place(named: str | None, target: Target, ask: AskPage) -> InventoryPlace:
    """Return the place of the reports that the user names, or else one of the bucket's own configurations.

    named: the URI of the place; None if the user names none. Raises InventoryMissing if neither names one.
    """
    if named is not None:
        return parse_place(named)
    try:
        found = await configurations(ask)
    except CallFailed as failure:
        grant = f"grant {RIGHT}, or " if failure.status == 403 else ""
        raise InventoryMissing(
            f"the S3 Inventory of {target.uri} is not known ({ACTION}: {failure.code}): {grant}name the destination of"
            " its reports with --inventory s3://BUCKET/PREFIX"
        ) from failure
    return configured_place(found, target)


async def configurations(ask: AskPage) -> list[Mapping[str, Any]]:
    """Read all configurations of a bucket, page by page. Raises CallFailed, for a page that names no next one, too."""
    found: list[Mapping[str, Any]] = []
    token: str | None = None
    tokens: set[str] = set()
    while True:
        reply = await ask(ACTION, token)
        found.extend(reply.get("InventoryConfigurationList", ()))
        if not reply.get("IsTruncated"):
            return found
        token = reply.get("NextContinuationToken")
        if not token:
            raise CallFailed(ACTION, "Malformed", 200)
        if token in tokens or len(tokens) >= MOST:
            raise CallFailed(ACTION, "RepeatedToken", 200)
        tokens.add(token)


def configured_place(found: Iterable[Mapping[str, Any]], target: Target) -> InventoryPlace:
    """Return the place of the reports of one configuration. found: all of the bucket's, in botocore's form.

    A configuration is usable if it is enabled, in CSV or Parquet, covers the target, and has versions if the target
    has. One with ACLs goes before the others, then the first by its ID. Raises InventoryMissing if there is none.
    """
    usable = sorted(_usable(found, target))
    if not usable:
        raise InventoryMissing(
            f"{target.uri} has no usable S3 Inventory: `auditor inventory {target.uri}` prints one to set up, or name"
            " the destination of its reports with --inventory s3://BUCKET/PREFIX"
        )
    _, _, bucket, prefix = usable[0]
    return InventoryPlace(bucket, prefix)


def _usable(found: Iterable[Mapping[str, Any]], target: Target) -> Iterator[tuple[bool, str, str, str]]:
    """Yield of each usable configuration: True if it lacks ACLs, its ID, and the bucket and folder of its
    reports.
    """
    for one in found:
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
