"""The arguments of the functions for Python programs: a wrong one is refused before anything is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.errors import UsageError


def test_what_if_refuses_a_wrong_argument(tmp_path: Path) -> None:
    wrong: list[tuple[str, Any, str]] = [
        ("acls", "no", "acls is 'no': give True or False"),
        ("block_public_access", 1, "block_public_access is '1': give True or False"),
        ("requester_pays", "yes", "requester_pays is 'yes': give True or False"),
        ("trust", "10.0.0.0/33", "the keyword trust has '10.0.0.0/33'"),
        ("trust", 5, "the keyword trust is '5'"),
    ]
    for argument, value, problem in wrong:
        with pytest.raises(UsageError, match=re.escape(problem)):
            auditor.what_if(tmp_path, **{argument: value})
