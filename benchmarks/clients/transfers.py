"""Ways to transfer one object, down and up: the published ways, and ours."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.meter import MIB, Meter
from benchmarks.server.objects import BUCKET, GZIPPED, SIZED, body_of

PART_SIZE: Final = 8 * MIB
OUT: Final = "written"
"""The bucket of uploads; the server stores none of them."""


def _client(url: str) -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=url)


@contextmanager
def _read(url: str, size: int) -> Iterator[Callable[[], object]]:
    client = _client(url)
    yield lambda: client.get_object(Bucket=BUCKET, Key=f"{SIZED}{size}")["Body"].read()


@contextmanager
def _unpacked(url: str, size: int) -> Iterator[Callable[[], object]]:
    """Unpack a gzip file; other bytes are returned unchanged."""
    client = _client(url)

    def once() -> bytes:
        body: bytes = client.get_object(Bucket=BUCKET, Key=f"{GZIPPED}{size}")["Body"].read()
        try:
            return gzip.decompress(body)
        except gzip.BadGzipFile:
            return body

    yield once


@contextmanager
def _download_fileobj(url: str, size: int) -> Iterator[Callable[[], object]]:
    client = _client(url)
    yield lambda: client.download_fileobj(BUCKET, f"{SIZED}{size}", io.BytesIO())


@contextmanager
def _our_stream(url: str, size: int) -> Iterator[Callable[[], object]]:
    """One streamed GetObject, as the hasher reads."""
    import asyncio

    from auditor.aio.loop import new_loop
    from auditor.aws.connection import Connection
    from auditor.hashing.limits import BUFFER
    from auditor.s3.engines import DEFAULT_ENGINE, ENGINES

    connection = Connection(bucket=BUCKET, region="us-east-1", endpoint_url=url, concurrency=1)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        opening = ENGINES[DEFAULT_ENGINE](connection)
        engine = runner.run(opening.__aenter__())

        buffer = memoryview(bytearray(BUFFER))

        async def once() -> None:
            async with engine.get(f"{SIZED}{size}", None, None) as body:
                while await body.readinto(buffer):
                    pass

        yield lambda: runner.run(once())
        runner.run(opening.__aexit__(None, None, None))


@contextmanager
def _put_object(url: str, size: int) -> Iterator[Callable[[], object]]:
    client, body = _client(url), bytes(body_of(size))
    yield lambda: client.put_object(Bucket=OUT, Key="key", Body=body)


@contextmanager
def _file(size: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(body_of(size))
        yield path


@contextmanager
def _upload_file(url: str, size: int) -> Iterator[Callable[[], object]]:
    client = _client(url)
    with _file(size) as path:
        yield lambda: client.upload_file(str(path), OUT, "key")


@contextmanager
def _managed(url: str, size: int) -> Iterator[Callable[[], object]]:
    from boto3.s3.transfer import TransferConfig

    client, config = _client(url), TransferConfig(max_concurrency=20)
    with _file(size) as path:
        yield lambda: client.upload_file(str(path), OUT, "key", Config=config)


@contextmanager
def _multipart(url: str, size: int) -> Iterator[Callable[[], object]]:
    """A multipart upload: begin, one part after the other, end."""
    client, body = _client(url), bytes(body_of(size))
    common = {"Bucket": OUT, "Key": "key"}

    def once() -> None:
        upload = {**common, "UploadId": client.create_multipart_upload(**common)["UploadId"]}
        parts: list[dict[str, Any]] = []
        for start in range(0, size, PART_SIZE):
            number = len(parts) + 1
            done = client.upload_part(**upload, PartNumber=number, Body=body[start : start + PART_SIZE])
            parts.append({"PartNumber": number, "ETag": done["ETag"]})
        client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})

    yield once


@contextmanager
def _our_store(url: str, size: int) -> Iterator[Callable[[], object]]:
    """One PutObject, as for every file of a run folder."""
    from auditor.runs.stores import open_store

    body = bytes(body_of(size))
    with open_store(f"s3://{OUT}", endpoint_url=url, profile=None, region="us-east-1") as store:
        yield lambda: store.put("file", body)


DOWN: Final = {
    "get_object, read": _read,
    "get_object, gunzip": _unpacked,
    "download_fileobj": _download_fileobj,
    "ours: one GetObject, streamed": _our_stream,
}
UP: Final = {
    "put_object": _put_object,
    "upload_file": _upload_file,
    "multipart by hand": _multipart,
    "manager, 20 workers": _managed,
    "ours: one PutObject": _our_store,
}


def calls(meter: Meter, *, url: str, way: str, size: int, times: int) -> dict[str, Any]:
    """Time each transfer. The first one is cold."""
    with {**DOWN, **UP}[way](url, size) as once:
        for _ in range(1 + times):
            with meter.measuring():
                once()
    return {}
