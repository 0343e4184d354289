"""Words for the user: sentences on stderr, JSON documents on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from auditor.text import harmless


def say(sentence: str) -> None:
    """Print one line on stderr. Unprintable characters are escaped."""
    sys.stderr.write(f"auditor: {harmless(sentence)}\n")


def print_json(value: Mapping[str, Any]) -> None:
    """Print one document in one line, because a command can print several."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
