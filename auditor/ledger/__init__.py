"""The ledgers there are: the scheme of `--ledger` chooses one."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from auditor.errors import UsageError
from auditor.ledger.base import Ledger
from auditor.ledger.dynamodb.ledger import open_dynamodb
from auditor.ledger.sqlite.connection import MEMORY, file_of
from auditor.ledger.sqlite.ledger import open_sqlite


class LedgerOpener(Protocol):
    """Opens one kind of ledger; `name` is what follows the scheme."""

    def __call__(
        self,
        name: str,
        *,
        region: str | None,
        endpoint_url: str | None,
        profile: str | None,
        clock: Callable[[], float],
    ) -> AbstractAsyncContextManager[Ledger]: ...


LEDGERS: Final[dict[str, LedgerOpener]] = {"sqlite": open_sqlite, "dynamodb": open_dynamodb}


def open_ledger(
    uri: str,
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    profile: str | None = None,
    clock: Callable[[], float] = time.time,
) -> AbstractAsyncContextManager[Ledger]:
    """The ledger of a URI, `sqlite:PATH` or `dynamodb:TABLE`, to be entered; a bad URI is a UsageError at once.

    clock: seconds since the epoch, for leases.
    """
    scheme, _, name = uri.partition(":")
    if scheme not in LEDGERS or not name.strip() or "\0" in name:
        raise UsageError(f"--ledger {uri[:200]!r} is not a ledger: write sqlite:PATH or dynamodb:TABLE")
    return LEDGERS[scheme](name, region=region, endpoint_url=endpoint_url, profile=profile, clock=clock)


def ledger_file(uri: str) -> str | None:
    """The path of the file that such a ledger lies in; None where it lies in none."""
    scheme, _, name = uri.partition(":")
    return file_of(name) if scheme == "sqlite" and name != MEMORY else None
