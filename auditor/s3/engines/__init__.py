"""The engines (S3 clients) by name. A new one is a module with `open_engine`, and a name in ENGINES."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
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
    """Import an engine's module ahead of its first use, so that opening the engine is fast.

    name: None for the default engine; a wrong name, or that of an engine which is not installed, is ignored here,
    because the settings refuse it. Lambda functions call this while they start, when they have a whole CPU.
    """
    if (chosen := name or DEFAULT_ENGINE) in ENGINES and is_installed(chosen):
        _module(chosen)


def is_installed(name: str) -> bool:
    """True if the packages of an engine are installed. Those of direct and boto3 always are."""
    return name != "aioboto3" or find_spec("aioboto3") is not None


# Each module is imported when its engine is opened, so that a cold start does not import an SDK that it does not use.
ENGINES: Final[dict[str, OpenEngine[Connection]]] = {
    name: partial(_open, name) for name in ("direct", "aioboto3", "boto3")
}
DEFAULT_ENGINE: Final = "direct"
ASKING: Final = frozenset({"direct"})
"""The engines that can also make the calls that read a bucket's settings. In runs with other engines, the SDK makes
these calls."""


def open_engine(choice: EngineChoice) -> AbstractAsyncContextManager[Engine]:
    """Return a context manager that opens an engine. choice: its name, and the connection to its bucket."""
    name, connection = choice
    return ENGINES[name](connection)
