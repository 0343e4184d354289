"""Call an AWS service from the event loop: the SDK's blocking calls run in a thread pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from auditor.aws.connection import SharedCredentials
from auditor.aws.plain import check_endpoint

if TYPE_CHECKING:
    from auditor.aws.session import ServiceClient

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

    def __init__(self, client: ServiceClient, executor: ThreadPoolExecutor) -> None:
        self.service = client
        self._executor = executor
        self._answered = False
        self.plain: PlainCalls | None = None
        """Makes the calls without the SDK; None to use the SDK alone. If such a call fails, the SDK repeats it, so
        every call must be repeatable."""
        self.region = client.region
        self.endpoint = client.endpoint

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Make one API call, and return its answer.

        operation: name of the call in the API, such as BatchGetItem. arguments: the parameters of the call, by their
        names in the API.
        """
        if self.plain is not None and (found := await self.plain.send(operation, arguments)) is not None:
            if not self._answered:
                self._answered = True
                self.service.be_patient()
            return found
        work = partial(self.service.call, operation, **arguments)
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


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
        client = ThreadedClient(await loop.run_in_executor(executor, _make, *work), executor)
        try:
            yield client
        finally:
            # Nobody waits for it: a call without an answer keeps its thread for minutes.
            executor.submit(client.service.close)
    finally:
        executor.shutdown(wait=False)


def _make(*work: Any) -> ServiceClient:
    from auditor.aws.session import open_service  # imports the SDK, which takes long: in its thread

    return open_service(*work)
