"""The values that the parts of an audit share: those of the process, and those of the run that has begun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.folder_thread import FolderThread
from auditor.audit.sources.walk import FactSource
from auditor.aws.connection import Connection
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.bucket import BucketFacts
from auditor.model.target import Target
from auditor.rules.base import Rule
from auditor.rules.plan import Plan
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.paths import run_path
from auditor.runs.reading import RunReader
from auditor.runs.run_plan import PlannedRange, RunPlan
from auditor.s3.calls import Caller
from auditor.s3.engines.base import EngineChoice, OpenEngine
from auditor.s3.key_policies import KeyPolicies
from auditor.s3.rate import RateLimit


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

    @classmethod
    def of(cls, process: AuditProcess, **run: Any) -> Self:
        """Return the context of a run in a process. run: the members that AuditProcess does not have."""
        return cls(**{name: getattr(process, name) for name in AuditProcess.__struct_fields__}, **run)

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
