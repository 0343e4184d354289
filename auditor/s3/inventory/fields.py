"""The formats and the optional fields of S3 Inventory."""

from __future__ import annotations

from typing import Final

CSV: Final = "CSV"
PARQUET: Final = "Parquet"

OPTIONAL_FIELDS: Final = (
    "Size",
    "LastModifiedDate",
    "ETag",
    "StorageClass",
    "IsMultipartUploaded",
    "ReplicationStatus",
    "EncryptionStatus",
    "ObjectLockRetainUntilDate",
    "ObjectLockMode",
    "ObjectLockLegalHoldStatus",
    "ObjectLockEventHoldStatus",
    "ObjectLockEventHoldDuration",
    "IntelligentTieringAccessTier",
    "BucketKeyStatus",
    "ChecksumAlgorithm",
    "ObjectAccessControlList",
    "ObjectOwner",
    "LifecycleExpirationDate",
    "IntelligentTieringReferenceDate",
)
"""The optional fields of a report, by the names that a configuration and the manifest of a CSV report give them
(InventoryConfiguration, S3 API reference)."""
