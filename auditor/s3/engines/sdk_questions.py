"""Read a bucket's settings by clients of boto3, in a few threads of their own."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from botocore import xform_name
from msgspec.structs import replace

from auditor.aws import session as aws
from auditor.aws.answer_limits import SETTING
from auditor.aws.connection import Connection
from auditor.aws.plain import custom_endpoint
from auditor.aws.sdk_errors import sdk_errors
from auditor.errors import CallFailed
from auditor.s3.engines.answers import Reply
from auditor.s3.engines.xml_answers import setting

THREADS: Final = 4
ABAC: Final = "GetBucketAbac"
"""A call that an older SDK does not have."""


class SdkQuestions:
    """Reads a bucket's settings by clients of boto3, with one attempt for each call."""

    def __init__(self, connection: Connection, pool: ThreadPoolExecutor) -> None:
        self._connection = replace(connection, concurrency=THREADS)
        self._pool = pool
        self._making = Lock()
        self._clients: dict[tuple[str, str | None], Any] = {}
        self._answered: set[str] = set()
        self._arguments: dict[str, Any] = {"Bucket": connection.bucket}
        if connection.expected_owner:
            self._arguments["ExpectedBucketOwner"] = connection.expected_owner

    async def head_bucket(self) -> Mapping[str, str]:
        reply = await self._ask_service("s3", "HeadBucket", self._arguments)
        found: Mapping[str, str] = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        return found

    async def ask(self, action: str, token: str | None = None) -> Reply:
        if action == "ListBuckets":
            return await self._ask_service("s3", action, {"Prefix": self._connection.bucket})
        if action == "GetCallerIdentity":
            return await self._ask_service("sts", action, {})
        if action == ABAC and not hasattr(self._client("s3"), xform_name(ABAC)):
            reply = await self._ask_service("s3", "GetBucketVersioning", self._arguments, ABAC)
            return {"AbacStatus": {name: reply[name] for name in ("Status",) if name in reply}}
        page = {} if token is None else {"ContinuationToken": token}
        return await self._ask_service("s3", action, {**self._arguments, **page})

    async def control(self, action: str, account: str, arguments: Mapping[str, str]) -> Reply:
        return await self._ask_service("s3control", action, {"AccountId": account, **arguments})

    async def _ask_service(
        self, service: str, action: str, arguments: dict[str, Any], lacked: str | None = None
    ) -> Reply:
        """Make a call of a service. lacked: the call that the SDK lacks, made of `action` by a client of its own."""

        def attempt() -> Any:
            with sdk_errors(lacked or action):
                return getattr(self._client(service, lacked), xform_name(action))(**arguments)

        try:
            reply: Reply = await asyncio.get_running_loop().run_in_executor(self._pool, attempt)
        except CallFailed as failure:
            if failure.status:
                self._answered.add(service)
            elif failure.code == "Timeout" and service in self._answered:
                self._clients.pop((service, lacked), None)  # the next attempt's client waits as long as for any answer
            raise
        self._answered.add(service)
        return reply

    def _client(self, service: str, lacked: str | None = None) -> Any:
        with self._making:
            found = self._clients.get((service, lacked))
            if found is None:
                found = self._clients[service, lacked] = self._made(service, lacked)
        return found

    def _made(self, service: str, lacked: str | None) -> Any:
        connection, profile = self._connection, self._connection.profile
        if service not in self._answered:
            connection = replace(connection, read_timeout=connection.first_answer)
        endpoint = connection.endpoint_url
        if service == "sts":  # behind a custom endpoint STS is called there, never at AWS
            endpoint = custom_endpoint("sts", None, profile) or custom_endpoint("s3", endpoint, profile)
        elif service == "s3control":
            endpoint = os.environ.get("AWS_ENDPOINT_URL_S3_CONTROL")
        client = aws.make_client(service, connection, endpoint_url=endpoint, limits=SETTING)
        if lacked == ABAC:
            client.meta.events.register("before-sign.s3.GetBucketVersioning", _ask_for_abac)
        if service == "s3":
            client.meta.events.register("after-call.s3.GetBucketEncryption", _with_whole_document)
        if service == "s3control" and endpoint:
            client.meta.events.register("before-send.s3-control", _without_account_host)
        return client


def _ask_for_abac(request: Any, **_: Any) -> None:
    """Make a request for the bucket's ABAC of one for its versioning, before it is signed. Both answers are a document
    with the element Status.
    """
    parts = urlsplit(request.url)
    request.url = urlunsplit(parts._replace(query="abac"))


def _with_whole_document(http_response: Any, parsed: dict[str, Any], **_: Any) -> None:
    """Parse the answer to GetBucketEncryption again, because the model of an older botocore leaves elements out."""
    if http_response.status_code == 200 and "ServerSideEncryptionConfiguration" in parsed:
        parsed.update(setting("GetBucketEncryption", http_response.content))


def _without_account_host(request: Any, **_: Any) -> None:
    """Remove the account ID that botocore has put before the host of an S3 Control request, if the host is an IP
    address.
    """
    parts = urlsplit(request.url)
    host = (parts.hostname or "").partition(".")[2]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return
    request.url = urlunsplit(parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}"))


@contextmanager
def open_questions(connection: Connection) -> Iterator[SdkQuestions]:
    """Open a reader of the bucket's settings, with a few threads, and a connection for each."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="auditor-bucket")
    try:
        yield SdkQuestions(connection, pool)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
