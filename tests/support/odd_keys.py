"""Keys that S3 allows and software handles wrongly; every part of the product must pass them on unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.conformance.engines.world import ODD_KEYS as ODD_KEYS

MOTO_REFUSES: Final = frozenset({"newline", "both line ends"})
"""Names of the keys that moto 5.2 cannot hold: every call for a key with a newline is a 404."""

MOTO_SERVES: Final[Mapping[str, str]] = {name: key for name, key in ODD_KEYS.items() if name not in MOTO_REFUSES}
"""The keys that moto lists (ListObjectsV2) and serves (HEAD, GET and GetObjectAcl) correctly."""
