"""Begin an audit: load the state of a resumed run, and ask about the bucket."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.resume import checkpoint
from auditor.aws.connection import Connection
from auditor.config.resources import connection_to
from auditor.config.settings import Settings
from auditor.errors import BucketError, OutputError, RunChanged, RunDamaged
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import Skipped
from auditor.model.policy import parse
from auditor.model.target import Target
from auditor.runs.bucket_file import BucketFile
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.latest import last_run
from auditor.runs.parts import found_parts
from auditor.runs.paths import UNDIVIDED, run_path
from auditor.runs.plan_file import NAME as PLAN_FILE
from auditor.runs.plan_file import load_plan
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store
from auditor.s3 import bucket as bucketfacts
from auditor.s3.calls import Caller
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import Engine, EngineChoice, OpenEngine
from auditor.s3.engines.pool import EnginePool
from auditor.s3.key_policies import KeyPolicies, open_key_policies
from auditor.s3.open import asking, find_region
from auditor.verdict.public import is_public

log = logging.getLogger(__name__)


class RunSoFar(Struct, frozen=True):
    """The saved state of a run, and of its target, in the store when the run begins or continues.

    state: the run's checkpoint; None for a new run, or for one that has not written any. target: the target with the
    run's own key range. latest: the target's latest complete run; None if there is none, or if the target is a key
    range. bucket, bucket_data: the run's bucket.json and its bytes; None and b"" for a new run. facts: the facts of the
    bucket if an earlier process has read them for this one, too; None to read them. expected: estimate of the objects
    that the target has; None if there is none. is_latest: True if the run becomes the target's latest one when it is
    complete.
    """

    state: Checkpoint | None
    target: Target
    latest: RunReader | None
    bucket: BucketFile | None = None
    bucket_data: bytes = b""
    facts: BucketFacts | None = None
    expected: int | None = None
    is_latest: bool = True

    @property
    def against(self) -> str | None:
        """The ID of the run with which the run compares: the one with which it began, or the latest complete one."""
        if self.bucket is not None and self.state is not None:
            return self.bucket.against
        return self.latest.run_id if self.latest else None


def load_run(store: Store, run_id: str | None, target: Target, selection: Mapping[str, Any]) -> RunSoFar:
    """Load the run and its target's latest run from the store, and check that the store can be written. Blocks.

    run_id: ID of the run to resume; None for a new run. selection: the settings that must be those of the resumed run.
    """
    latest = last_run(store, target) if target.whole else None
    store.check_writable()
    if run_id is None:
        return RunSoFar(None, target, latest)
    if load_plan(store, target.bucket, run_id) is not None:
        raise RunChanged(f"run {run_id} is divided into ranges of keys: resume it with --jobs")
    state, target = checkpoint(store, run_id, target, selection)
    if state is None:
        log.warning("run %s ended before it saved a part: it starts again from its first key", run_id)
    folder = run_path(target.bucket, run_id)
    if any(part.range_id != UNDIVIDED for part in found_parts(store, folder)):
        raise RunDamaged(f"{store.uri(folder)} has parts of ranges of keys, but no {PLAN_FILE}: start a new run")
    run = RunReader(store, target.bucket, run_id)
    return RunSoFar(state, target, latest, run.bucket if state else None, run.bucket_data or b"")


async def ask_bucket(
    settings: Settings, connection: Connection, caller: Caller, engines: OpenEngine[EngineChoice]
) -> tuple[Connection, BucketFacts]:
    """Return the connection with the bucket's region, and the bucket's facts.

    Raises BucketError if the bucket does not exist; or if the caller would have to pay for the calls (Requester Pays),
    and the user has not agreed to this by --requester-pays.
    """
    opening = asking(settings.engine, engines)
    connection, region, semantics = await find_region(connection, caller, opening)
    async with bucketfacts.open_reader(connection, caller, opening) as reader:
        facts = with_own_reading(await reader.read(region, settings.semantics or semantics))
    if facts.request_payer == "Requester" and facts.owner != facts.own_id and not settings.requester_pays:
        raise BucketError(
            f"the bucket {facts.bucket!r} is a Requester Pays bucket of another account: you would pay for each call;"
            " --requester-pays agrees to that"
        )
    return connection, facts


class AskedBucket(Struct, frozen=True):
    """A bucket that is ready to be read. facts: its settings, which were just read. keys: reads the policies of KMS
    keys; None to read none.
    """

    facts: BucketFacts
    engine: Engine
    keys: KeyPolicies | None


@asynccontextmanager
async def open_asked(
    bucket: str, settings: Settings, caller: Caller, connections: int, *, reads_keys: bool = False
) -> AsyncIterator[AskedBucket]:
    """Ask about a bucket, and open an engine to read its objects, for the `with` block. Raises RunError.

    connections: largest number of open connections. reads_keys: True to read the policies of KMS keys.
    """
    async with EnginePool(open_engine) as engines, AsyncExitStack() as stack:
        connection, keys = connection_to(bucket, settings, connections), None
        connection, facts = await ask_bucket(settings, connection, caller, engines.lend)
        if reads_keys:
            keys = await stack.enter_async_context(open_key_policies(connection, caller, {}))
            facts = replace(facts, key_policies=keys.policies)
        engine = await stack.enter_async_context(engines.lend((settings.engine, connection)))
        yield AskedBucket(facts, engine, keys)


async def ask_setting(
    settings: Settings,
    connection: Connection,
    caller: Caller,
    engines: OpenEngine[EngineChoice],
    action: str,
    token: str | None = None,
) -> Mapping[str, Any]:
    """Make the call `action` on a further setting of the bucket, and return its reply. token: of the page to read; None
    for the first one. Raises CallFailed.
    """
    async with bucketfacts.open_reader(connection, caller, asking(settings.engine, engines)) as reader:
        return await reader.ask(action, token)


def with_own_reading(facts: BucketFacts) -> BucketFacts:
    """Return the facts with the auditor's own judgement on whether the bucket policy is public, if the server's answer
    is of no use. Ceph calls each policy public that names a user, and other servers may not have the call.
    """
    unsaid = isinstance(facts.policy_is_public, Skipped) or facts.semantics is Semantics.CEPH
    if not unsaid or not isinstance(facts.policy, str):
        return facts
    try:
        policy = parse(facts.policy)
    except ValueError:
        return facts
    # As AWS reads it, a condition that anyone can meet does not keep a policy from being public; Ceph reads otherwise.
    public = any(is_public(policy, semantics=one) for one in (Semantics.AWS, facts.semantics))
    return replace(facts, policy_is_public=public)


def listed_by(run: RunReader) -> int | None:
    """Return how many objects a complete run listed, for an estimate; None if its summary is missing or damaged."""
    with suppress(OutputError):
        return None if run.summary is None else run.summary.coverage.listed
    return None
