"""The estimate of an audit's calls, price and time, and its text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

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


class ClassEstimate(Struct, kw_only=True):
    """The objects of one storage class, the calls that an audit would send for them, and the price of these calls."""

    objects: int
    bytes: int
    acl: int
    head: int
    dollars: float

    @classmethod
    def of_none(cls) -> Self:
        return cls(objects=0, bytes=0, acl=0, head=0, dollars=0.0)


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


class KeptEstimate(Struct, kw_only=True):
    """Numbers of facts that an audit with `keep` would take from the last run, and that cost no call. acl: ACLs."""

    acl: int = 0
    head: int = 0


class HashingEstimate(Struct, kw_only=True):
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
    names = dict.fromkeys(name for one in estimates for name in one.classes)
    classes = {name: _added([one.classes[name] for one in estimates if name in one.classes]) for name in names}
    hashing = [one.hashing for one in estimates if one.hashing is not None]
    kept = [one.kept for one in estimates if one.kept is not None]
    return replace(
        _added(estimates, _NUMBERS),
        target=None,
        complete=all(one.complete for one in estimates),
        classes=classes,
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
    yield visible(estimate.target.uri) if estimate.target else "all targets"
    for label, texts in _sections(estimate):
        yield from layout.listed(label, texts)


def _sections(estimate: Estimate) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the labels, each with its texts, safe to print."""
    calls, prices = estimate.calls, estimate.prices
    markers = f", {counted(estimate.delete_markers, 'delete marker')}" if estimate.delete_markers else ""
    yield "objects", [f"{amount(estimate.objects, estimate.bytes)}{markers}"]
    for name, found in estimate.classes.items():
        price = " (no price is known: the highest price is used)" if name in estimate.unpriced else ""
        calls_of = f"{found.acl:,} ACL, {found.head:,} HEAD, {_dollars(found.dollars)}"
        yield "", [f"{visible(name)}: {amount(found.objects, found.bytes)}: {calls_of}{price}"]
    get = f", {calls.get:,} GET or more" if calls.get else ""
    yield (
        "calls",
        [f"{calls.list:,} LIST, {calls.acl:,} ACL, {calls.head:,} HEAD, {calls.bucket:,} about the bucket{get}"],
    )
    if (kept := estimate.kept) is not None:
        yield "kept", [f"{kept.acl:,} ACL, {kept.head:,} HEAD of the last run, which cost no call"]
    replaced = f"; replaced in auditor.toml: {', '.join(prices['replaced'])}" if prices["replaced"] else ""
    of_list = f"list prices of {prices['region']}, as of {prices['as_of']}{replaced}"
    events = f"{_dollars(estimate.data_events_dollars)} more where a CloudTrail trail records data events"
    yield "cost", [f"{_dollars(estimate.dollars)} for S3's requests", of_list, events]
    yield "time", [f"{clock(estimate.seconds)} at the least, at {estimate.pace}"]
    if (hashing := estimate.hashing) is not None:
        left = f"{hashing.known:,} known, {hashing.left_for_cost:,} left because of their cost"
        read = f"{amount(hashing.objects, hashing.bytes)} to read with --hash, {_dollars(hashing.dollars)}"
        yield "hashing", [read, f"{left}, {hashing.unhashable:,} cannot be hashed"]
    yield "not counted", estimate.not_counted
    share = estimate.dollars / estimate.spent if estimate.spent else 0
    times = f", 1/{share:,.0f} of the audit's cost" if share >= 2 else ""
    yield "this estimate", [f"it listed only: {_dollars(estimate.spent)}{times}"]
    if not estimate.complete:
        yield "INCOMPLETE", ["the listing did not reach its end: the audit costs more"]


def _dollars(dollars: float) -> str:
    return money(in_pico(dollars))
