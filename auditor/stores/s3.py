"""A store in a bucket: small files by one PutObject, large ones by multipart upload, both whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import tempfile
import time
from builtins import list as List  # noqa: N812 - the store has a method of that name
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from boto3.exceptions import S3UploadFailedError
from boto3.s3.transfer import TransferConfig
from botocore import exceptions as sdk

from auditor.aws import make_client
from auditor.engines.interface import Connection
from auditor.errors import OutputError
from auditor.stores.interface import Change, checked, parsed
from auditor.stores.local import output_errors

ONE_PUT: Final = 8 * 1024 * 1024
"""Largest file, in bytes, that goes up in one request; also the size of a part."""
UPDATES: Final = 12
"""How often update_json tries before it gives up; the waits between sum to about 20 s."""
CONFLICTS: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})
_MISSING: Final = frozenset({"NoSuchKey", "404"})
_TYPES: Final = {".json": "application/json", ".html": "text/html; charset=utf-8", ".gz": "application/gzip"}
_DENIED: Final = "refuses us ({code}): allow s3:PutObject, s3:GetObject, s3:DeleteObject and s3:ListBucket there"
_UNREADABLE: Final = (
    "does not let us read what we write there ({code}): allow s3:GetObject and s3:ListBucket, by the policy of this"
    " identity or of the bucket, and kms:Decrypt where a key encrypts it (docs/deploy.md, Levels and roles)"
)
_SENTENCES: Final = {
    "AccessDenied": _DENIED,
    "403": _DENIED,
    "AllAccessDisabled": _DENIED,
    "NoSuchBucket": "is in a bucket that does not exist ({code}): create it, or choose another --out",
    "InvalidAccessKeyId": "cannot be written ({code}): check the credentials and --profile",
    "SignatureDoesNotMatch": "cannot be written ({code}): check the credentials and --profile",
    "ExpiredToken": "cannot be written, the credentials have expired ({code}): renew them and run again",
    "PermanentRedirect": "is in another region ({code}): give it with --region",
}


def connect(*, endpoint_url: str | None, profile: str | None, region: str | None) -> Any:
    """A client for the store's own bucket, which need not lie where the audited one does; its retries are the SDK's."""
    # The name is no bucket's: nothing is called with it, the store names its own with every call.
    connection = Connection(bucket="", region=region, endpoint_url=endpoint_url, profile=profile, concurrency=10)
    return make_client("s3", connection, endpoint_url=endpoint_url, attempts=5)


class S3Store:
    """The keys below `prefix`. client: a boto3 S3 client. sleep: seconds between the tries of update_json."""

    def __init__(self, client: Any, bucket: str, prefix: str = "", sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._sleep = sleep
        self._spool: Path | None = None

    @property
    def bucket(self) -> str | None:
        return self._bucket

    @property
    def prefix(self) -> str:
        """What every key begins with: empty, or ending in `/`."""
        return self._prefix

    def uri(self, path: str = "") -> str:
        return f"s3://{self._bucket}/{self._prefix}{path}".rstrip("/")

    def check_writable(self) -> None:
        """A write that S3 must refuse by its condition, and does so only after it has checked the permissions.

        A read before it: the condition needs that permission too, and S3 does not say which one is missing.
        """
        key = f"{self._prefix}.auditor-probe"
        with self._errors(self.uri()):
            self._read(".auditor-probe")
            try:
                self._client.put_object(Bucket=self._bucket, Key=key, Body=b"", IfMatch=f'"{"0" * 32}"')
            except sdk.ClientError as error:
                if _code(error) not in CONFLICTS | _MISSING:
                    raise
            else:  # a server that does not know the condition has written it
                self._client.delete_object(Bucket=self._bucket, Key=key)

    def put(self, path: str, data: bytes) -> None:
        with self._errors(self.uri(path)):
            self._put(path, data)

    def put_file(self, path: str, local: Path) -> None:
        uri = self.uri(path)
        with self._errors(uri), output_errors(local):
            if local.stat().st_size <= ONE_PUT:
                self._put(path, local.read_bytes())
            else:
                config = TransferConfig(multipart_threshold=ONE_PUT, multipart_chunksize=ONE_PUT, max_concurrency=4)
                extra = {"ContentType": _type(path)}
                self._client.upload_file(str(local), self._bucket, self._key(path), ExtraArgs=extra, Config=config)
            local.unlink()

    def get(self, path: str) -> bytes | None:
        with self._errors(self.uri(path)):
            return self._read(path)[0]

    def list(self, prefix: str) -> List[str]:
        found: List[str] = []
        with self._errors(self.uri(prefix)):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=f"{self._prefix}{prefix}"
            )
            for page in pages:
                found += [item["Key"][len(self._prefix) :] for item in page.get("Contents", ())]
        return sorted(path for path in found if not path.rpartition("/")[2].startswith("."))

    def delete(self, path: str) -> None:
        with self._errors(self.uri(path)):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(path))

    def update_json(self, path: str, change: Change) -> None:
        uri = self.uri(path)
        for attempt in range(UPDATES):
            with self._errors(uri):
                data, etag = self._read(path)
                value = change(None if data is None else parsed(data, uri))
                if value is None or self._put_if_unchanged(path, value, etag):
                    return
            self._sleep(min(0.05 * 2**attempt, 3.0))
        raise OutputError(f"{uri} is being written by too many others at once: run again")

    def hold(self, folder: str, name: str) -> Callable[[], object]:
        """S3 has no locks that end with their process: who resumes a run there sees to it that it has ended."""
        return lambda: None

    def spool_dir(self, folder: str) -> Path:
        """One temporary directory for all folders, gone at close()."""
        checked(folder)
        if self._spool is None:
            with output_errors(tempfile.gettempdir()):
                self._spool = Path(tempfile.mkdtemp(prefix="auditor-"))
        return self._spool

    def close(self) -> None:
        if self._spool is not None:
            shutil.rmtree(self._spool, ignore_errors=True)
            self._spool = None
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _key(self, path: str) -> str:
        return self._prefix + checked(path)

    def _put(self, path: str, data: bytes, **condition: str) -> None:
        # Content-MD5: buckets with Object Lock ask for it, and every S3 there is checks it.
        digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
        self._client.put_object(
            Bucket=self._bucket,
            Key=self._key(path),
            Body=data,
            ContentType=_type(path),
            ContentMD5=digest,
            **condition,
        )

    def _put_if_unchanged(self, path: str, value: dict[str, Any], etag: str | None) -> bool:
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        try:
            self._put(path, json.dumps(value, indent=1).encode() + b"\n", **condition)
        except sdk.ClientError as error:
            if _code(error) in CONFLICTS | _MISSING:  # missing: it was there when we read it
                return False
            raise
        return True

    def _read(self, path: str) -> tuple[bytes | None, str | None]:
        """The file and its ETag, quotes included as the conditions want it."""
        try:
            reply = self._client.get_object(Bucket=self._bucket, Key=self._key(path))
        except sdk.ClientError as error:
            if _code(error) in _MISSING:
                return None, None
            raise
        with reply["Body"] as body:
            return body.read(), reply["ETag"]

    @contextmanager
    def _errors(self, uri: str) -> Iterator[None]:
        """Whatever the SDK raises, as one sentence."""
        try:
            yield
        except S3UploadFailedError as error:
            raise OutputError(_sentence(uri, error.__context__ or error)) from error
        except (sdk.ClientError, sdk.BotoCoreError) as error:
            raise OutputError(_sentence(uri, error)) from error


def _sentence(uri: str, error: BaseException) -> str:
    if isinstance(error, sdk.ClientError):
        code = _code(error)
        words = _SENTENCES.get(code, "cannot be used ({code}): check it, or choose another --out")
        if words is _DENIED and error.operation_name == "GetObject":
            words = _UNREADABLE
        return f"{uri} {words.format(code=code)}"
    if isinstance(error, (sdk.NoCredentialsError, sdk.PartialCredentialsError, sdk.CredentialRetrievalError)):
        return f"{uri} cannot be written without credentials: set AWS_ACCESS_KEY_ID and its secret, or --profile"
    return f"{uri} cannot be reached ({error}): check the network and the endpoint"


def _code(error: sdk.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


def _type(path: str) -> str:
    return _TYPES.get(Path(path).suffix, "application/octet-stream")
