"""The kinds of ledgers, by the scheme of a `--ledger` URI."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import Final

from auditor.errors import UsageError
from auditor.ledger.base import Ledger

# Each is imported when it is opened: a Lambda function without a ledger then starts without SQLite and the SDK.
LEDGERS: Final = {"sqlite": "open_sqlite", "dynamodb": "open_dynamodb"}
"""Name of the function that opens a ledger, by the scheme of the ledger's URI.

The scheme is also the name of a package in auditor.ledger, whose module `ledger` has the function."""

MEMORY: Final = ":memory:"
"""The name that a SQLite ledger without a file has in place of a path. Such a ledger is lost when it is closed."""


def open_ledger(
    uri: str,
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    profile: str | None = None,
    clock: Callable[[], float] = time.time,
) -> AbstractAsyncContextManager[Ledger]:
    """Return an async context manager that opens the ledger of a URI: `sqlite:PATH` or `dynamodb:TABLE`.

    region, endpoint_url, profile: for the AWS client of a DynamoDB ledger; None for the SDK's defaults. clock: returns
    seconds since the epoch, by which leases expire. Raises UsageError for a wrong URI.
    """
    scheme, _, name = uri.partition(":")
    if scheme not in LEDGERS or not name.strip() or "\0" in name:
        raise UsageError(f"--ledger {uri[:200]!r} is not a ledger: write sqlite:PATH or dynamodb:TABLE")
    module = import_module(f"auditor.ledger.{scheme}.ledger")
    opened: AbstractAsyncContextManager[Ledger] = getattr(module, LEDGERS[scheme])(
        name, region=region, endpoint_url=endpoint_url, profile=profile, clock=clock
    )
    return opened


def ledger_file(uri: str) -> str | None:
    """Return the path of the file of a SQLite ledger; None for a ledger without a file."""
    scheme, _, name = uri.partition(":")
    if scheme != "sqlite":
        return None
    return None if name == MEMORY else file_of(name)


def file_of(name: str) -> str:
    """Return the path of the file from a SQLite ledger's URI, with `~` expanded. Raises UsageError.

    name: the part of the URI after the scheme.
    """
    if name == MEMORY:
        return name
    try:
        return str(Path(name).expanduser())
    except RuntimeError as error:
        raise UsageError(
            f"--ledger sqlite:{name[:200]}: that home directory does not exist: write the whole path"
        ) from error
