"""The S3 calls of a store, by boto3. Importing this module imports the SDK, which is slow."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from auditor.aws.connection import Connection
from auditor.aws.sdk_errors import sdk_errors
from auditor.aws.session import make_client
from auditor.runs.stores.base import ATTEMPTS, PIECE, check_size


class SdkObjects:
    """Makes the calls of a store on one bucket by a boto3 client, which does the retries."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def get(self, key: str) -> tuple[bytes, str]:
        with sdk_errors("GetObject"):
            reply = self._client.get_object(Bucket=self._bucket, Key=key)
            with reply["Body"] as body:
                data = bytearray()
                while piece := body.read(PIECE):
                    data += piece
                    check_size(key, len(data), key)
                return bytes(data), reply["ETag"]

    def stream(self, key: str) -> Iterator[bytes]:
        with sdk_errors("GetObject"):
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
        return self._pieces(body)

    def _pieces(self, body: Any) -> Iterator[bytes]:
        with sdk_errors("GetObject"), body:
            yield from body.iter_chunks(PIECE)

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        with sdk_errors("PutObject"):
            reply = self._client.put_object(
                Bucket=self._bucket, Key=key, Body=body, ContentType=kind, ContentMD5=md5, **condition
            )
        return str(reply["ETag"])

    def delete(self, key: str) -> None:
        with sdk_errors("DeleteObject"):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def keys(self, prefix: str) -> Iterator[str]:
        with sdk_errors("ListObjectsV2"):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
                for item in page.get("Contents", ()):
                    yield item["Key"]

    def close(self) -> None:
        self._client.close()


def open_objects(connection: Connection) -> SdkObjects:
    """Return a client of boto3 for the run store in the connection's bucket. It makes no call yet."""
    client = make_client("s3", connection, endpoint_url=connection.endpoint_url, attempts=ATTEMPTS)
    return SdkObjects(client, connection.bucket)
