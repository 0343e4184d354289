"""Every engine passes the suite, gives the same facts, and sends the same parameters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from msgspec.structs import asdict

from auditor.model.object import Acl, ObjectRef
from auditor.s3.engines.base import Engine, ListQuery
from tests.conformance.engines import CHECKS, EngineCheck
from tests.conformance.engines.world import StoredVersion
from tests.conformance.memory import OWNER as MEMORY_OWNER
from tests.conformance.memory import MemoryEngine
from tests.s3.engines.common import CALLS, EVERYTHING, list_all, put_everything
from tests.s3.engines.conftest import Opening
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, StubBucket

_STUBS_NAME: Final = {"server_side_encryption": "sse"}
_HOLD: Final = "object_lock_event_hold"


class StubWorld:
    """A bucket of the stub, reached by one of our engines."""

    owner = OWNER

    def __init__(self, bucket: StubBucket, opening: Opening) -> None:
        self._bucket = bucket
        self.open = opening

    def put(self, key: str, body: bytes = b"", *, acl: Acl | None = None, **members: Any) -> StoredVersion:
        fields: dict[str, Any] = {} if acl is None else {"owner": acl.owner, "grants": acl.grants}
        checksums, headers = {}, {}
        for name, value in members.items():
            if name.startswith(_HOLD):
                headers[f"x-amz-{name.replace('_', '-')}"] = str(value)
            elif name.startswith("checksum_") and name != "checksum_type":
                checksums[name.removeprefix("checksum_").upper()] = value
            else:
                fields[_STUBS_NAME.get(name, name)] = value
        return self._bucket.put(key, body, checksums=checksums, headers=headers, **fields)

    def delete(self, key: str) -> None:
        self._bucket.delete(key)

    def keep_versions(self) -> None:
        self._bucket.versioning = "Enabled"


class MemoryWorld(MemoryEngine):
    """An engine in memory is a world of its own."""

    owner = MEMORY_OWNER

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Engine]:
        yield self


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_suite(check: EngineCheck, opening: Opening, bucket: StubBucket) -> None:
    await check(StubWorld(bucket, opening))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_suite_in_memory(check: EngineCheck) -> None:
    await check(MemoryWorld())


class TestListing:
    async def test_restored_copy_and_all_else_that_the_listing_says(self, engine: Engine, bucket: StubBucket) -> None:
        bucket.put("k8", b"-", storage_class="GLACIER", restored=True, checksums={"SHA256": "eA=="}, etag="f-2")
        refs, _, _ = await list_all(engine, ListQuery())
        assert refs == [
            ObjectRef(
                key="k8",
                etag="f-2",
                size=1,
                last_modified="2026-01-02T03:04:05Z",
                storage_class="GLACIER",
                owner=OWNER,
                checksum_algorithms=("SHA256",),
                restored=True,
            )
        ]

    async def test_owner_and_url_encoding_are_asked_for(
        self, engine: Engine, stub: StubServer, bucket: StubBucket
    ) -> None:
        await engine.list_page(ListQuery(), None)
        await engine.list_page(ListQuery(versions=True), None)
        assert stub.calls[0].query["fetch-owner"] == "true"
        assert [call.query["encoding-type"] for call in stub.calls] == ["url", "url"]


class TestFacts:
    async def test_head_gives_every_field_that_s3_sends(self, engine: Engine, bucket: StubBucket) -> None:
        put_everything(bucket)
        head = await engine.head("everything", None, checksum=True)
        assert asdict(head) == asdict(EVERYTHING)


class TestWhatEveryCallCarries:
    async def test_version_and_etag(self, engine: Engine, stub: StubServer, bucket: StubBucket) -> None:
        bucket.versioning = "Enabled"
        stored = bucket.put("k", b"old")
        await engine.get_acl("k", stored.version_id)
        await engine.head("k", stored.version_id, checksum=False)
        async with engine.get("k", stored.version_id, stored.etag):
            pass
        assert {call.version_id for call in stub.calls} == {stored.version_id}
        assert stub.calls[-1].headers["if-match"] == f'"{stored.etag}"'

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
