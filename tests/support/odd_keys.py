"""Keys that S3 allows and software handles wrongly; every part of the product must pass them on unchanged."""

from __future__ import annotations

from typing import Final

from tests.conformance.engines.world import ODD_KEYS as ODD_KEYS

MOTO_REFUSES: Final = frozenset({"newline", "both line ends"})
"""Names of the keys that moto 5.2 cannot hold: every call for a key with a newline is a 404."""
