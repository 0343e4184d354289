"""A run that has begun: the values that its parts share."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.begin import RunSoFar
from auditor.audit.folder_thread import FolderThread
from auditor.audit.sources.walk import FactSource
from auditor.aws.connection import Connection
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.bucket import BucketFacts
from auditor.model.target import Target
from auditor.rules.plan import Plan
from auditor.runs.reading import RunReader
from auditor.s3.calls import Caller
from auditor.s3.engines.base import EngineChoice, OpenEngine
from auditor.s3.key_policies import KeyPolicies
from auditor.s3.rate import RateLimit


class RunContext(Struct, frozen=True, kw_only=True):
    """A run that has begun: its state is loaded, and the settings of its bucket are read.

    target: with the run's own key range. resumed: True if earlier processes began the run. hop: number of Lambda
    invocations before this one. now: the time at which conditions with a date are judged, in ISO 8601. stop: ends this
    run. outer_stop: ends all runs of the process, and limits the time that each step of the end may take. clock:
    returns the present time, in seconds since 1970. connection: with the region of the bucket. concurrency: the largest
    number of calls in flight. before: the saved state. earlier: the run with which this one compares; None if there is
    none. keys: reads the policies of KMS keys; None if they are not read. inventory: the facts of an S3 Inventory
    report; None if there is none. without_inventory: why facts are read by calls although an S3 Inventory was asked
    for; "" if none was, or it is used.
    """

    run_id: str
    target: Target
    settings: Settings
    places: Resources
    resumed: bool
    hop: int
    now: str
    stop: Stop
    outer_stop: Stop
    thread: FolderThread
    clock: Callable[[], float]
    connection: Connection
    engines: OpenEngine[EngineChoice]
    caller: Caller
    rate: RateLimit
    concurrency: int
    facts: BucketFacts
    plan: Plan
    before: RunSoFar
    earlier: RunReader | None
    keys: KeyPolicies | None = None
    inventory: FactSource | None = None
    without_inventory: str = ""

    @property
    def has_ledger(self) -> bool:
        """True if the digests of the objects are looked up in a ledger."""
        return self.places.ledger is not None

    @property
    def against(self) -> str | None:
        """The ID of the run with which this one compares."""
        return self.earlier.run_id if self.earlier else None

    @property
    def saved_key(self) -> str | None:
        """The last key of the checkpoint from which the run continues; None if there is none, or it has no key."""
        return self.before.state.start_after if self.before.state else None

    @property
    def remaining(self) -> Target:
        """The target without the keys that earlier processes recorded."""
        start = self.saved_key
        return self.target if start is None else replace(self.target, start_after=start)
