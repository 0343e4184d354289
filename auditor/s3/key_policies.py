"""Read the policy of each KMS key that encrypts an object, once for each key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from auditor.aws.client import open_client
from auditor.aws.connection import Connection
from auditor.aws.plain import custom_endpoint
from auditor.errors import CallFailed
from auditor.model.bucket import MOST_KEYS, UNREAD_KEY
from auditor.model.object import Head, Unread
from auditor.model.policy import parse as parse_policy
from auditor.s3.calls import Caller

ACTION: Final = "GetKeyPolicy"


class KeyPolicies:
    """The policies of the KMS keys that HEADs have named so far.

    policies: by the KMS key's ARN or ID as HEAD names it, the document as JSON text, or Unread. read() adds to this
    mapping. A judge that holds the same mapping sees the policy of an object's key, because the policy is read before
    the object is judged.
    """

    def __init__(self, caller: Caller, ask: Callable[[str], Awaitable[str]], known: Mapping[str, str | Unread]) -> None:
        """ask: returns the policy of a KMS key by one call. known: the policies that an earlier process of the run
        read.
        """
        self.policies: dict[str, str | Unread] = {key: text for key, text in known.items() if isinstance(text, str)}
        self._caller = caller
        self._ask = ask
        self._asking = asyncio.Lock()

    def knows(self, head: Head) -> bool:
        """True if read() would make no call."""
        return not head.sse_kms_key_id or head.sse_kms_key_id in self.policies

    async def read(self, head: Head) -> None:
        """Read the policy of the KMS key that encrypts the object, unless it was asked for before. Raises RunError."""
        key = head.sse_kms_key_id
        if not key or self.knows(head):
            return
        async with self._asking:
            if key not in self.policies:
                self.policies[key] = await self._policy(key)

    async def _policy(self, key: str) -> str | Unread:
        if len(self.policies) >= MOST_KEYS:
            return UNREAD_KEY
        try:
            text = await self._caller.call("bucket", ACTION, lambda: self._ask(key), server="kms")
            parse_policy(text)
        except CallFailed as failure:
            return Unread(ACTION, failure.code)
        except ValueError:
            return Unread(ACTION, "Malformed")
        return text


@asynccontextmanager
async def open_key_policies(
    connection: Connection, caller: Caller, known: Mapping[str, str | Unread]
) -> AsyncIterator[KeyPolicies]:
    """Open a reader of KMS key policies in the bucket's region. known: the policies that an earlier process of the run
    read.

    Behind a custom endpoint of S3, KMS is called at that endpoint, or at the endpoint in AWS_ENDPOINT_URL_KMS; never at
    AWS.
    """
    profile = connection.profile
    endpoint = custom_endpoint("kms", None, profile) or custom_endpoint("s3", connection.endpoint_url, profile)
    async with open_client(
        "kms", threads=1, region=connection.region, endpoint_url=endpoint, profile=profile, role=connection.role
    ) as client:

        async def ask(key: str) -> str:
            reply = await client.call(ACTION, KeyId=key, PolicyName="default")  # the only one that a key has
            return str(reply.get("Policy", ""))

        yield KeyPolicies(caller, ask, known)
