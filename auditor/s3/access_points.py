"""Read the access points of a bucket, and the S3 Access Grants on it, that belong to the bucket's own account.

Access points matter only if the bucket policy delegates to them. A grant hands out credentials of a role of the
account, so neither the bucket policy nor an ACL shows it. An account has at most one S3 Access Grants instance in a
Region, and it has the grants of all buckets there. The calls are those of S3 Control.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar

from auditor.aio.tasks import task_group, together
from auditor.errors import CallFailed
from auditor.model.bucket import SCHEME, AccessGrant, AccessGrants, AccessPoint, GranteeType, GrantPermission
from auditor.model.object import Skipped, Unread
from auditor.model.policy import parse as parse_policy
from auditor.s3.bucket_settings import access_block_of, is_public, policy_of
from auditor.s3.engines import answers as replies
from auditor.s3.engines.answers import Reply, required
from auditor.s3.engines.base import Questions

T = TypeVar("T")

MOST_PAGES: Final = 2_000
"""The largest number of pages of a listing, full or empty."""
TOO_MANY: Final = "TooMany"

MOST: Final = 1000
"""The largest number of access points that are read, by three calls each. With more, all of them are unread."""
NOT_DELEGATED: Final = Skipped("no statement of the bucket policy delegates to access points")
POLICY_UNREAD: Final = Skipped("the bucket policy, which may delegate to them, was not read")

_KEYS: Final = ("s3:dataaccesspoint", "s3:accesspointnetworkorigin")
"""Condition keys that only a request through an access point has, or beginnings of such keys, in lower case."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,254}")
_NO_POLICY: Final = "NoSuchAccessPointPolicy"

MOST_LISTED: Final = 100_000
"""The largest number of grants that an instance may list. It is AWS's own limit (S3 User Guide, "S3 Access Grants
limitations"). With more, all grants are unread."""
MOST_GRANTS: Final = 10_000
"""The largest number of grants on one bucket that are kept. With more, all of them are unread."""

_NO_INSTANCE: Final = "AccessGrantsInstanceNotExistsError"
_NO_GRANTS_POLICY: Final = "AccessGrantsInstanceResourcePolicyNotExists"
_ID: Final = re.compile(r"[a-zA-Z0-9-]{1,64}")
_INSTANCE: Final = re.compile(r"arn:[a-z-]+:s3:[a-z0-9-]+:[0-9]{12}:access-grants/[a-zA-Z0-9-]+")
_LONGEST: Final = 2048
"""Largest number of characters of a scope or a grantee."""


class Call(Protocol):
    """A function that makes the call `action` with retries. `question` makes one attempt."""

    async def __call__(self, action: str, question: Callable[[], Awaitable[T]]) -> T: ...


class ControlCalls:
    """Makes calls of S3 Control. account: the number of the account that they are on."""

    def __init__(self, account: str, call: Call, questions: Questions) -> None:
        self.account = account
        self._call = call
        self._questions = questions

    async def ask(self, action: str, **arguments: str) -> Reply:
        """Make the call `action`, and return its reply. arguments: by botocore's name. Raises CallFailed."""
        return await self._call(action, lambda: self._questions.control(action, self.account, arguments))

    async def pages(self, action: str, element: str, **arguments: str) -> AsyncIterator[tuple[Sequence[Any], bool]]:
        """Yield the entries of each page of a listing, and True if another page follows.

        element: the one that has the entries. Raises CallFailed, also for a listing that does not end.
        """
        seen: set[str] = set()
        while True:
            reply = await self.ask(action, **arguments)
            token = reply.get("NextToken") or None
            yield required(action, reply, element), token is not None
            if token is None:
                return
            if token in seen:
                raise CallFailed(action, "Malformed", 200, "the listing goes round")
            seen.add(token)
            if len(seen) >= MOST_PAGES:
                raise CallFailed(action, TOO_MANY, 200, f"the listing has more than {MOST_PAGES} pages")
            arguments["NextToken"] = token


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


async def read_access_grants(bucket: str, calls: ControlCalls) -> AccessGrants | Unread:
    """Return the S3 Access Grants on one bucket in the account of `calls`; Unread if the account's instance or its
    grants cannot be listed. If only the instance's policy cannot be read, this field is Unread.

    The calls have no filter for a bucket: GrantScope is the scope of single grants. So all grants of the instance are
    listed, and those on the bucket are kept.
    """
    try:
        instance = await _instance(calls)
        grants = () if instance is None else await _grants(bucket, calls)
    except CallFailed as failure:
        if failure.code == _NO_INSTANCE:
            return AccessGrants(account=calls.account)
        return Unread(failure.action, failure.code)
    if instance is None:
        return AccessGrants(account=calls.account)
    return AccessGrants(account=calls.account, instance=instance, grants=grants, policy=await _policy(calls))


async def _instance(calls: ControlCalls) -> str | None:
    """Return the ARN of the account's instance; None if there is none."""
    action = "ListAccessGrantsInstances"
    found: str | None = None
    async for entries, _ in calls.pages(action, "AccessGrantsInstancesList"):
        for entry in entries:
            found = str(replies.required(action, entry, "AccessGrantsInstanceArn"))
            if not _INSTANCE.fullmatch(found):
                raise CallFailed(action, "Malformed", 200, "an instance has no valid ARN")
    return found


async def _grants(bucket: str, calls: ControlCalls) -> tuple[AccessGrant, ...]:
    action = "ListAccessGrants"
    found: dict[AccessGrant, None] = {}
    listed = 0
    async for entries, _ in calls.pages(action, "AccessGrantsList"):
        for entry in entries:
            listed += 1
            grant = _grant(action, entry)
            # Other policies, too, may let in an IAM user or role of the bucket's account.
            own = grant.grantee_type is GranteeType.IAM and grant.grantee.split(":")[4:5] == [calls.account]
            if grant.is_on(bucket) and not own:
                found[grant] = None
            if listed > MOST_LISTED or len(found) > MOST_GRANTS:
                raise CallFailed(action, TOO_MANY, 200, "the instance has too many grants")
    return tuple(sorted(found, key=attrgetter("id")))


async def _policy(calls: ControlCalls) -> str | Unread:
    action = "GetAccessGrantsInstanceResourcePolicy"
    try:
        return policy_of(await calls.ask(action), action)
    except CallFailed as failure:
        return "" if failure.code == _NO_GRANTS_POLICY else Unread(action, failure.code)


def _grant(action: str, entry: Reply) -> AccessGrant:
    """Parse one entry of ListAccessGrants. Raises CallFailed (Malformed) if a member is missing or has no known form:
    a grant that cannot be judged must not look like no grant.
    """
    grantee = replies.required(action, entry, "Grantee")
    try:
        found = AccessGrant(
            id=str(replies.required(action, entry, "AccessGrantId")),
            grantee_type=GranteeType(replies.required(action, grantee, "GranteeType")),
            grantee=str(replies.required(action, grantee, "GranteeIdentifier")),
            permission=GrantPermission(replies.required(action, entry, "Permission")),
            scope=str(replies.required(action, entry, "GrantScope")),
            application=entry.get("ApplicationArn") or None,
        )
    except ValueError as error:
        raise CallFailed(action, "Malformed", 200, str(error)[:200]) from error
    texts = (found.grantee, found.scope, found.application or "")
    if not _ID.fullmatch(found.id) or not found.grantee or any(len(text) > _LONGEST for text in texts):
        raise CallFailed(action, "Malformed", 200, "a grant has no valid ID or grantee")
    if not found.scope.startswith(SCHEME):
        raise CallFailed(action, "Malformed", 200, "the scope of a grant is not an S3 path")
    return found
