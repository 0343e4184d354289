"""What a verification has around it: where reports go, and the ledger that objects are compared with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from auditor.ledgers.interface import Ledger
from auditor.places import ledger_of, open_places
from auditor.settings import Settings
from auditor.stores import Store
from auditor.target import Target


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where reports go, and what objects are compared with."""

    store: Store
    ledger: Ledger


@asynccontextmanager
async def surroundings(settings: Settings, targets: Sequence[Target]) -> AsyncIterator[Surroundings]:
    """As the settings name them. Raises UsageError when the store lies in a bucket that is verified."""
    bare = replace(settings, ledger=None, queue=None, batch_over=None, batch_manifest=None)
    async with (
        open_places(bare, targets) as places,
        ledger_of(settings) as ledger,
    ):
        yield Surroundings(places.store, ledger)
