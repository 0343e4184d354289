"""The benchmarks' server answers the measured calls as S3 does."""

from __future__ import annotations

import pytest

from auditor.aws.connection import Connection
from auditor.model.object import ALL_USERS, Grant
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import ListQuery, Span
from benchmarks.server import objects
from benchmarks.server.answers import Answers
from benchmarks.server.behaviour import Behaviour, Gate
from tests.s3.engines.common import list_all, pieces, read
from tests.support.servers.http_server import listening


@pytest.mark.parametrize("name", ENGINES)
async def test_listing_head_acl_and_body_are_those_that_are_computed(name: str) -> None:
    owners, size = Grant(objects.OWNER, "FULL_CONTROL"), 2 * len(objects.BLOCK) + 5
    async with listening(Answers(Gate(Behaviour(objects=2500)))) as url:
        connection = Connection(bucket=objects.BUCKET, region="us-east-1", endpoint_url=url, concurrency=2)
        async with ENGINES[name](connection) as engine:
            refs, _, pages = await list_all(engine, ListQuery())
            assert ([ref.key for ref in refs], pages) == ([objects.key_of(number) for number in range(2500)], 3)
            assert (refs[7].etag, refs[7].size, refs[7].owner) == (
                objects.etag_of(7),
                objects.size_of(7),
                objects.OWNER,
            )
            head = await engine.head(objects.key_of(7), None, checksum=False)
            assert (head.etag, head.content_length) == (objects.etag_of(7), objects.size_of(7))
            assert (head.server_side_encryption, head.metadata["build"]) == ("AES256", "7")
            assert (await engine.get_acl(objects.key_of(1000), None)).grants == (owners, Grant(ALL_USERS, "READ"))
            assert (await engine.get_acl(objects.key_of(1001), None)).grants == (owners,)
            body = await read(engine, f"{objects.SIZED}{size}", 1 << 20)
            assert body == bytes(objects.body_of(size))
            async with engine.get(f"{objects.SIZED}{size}", None, None, Span(len(objects.BLOCK) - 3, size - 1)) as span:
                assert b"".join([piece async for piece in pieces(span, 1 << 20)]) == body[len(objects.BLOCK) - 3 :]
