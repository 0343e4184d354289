"""The engines by name. To add one: a module with `open_engine`, a line here; the conformance suite runs over all."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Final

from auditor.engines.interface import Connection, Engine, EngineFactory


def _direct(connection: Connection) -> AbstractAsyncContextManager[Engine]:
    from auditor.engines import direct

    return direct.open_engine(connection)


def _aioboto3(connection: Connection) -> AbstractAsyncContextManager[Engine]:
    from auditor.engines import aioboto3

    return aioboto3.open_engine(connection)


def _boto3(connection: Connection) -> AbstractAsyncContextManager[Engine]:
    from auditor.engines import boto3

    return boto3.open_engine(connection)


def load(name: str) -> None:
    """Import an engine's module, so that opening it later does not; a name that is none is for the settings to refuse.

    For a function's start: Lambda gives it a whole CPU then, whatever its memory.
    """
    if name in ENGINES:
        import_module(f"auditor.engines.{name}")


# Each is imported when it is opened: a function's cold start does not pay for the SDK that it does not use.
ENGINES: Final[dict[str, EngineFactory]] = {"direct": _direct, "aioboto3": _aioboto3, "boto3": _boto3}
DEFAULT_ENGINE: Final = "direct"


Choice = tuple[str, Connection]
"""An engine's name, and what it is to reach."""


def open_engine(choice: Choice) -> AbstractAsyncContextManager[Engine]:
    """An engine for one run."""
    name, connection = choice
    return ENGINES[name](connection)
