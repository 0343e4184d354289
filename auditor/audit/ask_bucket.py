"""Ask about a bucket before its objects are read: its region, its owner, and each setting that affects them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from auditor.aws.connection import Connection
from auditor.config.resources import connection_to
from auditor.config.settings import Settings
from auditor.errors import BucketError
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import Skipped
from auditor.model.policy import parse
from auditor.s3.bucket import asking, find_region, open_reader
from auditor.s3.calls import Caller
from auditor.s3.engines import open_engine
from auditor.s3.engines.base import Engine, EngineChoice, OpenEngine
from auditor.s3.engines.pool import EnginePool
from auditor.s3.key_policies import KeyPolicies, open_key_policies
from auditor.verdict.public import is_public


async def ask_bucket(
    settings: Settings, connection: Connection, caller: Caller, engines: OpenEngine[EngineChoice]
) -> tuple[Connection, BucketFacts]:
    """Return the connection with the bucket's region, and the bucket's facts.

    Raises BucketError if the bucket does not exist; or if the caller would have to pay for the calls (Requester Pays),
    and the user has not agreed to this by --requester-pays.
    """
    opening = asking(settings.engine, engines)
    connection, region, semantics = await find_region(connection, caller, opening)
    async with open_reader(connection, caller, opening) as reader:
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
