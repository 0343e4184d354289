"""The configuration of S3 Inventory that an audit needs, and the policy of its destination. Nothing is sent.

Sources: PutBucketInventoryConfiguration (S3 API reference); S3 User Guide, "Granting permissions for S3 Inventory and
S3 analytics" (example-bucket-policies). S3 acts as the principal s3.amazonaws.com, and gives the reports to the owner
of the destination.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from auditor.model.target import Target
from auditor.s3.inventory.fields import OPTIONAL_FIELDS

ID: Final = "auditor"
"""The name of the configuration: the folder of its reports, and what DeleteBucketInventoryConfiguration takes."""
DESTINATION: Final = "DESTINATION-BUCKET"
ACCOUNT: Final = "ACCOUNT-ID"
"""Placeholders for what the user did not name. No bucket has the name of the first one, and no account the number."""
FIELDS: Final = OPTIONAL_FIELDS
"""A report costs the same with any fields, so all are asked for: a field that is missing in a report costs a call for
each object."""


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
