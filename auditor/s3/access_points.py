"""Read the access points of a bucket that belong to the bucket's own account. They matter only if the bucket policy
delegates to access points.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

from auditor.aio.groups import task_group, together
from auditor.errors import CallFailed
from auditor.model.bucket import AccessPoint
from auditor.model.object import Skipped, Unread
from auditor.model.policy import parse as parse_policy
from auditor.s3.bucket_settings import access_block_of, is_public, policy_of
from auditor.s3.control_calls import TOO_MANY, ControlCalls
from auditor.s3.engines import parse_reply as replies
from auditor.s3.engines.parse_reply import Reply

T = TypeVar("T")

MOST: Final = 1000
"""The largest number of access points that are read, by three calls each. With more, all of them are unread."""
NOT_DELEGATED: Final = Skipped("no statement of the bucket policy delegates to access points")
POLICY_UNREAD: Final = Skipped("the bucket policy, which may delegate to them, was not read")

_KEYS: Final = ("s3:dataaccesspoint", "s3:accesspointnetworkorigin")
"""Condition keys that only a request through an access point has, or beginnings of such keys, in lower case."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,254}")
_NO_POLICY: Final = "NoSuchAccessPointPolicy"


def delegates(policy: str) -> bool:
    """True if a condition of the bucket policy tests the access point of a request. policy: a policy document as JSON
    text that can be parsed.
    """
    return any(
        key.lower().startswith(_KEYS)
        for statement in parse_policy(policy).statements
        for _, key, _ in statement.conditions
    )


async def read_access_points(bucket: str, calls: ControlCalls) -> tuple[AccessPoint, ...] | Unread:
    """Return the access points of a bucket that belong to the account of `calls`, sorted by name. If they cannot be
    listed, return Unread. A field of an access point that cannot be read is Unread.
    """
    try:
        listed = await _listed(bucket, calls)
    except CallFailed as failure:
        return _unread(failure)
    return tuple(await together(_point(calls, *listed[name]) for name in sorted(listed)))


async def _listed(bucket: str, calls: ControlCalls) -> dict[str, tuple[str, str, str | None]]:
    """Return the name, ARN and VPC of each access point, by name. Raises CallFailed (TooMany) if there are more than
    MOST.
    """
    action = "ListAccessPoints"
    found: dict[str, tuple[str, str, str | None]] = {}
    async for entries, more in calls.pages(action, "AccessPointList", Bucket=bucket):
        for entry in entries:
            name = str(replies.required(action, entry, "Name"))
            if not _NAME.fullmatch(name):
                raise CallFailed(action, "Malformed", 200, "an access point has no valid name")
            found[name] = (name, str(replies.required(action, entry, "AccessPointArn")), _vpc(action, entry))
        if len(found) > MOST or (more and len(found) == MOST):
            raise CallFailed(action, TOO_MANY, 200, f"the bucket has more than {MOST} access points")
    return found


async def _point(calls: ControlCalls, name: str, arn: str, vpc: str | None) -> AccessPoint:
    async def fact(action: str, parse: Callable[[Reply, str], T], absent: T | None = None) -> T | Unread:
        try:
            return parse(await calls.ask(action, Name=name), action)
        except CallFailed as failure:
            if absent is not None and failure.code == _NO_POLICY:
                return absent
            return _unread(failure)

    async with task_group() as group:
        block = group.create_task(fact("GetAccessPoint", access_block_of))
        policy = group.create_task(fact("GetAccessPointPolicy", policy_of, ""))
        public = group.create_task(fact("GetAccessPointPolicyStatus", is_public, False))
    return AccessPoint(
        arn=arn,
        account=calls.account,
        vpc=vpc,
        public_access_block=block.result(),
        policy=policy.result(),
        policy_is_public=public.result(),
    )


def _unread(failure: CallFailed) -> Unread:
    return Unread(failure.action, failure.code)


def _vpc(action: str, entry: Reply) -> str | None:
    """Return the ID of the only VPC from which the access point takes requests; None if it takes requests from the
    internet too.
    """
    if replies.required(action, entry, "NetworkOrigin") != "VPC":
        return None
    return str(replies.required(action, entry, "VpcConfiguration", "VpcId"))
