"""Show an estimate as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.estimate import Estimate, HashingEstimate
from auditor.progress import clock
from auditor.reports.table_layout import TableLayout
from auditor.s3.prices import in_pico, money
from auditor.text import counted, visible


def estimate_text(estimate: Estimate, columns: int) -> str:
    """Return the lines of an estimate. columns: width of the terminal."""
    return "".join(f"{line}\n" for line in _lines(estimate, TableLayout(columns)))


def _lines(estimate: Estimate, layout: TableLayout) -> Iterator[str]:
    calls = estimate.calls
    yield visible(estimate.target.uri) if estimate.target else "all targets"
    markers = f", {counted(estimate.delete_markers, 'delete marker')}" if estimate.delete_markers else ""
    yield from layout.listed("objects", [f"{_amount(estimate.objects, estimate.bytes)}{markers}"])
    for name, found in estimate.classes.items():
        price = " (no price is known: the dearest is taken)" if name in estimate.unpriced else ""
        words = (
            f"{_amount(found.objects, found.bytes)}: {found.acl:,} ACL, {found.head:,} HEAD, {_dollars(found.dollars)}"
        )
        yield from layout.listed("", [f"{visible(name)}: {words}{price}"])
    get = f", {calls.get:,} GET or more" if calls.get else ""
    yield from layout.listed(
        "calls",
        [f"{calls.list:,} LIST, {calls.acl:,} ACL, {calls.head:,} HEAD, {calls.bucket:,} about the bucket{get}"],
    )
    if (kept := estimate.kept) is not None:
        yield from layout.listed("kept", [f"{kept.acl:,} ACL, {kept.head:,} HEAD of the last run, which cost no call"])
    yield from layout.listed("cost", [f"{_dollars(estimate.dollars)} for S3's requests", _prices(estimate)])
    yield from layout.listed(
        "", [f"{_dollars(estimate.data_events_dollars)} more where a CloudTrail trail records data events"]
    )
    yield from layout.listed("time", [f"{clock(estimate.seconds)} at the least, at {estimate.pace}"])
    if estimate.hashing is not None:
        yield from layout.listed("hashing", _hashing(estimate.hashing))
    yield from layout.listed("not counted", estimate.not_counted)
    yield from layout.listed("this estimate", [_spent(estimate)])
    if not estimate.complete:
        yield from layout.listed("INCOMPLETE", ["the listing did not reach its end: the audit costs more"])


def _amount(objects: int, size: int) -> str:
    return f"{counted(objects, 'object')} of {size:,} bytes"


def _prices(estimate: Estimate) -> str:
    prices = estimate.prices
    replaced = f"; replaced in auditor.toml: {', '.join(prices['replaced'])}" if prices["replaced"] else ""
    return f"list prices of {prices['region']}, as of {prices['as_of']}{replaced}"


def _hashing(found: HashingEstimate) -> list[str]:
    return [
        f"{_amount(found.objects, found.bytes)} to read with --hash, {_dollars(found.dollars)}",
        f"{found.known:,} known, {found.left_for_cost:,} left for their cost, {found.unhashable:,} cannot be hashed",
    ]


def _spent(estimate: Estimate) -> str:
    share = estimate.dollars / estimate.spent if estimate.spent else 0
    words = f"it listed only: {_dollars(estimate.spent)}"
    return f"{words}, 1/{share:,.0f} of the audit's cost" if share >= 2 else words


def _dollars(dollars: float) -> str:
    return money(in_pico(dollars))
