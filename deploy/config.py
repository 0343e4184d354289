"""Check the functions' auditor.toml when it is packed, because with a wrong file every run would fail."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from auditor.config.file import DEFAULT_FILE, load
from auditor.config.layers import resolve
from auditor.errors import UsageError
from auditor.rules import RULES
from auditor.rules.judge import select
from deploy.cut import Files
from deploy.errors import BuildError

NOT_THERE: Final = ("dead_letter_queue", "endpoint_url", "hash", "ledger", "profile", "queue")
"""Settings of a machine with files and profiles, and of resources that the deployment makes: no function reads them."""

_VARIABLE: Final = re.compile(r"^ +AUDITOR_([A-Z_]+):", re.MULTILINE)


def config_files(path: Path | None, buckets: Sequence[str] = ()) -> Files:
    """Return the file as the package has it. path: None: no file. Raises BuildError if the functions would refuse it.

    buckets: targets that the file names for the functions, because they are too many for a variable.
    """
    targets = f"buckets = {json.dumps(list(buckets))}\n".encode() if buckets else b""
    if path is None:
        return {DEFAULT_FILE: targets} if targets else {}
    try:
        layer, tables = load(str(path))
        settings = resolve([layer], tables)
        select(RULES, settings.rules, settings.only, settings.ignore)
    except UsageError as error:
        raise BuildError(str(error)) from error
    left_out = (*NOT_THERE, "buckets") if buckets else NOT_THERE
    if found := sorted(layer.values.keys() & set(left_out)):
        raise BuildError(f"{path}: a function cannot have {found[0]}: leave it out of the file for the functions")
    return {DEFAULT_FILE: targets + path.read_bytes()}


def outvoted(path: Path | None, root: Path) -> list[str]:
    """Return the file's settings without effect: parameters set them as variables too, and variables win."""
    if path is None:
        return []
    variables = {
        name.lower()
        for file in (root / "deploy" / "functions").glob("*.yml")
        for name in _VARIABLE.findall(file.read_text())
    }
    return sorted(load(str(path))[0].values.keys() & variables)
