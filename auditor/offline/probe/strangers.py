"""Send the questions of a probe: without a signature, or signed by a foreign account. No body of an object is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from auditor.aws.connection import Connection
from auditor.errors import CallFailed, UsageError
from auditor.model.bucket import BucketFacts
from auditor.offline.probe.stranger_claims import Asked, Question
from auditor.s3.bucket import asking, open_reader
from auditor.s3.calls import Caller, ConcurrencyLimit, RetryPolicy
from auditor.s3.engines import DEFAULT_ENGINE, open_engine
from auditor.s3.engines.base import Engine
from auditor.s3.rate import RateLimit
from auditor.verdict.trust import Trust

PER_SECOND: Final = 10.0
"""Requests of strangers a second: few enough that nobody takes them for an attack."""
ATTEMPTS: Final = 2
"""Largest number of attempts of one question: a server in trouble gets few more requests than were announced."""


class StrangersAsker:
    """Asks S3 as strangers do. engines: by True for the signed stranger, by False for the unsigned one. answers: number
    of answers so far, by stranger and HTTP status.
    """

    def __init__(self, engines: dict[bool, Engine], caller: Caller) -> None:
        self._engines = engines
        self._caller = caller
        self.answers: dict[bool, Counter[str]] = {signed: Counter() for signed in engines}

    async def ask(self, key: str, question: Question) -> str:
        """Send one question about the key, and return the HTTP status of the answer, or the auditor's own error code if
        none came, or one that is not S3's. Raises RunError if every further question would fail too.
        """
        engine, version = self._engines[question.signed], question.version_id
        status = "200"
        try:
            if question.asked is Asked.HEAD:
                await self._caller.call("head", question.asked, lambda: engine.head(key, version, checksum=False))
            else:
                await self._caller.call("acl", question.asked, lambda: engine.get_acl(key, version))
        except CallFailed as failure:
            status = failure.code if failure.status in (0, 200) else str(failure.status)
        self.answers[question.signed][status] += 1
        return status


@asynccontextmanager
async def open_strangers(
    connection: Connection, profile: str | None, rate: RateLimit, retry: RetryPolicy
) -> AsyncIterator[StrangersAsker]:
    """Open the connections of the strangers, for the `with` block. connection: that of the bucket's owner. profile: of
    the foreign account; None without one. rate: the limit of both strangers together.
    """
    caller = Caller(connection.bucket, rate=rate, permits=ConcurrencyLimit(1), retry=retry)
    async with open_engine((DEFAULT_ENGINE, _stranger(connection, unsigned=True))) as unsigned:
        if profile is None:
            yield StrangersAsker({False: unsigned}, caller)
            return
        async with open_engine((DEFAULT_ENGINE, _stranger(connection, profile=profile))) as signed:
            yield StrangersAsker({False: unsigned, True: signed}, caller)


def _stranger(connection: Connection, *, unsigned: bool = False, profile: str | None = None) -> Connection:
    """Return the connection of a stranger to the owner's bucket: nothing of the owner's credentials and agreements."""
    return Connection(
        bucket=connection.bucket,
        region=connection.region,
        endpoint_url=connection.endpoint_url,
        profile=profile or connection.profile,
        unsigned=unsigned,
        concurrency=1,
        connect_timeout=connection.connect_timeout,
        read_timeout=connection.read_timeout,
        first_answer=connection.first_answer,
    )


async def foreign_signer(connection: Connection, profile: str, facts: BucketFacts, trust: Trust) -> str:
    """Return the identity of the profile that --as names: its ARN, or its canonical ID on a server without STS.

    Raises UsageError for an identity that nobody tells, and for an insider: one of the bucket owner's account, or a
    trusted one.
    """
    named = f"--as {profile[:100]!r}"
    arn, account, canonical = await _identity(_stranger(connection, profile=profile))
    if arn is None and canonical is None:
        raise UsageError(f"{named}: the server does not say whose credentials these are: give another profile")
    own = (account is not None and account == facts.account) or (canonical is not None and canonical == facts.owner)
    entry = trust.principal("AWS", arn) if arn else None
    entry = entry or (trust.canonical(canonical) if canonical else None)
    if own or entry is not None:
        words = "it belongs to the bucket owner's account" if own else f"`trusted` has {entry}"
        raise UsageError(f"the vantage is an insider: {named}, {words}: give a profile of another account")
    return arn or canonical or ""


async def _identity(connection: Connection) -> tuple[str | None, str | None, str | None]:
    """Return ARN, account number and canonical ID of the connection's credentials; None for what nobody tells."""
    caller = Caller(connection.bucket, rate=RateLimit(None), permits=ConcurrencyLimit(1))
    arn = account = canonical = None
    async with open_reader(connection, caller, asking(DEFAULT_ENGINE, open_engine)) as reader:
        with suppress(CallFailed):  # a server may have no STS
            reply = await reader.ask("GetCallerIdentity")
            arn, account = reply.get("Arn"), reply.get("Account")
        with suppress(CallFailed):
            canonical = (await reader.ask("ListBuckets")).get("Owner", {}).get("ID")
    return arn or None, account or None, canonical or None
