"""The ledger suite, run over each kind of ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.conformance.ledgers import CHECKS, SLOW_CHECKS, LedgerCheck, OpenLedger

LARGE: Final = frozenset(
    {
        "histories_of_all_keys_come_in_order",
        "many_at_once_stand_each_for_itself",
        "notes_keep_their_order_and_one_that_comes_twice_is_one",
        "of_64_claimants_one_wins",
        "of_64_that_take_over_at_once_one_does",
        "reader_along_the_listing_answers_as_a_look_up_does",
        "refs_of_one_look_up_are_answered_in_order",
        "subjects_below_a_prefix",
        "twenty_workers_on_one_key_lose_no_line",
        "two_writers_at_once_leave_one_truth",
    }
)
"""Checks of many rows. moto takes a hundred times as long for a row as SQLite, so `make test-slow` runs these there."""


def cases() -> Iterator[Any]:
    assert {check.__name__ for check in CHECKS} >= LARGE
    for check in (*CHECKS, *SLOW_CHECKS):
        # moto takes ten seconds for hundreds of keys, which fill no page of a shard: tests/system/real has them.
        for kind in ("sqlite",) if check in SLOW_CHECKS else ("sqlite", "dynamodb"):
            large = kind != "sqlite" and check.__name__ in LARGE
            marks = [pytest.mark.slow] if check in SLOW_CHECKS or large else []
            yield pytest.param(check, kind, marks=marks, id=f"{kind}-{check.__name__}")


@pytest.mark.parametrize(("check", "opener"), [*cases()], indirect=["opener"])
async def test_ledger_keeps_its_promise(check: LedgerCheck, opener: OpenLedger) -> None:
    await check(opener)
