"""Open the resources that the settings name: engine, ledger, queue, store of run folders."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from auditor.aws.connection import Connection
from auditor.aws.plain import custom_endpoint
from auditor.aws.sqs import Queue, open_queue
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.ledger import ledger_file, open_ledger
from auditor.ledger.base import Ledger
from auditor.model.target import Target
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store
from auditor.runs.stores.direct_objects import KeptTransports
from auditor.s3.bucket import open_in_its_region
from auditor.s3.calls import Caller, ConcurrencyLimit, RetryPolicy
from auditor.s3.engines import ASKING, open_engine
from auditor.s3.engines.base import Engine, EngineChoice, OpenEngine
from auditor.s3.prices import CostBudget, prices_with
from auditor.s3.rate import RateLimit


class Resources(Struct, frozen=True, kw_only=True):
    """The resources that all runs of one command, or of one Lambda event, share.

    store: the store of run folders. manifests: the store of the manifests for S3 Batch Operations; None to write them
    into `store`. engines: a function that opens, or lends, an engine for a bucket. ceiling: the limit of calls per
    second of all runs together, if several runs go side by side. index: path in `store` of the index page that is
    written after the runs; None if none is.
    """

    store: Store
    manifests: Store | None = None
    ledger: Ledger | None = None
    queue: Queue | None = None
    engines: OpenEngine[EngineChoice] = open_engine
    ceiling: RateLimit | None = None
    index: str | None = None

    @property
    def index_link(self) -> str | None:
        """The address of the index page, relative to a run folder; None if none is written."""
        return None if self.index is None else f"../../{quote(self.index, safe='/=')}"


@asynccontextmanager
async def open_stores(
    settings: Settings,
    targets: Sequence[Target],
    engines: OpenEngine[EngineChoice] = open_engine,
    *,
    hashing: bool = True,
    kept: KeptTransports | None = None,
) -> AsyncIterator[Resources]:
    """Open the store of run folders and, with hashing=True, the store of batch manifests, for the `with` block. The
    yielded Resources have no ledger and no queue.

    engines: the function that the resources get as `engines`. kept: connections to reuse for the store of run folders,
    which stay open. Raises UsageError if a store lies in a target's bucket.
    """
    async with AsyncExitStack() as stack:
        store = stack.enter_context(await asyncio.to_thread(_store_of, settings.out, settings, kept))
        check_output(store, targets)
        manifests = None
        if hashing and settings.batch_manifest is not None:
            manifests = stack.enter_context(await asyncio.to_thread(_store_of, settings.batch_manifest, settings))
            check_output(manifests, targets, "--batch-manifest")
            await asyncio.to_thread(manifests.check_writable)
        yield Resources(store=store, manifests=manifests, engines=engines)


@asynccontextmanager
async def with_ledger(stores: Resources, settings: Settings, *, hashing: bool = True) -> AsyncIterator[Resources]:
    """Open the ledger that the settings name and, with hashing=True, the queue, for the `with` block. Yield Resources
    that have them and the stores of `stores`, which are open already.
    """
    async with AsyncExitStack() as stack:
        ledger = queue = None
        if settings.ledger is not None:
            ledger = await stack.enter_async_context(ledger_of(settings))
        if hashing and settings.queue is not None:
            queue = await stack.enter_async_context(
                open_queue(settings.queue, region=settings.region, profile=settings.profile)
            )
        yield replace(stores, ledger=ledger, queue=queue)


@asynccontextmanager
async def open_resources(
    settings: Settings, targets: Sequence[Target], *, hashing: bool = True
) -> AsyncIterator[Resources]:
    """Open the resources that the settings name, for the `with` block: the store of run folders and the ledger; with
    hashing=True also the queue and the store of batch manifests. Raises UsageError if a store lies in a target's
    bucket.
    """
    async with (
        open_stores(settings, targets, hashing=hashing) as stores,
        with_ledger(stores, settings, hashing=hashing) as resources,
    ):
        yield resources


def ledger_of(settings: Settings) -> AbstractAsyncContextManager[Ledger]:
    """Return a context manager that opens the ledger that the settings name. Raises UsageError for a bad URI, or if no
    ledger is named.
    """
    return open_ledger(
        settings.ledger or "",
        region=settings.region,
        endpoint_url=ledger_endpoint(settings),
        profile=settings.profile,
    )


def ledger_endpoint(settings: Settings) -> str | None:
    """Return DynamoDB's endpoint from an AWS variable or the profile; if neither sets one, --endpoint-url."""
    return custom_endpoint("dynamodb", None, settings.profile) or settings.endpoint_url


