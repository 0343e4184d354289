"""Answers that no S3 would give: each is a failed call, never a fact and never a crash."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from auditor.model.object import ALL_USERS, Acl, Grant
from tests.s3.engines.common import CALLS, failure_of
from tests.s3.engines.conftest import Opening
from tests.support.servers.clients import BUCKET
from tests.support.servers.hooked import HookedServer, entry, listing
from tests.support.servers.stub_calls import Call, Reply
from tests.support.servers.stub_xml import document
from tests.support.servers.world import OWNER, World

HEAD = {"Content-Length": "1", "ETag": '"e"'}

LISTINGS = {
    "a key that is not UTF-8": listing(entry("%FF")),
    "a key with a lone surrogate": listing(entry("%ED%A0%80")),
    "an empty key": listing(entry("")),
    "a size that is no number": listing(entry("a", size="many")),
    "a size of 5,000 digits": listing(entry("a", size="9" * 5000)),
    "a date that is none": listing(entry("a", written="yesterday")),
    "a date beyond all calendars": listing(entry("a", written="9" * 22)),
}
HEADS = {
    "a date that is none": {"Last-Modified": "yesterday"},
    "a retention that is no date": {"x-amz-object-lock-retain-until-date": "never"},
    "a count that is no number": {"x-amz-missing-meta": "some"},
    "a count below zero": {"x-amz-missing-meta": "-1"},
    "a count beyond 64 bits": {"x-amz-mp-parts-count": str(2**63)},
    "a length that no object has": {"Content-Length": str(2**63)},
}


def answering(operation: str, reply: Reply) -> Callable[[Call], Reply | None]:
    return lambda call: reply if call.operation == operation else None


@pytest.fixture
def world() -> World:
    made = World()
    made.add(BUCKET).put("key", b"x")
    return made


@pytest.mark.parametrize("what", LISTINGS)
async def test_listing_with(opening: Opening, world: World, what: str) -> None:
    with HookedServer(world, answering("ListObjectsV2", LISTINGS[what])) as server:
        async with opening(endpoint_url=server.url) as engine:
            assert (await failure_of(engine, CALLS["ListObjectsV2"])).code == "Malformed"


@pytest.mark.parametrize("what", HEADS)
async def test_head_with(opening: Opening, world: World, what: str) -> None:
    with HookedServer(world, answering("HeadObject", Reply(200, {**HEAD, **HEADS[what]}))) as server:
        async with opening(endpoint_url=server.url) as engine:
            assert (await failure_of(engine, CALLS["HeadObject"])).code == "Malformed"


async def test_code_as_long_as_a_book_is_cut(opening: Opening, world: World) -> None:
    book = b"<Error><Code>" + b"x" * 100_000 + b"</Code></Error>"
    with HookedServer(world, answering("GetObjectAcl", Reply(403, {}, book))) as server:
        async with opening(endpoint_url=server.url) as engine:
            assert len((await failure_of(engine, CALLS["GetObjectAcl"])).code) == 100


async def test_first_day_of_all_in_a_far_time_zone_is_kept_as_it_is(opening: Opening, world: World) -> None:
    reply = listing(entry("a", written="0001-01-01T00:00:00+14:00"))
    with HookedServer(world, answering("ListObjectsV2", reply)) as server:
        async with opening(endpoint_url=server.url) as engine:
            await CALLS["ListObjectsV2"](engine)


async def test_acl_laid_out_in_lines_grants_what_it_grants(opening: Opening, world: World) -> None:
    grantee = f"<Grantee><URI>\n  {ALL_USERS}\n</URI></Grantee>"
    body = (
        f"<Owner><ID> {OWNER} </ID></Owner><AccessControlList><Grant>{grantee}<Permission> READ\n</Permission></Grant>"
    )
    reply = Reply(200, {}, document("AccessControlPolicy", f"{body}</AccessControlList>"))
    with HookedServer(world, answering("GetObjectAcl", reply)) as server:
        async with opening(endpoint_url=server.url) as engine:
            assert await engine.get_acl("key", None) == Acl(OWNER, (Grant(ALL_USERS, "READ"),))


@pytest.mark.parametrize("permission", ["", "read", "PUBLIC"])
async def test_permission_that_is_none(opening: Opening, world: World, permission: str) -> None:
    grant = f"<Grant><Grantee><URI>{ALL_USERS}</URI></Grantee><Permission>{permission}</Permission></Grant>"
    body = f"<Owner><ID>{OWNER}</ID></Owner><AccessControlList>{grant}</AccessControlList>"
    reply = Reply(200, {}, document("AccessControlPolicy", body))
    with HookedServer(world, answering("GetObjectAcl", reply)) as server:
        async with opening(endpoint_url=server.url) as engine:
            assert (await failure_of(engine, CALLS["GetObjectAcl"])).code == "Malformed"
