"""Print for the user: sentences on stderr, JSON documents on stdout."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any

from auditor.text import harmless

log = logging.getLogger(__name__)


def say(sentence: str) -> None:
    """Print one line on stderr, after "auditor: ". Unprintable characters are escaped."""
    sys.stderr.write(f"auditor: {harmless(sentence)}\n")


def first_word(sentence: str) -> None:
    """Tell the user on a terminal what begins, before a first slow call. Elsewhere the sentence is only logged (-v)."""
    if sys.stderr.isatty():
        say(sentence)
    else:
        log.info("%s", sentence)


def print_json(value: Mapping[str, Any]) -> None:
    """Print a JSON document on one line of stdout, because a command can print several documents."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
