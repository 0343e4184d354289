"""S3's checksums in the answer to GetObject: only those of whole objects, and the SDK does not verify them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

import pytest

from auditor.model.object import Evidence, Head, ObjectRef, Skipped, Unread
from auditor.s3.checksums import promised, s3_digests, stored
from auditor.s3.engines.base import Engine, Span
from tests.s3.engines.common import read
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

CONTENT = b"content"
SHA256 = hashlib.sha256(CONTENT).digest()
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).digest()
SHA512 = hashlib.sha512(CONTENT).digest()
DIGESTS = {"SHA256": SHA256, "SHA512": SHA512, "MD5": MD5, "CRC64NVME": bytes(range(8))}
TOLD = {name: base64.b64encode(digest).decode() for name, digest in DIGESTS.items()}
FOUND = {name.lower(): digest.hex() for name, digest in DIGESTS.items()}


async def told(engine: Engine, span: Span | None = None) -> Mapping[str, str]:
    async with engine.get("key", None, None, span) as body:
        return body.stored


KINDS = pytest.mark.parametrize(
    ("kind", "etag", "found"),
    [
        ("FULL_OBJECT", "e" * 32, FOUND),
        ("FULL_OBJECT", "e" * 32 + "-3", FOUND),
        (None, "e" * 32, FOUND),
        (None, "e" * 32 + "-3", {}),
        ("COMPOSITE", "e" * 32 + "-3", {}),
        ("COMPOSITE", "e" * 32, {}),
    ],
)


@KINDS
async def test_whole_objects_digests_are_told(
    engine: Engine, bucket: StubBucket, kind: str | None, etag: str, found: Mapping[str, str]
) -> None:
    bucket.put("key", CONTENT, etag=etag, checksums=TOLD, checksum_type=kind)
    assert await told(engine) == found


@KINDS
def test_head_and_listing_tell_them_of_whole_objects_only(
    kind: str | None, etag: str, found: Mapping[str, str]
) -> None:
    ref = ObjectRef("key", etag, 7, "2026-01-02T03:04:05Z", checksum_algorithms=tuple(TOLD), checksum_type=kind)
    head = Head(
        etag=etag,
        content_length=7,
        checksum_type=kind,
        checksum_sha256=TOLD["SHA256"],
        checksum_sha512=TOLD["SHA512"],
        checksum_md5=TOLD["MD5"],
        checksum_xxhash128="AAAAAAAAAAAAAAAAAAAAAA==",
        checksum_crc64nvme=TOLD["CRC64NVME"],
        checksum_sha1="no base64",
        checksum_crc32="//79/A==",
    )
    acl = Skipped("not asked")
    assert s3_digests(Evidence(ref, acl, head)) == found
    assert s3_digests(Evidence(ref, acl, Unread("HeadObject", "403"))) == {}
    assert promised(ref) == found.keys()


async def test_they_are_not_asked_for_with_a_span(engine: Engine, stub: StubServer, bucket: StubBucket) -> None:
    bucket.put("key", CONTENT, checksums=TOLD, checksum_type="FULL_OBJECT")
    assert await told(engine, Span(0)) == {}
    await told(engine)
    assert ["x-amz-checksum-mode" in call.headers for call in stub.calls] == [False, True]


async def test_engine_itself_does_not_compute_them(engine: Engine, bucket: StubBucket) -> None:
    """botocore, where it was told to ask for them, digests every body and fails for one that differs."""
    wrong = {"SHA256": base64.b64encode(bytes(32)).decode()}
    bucket.put("key", CONTENT, checksums=wrong, checksum_type="FULL_OBJECT")
    assert await read(engine, "key") == CONTENT
    assert await told(engine) == {"sha256": "00" * 32}


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("sha256", base64.b64encode(SHA256), {"sha256": SHA256.hex()}),
        ("md5", b"CY9rzUYh03PK3k6DJie09g==", {"md5": "098f6bcd4621d373cade4e832627b4f6"}),
        ("crc32", b"//79/A==", {"crc32": "fffefdfc"}),
        ("sha256", base64.b64encode(SHA256) + b"-3", {}),
        ("sha256", base64.b64encode(SHA256[:31]), {}),
        ("sha256", b"not base64", {}),
        ("sha256", b"", {}),
        ("sha3", base64.b64encode(SHA256), {}),
        ("mode", b"ENABLED", {}),
    ],
)
def test_header(name: str, value: bytes, found: Mapping[str, str]) -> None:
    headers = {b"etag": b'"e"', b"x-amz-checksum-type": b"FULL_OBJECT", b"x-amz-checksum-" + name.encode(): value}
    assert stored(headers) == found
