"""Read settings from the keyword arguments of a Python program, with the names, checks and messages of the flags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from auditor.config.file import load
from auditor.config.settings import SETTINGS, Layer, Settings, refuse_removed, resolve
from auditor.errors import UsageError
from auditor.progress import Snapshot

Progress = Callable[[Snapshot], object]
"""Takes a snapshot of the work each second."""


def ignored(snapshot: Snapshot) -> None:
    """Do nothing: the Progress of a caller who wants none."""


def settings_from(keywords: Mapping[str, Any], config: str | None = None, *, needed: str | None = None) -> Settings:
    """Read the settings from these keywords, then from the file `config`, then the defaults. No variable is read.

    needed: a setting that must have a value. Raises UsageError, which names the keyword.
    """
    for name in keywords:
        refuse_removed(name, f"the keyword {name}")
        if name not in SETTINGS:
            raise UsageError(f"the keyword {name!r} is no setting: use {', '.join(sorted(SETTINGS))}")
    first = Layer({name: _plain(value) for name, value in keywords.items()}, str)
    layers = [first]
    tables: Mapping[str, Any] = {}
    if config is not None:
        file, tables = load(config)
        layers.append(file)
    settings = resolve(layers, tables)
    if needed is not None and getattr(settings, needed) is None:
        raise UsageError(f"the keyword {needed} is missing: {SETTINGS[needed].help}")
    return settings


def _plain(value: Any) -> Any:
    """Return a value in the form that TOML has, which the readers of settings take: a set or tuple becomes a list."""
    if isinstance(value, Set):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value
