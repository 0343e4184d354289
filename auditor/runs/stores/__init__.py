"""The stores of run folders: a directory (which may be on a shared file system) or a bucket."""

from __future__ import annotations

from pathlib import Path

from auditor.errors import UsageError
from auditor.model.target import BUCKET_NAME
from auditor.runs.stores.base import Store

__all__ = ["BUCKET_NAME", "Store", "open_store"]


def open_store(
    uri: str, *, endpoint_url: str | None = None, profile: str | None = None, region: str | None = None
) -> Store:
    """Return the store at `uri`, a directory or s3://BUCKET[/PREFIX]. No call is made and nothing is written yet.

    Raise UsageError for any other URI. Close the store, or use it in a `with`.
    """
    if not uri.strip() or "\0" in uri:
        raise UsageError("the output place is empty: give a directory or s3://BUCKET/PREFIX")
    scheme, found, rest = uri.partition("://")
    if not found and uri.startswith("s3:"):
        raise UsageError(f"{uri} is not an S3 URI: write s3://BUCKET/PREFIX")
    if not found:
        from auditor.runs.stores.local import LocalStore

        try:
            return LocalStore(Path(uri).expanduser())
        except RuntimeError as error:
            raise UsageError(f"--out {uri[:200]}: there is no such home directory: write it out") from error
    if scheme != "s3":
        raise UsageError(f"{uri} is no output place: give a directory or s3://BUCKET/PREFIX")
    bucket, _, prefix = rest.partition("/")
    if not BUCKET_NAME.fullmatch(bucket):
        raise UsageError(f"{uri} does not name a bucket: write s3://BUCKET/PREFIX")
    from auditor.runs.stores.s3 import S3Store, connect

    client = connect(endpoint_url=endpoint_url, profile=profile, region=region)
    return S3Store(client, bucket, prefix.strip("/"))
