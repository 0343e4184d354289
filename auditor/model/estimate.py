"""The estimate of an audit: the calls that it would send, and their price. Prices are in dollars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from auditor.model.json_text import plain
from auditor.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassEstimate:
    """The objects of one storage class, the calls that an audit would send for them, and the price of these calls."""

    objects: int
    bytes: int
    acl: int
    head: int
    dollars: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedCalls:
    """Numbers of requests, without retries. bucket: the questions about the bucket."""

    list: int
    acl: int
    head: int
    bucket: int
    get: int = 0

    @property
    def total(self) -> int:
        return self.list + self.acl + self.head + self.bucket + self.get


@dataclass(frozen=True, slots=True, kw_only=True)
class HashingEstimate:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
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

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as a JSON value."""
        return dict(plain(self))
