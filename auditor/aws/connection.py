"""The parameters of a connection to one bucket: region, endpoint, profile, role, expected owner, timeouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct


class CredentialProvider(Protocol):
    """A source of credentials that renews them by itself, as botocore's Credentials do. Its method blocks."""

    def get_frozen_credentials(self) -> Any:
        """Return an object with access_key, secret_key and token."""
        ...


Load = Callable[[], CredentialProvider]
"""A function that blocks until it has a source of credentials."""


class SharedCredentials(Protocol):
    """Temporary credentials that several connections share, such as those of an assumed role."""

    def current(self, refused: CredentialProvider | None = None) -> CredentialProvider:
        """Return the credentials that all connections share, or new ones if S3 has refused these as expired. Blocks."""
        ...

    def loader(self) -> Load:
        """Return a function for one connection: each call after the first says that S3 refused the credentials."""
        ...


class Connection(Struct, frozen=True, kw_only=True):
    """The parameters of a connection to one bucket. Timeouts are in seconds."""

    bucket: str
    region: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    role: SharedCredentials | None = None
    """The credentials of an assumed role, with which every call is signed; None for the profile's own credentials."""
    concurrency: int = 64
    """The limit of calls in flight, and the size of every pool."""
    expected_owner: str | None = None
    """A 12-digit account ID that every call sends as ExpectedBucketOwner."""
    requester_pays: bool = False
    """True to send RequestPayer=requester: the caller agrees to pay."""
    unsigned: bool = False
    """True to send requests without a signature, as a stranger does. The engine `direct` alone does so."""
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
