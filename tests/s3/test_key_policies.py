"""The policy of each KMS key that a HEAD names: read once, before the object is judged, and never called absent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.aws.connection import Connection
from auditor.errors import CallFailed, CredentialsError
from auditor.model.bucket import MOST_KEYS
from auditor.model.object import Head, Unread
from auditor.s3.key_policies import KeyPolicies, open_key_policies
from tests.support.fakes.caller import make_caller
from tests.support.servers.clients import client

POLICY = json.dumps({"Version": "2012-10-17", "Statement": []})
PLAIN = Head(etag="e", content_length=1)


def under(key: str | None) -> Head:
    return replace(PLAIN, server_side_encryption="aws:kms", sse_kms_key_id=key)


class Kms:
    """Answers with the text or the error of `answers`, and notes each key that it is asked for."""

    def __init__(self, **answers: str | Exception) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, key: str) -> str:
        self.asked.append(key)
        await asyncio.sleep(0)
        answer = self.answers.get(key, POLICY)
        if isinstance(answer, Exception):
            raise answer
        return answer


def policies(kms: Kms, known: Mapping[str, str | Unread] | None = None) -> KeyPolicies:
    return KeyPolicies(make_caller(), kms, known or {})


async def test_each_key_is_asked_for_once_though_many_objects_wait_for_it() -> None:
    kms = Kms()
    keys = policies(kms)
    async with asyncio.TaskGroup() as group:
        for key in ("k1", "k2") * 10:
            group.create_task(keys.read(under(key)))
    assert sorted(kms.asked) == ["k1", "k2"]
    assert keys.policies == {"k1": POLICY, "k2": POLICY}


async def test_an_object_without_a_named_key_asks_for_nothing() -> None:
    kms = Kms()
    for head in (PLAIN, under(None), under("")):
        await policies(kms).read(head)
    assert kms.asked == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (CallFailed("GetKeyPolicy", "AccessDeniedException", 400), "AccessDeniedException"),
        (CallFailed("GetKeyPolicy", "NotFoundException", 400), "NotFoundException"),
        ("{", "Malformed"),
        ("[]", "Malformed"),
    ],
)
async def test_a_policy_that_cannot_be_read_is_unread_and_not_asked_for_again(answer: Any, code: str) -> None:
    kms = Kms(k1=answer)
    keys = policies(kms)
    for _ in range(2):
        await keys.read(under("k1"))
    assert keys.policies == {"k1": Unread("GetKeyPolicy", code)}
    assert kms.asked == ["k1"]


async def test_refused_credentials_end_the_run() -> None:
    with pytest.raises(CredentialsError):
        await policies(Kms(k1=CallFailed("GetKeyPolicy", "InvalidClientTokenId", 403))).read(under("k1"))


async def test_too_many_keys_are_unread() -> None:
    kms = Kms()
    keys = policies(kms, {f"k{number}": POLICY for number in range(MOST_KEYS)})
    await keys.read(under("k0"))
    await keys.read(under("one-more"))
    assert keys.policies["one-more"] == Unread("GetKeyPolicy", "TooMany")
    assert kms.asked == []


async def test_a_process_that_goes_on_with_a_run_asks_again_only_for_those_that_were_unread() -> None:
    kms = Kms()
    keys = policies(kms, {"k1": POLICY, "k2": Unread("GetKeyPolicy", "Timeout")})
    await keys.read(under("k1"))
    await keys.read(under("k2"))
    assert kms.asked == ["k2"]


async def test_kms_behind_the_same_endpoint(moto_url: str) -> None:
    kms = client("kms", moto_url)
    key = kms.create_key(Policy=POLICY)["KeyMetadata"]["Arn"]
    connection = Connection(bucket="b", region="us-east-1", endpoint_url=moto_url)
    async with open_key_policies(connection, make_caller(), {}) as keys:
        await keys.read(under(key))
        await keys.read(under("arn:aws:kms:us-east-1:123456789012:key/none"))
    assert keys.policies[key] == POLICY
    assert keys.policies["arn:aws:kms:us-east-1:123456789012:key/none"] == Unread("GetKeyPolicy", "NotFoundException")
