"""Read settings from the keyword arguments of a Python program. Names, checks and messages are those of the flags."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Set
from typing import Any

from auditor.config.file import load
from auditor.config.layers import Layer, resolve
from auditor.config.settings import SETTINGS, Settings
from auditor.errors import UsageError
from auditor.model.target import Target, parse_target
from auditor.progress import Snapshot

Progress = Callable[[Snapshot], object]
"""A function that receives a snapshot of the work each second."""


def ignored(snapshot: Snapshot) -> None:
    """Do nothing with a snapshot of the progress. This is the default of the argument `progress`."""


def settings_from(keywords: Mapping[str, Any], config: str | None = None, *, needed: str | None = None) -> Settings:
    """Read the settings from keywords, then from the file `config`, then from the defaults. Ignores environment
    variables.

    needed: a setting that must have a value. Raises UsageError, which names the keyword.
    """
    check_texts(config=config)
    for name in keywords:
        if name not in SETTINGS:
            raise UsageError(f"the keyword {name!r} is no setting: use {', '.join(sorted(SETTINGS))}")
    first = Layer({name: plain_value(value) for name, value in keywords.items()}, str)
    layers = [first]
    tables: Mapping[str, Any] = {}
    if config is not None:
        file, tables = load(config)
        layers.append(file)
    settings = resolve(layers, tables)
    if needed is not None and getattr(settings, needed) is None:
        raise UsageError(f"the keyword {needed} is missing: {SETTINGS[needed].help}")
    return settings


def target_from(uri: str, settings: Settings, start_after: str | None, stop_at: str | None) -> Target:
    """Make the Target of a run from the arguments of a Python program; the settings say if the Target covers all
    versions. Raises UsageError for an argument that is wrong, or not a string.
    """
    if not isinstance(uri, str):
        raise UsageError(f"the target is {str(uri)[:100]!r}: give a text like s3://BUCKET/PREFIX")
    check_texts(start_after=start_after, stop_at=stop_at)
    return parse_target(uri, versions=settings.versions, start_after=start_after, stop_at=stop_at)


def check_texts(**arguments: object) -> None:
    """Raise UsageError for an argument that is neither a string nor None."""
    for name, value in arguments.items():
        if not isinstance(value, str | None):
            raise UsageError(f"{name} is {str(value)[:100]!r}: give a text")


def check_flags(**arguments: object) -> None:
    """Raise UsageError for an argument that is neither True, False nor None."""
    for name, value in arguments.items():
        if not isinstance(value, bool | None):
            raise UsageError(f"{name} is {str(value)[:100]!r}: give True or False")


def plain_value(value: Any) -> Any:
    """Turn a Python value into one as in TOML, for the readers of settings: a set into a list, a path into text."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Set):
        return sorted(value, key=str)
    return list(value) if isinstance(value, tuple) else value
