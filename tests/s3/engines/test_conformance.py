"""What every engine does alike: the same facts of the same objects, and what each call carries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, fields
from typing import Any, Final

import pytest

from auditor.aws.connection import Connection
from auditor.errors import CallFailed
from auditor.model.object import ALL_USERS, Acl, Grant, Head, ObjectRef
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Engine, ListQuery, Page, Span
from tests.s3.engines.common import CALLS, EVERYTHING, failure_of, list_all, pieces, put_everything, read
from tests.s3.engines.conftest import Opening
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.ends import streams_served
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import latency
from tests.support.servers.world import OWNER, STRANGER, StubBucket

UNREADABLE_HEADERS: Final[Mapping[str, str | None]] = {
    "aioboto3": "ConnectionError",  # aiobotocore refuses the whole answer when a header is not UTF-8
    "boto3": None,
    "direct": None,
}
"""The failure of a HEAD that holds a header in another charset than UTF-8; None: it is read."""


@asynccontextmanager
async def _server_of_latin_1() -> AsyncIterator[str]:
    """A server whose every answer has a header in Latin-1, which the stub cannot send."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: 0\r\nCache-Control: caf\xe9\r\n\r\n')
        await writer.drain()
        writer.close()

    async with streams_served(answer) as (host, port):
        yield f"http://{host}:{port}"


