"""Call an AWS service from the event loop: the SDK's blocking calls run in a thread pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Protocol

from auditor.aws.connection import SharedCredentials
from auditor.aws.plain import check_endpoint, custom_endpoint
from auditor.errors import CredentialsError

_RETRIES = {"total_max_attempts": 6, "mode": "standard"}


class PlainCalls(Protocol):
    """Makes API calls of one service without the SDK."""

    async def send(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Make one call, and return the API's answer; None if the call has to be repeated by the SDK.

        Raises CallFailed.
        """
        ...


class ThreadedClient:
    """A client of one AWS service. Its calls raise CallFailed, CredentialsError or UsageError."""

    def __init__(self, client: Any, session: Any, executor: ThreadPoolExecutor) -> None:
        """session: the client's boto3 session."""
        self._client = client
        self._session = session
        self._executor = executor
        self._answered = False
        self.plain: PlainCalls | None = None
        """Makes the calls without the SDK; None to use the SDK alone. If such a call fails, the SDK repeats it, so
        every call must be repeatable."""
        self.region: str = client.meta.region_name
        self.endpoint: str = client.meta.endpoint_url

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Make one API call, and return its answer.

        operation: name of the call in the API, such as BatchGetItem. arguments: the parameters of the call, by their
        names in the API.
        """
        if self.plain is not None and (found := await self.plain.send(operation, arguments)) is not None:
            if not self._answered:
                self._answered = True
                self._be_patient()
            return found
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._send, operation, arguments)

    def _be_patient(self) -> None:
        from auditor.aws.first_call import full_patience

        full_patience(self._client)

    def load_credentials(self) -> Any:
        """Return the source of the client's credentials. Blocks. Raises CredentialsError if there is none."""
        if (found := self._session.get_credentials()) is None:
            raise CredentialsError("there are no AWS credentials")
        return found

    def _send(self, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        from auditor.aws.sdk_errors import sdk_errors

        with sdk_errors(operation):
            answer: dict[str, Any] = getattr(self._client, _METHODS[operation])(**arguments)
            return answer

    def close(self) -> None:
        self._client.close()


_METHODS = {
    "BatchGetItem": "batch_get_item",
    "CreateTable": "create_table",
    "GetItem": "get_item",
    "Query": "query",
    "Scan": "scan",
    "TransactWriteItems": "transact_write_items",
    "UpdateItem": "update_item",
    "ChangeMessageVisibility": "change_message_visibility",
    "DeleteMessageBatch": "delete_message_batch",
    "GetQueueAttributes": "get_queue_attributes",
    "GetQueueUrl": "get_queue_url",
    "ReceiveMessage": "receive_message",
    "SendMessageBatch": "send_message_batch",
    "GetKeyPolicy": "get_key_policy",
    "Invoke": "invoke",
    "Publish": "publish",
    "BatchImportFindings": "batch_import_findings",
    "GetFindings": "get_findings",
    "GetCallerIdentity": "get_caller_identity",
    "PutEvents": "put_events",
    "StartExecution": "start_execution",
}
"""Every operation that a ThreadedClient can call, and the SDK's name for it."""


@asynccontextmanager
async def open_client(
    service: str,
    *,
    threads: int,
    region: str | None,
    endpoint_url: str | None,
    profile: str | None,
    fips: bool = False,
    role: SharedCredentials | None = None,
) -> AsyncIterator[ThreadedClient]:
    """Open a client of one AWS service. threads: largest number of calls that the SDK makes at once.

    endpoint_url: None for the endpoint that the environment sets, or AWS's own if it sets none. fips: True to use the
    FIPS endpoint even if the environment does not ask for it. role: the assumed role that signs the calls; None for the
    profile's own credentials.
    """
    check_endpoint(endpoint_url)
    options = {
        "connect_timeout": 5,
        "read_timeout": 30,
        "max_pool_connections": threads,
        "retries": _RETRIES,
        "user_agent_extra": "s3-auditor",
        "use_fips_endpoint": fips or None,
    }
    executor = ThreadPoolExecutor(threads, thread_name_prefix=service)
    loop = asyncio.get_running_loop()
    try:
        work = (service, options, region, endpoint_url, profile, role)
        made, session = await loop.run_in_executor(executor, _make, *work)
        client = ThreadedClient(made, session, executor)
        try:
            yield client
        finally:
            executor.submit(client.close)  # nobody waits for it: a call without an answer keeps its thread for minutes
    finally:
        executor.shutdown(wait=False)


def _make(
    service: str,
    options: dict[str, Any],
    region: str | None,
    endpoint_url: str | None,
    profile: str | None,
    role: SharedCredentials | None,
) -> tuple[Any, Any]:
    """Return the client and its session."""
    # Imported here, because most commands and functions need no client of the SDK, and its import is slow.
    from botocore.config import Config

    from auditor.aws.session import client_of, make_session

    session = make_session(profile, region, role)
    if session.region_name is None and custom_endpoint(service, endpoint_url, profile):
        session = make_session(profile, "us-east-1", role)  # requests must be signed for some region
    return client_of(session, service, endpoint_url=endpoint_url, config=Config(**options)), session
