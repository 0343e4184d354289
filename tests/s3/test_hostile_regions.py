"""A server that names an impossible region is treated as one that names none."""

from __future__ import annotations

import pytest

from auditor.aws.failures import doom
from auditor.errors import CallFailed
from auditor.model.bucket import BucketFacts
from auditor.model.object import Skipped
from tests.support.asked_by import asked_by as asked_by
from tests.support.asked_by import reader_for
from tests.support.fakes.caller import make_caller
from tests.support.servers.clients import BUCKET
from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub_calls import Call, Reply
from tests.support.servers.world import World


async def facts_of(named: str) -> BucketFacts:
    def hook(call: Call) -> Reply | None:
        return Reply(200, {"x-amz-bucket-region": named}) if call.operation == "HeadBucket" else None

    world = World()
    world.add(BUCKET)
    with HookedServer(world, hook) as server:
        async with reader_for(make_caller(), bucket=BUCKET, endpoint_url=server.url) as reader:
            return await reader.read(await reader.region(None))


@pytest.mark.parametrize("named", ["evil.example/#", "../..", "a b", "-eu", "12345", "x" * 64, "my_zone", "eu\u00e9"])
async def test_region_that_none_can_be(named: str) -> None:
    assert isinstance((await facts_of(named)).region, Skipped)


@pytest.mark.parametrize("named", ["eu-west-1", "default", "a"])
async def test_region_that_can_be(named: str) -> None:
    assert (await facts_of(named)).region == named


@pytest.mark.parametrize("named", ["evil.example/#", "x; rm -rf ~", "eu-west-1\u202e"])
def test_what_cannot_be_a_region_becomes_no_advice(named: str) -> None:
    failure = CallFailed("ListObjectsV2", "PermanentRedirect", 301, headers={"x-amz-bucket-region": named})
    said = str(doom(failure, BUCKET))
    assert named not in said
    assert said.endswith("(PermanentRedirect): give its region with --region")


def test_a_region_becomes_advice() -> None:
    failure = CallFailed("ListObjectsV2", "PermanentRedirect", 301, headers={"x-amz-bucket-region": "eu-west-1"})
    assert str(doom(failure, BUCKET)).endswith("(PermanentRedirect): use --region eu-west-1")
