"""Read the S3 Access Grants on a bucket that belong to the bucket's own account.

A grant hands out credentials of a role of the account, so neither the bucket policy nor an ACL shows it. An account has
at most one S3 Access Grants instance in a Region, and it has the grants of all buckets there.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import Final

from auditor.errors import CallFailed
from auditor.model.bucket import SCHEME, AccessGrant, AccessGrants, GranteeType, GrantPermission
from auditor.model.object import Unread
from auditor.s3.bucket_settings import policy_of
from auditor.s3.control_calls import TOO_MANY, ControlCalls
from auditor.s3.engines import parse_reply as replies
from auditor.s3.engines.parse_reply import Reply

MOST_LISTED: Final = 100_000
"""The largest number of grants that an instance may list. It is AWS's own limit (S3 User Guide, "S3 Access Grants
limitations"). With more, all grants are unread."""
MOST: Final = 10_000
"""The largest number of grants on one bucket that are kept. With more, all of them are unread."""

_NO_INSTANCE: Final = "AccessGrantsInstanceNotExistsError"
_NO_POLICY: Final = "AccessGrantsInstanceResourcePolicyNotExists"
_ID: Final = re.compile(r"[a-zA-Z0-9-]{1,64}")
_INSTANCE: Final = re.compile(r"arn:[a-z-]+:s3:[a-z0-9-]+:[0-9]{12}:access-grants/[a-zA-Z0-9-]+")
_LONGEST: Final = 2048
"""Largest number of characters of a scope or a grantee."""


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
            if listed > MOST_LISTED or len(found) > MOST:
                raise CallFailed(action, TOO_MANY, 200, "the instance has too many grants")
    return tuple(sorted(found, key=attrgetter("id")))


async def _policy(calls: ControlCalls) -> str | Unread:
    action = "GetAccessGrantsInstanceResourcePolicy"
    try:
        return policy_of(await calls.ask(action), action)
    except CallFailed as failure:
        return "" if failure.code == _NO_POLICY else Unread(action, failure.code)


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
