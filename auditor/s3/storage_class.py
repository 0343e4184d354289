"""Tell which storage classes are archived, and for which a read costs more than the request."""

from __future__ import annotations

from typing import Final

_RETRIEVAL: Final = "each byte read is charged as retrieval"

_CHARGED: Final = {
    "INTELLIGENT_TIERING": "a read moves it back to the frequent access tier, where it is charged more for 30 days",
    "STANDARD_IA": _RETRIEVAL,
    "ONEZONE_IA": _RETRIEVAL,
    "GLACIER_IR": _RETRIEVAL,
}
"""By storage class: why a read costs more. Restored archives are absent, because their retrieval is paid with the
restore (S3 User Guide, "Understanding and managing Amazon S3 storage classes")."""

CHARGED_CLASSES: Final = frozenset(_CHARGED)
"""Storage classes for which a read may cost more than the request: charged() has a reason for each."""

_MONITORED: Final = 128 * 1024


def charged(storage_class: str | None, size: int | None = None) -> str | None:
    """Return in words why a read of an object in this class costs more than the request; None if it does not.

    storage_class: None means STANDARD. size: bytes; Intelligent-Tiering never moves an object of less than 128 KB, so a
    read of such an object costs nothing extra.
    """
    if storage_class == "INTELLIGENT_TIERING" and size is not None and size < _MONITORED:
        return None
    return _CHARGED.get(storage_class or "STANDARD")


ARCHIVED_CLASSES: Final = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Storage classes whose objects must be restored before they can be read."""
