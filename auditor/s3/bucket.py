"""Read a bucket's owner and settings. A value that could not be read is Unread; the others are still read."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

from botocore import xform_name

from auditor.aio.groups import task_group
from auditor.aws import session as aws
from auditor.aws.connection import Connection
from auditor.aws.failures import sdk_errors
from auditor.errors import BucketError, CallFailed
from auditor.model.bucket import BucketFacts, PublicAccessBlock
from auditor.model.object import Acl, Skipped, Unread
from auditor.s3.bucket_settings import SETTINGS, BucketSetting, Reply, access_block_of
from auditor.s3.calls import UNREADABLE, Caller
from auditor.s3.engines import parse_reply as replies

T = TypeVar("T")
NO_ACCOUNT_LEVEL: Final = "there is no account level behind a custom endpoint"
NO_ACCOUNT_ID: Final = "there is no account ID behind this custom endpoint"
THREADS: Final = 4
_REGION: Final = re.compile(r"(?![0-9]+\Z)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


class BucketSettingsReader:
    """A reader of BucketFacts. It calls boto3 clients in its own few threads.

    AWS calls: HeadBucket, ListBuckets, GetBucketOwnershipControls, GetPublicAccessBlock, GetBucketAcl, GetBucketPolicy,
    GetBucketPolicyStatus, GetBucketVersioning, GetBucketEncryption, GetBucketRequestPayment; STS GetCallerIdentity;
    S3 Control GetPublicAccessBlock.
    """

    def __init__(self, connection: Connection, caller: Caller, pool: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._caller = caller
        self._pool = pool
        self._arguments: dict[str, Any] = {"Bucket": connection.bucket}
        if connection.expected_owner:
            self._arguments["ExpectedBucketOwner"] = connection.expected_owner
        self._custom = aws.custom_endpoint("s3", connection.endpoint_url, connection.profile)

    async def _thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _call(self, action: str, method: Callable[..., Any], **arguments: Any) -> Any:
        def attempt() -> Any:
            with sdk_errors(action):
                return method(**arguments)

        return await self._caller.call("bucket", action, lambda: self._thread(attempt))

    async def _fact(
        self,
        action: str,
        method: Callable[..., Any],
        parse: Callable[[Reply], T],
        absent: Mapping[str, T] | None = None,
        **arguments: Any,
    ) -> T | Unread:
        """Read one value. absent: the error codes that mean "not configured", and the value for each."""
        try:
            return parse(await self._call(action, method, **arguments))
        except CallFailed as failure:
            if absent and failure.code in absent:
                return absent[failure.code]
            return Unread(action, "Malformed" if failure.code == UNREADABLE else failure.code)

    async def region(self, explicit: str | None) -> str | Unread | Skipped:
        """Return the bucket's region, from HeadBucket's header x-amz-bucket-region. A refused HeadBucket has it too.

        Raises BucketError for a bucket that does not exist, cannot be reached, or is in another region than `explicit`.
        """
        bucket = self._connection.bucket
        client = await self._client("s3", endpoint_url=self._connection.endpoint_url)
        try:
            reply = await self._call("HeadBucket", client.head_bucket, **self._arguments)
            headers, code = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {}), ""
        except CallFailed as failure:
            headers, code = failure.headers, failure.code
            if code in ("Timeout", "ConnectionError"):
                where = self._custom or "S3"
                raise BucketError(
                    f"{where} cannot be reached ({code}): check the network and --endpoint-url"
                ) from failure
        except BucketError as error:
            headers, code = getattr(error.__cause__, "headers", {}), "301"
            if "x-amz-bucket-region" not in headers:
                raise
        if code in ("404", "NoSuchBucket"):
            raise BucketError(f"there is no bucket named {bucket!r} (NoSuchBucket): check the name and the endpoint")
        found = str(headers.get("x-amz-bucket-region", ""))
        if not _REGION.fullmatch(found):  # anything else is unsafe: the region becomes part of a host name
            found = ""
        if found and explicit and found != explicit and not self._custom:
            raise BucketError(
                f"the bucket {bucket!r} is in {found}, not in {explicit}: use --region {found} or leave it out"
            )
        if found:
            return found
        return (
            Skipped("a custom endpoint names no region") if self._custom else Unread("HeadBucket", code or "Malformed")
        )

    async def _client(self, service: str, *, endpoint_url: str | None = None) -> Any:
        return await self._thread(lambda: aws.make_client(service, self._connection, endpoint_url=endpoint_url))

    async def read(self, region: str | Unread | Skipped) -> BucketFacts:
        """Read all facts. A failed call makes its fact Unread; raises RunError if every further call would fail too."""
        s3 = await self._client("s3", endpoint_url=self._connection.endpoint_url)
        async with task_group() as group:
            own = group.create_task(self._own(s3))
            account = group.create_task(self._account())
            tasks = {setting.fact: group.create_task(self._read_setting(s3, setting)) for setting in SETTINGS}
        answers = {fact: task.result() for fact, task in tasks.items()}
        own_id, is_ours = own.result()
        owner = _owner(answers["acl"], own_id, is_ours)
        return BucketFacts(
            bucket=self._connection.bucket,
            region=region,
            owner=owner,
            own_id=own_id,
            account=account.result(),
            account_public_access_block=await self._account_block(account.result(), owner, own_id),
            **answers,
        )

    async def _read_setting(self, s3: Any, setting: BucketSetting) -> Any:
        method = getattr(s3, xform_name(setting.action))
        return await self._fact(setting.action, method, setting.parse, setting.absent, **self._arguments)

    async def _own(self, s3: Any) -> tuple[str | Unread, bool]:
        """Return the caller's canonical ID, and True if the caller owns the bucket, which ListBuckets then names."""
        bucket = self._connection.bucket
        try:
            reply = await self._call("ListBuckets", s3.list_buckets, Prefix=bucket)
            own = str(replies.required("ListBuckets", replies.required("ListBuckets", reply, "Owner"), "ID"))
        except CallFailed as failure:
            return Unread("ListBuckets", failure.code), False
        return own, any(entry.get("Name") == bucket for entry in reply.get("Buckets", ()))

    async def _account(self) -> str | Unread | Skipped:
        """Return the caller's 12-digit account ID. Behind a custom endpoint STS is called there, never at AWS."""
        endpoint = aws.custom_endpoint("sts", None, self._connection.profile) or self._custom
        sts = await self._client("sts", endpoint_url=endpoint)
        found = await self._fact(
            "GetCallerIdentity",
            sts.get_caller_identity,
            lambda reply: str(replies.required("GetCallerIdentity", reply, "Account")),
        )
        return Skipped(NO_ACCOUNT_ID) if self._custom and isinstance(found, Unread) else found

    async def _account_block(
        self, account: str | Unread | Skipped, owner: str | Unread, own_id: str | Unread
    ) -> PublicAccessBlock | Unread | Skipped:
        """Read the public access block of the caller's account. It applies only to buckets that the account owns."""
        action = "GetPublicAccessBlock"
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3_CONTROL")
        if self._custom and not endpoint:
            return Skipped(NO_ACCOUNT_LEVEL)
        if not isinstance(account, str):
            return account
        # If the account is the expected owner, S3 itself checks the ownership. Else the canonical IDs must be equal.
        if account != self._connection.expected_owner:
            for fact in (owner, own_id):
                if isinstance(fact, Unread):
                    return fact
            if owner != own_id:
                return Unread(action, "ForeignAccount")
        control = await self._client("s3control", endpoint_url=endpoint)
        if endpoint:
            control.meta.events.register("before-send.s3-control", _without_account_host)
        return await self._fact(
            action,
            control.get_public_access_block,
            access_block_of,
            {"NoSuchPublicAccessBlockConfiguration": PublicAccessBlock()},
            AccountId=account,
        )


def _owner(acl: Acl | Unread, own_id: str | Unread, is_ours: bool) -> str | Unread:
    """Return the bucket's owner: from its ACL, or the caller if the ACL is unread and the caller owns the bucket."""
    if isinstance(acl, Acl):
        return acl.owner
    return own_id if is_ours else acl


def _without_account_host(request: Any, **_: Any) -> None:
    """Remove the account ID that S3 Control puts before the host, if the host is an IP address and cannot have it."""
    parts = urlsplit(request.url)
    host = (parts.hostname or "").partition(".")[2]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return
    request.url = urlunsplit(parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}"))


@contextmanager
def open_reader(connection: Connection, caller: Caller) -> Iterator[BucketSettingsReader]:
    """Open a reader with its own few threads, and one connection for each."""
    connection = replace(connection, concurrency=THREADS)
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="auditor-bucket")
    try:
        yield BucketSettingsReader(connection, caller, pool)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
