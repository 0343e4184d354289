"""Take the settings from their sources: flags or an event, environment variables, auditor.toml."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from auditor.config.settings import SETTINGS, Settings
from auditor.errors import UsageError
from auditor.s3.inventory.place import parse_place
from auditor.text import likeliest

ENV_PREFIX: Final = "AUDITOR_"
_READ_ELSEWHERE: Final = (
    "CONFIG",
    "LOG_LEVEL",
    "MAP_CONCURRENCY",
    "RANGE_CALLS",
    "SERVICE",
    "STATE_MACHINE",
)
NO_SETTINGS: Final = tuple(f"{ENV_PREFIX}{name}" for name in _READ_ELSEWHERE)
"""Environment variables that are not settings: the command line and the Lambda functions read them elsewhere."""

_NOT_OURS: Final = f"{ENV_PREFIX}VERSION"
"""An environment variable that is not a setting, and still is not refused as a mistyped one. Pipelines keep the version
of the auditor to install in it."""

_ALIKE: Final = 0.8
"""Least likeness to a setting's name (difflib's ratio, 0 to 1) with which an unknown variable counts as a mistyped
setting. AUDITOR_MAXRATE and AUDITOR_BUCKET are above it, AUDITOR_BIN is below."""

_DUE: Final = ("max_age", "percent")


class Layer(Struct, frozen=True):
    """The raw values of settings from one source, such as the flags or auditor.toml.

    source: returns the name of a setting in this source, for messages: `--engine`, `AUDITOR_ENGINE`.
    """

    values: Mapping[str, Any]
    source: Callable[[str], str]


def variable(name: str) -> str:
    """Return the name of a setting's environment variable: AUDITOR_ENGINE for "engine"."""
    return f"{ENV_PREFIX}{name.upper()}"


def environment_layer(environ: Mapping[str, str] = os.environ) -> Layer:
    """Read all settings from environment variables such as AUDITOR_ENGINE. An empty variable counts as not set.

    Raises UsageError for a likely mistyped name. Ignores all other names.
    """
    known = {*map(variable, SETTINGS), *NO_SETTINGS}
    for name in sorted(environ):
        if name.startswith(ENV_PREFIX) and name not in known and name != _NOT_OURS and environ[name]:
            _check_spelling(name, known)
    given = {name: environ[variable(name)] for name in SETTINGS if environ.get(variable(name))}
    return Layer(given, variable)


def _check_spelling(name: str, known: Iterable[str]) -> None:
    candidates = [one.removeprefix(ENV_PREFIX) for one in known]
    if meant := likeliest(name.removeprefix(ENV_PREFIX), candidates, _ALIKE):
        raise UsageError(
            f"the variable {name[:100]!r} is unknown: write {ENV_PREFIX}{meant} if that is intended, or unset it"
        )


def _layers_for(name: str, layers: Sequence[Layer]) -> Sequence[Layer]:
    """Return the sources from which a setting may be taken: all of them, unless the setting is `max_age` or `percent`.

    `max_age` and `percent` cannot be combined, so both are taken from the first source that has either of them.
    """
    if name not in _DUE:
        return layers
    return [layer for layer in layers if any(layer.values.get(one) is not None for one in _DUE)][:1]


def resolve(layers: Sequence[Layer], tables: Mapping[str, Any] | None = None) -> Settings:
    """Make the settings from layers of raw values; the first layer that has a setting wins.

    tables: the tables of auditor.toml, checked. Raises UsageError, which names the source.
    """
    chosen: dict[str, Any] = dict(tables or {})
    for name, setting in SETTINGS.items():
        for layer in _layers_for(name, layers):
            if layer.values.get(name) is not None:
                chosen[name] = setting.read(layer.values[name], layer.source(name))
                break
    settings = Settings(**chosen)
    _check_source(settings)
    if (settings.queue or settings.hash) and not settings.ledger:
        raise UsageError("--queue and --hash need a ledger to know what is hashed: add --ledger sqlite:PATH")
    if settings.queue and settings.hash:
        raise UsageError("--queue and --hash cannot be combined: hash here, or let the worker do it")
    if settings.topic is not None and settings.topic == settings.chat_topic:
        raise UsageError("--topic and --chat-topic are the same topic: people would get the chat's JSON, so give two")
    if settings.max_cost is not None and settings.hash:
        raise UsageError("--max-cost does not count the reads of --hash: audit without --hash, then run auditor hash")
    if settings.max_age is not None and settings.percent is not None:
        raise UsageError("--max-age and --percent cannot be combined: choose objects by age or by share")
    if (settings.batch_over or settings.batch_manifest) and not settings.ledger:
        raise UsageError(
            "--batch-over and --batch-manifest need a ledger to know what is hashed: add --ledger sqlite:PATH"
        )
    return settings


def _check_source(settings: Settings) -> None:
    if settings.inventory is not None:
        parse_place(settings.inventory)
