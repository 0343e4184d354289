"""Give the wheel its URLs: only who publishes it knows where it lives, and says so in PROJECT_URL."""

from __future__ import annotations

import os
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectUrls(MetadataHookInterface):
    """Add the home of the variable PROJECT_URL, and its documentation and changelog. Without the variable, none."""

    def update(self, metadata: dict[str, Any]) -> None:
        home = os.environ.get("PROJECT_URL", "").rstrip("/")
        if home:
            files = {"Documentation": "docs", "Changelog": "CHANGELOG.md"}
            pages = {name: f"{home}/blob/HEAD/{path}" for name, path in files.items()}
            metadata["urls"] = {"Homepage": home, **pages}
        else:
            metadata["urls"] = {}
