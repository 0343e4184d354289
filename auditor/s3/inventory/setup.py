"""The configuration of S3 Inventory that an audit needs, the policy of its destination, and the choice among a bucket's
configurations of the one whose reports an audit can use. Nothing is sent.

Sources: PutBucketInventoryConfiguration (S3 API reference); S3 User Guide, "Granting permissions for S3 Inventory and
S3 analytics" (example-bucket-policies). S3 acts as the principal s3.amazonaws.com, and gives the reports to the owner
of the destination.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from auditor.errors import CallFailed, InventoryMissing
from auditor.model.target import BUCKET_NAME, Target
from auditor.s3.inventory.fields import OPTIONAL_FIELDS
from auditor.s3.inventory.place import InventoryPlace, parse_place

ID: Final = "auditor"
"""The name of the configuration: the folder of its reports, and what DeleteBucketInventoryConfiguration takes."""
DESTINATION: Final = "DESTINATION-BUCKET"
ACCOUNT: Final = "ACCOUNT-ID"
"""Placeholders for what the user did not name. No bucket has the name of the first one, and no account the number."""
FIELDS: Final = OPTIONAL_FIELDS
"""A report costs the same with any fields, so all are asked for: a field that is missing in a report costs a call for
each object."""

ACTION: Final = "ListBucketInventoryConfigurations"
RIGHT: Final = "s3:GetInventoryConfiguration"
MOST: Final = 1_000
"""Largest number of configurations of a bucket, and so of the pages that are read (S3 User Guide, "Amazon S3
Inventory"; a page has up to 100)."""
_READ: Final = frozenset({"CSV", "Parquet"})

AskPage = Callable[[str, str | None], Awaitable[Mapping[str, Any]]]
"""Makes a call on a setting of the bucket: its action, and the token of the page to read; None for the first one."""


class InventoryRequest(Struct, frozen=True, kw_only=True):
    """A configuration to make. bucket, prefix: the destination. account: the 12 digits of the account that owns the
    audited bucket. form: CSV, or Parquet. frequency: Daily or Weekly. partition: `aws`, or that of another cloud.
    """

    target: Target
    bucket: str = DESTINATION
    prefix: str = ""
    account: str = ACCOUNT
    form: str = "CSV"
    frequency: str = "Daily"
    partition: str = "aws"

    @property
    def placeholders(self) -> Sequence[str]:
        """The placeholders that the user has to replace."""
        return [name for name in (DESTINATION, ACCOUNT) if name in (self.bucket, self.account)]


def configuration(asked: InventoryRequest) -> dict[str, Any]:
    """Return the InventoryConfiguration, in the form of `aws s3api put-bucket-inventory-configuration`."""
    place: dict[str, Any] = {
        "Bucket": f"arn:{asked.partition}:s3:::{asked.bucket}",
        "Format": asked.form,
        "Encryption": {"SSES3": {}},
    }
    if asked.prefix:
        place["Prefix"] = asked.prefix
    filtered = {"Filter": {"Prefix": asked.target.prefix}} if asked.target.prefix else {}
    return {
        "Destination": {"S3BucketDestination": place},
        "IsEnabled": True,
        **filtered,
        "Id": ID,
        "IncludedObjectVersions": "All" if asked.target.versions else "Current",
        "OptionalFields": list(FIELDS),
        "Schedule": {"Frequency": asked.frequency},
    }


def destination_policy(asked: InventoryRequest) -> dict[str, Any]:
    """Return a bucket policy for the destination, which lets S3 write reports of this one bucket there."""
    above = f"{asked.prefix}/" if asked.prefix else ""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "InventoryReports",
                "Effect": "Allow",
                "Principal": {"Service": "s3.amazonaws.com"},
                "Action": "s3:PutObject",
                "Resource": [f"arn:{asked.partition}:s3:::{asked.bucket}/{above}{asked.target.bucket}/*"],
                "Condition": {
                    "ArnLike": {"aws:SourceArn": f"arn:{asked.partition}:s3:::{asked.target.bucket}"},
                    "StringEquals": {
                        "aws:SourceAccount": asked.account,
                        "s3:x-amz-acl": "bucket-owner-full-control",
                    },
                },
            }
        ],
    }


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
