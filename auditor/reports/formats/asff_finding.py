"""Make one finding in ASFF, the format of AWS Security Hub, within the limits of its members.

Lengths are cut to the limits, counted in bytes of UTF-8, which are never fewer than characters:
https://docs.aws.amazon.com/securityhub/1.0/APIReference/API_AwsSecurityFinding.html
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Self

from msgspec import Struct, field

from auditor.aws.partition import partition_of
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.formats.base import encodable
from auditor.runs.paths import began_at
from auditor.text import visible

PRODUCT: Final = "s3-auditor"
SCHEMA: Final = "2018-10-08"
ID: Final = 512
TITLE: Final = 256
DESCRIPTION: Final = 1024
RECOMMENDATION: Final = 512
FIELD: Final = 1000
"""Largest number of bytes of a product field here. Security Hub takes 2,048 characters."""
KIND: Final = f"{PRODUCT}/kind"
RULE: Final = f"{PRODUCT}/rule"
PLACE: Final = f"{PRODUCT}/place"
RUN: Final = f"{PRODUCT}/run"
"""Product fields by which a later run knows the kind, the rule, the place and the run of a finding. A value is never
empty."""


class HubAccount(Struct, frozen=True):
    """The account and the region of the Security Hub that gets the findings, and their partition (aws, aws-cn ..)."""

    account: str
    region: str
    partition: str

    @classmethod
    def of(cls, account: str, region: str) -> Self:
        return cls(account, region, partition_of(region))

    @property
    def product_arn(self) -> str:
        """ARN of the default product, in whose name an account's own tools import."""
        return f"arn:{self.partition}:securityhub:{self.region}:{self.account}:product/{self.account}/default"


class AsffSubject(Struct, frozen=True, kw_only=True):
    """The subject of one finding, in words that are safe to print."""

    name: str
    """The end of the ID, the same in each run that has the subject."""
    generator: str
    """The end of the generator's ID: the rule or the verdict."""
    kind: str
    compliance: str
    severity: str
    title: str
    text: str
    fix: str
    """The remedy; "" if there is nothing to do."""
    count: int
    fields: Mapping[str, str | None] = field(default_factory=dict)
    """More product fields; those that are None are left out."""
    since: str | None = None
    """The time since which it is known, in ISO 8601; None: since this run."""
    keys: Sequence[str] = ()
    """Some of its objects, as S3 has their keys."""
    types: Sequence[str] = ()


def asff_finding(summary: Summary, hub: HubAccount, subject: AsffSubject) -> dict[str, Any]:
    """Return the finding on a subject of the run."""
    now = began_at(summary.run)
    first = _earlier(subject.since, now)
    own = {KIND: subject.kind, RUN: summary.run, f"{PRODUCT}/count": str(subject.count)}
    finding = {
        "SchemaVersion": SCHEMA,
        "Id": clipped(f"{ids_of(summary.target)}{subject.name}", ID),
        "ProductArn": hub.product_arn,
        "ProductName": PRODUCT,
        "GeneratorId": clipped(f"{PRODUCT}/{subject.generator}", ID),
        "AwsAccountId": hub.account,
        "CreatedAt": first,
        "UpdatedAt": now,
        "FirstObservedAt": first,
        "LastObservedAt": now,
        "Title": clipped(subject.title, TITLE),
        "Description": clipped(subject.text, DESCRIPTION),
        "Resources": list(_resources(hub.partition, summary.target.bucket, subject.keys)),
        "Compliance": {"Status": subject.compliance},
        "RecordState": "ACTIVE",
        "ProductFields": {
            name: clipped(value, FIELD) for name, value in {**own, **subject.fields}.items() if value is not None
        },
        "FindingProviderFields": {"Severity": {"Label": subject.severity}, "Types": list(subject.types)},
    }
    if subject.fix:
        finding["Remediation"] = {"Recommendation": {"Text": clipped(subject.fix, RECOMMENDATION)}}
    return finding


def ids_of(target: Target) -> str:
    """Return the beginning of the IDs of all findings on a target; no other target's begin so."""
    bounds = [target.bucket, target.prefix, target.versions, target.start_after, target.stop_at]
    return f"{PRODUCT}/{target.bucket}/{hashlib.sha256(json.dumps(bounds).encode()).hexdigest()[:16]}/"


def clipped(text: str, limit: int) -> str:
    """Return the text, or its beginning and `…`, in at most `limit` bytes of UTF-8. Lone surrogates are escaped."""
    data = encodable(text).encode()
    if len(data) <= limit:
        return data.decode()
    return f"{data[: limit - 3].decode(errors='ignore')}…"


def _resources(partition: str, bucket: str, keys: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the bucket and the objects. An object whose ARN is too long is left out: its beginning names another."""
    arn = f"arn:{partition}:s3:::{bucket}"
    yield {"Type": "AwsS3Bucket", "Id": arn}
    for name in dict.fromkeys(f"{arn}/{encodable(visible(key))}" for key in keys):
        if len(name.encode()) <= ID:
            yield {"Type": "AwsS3Object", "Id": name}


def _earlier(since: str | None, now: str) -> str:
    """Return the time `since` as ASFF writes times; `now` if it is none, or later."""
    try:
        moment = datetime.fromisoformat(since or now)
    except ValueError:
        return now
    text = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment.tzinfo else now
    return min(text, now)
