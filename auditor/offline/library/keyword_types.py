"""The settings that each function of the library takes as keywords. Written by `make docs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Literal, TypedDict

Names = str | Iterable[str]
"""Names in a list, or in one text with commas between them."""


class BucketKeywords(TypedDict, total=False):
    """The settings that a function that asks S3 takes as keywords."""

    engine: Literal["direct", "aioboto3", "boto3"] | None
    """Client that sends the calls: direct (the default), aioboto3 or boto3."""
    endpoint_url: str | None
    """URL of an S3 server other than AWS; used for STS and DynamoDB too, unless they have their own."""
    profile: str | PathLike[str] | None
    """AWS profile."""
    region: str | PathLike[str] | None
    """The bucket's region (by default the auditor asks S3 for it)."""
    expected_owner: str | None
    """Fail unless this account (12 digits) owns the bucket."""
    requester_pays: bool | None
    """Pay for the requests (Requester Pays buckets)."""
    retry_attempts: int | None
    """Attempts for one call, at most (15)."""
    retry_seconds: float | None
    """Seconds for which one call is retried (60; at most 5 where no server has ever answered)."""
    first_answer: float | None
    """Seconds to wait for the very first answer from S3 or STS (10)."""


class ListingKeywords(BucketKeywords, total=False):
    """The settings that a function that lists a bucket takes as keywords."""

    concurrency: int | Literal["auto"] | None
    """Read at most this many objects at once, or auto (the default)."""
    max_rate: float | Literal["unlimited"] | None
    """Send at most this many calls a second (2000), or unlimited."""
    max_calls: int | None
    """Send at most this many calls, then stop."""
    versions: bool | None
    """Every version, not only the current one."""
    allow_empty: bool | None
    """Do not count a prefix without objects as a hole."""
    ledger: str | PathLike[str] | None
    """Where digests are kept: sqlite:PATH or dynamodb:TABLE."""
    algorithm: Names | None
    """The same as `algorithms`, by the name of its flag."""
    accept_cost: bool | None
    """Also hash objects of storage classes that charge for reading (IA, Glacier IR, Intelligent-Tiering)."""


class JudgeKeywords(TypedDict, total=False):
    """The settings that judge_run takes as keywords."""

    level: Literal["exposure", "metadata", "fixity"] | None
    """Exposure: send no HEAD; metadata, fixity: every call that the rules need."""
    only: Names | None
    """Only these rules: IDs or names."""
    ignore: Names | None
    """All rules except these: IDs or names."""
    semantics: Literal["aws", "ceph", "other", "auto"] | None
    """The server whose access rules apply: aws, ceph, other, or auto (the default)."""
    trusted: Names | None
    """Accounts, principals, canonical IDs, organizations, VPCs, VPC endpoints, networks, services, distributions and
    other sources, directory users and groups, whose access is not reported as shared."""


class AuditKeywords(ListingKeywords, JudgeKeywords, total=False):
    """The settings that audit_bucket takes as keywords."""

    max_cost: float | None
    """Stop before the S3 calls cost more than this."""
    keep: str | Mapping[str, str] | None
    """Reuse the last run's facts about unchanged objects, up to these ages: acl=3d,head=8d."""
    fail_on: str | None
    """Exit 3 for findings of at least this severity (high), or never; new:high: only if the last run lacked them."""
    out: str | PathLike[str] | None
    """Where run folders go (./auditor-runs): a directory or s3://BUCKET/PREFIX."""
    algorithms: Names | None
    """Digests to record: sha256 (the default), sha512, sha1, md5, crc64nvme."""
    streams: int | Literal["auto"] | None
    """Read this many ranges of one large object at once, or auto (the default)."""
    queue: str | PathLike[str] | None
    """Send objects without a digest to this queue."""
    hash: bool | None
    """Hash objects without a digest, in this process."""
    batch_over: str | int | None
    """Leave objects above this size, such as 500GB or 1TiB, to S3 Batch Operations."""
    batch_manifest: str | PathLike[str] | None
    """Where S3 Batch Operations manifests and jobs go (the run folder)."""
    batch_role: str | None
    """The role that S3 Batch Operations jobs run as."""
    every: str | None
    """Time between runs (1d), over which --keep, --max-age and --percent spread their reads."""
    source: Literal["live", "mixed"] | None
    """Live: read every fact with a call (the default); mixed: take facts of unchanged objects from S3 Inventory."""
    inventory: str | PathLike[str] | None
    """Where the bucket's S3 Inventory reports are, s3://BUCKET/PREFIX (by default the bucket's own configuration)."""
    key_policies: bool | None
    """Read the policy of each KMS key that encrypts an object (kms:GetKeyPolicy), once per key."""
    keep_metadata: bool | None
    """Store the values of user metadata, not only their names."""


class ExplainKeywords(BucketKeywords, total=False):
    """The settings that explain takes as keywords."""

    out: str | PathLike[str] | None
    """Where run folders go (./auditor-runs): a directory or s3://BUCKET/PREFIX."""
    key_policies: bool | None
    """Read the policy of each KMS key that encrypts an object (kms:GetKeyPolicy), once per key."""
    semantics: Literal["aws", "ceph", "other", "auto"] | None
    """The server whose access rules apply: aws, ceph, other, or auto (the default)."""
    trusted: Names | None
    """Accounts, principals, canonical IDs, organizations, VPCs, VPC endpoints, networks, services, distributions and
    other sources, directory users and groups, whose access is not reported as shared."""


class HashKeywords(ListingKeywords, total=False):
    """The settings that hash_bucket takes as keywords."""

    algorithms: Names | None
    """Digests to record: sha256 (the default), sha512, sha1, md5, crc64nvme."""
    streams: int | Literal["auto"] | None
    """Read this many ranges of one large object at once, or auto (the default)."""


class VerifyKeywords(ListingKeywords, total=False):
    """The settings that verify_bucket takes as keywords."""

    fail_on_outcomes: Names | None
    """Exit 3 if one of these outcomes occurs (mismatch,missing,lost); also possible: changed, deleted, new, or
    never."""
    fail_on: Names | None
    """The same as `fail_on_outcomes`, by the name of its flag."""
    out: str | PathLike[str] | None
    """Where run folders go (./auditor-runs): a directory or s3://BUCKET/PREFIX."""
    algorithms: Names | None
    """The digests to compare (all that the ledger has)."""
    max_age: str | None
    """Read only objects last read at least this long ago, such as 90d; each run reads its share of them."""
    percent: str | float | None
    """Read this percentage of the objects; each run reads different ones."""
    every: str | None
    """Time between runs (1d), over which --keep, --max-age and --percent spread their reads."""
    grace: str | None
    """The ledger may still lack objects younger than this (15m)."""
    record: bool | None
    """Also read new and changed objects, and record their digests."""
