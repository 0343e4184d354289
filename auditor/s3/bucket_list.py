"""List the buckets of an account, page by page, and find out which account the credentials belong to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from msgspec import Struct

from auditor.aws.connection import Connection
from auditor.aws.plain import custom_endpoint
from auditor.errors import CallFailed

PAGE: Final = 1000
"""Number of buckets in a page of ListBuckets. S3 takes up to 10,000 (S3 API: ListBuckets, MaxBuckets)."""
_ATTEMPTS: Final = 6


class ListedBucket(Struct, frozen=True):
    """A bucket as ListBuckets names it. region: None if the server does not say it."""

    name: str
    region: str | None = None


class BucketListing(Struct, frozen=True):
    """The buckets of an account. failure: the reason for which the listing did not reach its end; None if it did."""

    buckets: tuple[ListedBucket, ...]
    failure: CallFailed | None = None


def list_buckets(connection: Connection, page: int = PAGE) -> BucketListing:
    """List the general purpose buckets of the account to which the connection's credentials belong. Blocks.

    A page that fails ends the listing; the buckets of the pages before it are returned with the failure. connection:
    its bucket does not matter. page: number of buckets in a page. Raises CredentialsError or UsageError.
    """
    found: dict[str, ListedBucket] = {}
    arguments: dict[str, Any] = {"MaxBuckets": page}
    tokens: set[str] = set()
    with _calls("s3", connection, connection.endpoint_url) as call:
        while True:
            try:
                reply = call("ListBuckets", **arguments)
                for entry in reply.get("Buckets", ()):
                    found.setdefault(entry["Name"], ListedBucket(entry["Name"], entry.get("BucketRegion")))
                if "Owner" not in reply and not found:  # a document of another kind names no bucket either
                    raise CallFailed("ListBuckets", "Malformed", 200)
                token = reply.get("ContinuationToken")
                if token in tokens:
                    raise CallFailed("ListBuckets", "RepeatedToken", 200)
            except KeyError:
                return BucketListing(tuple(found.values()), CallFailed("ListBuckets", "Malformed", 200))
            except CallFailed as failure:
                return BucketListing(tuple(found.values()), failure)
            if not token:
                return BucketListing(tuple(found.values()))
            tokens.add(token)
            arguments["ContinuationToken"] = token


def account_of(connection: Connection) -> str:
    """Return the 12-digit account to which the connection's credentials belong, by STS GetCallerIdentity. Blocks.

    Raises CallFailed, CredentialsError or UsageError.
    """
    profile = connection.profile
    endpoint = custom_endpoint("sts", None, profile) or custom_endpoint("s3", connection.endpoint_url, profile)
    with _calls("sts", connection, endpoint) as call:
        reply = call("GetCallerIdentity")
    found = reply.get("Account")
    if not isinstance(found, str) or not found:
        raise CallFailed("GetCallerIdentity", "Malformed", 200)
    return found


def _calls(
    service: str, connection: Connection, endpoint_url: str | None
) -> AbstractContextManager[Callable[..., dict[str, Any]]]:
    from auditor.aws.session import open_calls  # imports the SDK

    return open_calls(service, connection, endpoint_url=endpoint_url, attempts=_ATTEMPTS)
