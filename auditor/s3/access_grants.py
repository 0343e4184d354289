"""Read the S3 Access Grants on a bucket that belong to the bucket's own account.

A grant hands out credentials of a role of the account, so neither the bucket policy nor an ACL shows it. An account has
at most one S3 Access Grants instance in a Region, and it has the grants of all buckets there.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from operator import attrgetter
from typing import Any, Final

from auditor.errors import CallFailed
from auditor.model.bucket import SCHEME, AccessGrant, AccessGrants, GranteeType, GrantPermission
from auditor.model.object import Unread
from auditor.model.policy import parse as parse_policy
from auditor.s3.access_points import TOO_MANY, Call
from auditor.s3.engines import parse_reply as replies
from auditor.s3.engines.base import Questions

Reply = Mapping[str, Any]

MOST_LISTED: Final = 100_000
"""The largest number of grants that an instance may list. It is AWS's own limit (S3 User Guide, "S3 Access Grants
limitations"). With more, all grants are unread."""
MOST: Final = 10_000
"""The largest number of grants on one bucket that are kept. With more, all of them are unread."""
MOST_PAGES: Final = 2_000
"""The largest number of pages of a listing, full or empty."""

_NO_INSTANCE: Final = "AccessGrantsInstanceNotExistsError"
_NO_POLICY: Final = "AccessGrantsInstanceResourcePolicyNotExists"
_ID: Final = re.compile(r"[a-zA-Z0-9-]{1,64}")
_INSTANCE: Final = re.compile(r"arn:[a-z-]+:s3:[a-z0-9-]+:[0-9]{12}:access-grants/[a-zA-Z0-9-]+")
_LONGEST: Final = 2048
"""Largest number of characters of a scope or a grantee."""


class AccessGrantsReader:
    """Reads the S3 Access Grants on one bucket. account: the number of the account that owns the bucket.

    The calls have no filter for a bucket: GrantScope is the scope of single grants. So the reader lists all grants of
    the instance, and keeps those on the bucket.
    """

    def __init__(self, bucket: str, account: str, call: Call, questions: Questions) -> None:
        self._bucket = bucket
        self._account = account
        self._call = call
        self._questions = questions

    async def read(self) -> AccessGrants | Unread:
        """Return the grants; Unread if the instance or its grants cannot be listed. If only the instance's policy
        cannot be read, this field is Unread.
        """
        try:
            instance = await self._instance()
            grants = () if instance is None else await self._grants()
        except CallFailed as failure:
            if failure.code == _NO_INSTANCE:
                return AccessGrants(account=self._account)
            return Unread(failure.action, failure.code)
        if instance is None:
            return AccessGrants(account=self._account)
        return AccessGrants(account=self._account, instance=instance, grants=grants, policy=await self._policy())

    async def _instance(self) -> str | None:
        """Return the ARN of the account's instance; None if there is none."""
        action = "ListAccessGrantsInstances"
        found: str | None = None
        async for entry in self._listed(action, "AccessGrantsInstancesList"):
            found = str(replies.required(action, entry, "AccessGrantsInstanceArn"))
            if not _INSTANCE.fullmatch(found):
                raise CallFailed(action, "Malformed", 200, "an instance has no valid ARN")
        return found

    async def _grants(self) -> tuple[AccessGrant, ...]:
        action = "ListAccessGrants"
        found: dict[AccessGrant, None] = {}
        listed = 0
        async for entry in self._listed(action, "AccessGrantsList"):
            listed += 1
            grant = _grant(action, entry)
            if grant.is_on(self._bucket) and not self._is_own(grant):
                found[grant] = None
            if listed > MOST_LISTED or len(found) > MOST:
                raise CallFailed(action, TOO_MANY, 200, "the instance has too many grants")
        return tuple(sorted(found, key=attrgetter("id")))

    async def _policy(self) -> str | Unread:
        action = "GetAccessGrantsInstanceResourcePolicy"
        try:
            text = str(replies.required(action, await self._ask(action, {}), "Policy"))
            parse_policy(text)
        except CallFailed as failure:
            return "" if failure.code == _NO_POLICY else Unread(action, failure.code)
        except ValueError:
            return Unread(action, "Malformed")
        return text

    def _is_own(self, grant: AccessGrant) -> bool:
        """True if the grantee is an IAM user or role of the bucket's account, which other policies may let in, too."""
        return grant.grantee_type is GranteeType.IAM and grant.grantee.split(":")[4:5] == [self._account]

    async def _listed(self, action: str, element: str) -> AsyncIterator[Reply]:
        """Yield the entries of a listing, page by page. Raises CallFailed, also for a listing that does not end."""
        token: str | None = None
        seen: set[str] = set()
        while True:
            reply = await self._ask(action, {"NextToken": token} if token else {})
            for entry in replies.required(action, reply, element):
                yield entry
            token = reply.get("NextToken") or None
            if token is None:
                return
            if token in seen:
                raise CallFailed(action, "Malformed", 200, "the listing goes round")
            seen.add(token)
            if len(seen) >= MOST_PAGES:
                raise CallFailed(action, TOO_MANY, 200, f"the listing has more than {MOST_PAGES} pages")

    async def _ask(self, action: str, arguments: Mapping[str, str]) -> Reply:
        return await self._call(action, lambda: self._questions.control(action, self._account, arguments))


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
        raise CallFailed(action, "Malformed", 200, "the scope of a grant is no path of S3")
    return found
