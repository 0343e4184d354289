"""Words for the user: sentences on stderr, JSON documents on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from auditor.text import harmless


def say(sentence: str) -> None:
    """One line on stderr; what does not print is escaped."""
    sys.stderr.write(f"auditor: {harmless(sentence)}\n")


def print_json(value: Mapping[str, Any]) -> None:
    """One document a line, so that several can be told apart."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