def _store_of(uri: str, settings: Settings, kept: KeptTransports | None = None) -> Store:
    return open_store(
        uri,
        endpoint_url=settings.endpoint_url,
        profile=settings.profile,
        region=settings.region,
        sdk=settings.engine not in ASKING,
        kept=kept,
    )


def check_output(store: Store, targets: Sequence[Target], flag: str = "--out") -> None:
    """Raise UsageError if the store lies in an audited bucket, because an audit must not write there. flag: the flag
    that names the store, for the message.
    """
    for target in targets:
        if store.bucket == target.bucket:
            raise UsageError(f"{flag} {store.uri()} is in the audited bucket {target.bucket}: choose another place")


def connection_to(bucket: str, settings: Settings, concurrency: int) -> Connection:
    """Return the parameters of a connection to the bucket, from the settings. concurrency: largest number of calls at
    once.
    """
    return Connection(
        bucket=bucket,
        region=settings.region,
        endpoint_url=settings.endpoint_url,
        profile=settings.profile,
        role=settings.role,
        concurrency=concurrency,
        first_answer=settings.first_answer,
        expected_owner=settings.expected_owner,
        requester_pays=settings.requester_pays,
    )


def caller_of(
    bucket: str,
    settings: Settings,
    rate: RateLimit,
    permits: ConcurrencyLimit,
    *,
    answered: bool = False,
    ceiling: RateLimit | None = None,
    limits_cost: bool = False,
) -> Caller:
    """Make a Caller for the bucket, which retries calls and limits their total number as the settings say. rate: the
    limit of calls per second. permits: the limit of calls at once. answered: True if the server has answered before.
    ceiling: the limit of calls per second that several runs share. limits_cost: True to keep --max-cost, for a run that
    makes all its calls by this caller.
    """
    cost = None
    if limits_cost and settings.max_cost is not None:
        cost = CostBudget(settings.max_cost, prices_with(settings.prices))
    retry = RetryPolicy(settings.retry_attempts, settings.retry_seconds)
    if answered:
        retry = replace(retry, first_seconds=retry.seconds)
    return Caller(
        bucket, rate=rate, permits=permits, retry=retry, max_calls=settings.max_calls, ceiling=ceiling, cost=cost
    )


class OpenedBucket(Struct, frozen=True):
    """A bucket that is ready for calls. engine: sends single requests, in the bucket's region. caller: makes calls with
    retries and within all limits. rate: the limit of calls per second, which the caller keeps.
    """

    engine: Engine
    caller: Caller
    rate: RateLimit


@asynccontextmanager
async def open_bucket(
    bucket: str, settings: Settings, *, concurrency: int, connections: int, rate: RateLimit | None = None
) -> AsyncIterator[OpenedBucket]:
    """Open an engine in the bucket's region, and make a Caller for its calls, for the `with` block.

    concurrency: largest number of calls at once. connections: largest number of open connections. rate: the limit of
    calls per second; None for one by the settings. Raises BucketError if the bucket does not exist, or lies in another
    region than the settings say.
    """
    rate = rate or RateLimit(settings.max_rate)
    async with open_in_its_region(settings.engine, connection_to(bucket, settings, connections)) as engine:
        yield OpenedBucket(
            engine, caller_of(bucket, settings, rate, ConcurrencyLimit(concurrency), answered=True), rate
        )


def check_ledger(settings: Settings) -> None:
    """Raise UsageError if the ledger is a SQLite file that does not exist.

    Opening such a file would create an empty ledger, and a command that only reads would find nothing wrong.
    """
    file = ledger_file(settings.ledger or "")
    if file is not None and not os.path.exists(file):
        raise UsageError(
            f"--ledger {settings.ledger!r} does not exist: name the one that `auditor hash`, an audit or"
            " `auditor digests import` wrote"
        )
