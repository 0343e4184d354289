"""The stores for run folders: a directory, also of a shared file system, or a bucket."""

from __future__ import annotations

from pathlib import Path

from auditor.aws.connection import Connection, SharedCredentials
from auditor.errors import UsageError
from auditor.model.target import BUCKET_NAME
from auditor.runs.stores.base import BucketObjects, Store
from auditor.runs.stores.direct_objects import KeptTransports, open_objects
from auditor.runs.stores.local import LocalStore
from auditor.runs.stores.s3 import ABSENT, S3Store

__all__ = ["BUCKET_NAME", "Store", "open_store"]


def open_store(
    uri: str,
    *,
    endpoint_url: str | None = None,
    profile: str | None = None,
    region: str | None = None,
    sdk: bool = False,
    kept: KeptTransports | None = None,
    absent: str | None = None,
    role: SharedCredentials | None = None,
) -> Store:
    """Return the store at `uri`, a directory or s3://BUCKET[/PREFIX]. Nothing is called or written yet.

    sdk: True to make the calls by the SDK in any case. kept: connections to reuse, which stay open after the store.
    absent: what to do if there is no such bucket, for messages; None for a place of run folders. role: signs
    the calls; None for the own credentials.
    Raises UsageError for any other URI. Close the store, or use it in a `with`.
    """
    if not uri.strip() or "\0" in uri:
        raise UsageError("the output place is empty: give a directory or s3://BUCKET/PREFIX")
    scheme, found, rest = uri.partition("://")
    if not found and uri.startswith("s3:"):
        raise UsageError(f"{uri} is not an S3 URI: write s3://BUCKET/PREFIX")
    if not found:
        try:
            return LocalStore(Path(uri).expanduser())
        except RuntimeError as error:
            raise UsageError(f"--out {uri[:200]}: that home directory does not exist: write the whole path") from error
    if scheme != "s3":
        raise UsageError(f"{uri} is not an output place: give a directory or s3://BUCKET/PREFIX")
    bucket, _, prefix = rest.partition("/")
    if not BUCKET_NAME.fullmatch(bucket):
        raise UsageError(f"{uri} does not name a bucket: write s3://BUCKET/PREFIX")
    # The store's bucket may lie in another region than the audited one.
    connection = Connection(
        bucket=bucket, region=region, endpoint_url=endpoint_url, profile=profile, concurrency=10, role=role
    )
    return S3Store(
        _objects(connection, sdk or role is not None, kept), bucket, prefix.strip("/"), absent=absent or ABSENT
    )


def _objects(connection: Connection, sdk: bool, kept: KeptTransports | None) -> BucketObjects:
    if not sdk and (found := open_objects(connection, kept)) is not None:
        return found
    from auditor.runs.stores import sdk_objects  # imports the SDK

    return sdk_objects.open_objects(connection)
