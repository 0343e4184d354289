"""The parameters of a connection to one bucket: region, endpoint, profile, expected owner, timeouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from auditor.aws.assumed_role import RoleCredentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The parameters of a connection to one bucket. Timeouts are in seconds."""

    bucket: str
    region: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    role: RoleCredentials | None = None
    """The credentials of an assumed role, with which every call is signed; None for the profile's own credentials."""
    concurrency: int = 64
    """The limit of calls in flight, and the size of every pool."""
    expected_owner: str | None = None
    """A 12-digit account ID that every call sends as ExpectedBucketOwner."""
    requester_pays: bool = False
    """True to send RequestPayer=requester: the caller agrees to pay."""
    connect_timeout: float = 5.0
    read_timeout: float = 20.0
    first_answer: float = 10.0
    """Replaces read_timeout until a server has answered for the first time: its address may be wrong.

    The questions about the bucket are the first calls. S3 answers them within a second.
    """
    least_rate: float = 1024.0
    """Bytes a second. In the direct engine, a body that arrives more slowly fails with the code Timeout.

    The SDK engines ignore this rate: for them one byte within each read_timeout is enough.
    """
