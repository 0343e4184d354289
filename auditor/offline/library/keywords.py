"""Read settings from the keyword arguments of a Python program. Names, checks and messages are those of the flags."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, TypeVar

from auditor.config.file import load
from auditor.config.layers import Layer, resolve
from auditor.config.settings import SETTINGS, Settings
from auditor.errors import UsageError
from auditor.model.target import Target, parse_target
from auditor.progress import Snapshot
from auditor.text import likeliest

F = TypeVar("F", bound=Callable[..., object])

Progress = Callable[[Snapshot], object]
"""A function that receives a snapshot of the work each second."""


def ignored(snapshot: Snapshot) -> None:
    """Do nothing with a snapshot of the progress. This is the default of the argument `progress`."""


def documented(kind: type, **helps: str) -> Callable[[F], F]:
    """Return a decorator that adds the keywords of a function to its docstring, for help(). kind: one of
    keyword_types. helps: settings that mean something else here, with their help.
    """

    def add(function: F) -> F:
        order, named = [*SETTINGS], ((name, _setting_of(name, kind)) for name in kind.__annotations__)
        settings = dict(sorted(named, key=lambda one: (order.index(one[1]), one[0] != one[1])))
        lines = (f"    {name}: {helps.get(setting, SETTINGS[setting].help)}" for name, setting in settings.items())
        function.__doc__ = "\n".join([inspect.getdoc(function) or "", "", "Settings:", *lines])
        return function

    return add


def renamed(keywords: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Return keywords by the names of their settings. kind: the class of keyword_types with those that the function
    takes; a name of a flag, such as `algorithm`, stands for the setting. Raises UsageError for any other keyword.
    """
    found: dict[str, Any] = {}
    for name, value in keywords.items():
        if name not in kind.__annotations__:
            raise UsageError(_no_keyword(name, kind.__annotations__))
        setting = _setting_of(name, kind)
        if setting in found:
            raise UsageError(f"two keywords give the setting {setting}: leave one of them out")
        found[setting] = value
    return found


def _setting_of(name: str, kind: type) -> str:
    """Return the setting of a keyword: its own, or the one of the function whose flag has this name."""
    flag = f"--{name.replace('_', '-')}"
    return next((one for one in kind.__annotations__ if one in SETTINGS and SETTINGS[one].option == flag), name)


def _no_keyword(name: str, known: Mapping[str, Any]) -> str:
    if name in SETTINGS:
        return f"the keyword {name!r} does not apply here: use {', '.join(sorted(known))}"
    meant = likeliest(name, sorted(known))
    return f"the keyword {name[:100]!r} is not a setting: " + (
        f"did you mean {meant}?" if meant else f"use {', '.join(sorted(known))}"
    )


def settings_from(
    keywords: Mapping[str, Any], kind: type, config: str | None = None, *, needed: str | None = None
) -> Settings:
    """Read the settings from keywords, then from the file `config`, then from the defaults. Ignores environment
    variables.

    kind: as for renamed(). needed: a setting that must have a value. Raises UsageError, which names the keyword.
    """
    check_texts(config=config)
    first = Layer({name: plain_value(value) for name, value in renamed(keywords, kind).items()}, str)
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
    """Turn a Python value into one as in TOML, for the readers of settings: a path into text, an iterable into
    a list.
    """
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Set):
        return sorted(value, key=str)
    many = isinstance(value, Iterable) and not isinstance(value, str | bytes | list | Mapping)
    return list(value) if many else value
