"""Read the access points of a bucket that belong to the bucket's own account. They matter only if the bucket policy
delegates to access points.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from auditor.aio.groups import task_group
from auditor.errors import CallFailed
from auditor.model.bucket import AccessPoint, PublicAccessBlock
from auditor.model.object import Skipped, Unread
from auditor.model.policy import parse as parse_policy
from auditor.s3.bucket_settings import access_block_of
from auditor.s3.engines import parse_reply as replies
from auditor.s3.engines.base import Questions

T = TypeVar("T")
Reply = Mapping[str, Any]

MOST: Final = 1000
"""The largest number of access points that are read, by three calls each. With more, all of them are unread."""
TOO_MANY: Final = "TooMany"
NOT_DELEGATED: Final = Skipped("no statement of the bucket policy delegates to access points")
POLICY_UNREAD: Final = Skipped("the bucket policy, which may delegate to them, was not read")

_KEYS: Final = ("s3:dataaccesspoint", "s3:accesspointnetworkorigin")
"""Condition keys that only a request through an access point has, or beginnings of such keys, in lower case."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,254}")
_NO_POLICY: Final = "NoSuchAccessPointPolicy"


class Call(Protocol):
    """A function that makes the call `action` with retries. `question` makes one attempt."""

    async def __call__(self, action: str, question: Callable[[], Awaitable[T]]) -> T: ...


def delegates(policy: str) -> bool:
    """True if a condition of the bucket policy tests the access point of a request. policy: a policy document as JSON
    text that can be parsed.
    """
    return any(
        key.lower().startswith(_KEYS)
        for statement in parse_policy(policy).statements
        for _, key, _ in statement.conditions
    )


class AccessPointReader:
    """Reads the access points of one bucket. account: the number of the account that owns the bucket."""

    def __init__(self, bucket: str, account: str, call: Call, questions: Questions) -> None:
        self._bucket = bucket
        self._account = account
        self._call = call
        self._questions = questions

    async def read(self) -> tuple[AccessPoint, ...] | Unread:
        """Return the access points, sorted by name. If they cannot be listed, return Unread. A field of an access point
        that cannot be read is Unread.
        """
        try:
            listed = await self._listed()
        except CallFailed as failure:
            return _unread(failure)
        async with task_group() as group:
            tasks = [group.create_task(self._point(*listed[name])) for name in sorted(listed)]
        return tuple(task.result() for task in tasks)

    async def _listed(self) -> dict[str, tuple[str, str, str | None]]:
        """Return the name, ARN and VPC of each access point, by name. Raises CallFailed (TooMany) if there are more
        than MOST.
        """
        action = "ListAccessPoints"
        found: dict[str, tuple[str, str, str | None]] = {}
        token: str | None = None
        seen: set[str] = set()
        while True:
            reply = await self._ask(action, {"Bucket": self._bucket} | ({"NextToken": token} if token else {}))
            for entry in replies.required(action, reply, "AccessPointList"):
                name = str(replies.required(action, entry, "Name"))
                if not _NAME.fullmatch(name):
                    raise CallFailed(action, "Malformed", 200, "an access point has no valid name")
                found[name] = (name, str(replies.required(action, entry, "AccessPointArn")), _vpc(action, entry))
            token = reply.get("NextToken") or None
            if len(found) > MOST or (token is not None and len(found) == MOST):
                raise CallFailed(action, TOO_MANY, 200, f"the bucket has more than {MOST} access points")
            if token is None:
                return found
            if token in seen:
                raise CallFailed(action, "Malformed", 200, "the listing goes round")
            seen.add(token)

    async def _point(self, name: str, arn: str, vpc: str | None) -> AccessPoint:
        async def fact(action: str, parse: Callable[[Reply], T], absent: T | None = None) -> T | Unread:
            try:
                return parse(await self._ask(action, {"Name": name}))
            except CallFailed as failure:
                if absent is not None and failure.code == _NO_POLICY:
                    return absent
                return _unread(failure)

        async with task_group() as group:
            block = group.create_task(fact("GetAccessPoint", _block))
            policy = group.create_task(fact("GetAccessPointPolicy", _policy, ""))
            public = group.create_task(fact("GetAccessPointPolicyStatus", _is_public, False))
        return AccessPoint(
            arn=arn,
            account=self._account,
            vpc=vpc,
            public_access_block=block.result(),
            policy=policy.result(),
            policy_is_public=public.result(),
        )

    async def _ask(self, action: str, arguments: Mapping[str, str]) -> Reply:
        return await self._call(action, lambda: self._questions.control(action, self._account, arguments))


def _unread(failure: CallFailed) -> Unread:
    return Unread(failure.action, failure.code)


def _vpc(action: str, entry: Reply) -> str | None:
    """Return the ID of the only VPC from which the access point takes requests; None if it takes requests from the
    internet too.
    """
    if replies.required(action, entry, "NetworkOrigin") != "VPC":
        return None
    return str(replies.required(action, replies.required(action, entry, "VpcConfiguration"), "VpcId"))


def _block(reply: Reply) -> PublicAccessBlock:
    return access_block_of(reply, "GetAccessPoint")


def _policy(reply: Reply) -> str:
    action = "GetAccessPointPolicy"
    text = str(replies.required(action, reply, "Policy"))
    try:
        parse_policy(text)
    except ValueError as error:
        raise CallFailed(action, "Malformed", 200, str(error)) from error
    return text


def _is_public(reply: Reply) -> bool:
    action = "GetAccessPointPolicyStatus"
    return bool(replies.required(action, replies.required(action, reply, "PolicyStatus"), "IsPublic"))
