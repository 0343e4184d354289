"""Groups of the members of a HEAD: those that stay while the object stands, and those that change beside it.

S3 writes an object as a whole, and each write gives it another LastModified. A few properties change without a write:
by a call of their own (PutObjectAcl, PutObjectTagging, PutObjectRetention, UpdateObjectEncryption, RestoreObject), by
replication, or by a lifecycle rule (S3 API reference; S3 User Guide, lifecycle-transition-general-considerations).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONTENT: Final = "content"
ENCRYPTION: Final = "encryption"
LOCK: Final = "lock"
TAGS: Final = "tags"
REPLICATION: Final = "replication"
ARCHIVE: Final = "archive"

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    CONTENT: (
        "etag",
        "content_length",
        "last_modified",
        "content_type",
        "content_encoding",
        "content_disposition",
        "content_language",
        "cache_control",
        "expires",
        "metadata",
        "missing_meta",
        "version_id",
        "checksum_type",
        "checksum_crc32",
        "checksum_crc32c",
        "checksum_crc64nvme",
        "checksum_sha1",
        "checksum_sha256",
        "checksum_sha512",
        "checksum_md5",
        "checksum_xxhash64",
        "checksum_xxhash3",
        "checksum_xxhash128",
        "website_redirect_location",
        "parts_count",
    ),
    ENCRYPTION: ("server_side_encryption", "sse_kms_key_id", "bucket_key_enabled", "sse_customer_algorithm"),
    LOCK: (
        "object_lock_mode",
        "object_lock_retain_until_date",
        "object_lock_legal_hold_status",
        "object_lock_event_hold",
        "object_lock_event_hold_duration_days",
        "object_lock_event_hold_duration_years",
    ),
    TAGS: ("tag_count",),
    REPLICATION: ("replication_status",),
    ARCHIVE: ("storage_class", "restore", "archive_status", "expiration"),
}
"""The members of a HEAD by group. Those of CONTENT are kept while version, ETag, size and LastModified stand."""

GROUP_OF: Final[Mapping[str, str]] = {member: group for group, members in GROUPS.items() for member in members}
CHANGING: Final = tuple(group for group in GROUPS if group != CONTENT)
"""The groups that change without a write of the object."""
