"""The estimate of an audit's calls, price and time, and its text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.model.target import Target
from auditor.progress import clock
from auditor.reports.summary import amount
from auditor.reports.text_table import TableLayout
from auditor.s3.prices import in_pico, money
from auditor.text import counted, visible

S = TypeVar("S", bound=Struct)
_NUMBERS: Final = ("objects", "bytes", "delete_markers", "dollars", "data_events_dollars", "spent")
"""The members of an estimate that add up."""


class ClassEstimate(Struct, frozen=True, kw_only=True):
    """The objects of one storage class, the calls that an audit would send for them, and the price of these calls."""

    objects: int
    bytes: int
    acl: int
    head: int
    dollars: float


class EstimatedCalls(Struct, frozen=True, kw_only=True):
    """Numbers of requests, without retries. bucket: the questions about the bucket."""

    list: int
    acl: int
    head: int
    bucket: int
    get: int = 0

    @property
    def total(self) -> int:
        return self.list + self.acl + self.head + self.bucket + self.get


class KeptEstimate(Struct, frozen=True, kw_only=True):
    """Numbers of facts that an audit with `keep` would take from the last run, and that cost no call. acl: ACLs."""

    acl: int = 0
    head: int = 0


class HashingEstimate(Struct, frozen=True, kw_only=True):
    """The hashing that an audit with --hash would do. dollars: of the GETs and of the bytes' retrieval.

    known: objects with a digest in the ledger, or with a checksum that S3 stores. left_for_cost: objects that only
    --accept-cost would read. unhashable: archived objects, and those that are left to S3 Batch Operations.
    """

    known: int = 0
    objects: int = 0
    bytes: int = 0
    left_for_cost: int = 0
    unhashable: int = 0
    dollars: float = 0.0


class Estimate(Struct, frozen=True, kw_only=True):
    """The estimate for one target, or the sum of several."""

    target: Target | None
    """None for a sum."""
    complete: bool
    """True if the listing reached its end. If not, the numbers are those of the objects that were listed."""
    objects: int
    bytes: int
    delete_markers: int
    classes: Mapping[str, ClassEstimate]
    """By storage class, the dearest one first."""
    calls: EstimatedCalls
    dollars: float
    """The price of the calls, of hashing too where the settings hash."""
    seconds: float
    """The least time that the calls take at the given pace."""
    pace: str
    """The pace in words."""
    hashing: HashingEstimate | None = None
    """None without a ledger."""
    kept: KeptEstimate | None = None
    """None without `keep`."""
    data_events_dollars: float
    """The further price where a CloudTrail trail records data events of the bucket."""
    spent: float
    """The price of this estimate itself."""
    unpriced: tuple[str, ...] = ()
    """Storage classes that have no price, and count as the dearest."""
    prices: Mapping[str, Any] = field(default_factory=dict)
    """The prices' day and region, and the names of those that auditor.toml replaces."""
    not_counted: tuple[str, ...] = ()
    """Phrases on calls that the estimate leaves out."""


def summed(estimates: Sequence[Estimate]) -> Estimate:
    """Return the sum of the estimates of several targets, which share one pace."""
    classes: dict[str, list[ClassEstimate]] = {}
    for one in estimates:
        for name, found in one.classes.items():
            classes.setdefault(name, []).append(found)
    hashing = [one.hashing for one in estimates if one.hashing is not None]
    kept = [one.kept for one in estimates if one.kept is not None]
    return replace(
        _added(estimates, _NUMBERS),
        target=None,
        complete=all(one.complete for one in estimates),
        classes={name: _added(found) for name, found in classes.items()},
        calls=_added([one.calls for one in estimates]),
        seconds=round(sum(one.seconds for one in estimates), 1),
        hashing=_added(hashing) if hashing else None,
        kept=_added(kept) if kept else None,
        unpriced=tuple(sorted({name for one in estimates for name in one.unpriced})),
        not_counted=tuple(dict.fromkeys(words for one in estimates for words in one.not_counted)),
    )


def _added(found: Sequence[S], names: Sequence[str] = ()) -> S:
    """Return the first value with the sums of its members, or of those with these names."""
    added = names or found[0].__struct_fields__
    return replace(found[0], **{name: sum(getattr(one, name) for one in found) for name in added})


def estimate_text(estimate: Estimate, columns: int) -> str:
    """Return the lines of an estimate. columns: width of the terminal."""
    return "".join(f"{line}\n" for line in _lines(estimate, TableLayout(columns)))


def _lines(estimate: Estimate, layout: TableLayout) -> Iterator[str]:
    calls = estimate.calls
    yield visible(estimate.target.uri) if estimate.target else "all targets"
    markers = f", {counted(estimate.delete_markers, 'delete marker')}" if estimate.delete_markers else ""
    yield from layout.listed("objects", [f"{amount(estimate.objects, estimate.bytes)}{markers}"])
    for name, found in estimate.classes.items():
        price = " (no price is known: the highest price is used)" if name in estimate.unpriced else ""
        calls_of = f"{found.acl:,} ACL, {found.head:,} HEAD, {_dollars(found.dollars)}"
        words = f"{visible(name)}: {amount(found.objects, found.bytes)}: {calls_of}{price}"
        yield from layout.listed("", [words])
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


def _prices(estimate: Estimate) -> str:
    prices = estimate.prices
    replaced = f"; replaced in auditor.toml: {', '.join(prices['replaced'])}" if prices["replaced"] else ""
    return f"list prices of {prices['region']}, as of {prices['as_of']}{replaced}"


def _hashing(found: HashingEstimate) -> list[str]:
    return [
        f"{amount(found.objects, found.bytes)} to read with --hash, {_dollars(found.dollars)}",
        f"{found.known:,} known, {found.left_for_cost:,} left because of their cost, {found.unhashable:,} cannot"
        " be hashed",
    ]


def _spent(estimate: Estimate) -> str:
    share = estimate.dollars / estimate.spent if estimate.spent else 0
    words = f"it listed only: {_dollars(estimate.spent)}"
    return f"{words}, 1/{share:,.0f} of the audit's cost" if share >= 2 else words


def _dollars(dollars: float) -> str:
    return money(in_pico(dollars))
