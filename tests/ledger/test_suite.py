"""The ledger suite, run over each kind of ledger."""

from __future__ import annotations

import pytest

from tests.conformance.ledgers import CHECKS, SLOW_CHECKS, LedgerCheck, OpenLedger


@pytest.mark.parametrize(
    "check",
    [*CHECKS, *(pytest.param(check, marks=pytest.mark.slow) for check in SLOW_CHECKS)],
    ids=lambda check: check.__name__,
)
async def test_ledger_keeps_its_promise(check: LedgerCheck, opener: OpenLedger) -> None:
    await check(opener)
