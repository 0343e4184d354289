"""Find a bucket's region, open an engine there, and read the bucket's owner and settings.

A value that could not be read is Unread, and the reading continues.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from auditor.aio.tasks import task_group
from auditor.aws.connection import Connection
from auditor.aws.endpoint import other_scheme, proxy_between
from auditor.aws.failures import is_web_page, named_region
from auditor.aws.plain import custom_endpoint, no_proxy, plain
from auditor.errors import BucketError, CallFailed
from auditor.model.bucket import AccessGrants, AccessPoint, BucketFacts, PublicAccessBlock, Semantics
from auditor.model.object import Acl, Skipped, Unread
from auditor.model.policy import bucket_tags
from auditor.model.policy import parse as parse_policy
from auditor.s3.access_points import (
    NOT_DELEGATED,
    POLICY_UNREAD,
    ControlCalls,
    delegates,
    read_access_grants,
    read_access_points,
)
from auditor.s3.bucket_settings import (
    ABAC,
    ABAC_IS_OFF,
    LACKS,
    MAY_BE_TESTED,
    NOT_TESTED,
    SETTINGS,
    TAGS,
    BucketSetting,
    access_block_of,
    says_nothing,
    semantics_of,
)
from auditor.s3.calls import UNREADABLE, Caller, ConcurrencyLimit, RetryPolicy, first_in_flight
from auditor.s3.engines import ASKING, open_engine
from auditor.s3.engines import answers as replies
from auditor.s3.engines.answers import Reply
from auditor.s3.engines.base import AskingEngine, Engine, EngineChoice, OpenEngine, Questions
from auditor.s3.engines.pool import EnginePool
from auditor.s3.rate import RateLimit

T = TypeVar("T")
AskedAccount = Callable[[str, str], str | Unread | Skipped]
"""BucketSettingsReader._asked_account() for the values of one bucket."""
NO_ACCOUNT_LEVEL: Final = "there is no account level behind a custom endpoint"
NO_CONTROL: Final = "S3 Control has no address behind a custom endpoint: set AWS_ENDPOINT_URL_S3_CONTROL"
NO_POLICY_STATUS: Final = "the server does not say whether a policy is public"
NO_ACCOUNT_ID: Final = "there is no account ID behind this custom endpoint"
_UNREACHED: Final = frozenset({"ConnectionError", "Timeout"})
"""Codes of calls without an answer."""
_CERTIFICATES: Final = {
    "certificate has expired": "that has expired: renew it, or set this machine's clock",
    "certificate is not yet valid": "that is not valid yet: set this machine's clock, or wait",
    "mismatch, certificate": "of another host: check the host's name in --endpoint-url",
    "doesn't match": "of another host: check the host's name in --endpoint-url",
    "certificate verify failed": "that is not trusted: name its issuer's certificate in AWS_CA_BUNDLE",
}
"""The ends of sentences by the words in an error of TLS, the most special words first."""


class BucketSettingsReader:
    """Reads all settings of one bucket, and gives them as BucketFacts.

    AWS calls: HeadBucket, ListBuckets, GetBucketOwnershipControls, GetPublicAccessBlock, GetBucketAcl, GetBucketPolicy,
    GetBucketPolicyStatus, GetBucketVersioning, GetBucketEncryption, GetBucketRequestPayment; where the bucket policy
    asks for a tag of the bucket, GetBucketAbac and GetBucketTagging; STS GetCallerIdentity; S3 Control
    GetPublicAccessBlock, ListAccessGrantsInstances and, where there is an instance, ListAccessGrants and
    GetAccessGrantsInstanceResourcePolicy; where the bucket policy delegates to access points, ListAccessPoints,
    GetAccessPoint, GetAccessPointPolicy, GetAccessPointPolicyStatus.
    """

    def __init__(self, connection: Connection, caller: Caller, questions: Questions) -> None:
        self._connection = connection
        self._caller = caller
        self._questions = questions
        self._custom = custom_endpoint("s3", connection.endpoint_url, connection.profile)
        self._at_once = asyncio.Semaphore(first_in_flight())
        self._headers: Mapping[str, str] = {}
        self._lacking: set[str] = set()

    async def _call(self, action: str, question: Callable[[], Awaitable[T]]) -> T:
        async def attempt() -> T:
            async with self._at_once:
                return await question()

        server = "sts" if action == "GetCallerIdentity" else "s3"
        return await self._caller.call("bucket", action, attempt, server=server)

    async def ask(self, action: str, token: str | None = None) -> Reply:
        """Make the call `action` on a further setting of the bucket, and return its reply. token: of the page to read;
        None for the first one. Raises CallFailed.
        """
        return await self._call(action, lambda: self._questions.ask(action, token))

    async def _fact(
        self,
        action: str,
        parse: Callable[[Reply], T],
        absent: Mapping[str, T] | None = None,
        question: Callable[[], Awaitable[Reply]] | None = None,
    ) -> T | Unread:
        """Read one setting of the bucket by the call `action`. Return its value, or Unread if the call fails.

        parse: makes the value from the reply. absent: by error code that means "not configured", the value to return.
        question: makes the call; None to make it by Questions.ask(action).
        """
        try:
            return parse(await self._call(action, question or (lambda: self._questions.ask(action))))
        except CallFailed as failure:
            if absent and failure.code in absent:
                return absent[failure.code]
            return Unread(action, "Malformed" if failure.code == UNREADABLE else failure.code)

    async def region(self, explicit: str | None) -> str | Unread | Skipped:
        """Return the bucket's region, which even a refused HeadBucket names in the header x-amz-bucket-region.

        If the answer names no region, return Unread, or Skipped behind a custom endpoint. explicit: the region that the
        user set, or None. Raises BucketError for a bucket that does not exist, cannot be reached, or (at AWS) is in
        another region than `explicit`.
        """
        bucket = self._connection.bucket
        headers: Mapping[str, str]
        try:
            headers, code = await self._call("HeadBucket", self._questions.head_bucket), ""
        except CallFailed as failure:
            headers, code = failure.headers, failure.code
            if code in _UNREACHED or (code in ("407", "BrokenReply") and not no_proxy()):
                raise BucketError(await self._unreached(failure)) from failure
        except BucketError as error:
            headers, code = getattr(error.__cause__, "headers", {}), "301"
            if "x-amz-bucket-region" not in headers:
                raise
        self._headers = headers
        if is_web_page(headers) and not code.startswith("5"):
            proxy = "" if no_proxy() else " and the proxy"
            where = self._custom or "S3"
            none = f"{where} has no bucket named {bucket!r}, or {where}" if code == "404" else where
            raise BucketError(f"{none} is not an S3 server: it answers with text/html; check --endpoint-url{proxy}")
        if code in ("400", "BrokenReply") and "x-amz-request-id" not in headers and (hint := await self._mixed_up()):
            raise BucketError(hint)
        if code == "404":  # a HEAD has no better code
            raise BucketError(f"there is no bucket named {bucket!r} (NoSuchBucket): check the name and the endpoint")
        found = named_region(headers)
        if found and explicit and found != explicit and not self._custom:
            raise BucketError(
                f"the bucket {bucket!r} is in {found}, not in {explicit}: use --region {found} or leave it out"
            )
        if found:
            return found
        return (
            Skipped("a custom endpoint names no region") if self._custom else Unread("HeadBucket", code or "Malformed")
        )

    async def _unreached(self, failure: CallFailed) -> str:
        """Return the sentence for a HeadBucket without an answer."""
        if hint := await self._mixed_up():
            return hint
        where = self._custom or "S3"
        proxy = await asyncio.to_thread(proxy_between, self._connection)
        said = failure.message.lower().replace("_", " ")
        for words, sentence in _CERTIFICATES.items():
            if words in said:
                return f"{where} has a certificate {sentence}"
        if proxy:
            return (
                f"{where} cannot be reached through the proxy {proxy} ({failure.code}): check HTTPS_PROXY or"
                " HTTP_PROXY, and the user and password in it, or name the server's host in NO_PROXY"
            )
        return f"{where} cannot be reached ({failure.code}): check the network and --endpoint-url"

    async def _mixed_up(self) -> str:
        """Return a sentence if the custom endpoint speaks https where its URL says http, or the reverse; "" if not."""
        if self._custom is None or not no_proxy():
            return ""
        found = await asyncio.to_thread(other_scheme, self._custom)
        return f"{self._custom} speaks {found}: begin the endpoint's URL with {found}://" if found else ""

    @property
    def semantics(self) -> Semantics:
        """The kind of server (AWS, Ceph or another), by its answer to region()."""
        return semantics_of(self._custom, self._headers)

    async def read(self, region: str | Unread | Skipped, semantics: Semantics = Semantics.AWS) -> BucketFacts:
        """Read all settings of the bucket. A setting whose call fails becomes Unread.

        A server other than AWS may lack the call. The setting then has the value that it has in a bucket on which
        nobody set it. region, semantics: the results of region() and of `semantics`; the returned BucketFacts has both.
        Raises RunError if every further call would fail.
        """
        self._lacking.clear()
        async with task_group() as group:
            own = group.create_task(self._own())
            account = group.create_task(self._account())
            tasks = {setting.fact: group.create_task(self._read_setting(setting, semantics)) for setting in SETTINGS}
        answers = {fact: task.result() for fact, task in tasks.items()}
        if "GetBucketPolicyStatus" in self._lacking and answers["policy"] != "":
            answers["policy_is_public"] = Skipped(NO_POLICY_STATUS)
        own_id, is_ours = own.result()
        owner = _owner(answers["acl"], own_id, is_ours)
        abac, tags = await self._bucket_tags(answers["policy"], semantics)
        asked = partial(self._asked_account, account.result(), owner, own_id)
        account_block = await self._account_block(asked)
        if isinstance(account_block, Unread) and account_block.code in _UNREACHED:
            grants: AccessGrants | Unread | Skipped = account_block  # S3 Control would be waited for in vain again
        else:
            grants = await self._access_grants(region, asked)
        return BucketFacts(
            bucket=self._connection.bucket,
            region=region,
            owner=owner,
            own_id=own_id,
            account=account.result(),
            account_public_access_block=account_block,
            access_points=await self._access_points(answers["policy"], asked),
            abac=abac,
            tags=tags,
            access_grants=grants,
            semantics=semantics,
            lacking=tuple(sorted(self._lacking)),
            **answers,
        )

    async def _read_setting(self, setting: BucketSetting, semantics: Semantics) -> Any:
        def parse(reply: Reply) -> Any:
            try:
                return setting.parse(reply)
            except CallFailed:
                if semantics is Semantics.CEPH and says_nothing(reply):
                    raise CallFailed(setting.action, "NotImplemented", 501, "the answer has no setting") from None
                raise

        found = await self._fact(setting.action, parse, setting.absent)
        lacks = semantics is not Semantics.AWS and isinstance(found, Unread) and found.code in LACKS
        if not lacks or setting.lacked is None:
            return found
        self._lacking.add(setting.action)
        return setting.lacked

    async def _bucket_tags(
        self, policy: str | Unread, semantics: Semantics
    ) -> tuple[bool | Unread | Skipped, Mapping[str, str | None] | Unread | Skipped]:
        """Return the facts `abac` and `tags` of BucketFacts. Of the bucket's tags, keep those that the policy names,
        whatever the case of their letters.
        """
        if isinstance(policy, Unread):
            return MAY_BE_TESTED, MAY_BE_TESTED
        asked = bucket_tags(parse_policy(policy))
        if not asked:
            return NOT_TESTED, NOT_TESTED
        abac = await self._read_setting(ABAC, semantics)
        if abac is False:
            return abac, ABAC_IS_OFF
        tags = await self._read_setting(TAGS, semantics)
        if isinstance(tags, Unread):
            return abac, tags
        lowered = {key.lower() for key in asked}
        return abac, dict.fromkeys(sorted(asked)) | {key: tags[key] for key in sorted(tags) if key.lower() in lowered}

    async def _own(self) -> tuple[str | Unread, bool]:
        """Return the caller's canonical ID, and True if ListBuckets lists the bucket among the caller's own.

        If ListBuckets fails, the ID is Unread, and the second value False.
        """
        bucket = self._connection.bucket
        try:
            reply = await self._call("ListBuckets", lambda: self._questions.ask("ListBuckets"))
            own = str(replies.required("ListBuckets", reply, "Owner", "ID"))
        except CallFailed as failure:
            return Unread("ListBuckets", failure.code), False
        return own, any(entry.get("Name") == bucket for entry in reply.get("Buckets", ()))

    async def _account(self) -> str | Unread | Skipped:
        """Return the caller's 12-digit account ID.

        If GetCallerIdentity fails, return Unread, or Skipped behind a custom endpoint.
        """
        found = await self._fact(
            "GetCallerIdentity", lambda reply: str(replies.required("GetCallerIdentity", reply, "Account"))
        )
        return Skipped(NO_ACCOUNT_ID) if self._custom and isinstance(found, Unread) else found

    async def _account_block(self, asked: AskedAccount) -> PublicAccessBlock | Unread | Skipped:
        """Return the public access block of the account that owns the bucket; else what _asked_account() returns."""
        action = "GetPublicAccessBlock"
        account = asked(action, NO_ACCOUNT_LEVEL)
        if not isinstance(account, str):
            return account
        absent = {"NoSuchPublicAccessBlockConfiguration": PublicAccessBlock()}
        return await self._fact(action, access_block_of, absent, lambda: self._questions.control(action, account, {}))

    async def _access_points(
        self, policy: str | Unread, asked: AskedAccount
    ) -> tuple[AccessPoint, ...] | Unread | Skipped:
        """Return the access points of the account that owns the bucket, provided that the bucket policy delegates to
        access points; else what _asked_account() returns.
        """
        if isinstance(policy, Unread):
            return POLICY_UNREAD
        if not delegates(policy):
            return NOT_DELEGATED
        account = asked("ListAccessPoints", NO_CONTROL)
        return await read_access_points(*self._control(account)) if isinstance(account, str) else account

    async def _access_grants(
        self, region: str | Unread | Skipped, asked: AskedAccount
    ) -> AccessGrants | Unread | Skipped:
        """Return the S3 Access Grants on the bucket in the account that owns it; else what _asked_account() returns, or
        Unread if the bucket's Region is not known.
        """
        account = asked("ListAccessGrantsInstances", NO_CONTROL)
        if not isinstance(account, str):
            return account
        if isinstance(region, Unread):
            return region  # another Region has other grants
        return await read_access_grants(*self._control(account))

    def _control(self, account: str) -> tuple[str, ControlCalls]:
        return self._connection.bucket, ControlCalls(account, self._call, self._questions)

    def _asked_account(
        self, account: str | Unread | Skipped, owner: str | Unread, own_id: str | Unread, action: str, no_control: str
    ) -> str | Unread | Skipped:
        """Return the caller's account if it owns the bucket, to ask S3 Control about it by the call `action`.

        Return Unread if another account owns the bucket (code ForeignAccount), or if a value needed for the answer
        could not be read; Skipped behind a custom endpoint that has no S3 Control or no account ID. owner, own_id:
        canonical IDs of the bucket's owner and of the caller. no_control: the words for an endpoint without S3 Control.
        """
        if self._custom and not os.environ.get("AWS_ENDPOINT_URL_S3_CONTROL"):
            return Skipped(no_control)
        # If the account is the expected owner, S3 itself checks the ownership. Else the canonical IDs must be equal.
        if not isinstance(account, str) or account == self._connection.expected_owner:
            return account
        for fact in (owner, own_id):
            if isinstance(fact, Unread):
                return fact
        return account if owner == own_id else Unread(action, "ForeignAccount")


def _owner(acl: Acl | Unread | Skipped, own_id: str | Unread, is_ours: bool) -> str | Unread:
    """Return the canonical ID of the bucket's owner, as the bucket's ACL names it.

    If there is no ACL, return the caller's ID `own_id` if the caller owns the bucket (is_ours); else an Unread.
    """
    if isinstance(acl, Acl):
        return acl.owner
    if is_ours:
        return own_id
    return acl if isinstance(acl, Unread) else Unread("GetBucketAcl", "NotImplemented")


@asynccontextmanager
async def open_reader(
    connection: Connection, caller: Caller, engines: OpenEngine[Connection] | None = None
) -> AsyncIterator[BucketSettingsReader]:
    """Open a reader of the bucket's settings, which makes its calls by an engine or by the SDK.

    engines: opens an engine for a connection. The SDK makes the calls if `engines` is None, if the engine cannot read
    settings, or if only the SDK can read the AWS configuration.
    """
    if engines is not None and (configuration := await asyncio.to_thread(plain, connection.profile)) is not None:
        # The region is written out, so that this engine serves the run too, if the bucket is in the default region.
        region = connection.region or configuration.region or "us-east-1"
        async with engines(replace(connection, region=region)) as engine:
            if isinstance(engine, AskingEngine) and engine.asks:
                yield BucketSettingsReader(connection, caller, engine)
                return
    from auditor.s3.engines.sdk_questions import open_questions  # imports the SDK

    with open_questions(connection) as questions:
        yield BucketSettingsReader(connection, caller, questions)


@asynccontextmanager
async def open_in_its_region(
    engine: str, connection: Connection, retry: RetryPolicy | None = None
) -> AsyncIterator[Engine]:
    """Open an engine in the bucket's region.

    engine: name of the engine. retry: limits the retries of the call that asks for the region. Raises BucketError if
    the bucket does not exist, or is not in connection.region.
    """
    caller = Caller(connection.bucket, rate=RateLimit(None), permits=ConcurrencyLimit(1), retry=retry)
    async with EnginePool(open_engine) as pool:
        connection, _, _ = await find_region(connection, caller, asking(engine, pool.lend))
        async with pool.lend((engine, connection)) as opened:
            yield opened


def asking(engine: str, engines: OpenEngine[EngineChoice]) -> OpenEngine[Connection] | None:
    """Return a function that opens the engine to read the bucket's settings; None if the engine leaves them to the SDK.

    engine: name of the engine. engines: opens an engine by its name and connection.
    """
    return (lambda connection: engines((engine, connection))) if engine in ASKING else None


async def find_region(
    connection: Connection, caller: Caller, engines: OpenEngine[Connection] | None = None
) -> tuple[Connection, str | Unread | Skipped, Semantics]:
    """Return the connection with the bucket's region, the region, and the kind of server. If the region is unknown, the
    connection is returned unchanged.

    engines: opens the engine that asks for the region; None to ask by the SDK. Raises BucketError if the bucket does
    not exist, or is not in connection.region.
    """
    async with open_reader(connection, caller, engines) as reader:
        region = await reader.region(connection.region)
    found = replace(connection, region=region) if isinstance(region, str) else connection
    return found, region, reader.semantics
