"""Keys that S3 allows and software handles wrongly; every part of the product must pass them on unchanged."""

from __future__ import annotations

from tests.conformance.engines.world import ODD_KEYS as ODD_KEYS
