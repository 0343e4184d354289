"""The engines by name. To add one: a module with `open_engine`, a line here; the conformance suite runs over all."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final

from auditor.engines import aioboto3, boto3, direct
from auditor.engines.interface import Connection, Engine, EngineFactory

ENGINES: Final[dict[str, EngineFactory]] = {
    "direct": direct.open_engine,
    "aioboto3": aioboto3.open_engine,
    "boto3": boto3.open_engine,
}
DEFAULT_ENGINE: Final = "direct"


Choice = tuple[str, Connection]
"""An engine's name, and what it is to reach."""


def open_engine(choice: Choice) -> AbstractAsyncContextManager[Engine]:
    """An engine for one run."""
    name, connection = choice
    return ENGINES[name](connection)
