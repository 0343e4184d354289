"""The values that the parts of an audit share: those of the process, with the thread that reads and writes the run
folder, and those of the run that has begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.sources.walk import FactSource
from auditor.aws.connection import Connection
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import RunStopped
from auditor.model.bucket import BucketFacts
from auditor.model.target import Target
from auditor.rules.base import Plan, Rule
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.paths import run_path
from auditor.runs.reading import RunReader
from auditor.runs.run_files import PlannedRange, RunPlan
from auditor.runs.segment import Segment
from auditor.s3.bucket import asking, open_reader
from auditor.s3.calls import Caller
from auditor.s3.engines.base import EngineChoice, OpenEngine
from auditor.s3.key_policies import KeyPolicies
from auditor.s3.rate import RateLimit

T = TypeVar("T")


class FolderThread:
    """Runs blocking work on a run folder in one thread. stop: ends the time for saving, once it is set."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="auditor-folder")

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run the work in the thread, with the present labels of the log, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, work, *args)

    async def save(self, uri: str, work: Callable[[], T]) -> T:
        """Run work that writes the run folder, and return its result. uri: of the folder.

        Raises RunStopped if the work has not ended when the time for saving after a stop is over.
        """
        async with self._stop.saving() as limit:
            result: T = await self.run(work)
        if limit.expired():
            raise silent(uri, self._stop)
        return result

    async def close(self, segment: Segment) -> None:
        """Close a segment, unless the time for saving is over."""
        async with self._stop.saving():
            await self.run(segment.close)

    def end(self) -> None:
        """End the thread without waiting: a store that does not answer would block for minutes."""
        self._executor.shutdown(wait=False)


def silent(uri: str, stop: Stop) -> RunStopped:
    """Return the error for a server that did not answer before the end. uri: the place that was asked."""
    return RunStopped(f"{uri} did not answer before the end ({stop.reason})")


class AuditProcess(Struct, frozen=True, kw_only=True):
    """A process that audits a target: its settings, its stores, and its means to make calls.

    stop: ends this run. outer_stop: ends all runs of the process, and limits the time that each step of the end may
    take. thread: reads and writes the run folder. clock: returns the present time, in seconds since 1970. connection:
    with the region of the bucket, once that is known. concurrency: the largest number of calls in flight.
    """

    settings: Settings
    places: Resources
    stop: Stop
    outer_stop: Stop
    thread: FolderThread
    clock: Callable[[], float]
    connection: Connection
    engines: OpenEngine[EngineChoice]
    caller: Caller
    rate: RateLimit
    concurrency: int

    @property
    def has_ledger(self) -> bool:
        """True if the digests of the objects are looked up in a ledger."""
        return self.places.ledger is not None

    async def ask_setting(self, action: str, token: str | None = None) -> Mapping[str, Any]:
        """Make the call `action` on a further setting of the bucket, and return its reply. token: of the page to read;
        None for the first one. Raises CallFailed.
        """
        async with open_reader(self.connection, self.caller, asking(self.settings.engine, self.engines)) as reader:
            return await reader.ask(action, token)


class RunContext(AuditProcess, frozen=True, kw_only=True):
    """A run that has begun: its run.json is there, and the settings of its bucket are known.

    plan: the content of run.json. data: its bytes. rules: the selected ones. judging: which of them judge, and the
    calls that they need. facts: those of the bucket, with the policies of KMS keys that were read so far. earlier: the
    run with which this one compares; None if there is none. fresh: True if this process began the run. writes_plan:
    True to write run.json anew once the range is claimed, because nothing was recorded by the one that is there.

    The other members are of the range in work. state: its checkpoint; None if it has not begun. keys: reads the
    policies of KMS keys; None if they are not read. inventory: the facts of an S3 Inventory report; None if there is
    none. without_inventory: why facts are read by calls although an S3 Inventory was asked for; "" if none was, or it
    is used.
    """

    plan: RunPlan
    data: bytes
    rules: tuple[Rule, ...]
    judging: Plan
    facts: BucketFacts
    earlier: RunReader | None
    fresh: bool
    range: PlannedRange
    writes_plan: bool = False
    state: Checkpoint | None = None
    keys: KeyPolicies | None = None
    inventory: FactSource | None = None
    without_inventory: str = ""

    @property
    def run_id(self) -> str:
        return self.plan.run

    @property
    def uri(self) -> str:
        """The path or URI of the run's folder."""
        return self.places.store.uri(run_path(self.plan.target.bucket, self.plan.run))

    @property
    def target(self) -> Target:
        """The target of the range in work: that of the run, if it has one range."""
        return self.plan.target_of(self.range)

    @property
    def saved_key(self) -> str | None:
        """The last key of the checkpoint from which the range continues; None if there is none, or it has no key."""
        return self.state.start_after if self.state else None

    @property
    def remaining(self) -> Target:
        """The target without the keys that earlier processes recorded."""
        start = self.saved_key
        return self.target if start is None else replace(self.target, start_after=start)