class TestListing:
    async def test_every_page_in_key_order_with_what_the_listing_says(self, engine: Engine, bucket: StubBucket) -> None:
        for number in range(7):
            bucket.put(f"k{number}", b"x" * number, owner=STRANGER if number == 3 else OWNER)
        bucket.put("k8", b"-", storage_class="GLACIER", restored=True, checksums={"SHA256": "eA=="}, etag="f-2")
        refs, markers, pages = await list_all(engine, ListQuery(page_size=3))
        assert pages == 3
        assert markers == []
        assert [ref.key for ref in refs] == [*(f"k{number}" for number in range(7)), "k8"]
        assert [ref.size for ref in refs] == [*range(7), 1]
        assert [ref.owner for ref in refs] == [*[OWNER] * 3, STRANGER, *[OWNER] * 4]
        assert refs[-1] == ObjectRef(
            key="k8",
            etag="f-2",
            size=1,
            last_modified="2026-01-02T03:04:05Z",
            storage_class="GLACIER",
            owner=OWNER,
            checksum_algorithms=("SHA256",),
            restored=True,
        )

    async def test_prefix_and_start_after(self, engine: Engine, bucket: StubBucket) -> None:
        for key in ("a", "p/1", "p/2", "p/2+", "p/3", "q"):
            bucket.put(key)
        refs, _, _ = await list_all(engine, ListQuery(prefix="p/", start_after="p/2", page_size=1))
        assert [ref.key for ref in refs] == ["p/2+", "p/3"]

    async def test_versions_and_delete_markers_across_pages(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("old", b"null version")
        bucket.versioning = "Enabled"
        for body in (b"1", b"22", b"333"):
            bucket.put("twice", body)
        bucket.delete("gone")
        bucket.delete("twice")
        refs, markers, pages = await list_all(engine, ListQuery(versions=True, page_size=2))
        assert pages == 3
        assert markers == ["gone", "twice"]
        assert [(ref.key, ref.size, ref.is_latest) for ref in refs] == [
            ("old", 12, True),
            ("twice", 3, False),
            ("twice", 2, False),
            ("twice", 1, False),
        ]
        assert refs[0].version_id == "null"
        assert len({ref.version_id for ref in refs}) == 4

    async def test_versions_start_after_a_whole_key(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.versioning = "Enabled"
        for key in ("a", "a", "b", "b", "c"):
            bucket.put(key)
        refs, _, _ = await list_all(engine, ListQuery(versions=True, start_after="a", page_size=1))
        assert [ref.key for ref in refs] == ["b", "b", "c"]

    @pytest.mark.parametrize("versions", [False, True])
    async def test_empty_bucket_is_one_empty_page(self, engine: Engine, bucket: StubBucket, versions: bool) -> None:
        assert await engine.list_page(ListQuery(versions=versions), None) == Page((), None)

    async def test_owner_and_url_encoding_are_asked_for(
        self, engine: Engine, stub: StubServer, bucket: StubBucket
    ) -> None:
        await engine.list_page(ListQuery(), None)
        await engine.list_page(ListQuery(versions=True), None)
        assert stub.calls[0].query["fetch-owner"] == "true"
        assert [call.query["encoding-type"] for call in stub.calls] == ["url", "url"]


class TestKeys:
    @pytest.mark.parametrize("versions", [False, True])
    async def test_odd_keys_are_listed_as_they_are(self, engine: Engine, bucket: StubBucket, versions: bool) -> None:
        bucket.versioning = "Enabled" if versions else None
        for key in ODD_KEYS.values():
            bucket.put(key)
        refs, _, _ = await list_all(engine, ListQuery(versions=versions, page_size=5))
        assert [ref.key for ref in refs] == sorted(ODD_KEYS.values(), key=str.encode)

    async def test_odd_keys_are_read_as_they_are(self, engine: Engine, stub: StubServer, bucket: StubBucket) -> None:
        for kind, key in ODD_KEYS.items():
            bucket.put(key, key.encode(), metadata={"which": kind}, acl="public-read")
            stub.forget()
            acl = await engine.get_acl(key, None)
            head = await engine.head(key, None, checksum=True)
            assert await read(engine, key) == key.encode()
            assert acl == Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
            assert dict(head.metadata) == {"which": kind}
            assert [(logged.operation, logged.key) for logged in stub.requests] == [
                ("GetObjectAcl", key),
                ("HeadObject", key),
                ("GetObject", key),
            ]

    async def test_odd_keys_as_prefix_and_start_after(self, engine: Engine, bucket: StubBucket) -> None:
        for key in ODD_KEYS.values():
            bucket.put(key)
            bucket.put(f"{key}\u00ff"[:300])
        for key in ODD_KEYS.values():
            if len(key.encode()) > 900:
                continue
            refs, _, _ = await list_all(engine, ListQuery(prefix=key, start_after=key))
            assert f"{key}\u00ff" in [ref.key for ref in refs]
            assert key not in [ref.key for ref in refs]


class TestFacts:
    async def test_head_gives_every_field_that_s3_sends(self, engine: Engine, bucket: StubBucket) -> None:
        put_everything(bucket)
        head = await engine.head("everything", None, checksum=True)
        assert asdict(head) == asdict(EVERYTHING)

    def test_nothing_is_left_out_of_that_but_the_customers_key(self) -> None:
        absent = {field.name for field in fields(Head) if getattr(EVERYTHING, field.name) in (None, {})}
        assert absent == {"sse_customer_algorithm"}

    async def test_head_of_a_bare_object_has_no_invented_values(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("bare", b"", etag="b" * 32, sse=None)
        head = await engine.head("bare", None, checksum=True)
        assert head == Head(
            etag="b" * 32,
            content_length=0,
            last_modified="2026-01-02T03:04:05Z",
            content_type="binary/octet-stream",
        )

    async def test_checksums_come_only_when_asked(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("k", checksums={"SHA256": "eA=="}, checksum_type="COMPOSITE")
        asked = await engine.head("k", None, checksum=True)
        unasked = await engine.head("k", None, checksum=False)
        assert (asked.checksum_sha256, asked.checksum_type) == ("eA==", "COMPOSITE")
        assert (unasked.checksum_sha256, unasked.checksum_type) == (None, None)

    async def test_header_in_another_charset(self, opening: Opening, name: str) -> None:
        async with _server_of_latin_1() as url, opening(endpoint_url=url) as engine:
            code = UNREADABLE_HEADERS[name]
            if code is not None:
                failure = await failure_of(engine, CALLS["HeadObject"])
                assert failure.code == code
            else:
                head = await engine.head("key", None, checksum=False)
                assert head.cache_control == "caf\u00e9"

    async def test_grants_to_groups_and_accounts_in_order(self, engine: Engine, bucket: StubBucket) -> None:
        grants = (Grant(ALL_USERS, "WRITE_ACP"), Grant(STRANGER, "FULL_CONTROL"), Grant(OWNER, "READ"))
        bucket.put("k", owner=STRANGER, grants=grants)
        assert await engine.get_acl("k", None) == Acl(STRANGER, grants)

    async def test_acl_without_grants_is_no_malformed_one(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("k", grants=())
        assert await engine.get_acl("k", None) == Acl(OWNER, ())

    async def test_the_named_version_is_read(self, engine: Engine, stub: StubServer, bucket: StubBucket) -> None:
        bucket.versioning = "Enabled"
        old = bucket.put("k", b"old", acl="public-read").version_id
        bucket.put("k", b"newer")
        assert len((await engine.get_acl("k", old)).grants) == 2
        assert (await engine.head("k", old, checksum=False)).content_length == 3
        async with engine.get("k", old, None) as body:
            assert body.length == 3
        assert {call.version_id for call in stub.calls} == {old}


class TestWhatEveryCallCarries:
    async def test_expected_owner_and_request_payer(
        self, opening: Opening, stub: StubServer, bucket: StubBucket
    ) -> None:
        bucket.put("key")
        async with opening(expected_owner=bucket.account, requester_pays=True) as engine:
            for call in CALLS.values():
                await call(engine)
        assert [call.operation for call in stub.calls] == list(CALLS)
        assert {call.headers["x-amz-expected-bucket-owner"] for call in stub.calls} == {bucket.account}
        assert {call.headers["x-amz-request-payer"] for call in stub.calls} == {"requester"}

    async def test_neither_unless_wanted(self, engine: Engine, stub: StubServer, bucket: StubBucket) -> None:
        bucket.put("key")
        for call in CALLS.values():
            await call(engine)
        sent = {header for call in stub.calls for header in call.headers}
        assert not {"x-amz-expected-bucket-owner", "x-amz-request-payer"} & sent

    async def test_another_owner_than_expected_is_refused(self, opening: Opening, bucket: StubBucket) -> None:
        async with opening(expected_owner="999999999999") as engine:
            assert (await failure_of(engine, CALLS["ListObjectsV2"])).status == 403


class TestBodies:
    async def test_chunks_are_no_larger_than_asked(self, engine: Engine, bucket: StubBucket) -> None:
        content = bytes(range(256)) * 4000
        bucket.put("big", content)
        async with engine.get("big", None, None) as body:
            assert body.length == len(content)
            assert body.etag == bucket.objects.versions("big")[0].etag
            chunks = [piece async for piece in pieces(body, 100_000)]
        assert b"".join(chunks) == content
        assert max(map(len, chunks)) <= 100_000

    async def test_empty_object_has_no_chunks(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("empty", b"")
        assert await read(engine, "empty") == b""

    async def test_etag_is_sent_as_a_condition(self, engine: Engine, stub: StubServer, bucket: StubBucket) -> None:
        etag = bucket.put("k", b"old").etag
        async with engine.get("k", None, etag):
            pass
        bucket.put("k", b"new")
        with pytest.raises(CallFailed) as caught:
            async with engine.get("k", None, etag):
                pass
        assert (caught.value.code, caught.value.status) == ("PreconditionFailed", 412)
        assert {call.headers["if-match"] for call in stub.calls} == {f'"{etag}"'}

    async def test_a_span_of_an_object(self, engine: Engine, bucket: StubBucket) -> None:
        content = bytes(range(256)) * 8
        etag = bucket.put("k", content).etag
        for span, wanted in (
            (Span(0, 0), content[:1]),
            (Span(100, 299), content[100:300]),
            (Span(2000), content[2000:]),
            (Span(2000, 9999), content[2000:]),
        ):
            async with engine.get("k", None, etag, span) as body:
                assert (body.length, body.etag) == (len(wanted), etag)
                assert b"".join([piece async for piece in pieces(body, 64)]) == wanted

    async def test_a_span_beyond_the_end(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("key", b"abc")
        with pytest.raises(CallFailed) as caught:
            async with engine.get("key", None, None, Span(3, 9)):
                pass
        assert (caught.value.code, caught.value.status) == ("InvalidRange", 416)

    async def test_archived_object(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("key", storage_class="DEEP_ARCHIVE")
        failure = await failure_of(engine, CALLS["GetObject"])
        assert (failure.code, failure.status) == ("InvalidObjectState", 403)

    async def test_body_left_half_read_does_not_spoil_the_next_call(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("big", b"x" * 3_000_000)
        bucket.put("key", b"small")
        async with engine.get("big", None, None) as body:
            async for _ in pieces(body, 10):
                break
        assert await read(engine, "key") == b"small"


async def test_calls_run_side_by_side_up_to_the_concurrency(
    opening: Opening, stub: StubServer, bucket: StubBucket
) -> None:
    bucket.put("key")
    stub.faults = [latency(0.2)]
    async with opening(concurrency=6) as engine:
        await asyncio.gather(*(engine.get_acl("key", None) for _ in range(12)))
    assert stub.peak_in_flight == 6
    assert stub.count("GetObjectAcl") == 12


async def test_engine_that_signs_by_itself_knows_its_open_connections(opening: Opening, bucket: StubBucket) -> None:
    bucket.put("key", b"x")
    async with opening(concurrency=6) as engine:
        assert engine.open_connections == 0
        await asyncio.gather(*(engine.get_acl("key", None) for _ in range(3)))
        assert engine.open_connections == (3 if type(engine).__name__ == "DirectEngine" else 0)


async def test_engines_agree_on_a_bucket_of_everything(stub: StubServer, bucket: StubBucket) -> None:
    """The facts of one object, whatever it is like, are the same by every engine."""
    put_everything(bucket)
    for kind, key in ODD_KEYS.items():
        bucket.put(key, kind.encode(), metadata={"kind": kind}, acl="public-read")
    by_engine: dict[str, Any] = {}
    for name, factory in ENGINES.items():
        async with factory(Connection(bucket=bucket.name, endpoint_url=stub.url)) as engine:
            refs, _, _ = await list_all(engine, ListQuery(versions=True))
            by_engine[name] = [
                (
                    ref,
                    await engine.get_acl(ref.key, ref.version_id),
                    asdict(await engine.head(ref.key, ref.version_id, checksum=True)),
                )
                for ref in refs
            ]
    first, *others = by_engine.values()
    assert len(first) == len(ODD_KEYS) + 1
    assert all(facts == first for facts in others)
