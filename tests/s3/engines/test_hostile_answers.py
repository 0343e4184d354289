"""Answers that no S3 would give: each is a failed call, never a fact and never a crash."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from auditor.model.object import ALL_USERS, Acl, Grant
from auditor.s3.engines.base import Engine
from tests.s3.engines.common import CALLS, failure_of
from tests.s3.engines.conftest import Opening
from tests.support.servers.clients import BUCKET
from tests.support.servers.hooked import HookedServer, entry, listing
from tests.support.servers.stub_calls import Reply
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


@asynccontextmanager
async def answering(opening: Opening, world: World, operation: str, replies: list[Reply]) -> AsyncIterator[Engine]:
    """An engine, and a server that gives these replies to the operation, one after the other."""
    left = iter(replies)
    with HookedServer(world, lambda call: next(left) if call.operation == operation else None) as server:
        async with opening(endpoint_url=server.url) as engine:
            yield engine


@pytest.fixture
def world() -> World:
    made = World()
    made.add(BUCKET).put("key", b"x")
    return made


async def codes(opening: Opening, world: World, operation: str, replies: Mapping[str, Reply]) -> dict[str, str]:
    """The code of the failure for each reply."""
    async with answering(opening, world, operation, [*replies.values()]) as engine:
        await CALLS["GetObject"](engine)  # a client without an answer waits for its first one
        return {what: (await failure_of(engine, CALLS[operation])).code for what in replies}


def acl(grantee: str, permission: str, owner: str = OWNER) -> Reply:
    grant = f"<Grant><Grantee><URI>{grantee}</URI></Grantee><Permission>{permission}</Permission></Grant>"
    body = f"<Owner><ID>{owner}</ID></Owner><AccessControlList>{grant}</AccessControlList>"
    return Reply(200, {}, document("AccessControlPolicy", body))


async def test_answers_that_are_malformed(opening: Opening, world: World) -> None:
    heads = {what: Reply(200, {**HEAD, **headers}) for what, headers in HEADS.items()}
    acls = {f"the permission {permission!r}": acl(ALL_USERS, permission) for permission in ("", "read", "PUBLIC")}
    for operation, replies in (("ListObjectsV2", LISTINGS), ("HeadObject", heads), ("GetObjectAcl", acls)):
        assert await codes(opening, world, operation, replies) == dict.fromkeys(replies, "Malformed")


async def test_answers_that_are_odd_and_yet_facts(opening: Opening, world: World) -> None:
    book = b"<Error><Code>" + b"x" * 100_000 + b"</Code></Error>"
    assert len((await codes(opening, world, "GetObjectAcl", {"a book": Reply(403, {}, book)}))["a book"]) == 100
    in_lines = acl(f"\n  {ALL_USERS}\n", " READ\n", f" {OWNER} ")
    async with answering(opening, world, "GetObjectAcl", [in_lines]) as engine:
        assert await engine.get_acl("key", None) == Acl(OWNER, (Grant(ALL_USERS, "READ"),))
    first_day = listing(entry("a", written="0001-01-01T00:00:00+14:00"))
    async with answering(opening, world, "ListObjectsV2", [first_day]) as engine:
        await CALLS["ListObjectsV2"](engine)
