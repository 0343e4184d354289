"""The functions' auditor.toml: checked as it is packed, for one that they cannot read would fail every night."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from auditor.config.file import DEFAULT_FILE, load
from auditor.config.settings import resolve
from auditor.errors import UsageError
from auditor.rules import RULES
from auditor.rules.selection import select
from deploy.cut import Files
from deploy.errors import BuildError

NOT_THERE: Final = ("dead_letter_queue", "endpoint_url", "hash", "ledger", "profile", "queue")
"""Settings of a machine with files and profiles: in a function they name nothing, or what the deployment has made."""

_VARIABLE: Final = re.compile(r"^ +AUDITOR_([A-Z_]+):", re.MULTILINE)


def config_files(path: Path | None) -> Files:
    """The file as it lies in the package; None: no file. Raises BuildError for what the functions would refuse."""
    if path is None:
        return {}
    try:
        layer, tables = load(str(path))
        settings = resolve([layer], tables)
        select(RULES, settings.rules, settings.only, settings.ignore)
    except UsageError as error:
        raise BuildError(str(error)) from error
    if found := sorted(layer.values.keys() & set(NOT_THERE)):
        raise BuildError(
            f"{path}: {found[0]} is nothing that a function has: leave it out of the file for the functions"
        )
    return {DEFAULT_FILE: path.read_bytes()}


def outvoted(path: Path | None, root: Path) -> list[str]:
    """Settings of the file that are variables of the functions, made of parameters: those win over the file."""
    if path is None:
        return []
    variables = {
        name.lower()
        for file in (root / "deploy" / "functions").glob("*.yml")
        for name in _VARIABLE.findall(file.read_text())
    }
    return sorted(load(str(path))[0].values.keys() & variables)
