"""The engines by name. To add one: a module with `open_engine`, a line here; the conformance suite runs over all."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Final

from auditor.aws.connection import Connection
from auditor.s3.engines.base import Engine, EngineChoice, OpenEngine


def _open(name: str, connection: Connection) -> AbstractAsyncContextManager[Engine]:
    opening: AbstractAsyncContextManager[Engine] = _module(name).open_engine(connection)
    return opening


def _module(name: str) -> ModuleType:
    return import_module(f"auditor.s3.engines.{name}")


def load(name: str | None) -> None:
    """Import an engine's module now, so that opening the engine is quick. None: the default engine's module.

    For a function's start: Lambda gives it a whole CPU then, whatever its memory. A name that no engine has is passed
    over; the settings refuse it.
    """
    if (name or DEFAULT_ENGINE) in ENGINES:
        _module(name or DEFAULT_ENGINE)


# Each module is imported when its engine is opened: a cold start does not pay for an SDK that it does not use.
ENGINES: Final[dict[str, OpenEngine[Connection]]] = {
    name: partial(_open, name) for name in ("direct", "aioboto3", "boto3")
}
DEFAULT_ENGINE: Final = "direct"


def open_engine(choice: EngineChoice) -> AbstractAsyncContextManager[Engine]:
    """An engine for one run."""
    name, connection = choice
    return ENGINES[name](connection)
