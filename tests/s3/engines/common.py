"""Shared by the tests of engines: each operation as a call, and an object with every header that S3 can send."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from auditor.model.object import Head
from auditor.s3.engines.base import Engine, ListQuery
from tests.conformance.engines.world import failure_of as failure_of
from tests.conformance.engines.world import list_all as list_all
from tests.conformance.engines.world import pieces as pieces
from tests.conformance.engines.world import read as read
from tests.support.servers.world import StubBucket

CALLS: Final[Mapping[str, Callable[[Engine], Awaitable[object]]]] = {
    "ListObjectsV2": lambda engine: engine.list_page(ListQuery(), None),
    "ListObjectVersions": lambda engine: engine.list_page(ListQuery(versions=True), None),
    "GetObjectAcl": lambda engine: engine.get_acl("key", None),
    "HeadObject": lambda engine: engine.head("key", None, checksum=False),
    "GetObject": lambda engine: read(engine, "key"),
}
"""Each operation an engine makes, as its simplest call."""

EVERYTHING: Final = Head(
    etag="e" * 32,
    content_length=3,
    last_modified="2026-01-02T03:04:05Z",
    content_type="text/plain; charset=x",
    content_encoding="gzip, aws-chunked",
    content_disposition='attachment; filename="a b.txt"',
    content_language="de, en",
    cache_control="no-cache",
    expires="never mind",
    metadata={"mixed-case": "Two  words", "empty": "", "encoded": "=?UTF-8?B?w6Q=?=", "raw": "caf\u00e9 \u20ac"},
    missing_meta=2,
    version_id="v0000001.stub",
    storage_class="GLACIER",
    server_side_encryption="aws:kms",
    sse_kms_key_id="arn:aws:kms:us-east-1:111122223333:key/k",
    bucket_key_enabled=True,
    checksum_type="FULL_OBJECT",
    checksum_crc32="Y3JjMzI=",
    checksum_crc32c="Y3JjMzJj",
    checksum_crc64nvme="Y3JjNjQ=",
    checksum_sha1="c2hhMQ==",
    checksum_sha256="c2hhMjU2",
    checksum_sha512="c2hhNTEy",
    checksum_md5="bWQ1",
    checksum_xxhash64="eHg2NA==",
    checksum_xxhash3="eHgz",
    checksum_xxhash128="eHgxMjg=",
    website_redirect_location="https://elsewhere.example/a?b=c",
    replication_status="COMPLETED",
    parts_count=3,
    tag_count=4,
    object_lock_mode="COMPLIANCE",
    object_lock_retain_until_date="2030-01-02T03:04:05Z",
    object_lock_legal_hold_status="ON",
    object_lock_event_hold="ON",
    object_lock_event_hold_duration_days=30,
    object_lock_event_hold_duration_years=7,
    restore='ongoing-request="true"',
    archive_status="DEEP_ARCHIVE_ACCESS",
    expiration='expiry-date="Fri, 21 Dec 2029 00:00:00 GMT", rule-id="r"',
)
"""The Head of an object with every header that S3 can send, but for SSE-C, which excludes KMS."""


def put_everything(bucket: StubBucket) -> None:
    bucket.versioning = "Enabled"
    wanted = EVERYTHING
    bucket.put(
        "everything",
        b"abc",
        etag=wanted.etag,
        content_type=wanted.content_type,
        metadata={"Mixed-Case": "Two  words", **{n: v for n, v in wanted.metadata.items() if n != "mixed-case"}},
        storage_class=wanted.storage_class,
        sse=wanted.server_side_encryption,
        kms_key=wanted.sse_kms_key_id,
        bucket_key=True,
        checksums={
            "CRC32": wanted.checksum_crc32,
            "CRC32C": wanted.checksum_crc32c,
            "CRC64NVME": wanted.checksum_crc64nvme,
            "SHA1": wanted.checksum_sha1,
            "SHA256": wanted.checksum_sha256,
            "SHA512": wanted.checksum_sha512,
            "MD5": wanted.checksum_md5,
            "XXHASH64": wanted.checksum_xxhash64,
            "XXHASH3": wanted.checksum_xxhash3,
            "XXHASH128": wanted.checksum_xxhash128,
        },
        checksum_type=wanted.checksum_type,
        headers={
            "Content-Encoding": str(wanted.content_encoding),
            "Content-Disposition": str(wanted.content_disposition),
            "Content-Language": str(wanted.content_language),
            "Cache-Control": str(wanted.cache_control),
            "Expires": str(wanted.expires),
            "x-amz-missing-meta": "2",
            "x-amz-website-redirect-location": str(wanted.website_redirect_location),
            "x-amz-replication-status": "COMPLETED",
            "x-amz-mp-parts-count": "3",
            "x-amz-tagging-count": "4",
            "x-amz-object-lock-mode": "COMPLIANCE",
            "x-amz-object-lock-retain-until-date": "2030-01-02T03:04:05.678Z",
            "x-amz-object-lock-legal-hold": "ON",
            "x-amz-object-lock-event-hold": "ON",
            "x-amz-object-lock-event-hold-duration-days": "30",
            "x-amz-object-lock-event-hold-duration-years": "7",
            "x-amz-restore": str(wanted.restore),
            "x-amz-archive-status": str(wanted.archive_status),
            "x-amz-expiration": str(wanted.expiration),
        },
    )
