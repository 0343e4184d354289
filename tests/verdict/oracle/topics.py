"""The conditions that people write into policies, by topic."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from tests.verdict.oracle.recipe import OURS, THEIRS

POINT: Final = f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/p"
ROLE: Final = f"arn:aws:iam::{THEIRS}:role/reader"

Tests = tuple[tuple[str, str, Any], ...]
"""Conditions as triples (operator, key, values)."""


def _topics(written: dict[str, list[tuple[str, str, list[Any]]]]) -> dict[str, Tests]:
    return {
        name: tuple((operator, key, value) for operator, key, values in listed for value in values)
        for name, listed in written.items()
    }


_FILE: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TOPICS: Final = _topics(_FILE["usual"])
KEYS_OF_2026: Final = _topics(_FILE["of_2026"])
"""Conditions on the keys that AWS has had since 2023."""
PARTS: Final[dict[str, list[Any]]] = _FILE["parts"]
"""The other parts of a case, each as often as it is to be drawn."""
COMMON: Final = ("network", "endpoint", "organization", "account", "arn", "transport", "referer", "source", "service")
COMMON_WITH_2026: Final = ("network", "endpoint", "vpc", "organization", "account", "transport", "principal tag")
