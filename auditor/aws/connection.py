"""The parameters that reach one bucket: region, endpoint, profile, expected owner."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How to reach one bucket. concurrency: most calls in flight, and the size of every pool.

    expected_owner: 12-digit account sent as ExpectedBucketOwner with every call, or None. requester_pays: send
    RequestPayer=requester. timeouts: seconds. least_rate: bytes a second that a body must bring while it is waited for,
    or end as a Timeout (the direct engine's; an SDK waits for as long as some byte comes within each read_timeout).
    """

    bucket: str
    region: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    concurrency: int = 64
    expected_owner: str | None = None
    requester_pays: bool = False
    connect_timeout: float = 5.0
    read_timeout: float = 20.0
    least_rate: float = 1024.0
