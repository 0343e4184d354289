"""Probe a run: read each chosen object again, ask S3 as a stranger, and compare the answers with the verdict."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.ask_bucket import AskedBucket, open_asked
from auditor.aws.plain import custom_endpoint
from auditor.config import values
from auditor.config.resources import caller_of, connection_to
from auditor.config.settings import Settings
from auditor.errors import RunStopped, UsageError
from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.object import Ask, Evidence, FactOrigin, Head, Skipped
from auditor.model.run_lines import ObjectLine
from auditor.offline.probe.probe_result import (
    Disagreement,
    Found,
    ObjectResult,
    ProbeResult,
    compare,
    contradicted,
    object_result,
)
from auditor.offline.probe.sample import MOST, SAMPLE, Sampler, sampled
from auditor.offline.probe.stranger_claims import NotTried, Question, StrangerClaims, claims_of
from auditor.offline.probe.strangers import ATTEMPTS, PER_SECOND, StrangersAsker, foreign_signer, open_strangers
from auditor.offline.probe.vantage import Vantage, VantageJudge
from auditor.offline.what_if import ChangedJudge
from auditor.rules.base import ACLS_DISABLED
from auditor.runs.reading import RunReader
from auditor.s3.calls import ConcurrencyLimit, RetryPolicy
from auditor.s3.gather import stand_in
from auditor.s3.object_reader import ObjectReader
from auditor.s3.rate import RateLimit
from auditor.text import counted, visible
from auditor.verdict.change import BucketChange
from auditor.verdict.judge import VerdictJudge
from auditor.verdict.trust import Trust

CALLS_AT_ONCE: Final = 4


class ProbeOrder(Struct, frozen=True):
    """The order for a probe. sample: objects of each group. most: objects in all. profile: of a foreign account that
    asks too. address: the public address from which this machine asks; None if it is not known.
    """

    sample: int = SAMPLE
    most: int = MOST
    profile: str | None = None
    address: str | None = None


def _nothing() -> None:
    """Take note of nothing."""


class ProbeRequest(NamedTuple):
    """A probe to run. tell: gets the sentence that comes before the first request of a stranger. done: called after
    each object. stopped: returns True once the work is to stop.
    """

    order: ProbeOrder
    tell: Callable[[str], object]
    done: Callable[[], object] = _nothing
    stopped: Callable[[], bool] = bool


class Probe:
    """Compares the verdicts of one run with S3's answers. Call run() once.

    run: its folder. bucket: the bucket as it is now. reader: reads the objects with the owner's credentials. asker: the
    strangers. vantages: who they are. now: the moment for conditions with a date.
    """

    def __init__(
        self,
        run: RunReader,
        bucket: AskedBucket,
        reader: ObjectReader,
        asker: StrangersAsker,
        vantages: Sequence[Vantage],
        now: datetime,
    ) -> None:
        self._run = run
        file = run.begun_with
        self._facts = facts = replace(bucket.facts, key_policies=file.facts.key_policies)
        judged_for = (facts, trusted_by(run), file.target.versions, now)
        self._then, self._today = ChangedJudge(run, file, BucketChange()), VerdictJudge(*judged_for)
        self._judge = VantageJudge(*judged_for)
        self._reader = reader
        self._asker = asker
        self._vantages = vantages

    async def run(self, request: ProbeRequest) -> ProbeResult:
        """Choose the objects, ask about each, and return the result. Raises RunError, and RunStopped if the work was
        stopped.
        """
        order, stopped = request.order, request.stopped
        sampler = Sampler(self._run.run_id, (await asyncio.to_thread(self._run.rollups)).groups, order.sample)
        if not await asyncio.to_thread(sampled, sampler, self._run.objects(), stopped):
            raise self._unfinished()
        lines = sampler.chosen(order.most)
        planned = [question for line in lines for question in self._claims(line, line.evidence).questions]
        request.tell(self._announcement(planned))
        result = ProbeResult(self._facts.semantics.value, sampler.groups, len(lines), answers=self._asker.answers)
        for line in lines:
            if stopped():
                raise self._unfinished()
            result.add(line, await self._object(line, result))
            request.done()
        return result

    async def _object(self, line: ObjectLine, result: ProbeResult) -> ObjectResult:
        """Compare one object, and count what is not the same for each: the causes and the disagreements."""
        now = await self._reader.read(line.evidence.ref)
        if _unreadable(line.evidence, now):
            result.left_out[NotTried.UNREAD.value] += 1
            return ObjectResult.NOT_COMPARED
        if (other := self._other_now(line, now)) is not None:
            return other
        claims = self._claims(line, now)
        result.left_out.update(cause.value for cause in claims.left_out)
        found: dict[Question, Found] = {}
        answers: dict[Question, tuple[str, ...]] = {}
        for question in claims.questions:
            answers[question] = (await self._asker.ask(line.key, question),)
            found[question] = compare(question, answers[question])
            if found[question] is Found.AGAIN:
                if (other := self._other_now(line, await self._reader.read(line.evidence.ref))) is not None:
                    return other
                answers[question] += (await self._asker.ask(line.key, question),)
                found[question] = compare(question, answers[question])
        result.unsteady += bool({Found.UNSTEADY, Found.NO_ANSWER} & set(found.values()))
        of_object = object_result(claims, found)
        if of_object is ObjectResult.DISAGREED:
            result.disagreements += [
                Disagreement(line, question, answers[question]) for question in contradicted(claims, found)
            ]
        return of_object

    def _other_now(self, line: ObjectLine, now: Evidence) -> ObjectResult | None:
        """Return the result of an object that is not the one that the run saw: it is gone, or one of its facts, or a
        fact of its bucket, is another one. None if it is the same.
        """
        if now.vanished:
            return ObjectResult.DELETED
        ref, head, then = line.evidence.ref, now.head, line.evidence
        rewritten = now.changed or (isinstance(head, Head) and head.last_modified not in (ref.last_modified, None))
        # S3 Inventory shows stored ACLs, and a call shows what counts of them.
        stored = line.read_at is not None and line.read_at.acl_from is FactOrigin.INVENTORY
        if rewritten or (now.acl != then.acl and not stored and not isinstance(then.acl, Skipped)):
            return ObjectResult.CHANGED
        earlier = self._then.access(replace(then, head=now.head) if isinstance(then.head, Skipped) else then)
        acl = then.acl if isinstance(then.acl, Skipped) else now.acl
        today = self._today.access(ref, acl, now.head, then.dormant)
        same = (earlier.verdict, earlier.audience) == (today.verdict, today.audience)
        if stored:
            same = (earlier.verdict is Verdict.EXPOSED) is (today.verdict is Verdict.EXPOSED)
        return None if same else ObjectResult.CHANGED

    def _claims(self, line: ObjectLine, evidence: Evidence) -> StrangerClaims:
        ways = {one: self._judge.ways(one, evidence.ref, evidence.acl, evidence.head) for one in self._vantages}
        return claims_of(line.verdict, line.audience, evidence, ways, self._facts)

    def _announcement(self, questions: Sequence[Question]) -> str:
        number = Counter(question.signed for question in questions)
        signed = f" and {counted(number[True], 'request')} signed by the foreign account" if number[True] else ""
        return (
            f"the probe sends {counted(number[False], 'unsigned request')}{signed}, {PER_SECOND:.0f} a second, and one"
            f" more for each answer that contradicts a verdict and for each request that fails: they will appear in"
            f" the access logs and CloudTrail data events of the owner of {visible(self._run.bucket_name)}"
        )

    def _unfinished(self) -> RunStopped:
        return RunStopped(f"the probe of the run {self._run.run_id} did not finish: start it again")


async def probe(
    run: RunReader,
    settings: Settings,
    request: ProbeRequest,
    *,
    rate: RateLimit | None = None,
    now: datetime | None = None,
) -> ProbeResult:
    """Ask S3 as a stranger if the verdicts of a run hold, and return the result. Nothing is written, and no byte of an
    object is read.

    settings: the connection of the bucket's owner. rate: the limit of the strangers; None for PER_SECOND. now: the
    moment for conditions with a date; None for the present. Raises UsageError for anybody but the bucket's owner, and
    for a vantage that is an insider.
    """
    order = request.order
    file = await asyncio.to_thread(lambda: run.begun_with)
    if await asyncio.to_thread(lambda: run.summary) is None:
        raise UsageError(f"{run.uri} has no summary, because the run has not ended: give one that has ended")
    trust = Trust.of(trusted_by(run))
    address = _checked(order.address, trust)
    settings = replace(settings, max_calls=None, semantics=file.facts.semantics)
    caller = caller_of(run.bucket_name, settings, RateLimit(settings.max_rate), ConcurrencyLimit(CALLS_AT_ONCE))
    async with open_asked(run.bucket_name, settings, caller, CALLS_AT_ONCE) as bucket:
        facts = bucket.facts
        if not isinstance(facts.owner, str) or facts.owner != facts.own_id:
            raise UsageError(
                f"only the owner of {visible(run.bucket_name)} may start a probe, and these credentials are not known"
                " to be the owner's: use a profile of the bucket's account"
            )
        connection = connection_to(run.bucket_name, settings, CALLS_AT_ONCE)
        if isinstance(facts.region, str):
            connection = replace(connection, region=facts.region)
        signer = None
        if order.profile is not None:
            signer = await foreign_signer(connection, order.profile, facts, trust)
        tls = not (custom_endpoint("s3", settings.endpoint_url, settings.profile) or "").startswith("http://")
        signers = (None,) if signer is None else (None, signer)
        vantages = [Vantage(address=address, tls=tls, signer=one) for one in signers]
        retry = RetryPolicy(min(ATTEMPTS, settings.retry_attempts), settings.retry_seconds)
        ask = Ask(Skipped(ACLS_DISABLED) if facts.ownership == BUCKET_OWNER_ENFORCED else None)
        reader = ObjectReader(bucket.engine, caller, ask, (), stand_in(facts))
        async with open_strangers(connection, order.profile, rate or RateLimit(PER_SECOND), retry) as asker:
            return await Probe(run, bucket, reader, asker, vantages, now or datetime.now(UTC)).run(request)


def trusted_by(run: RunReader) -> frozenset[str]:
    """Return the entries of `trusted` by which the run judged. Raises UsageError for an entry of no known form."""
    return values.trusted(run.begun_with.configuration.get("trusted", ()), f"{run.uri}/run.json")


def _checked(given: str | None, trust: Trust) -> str | None:
    """Return the address of the vantage as S3 sees it. Raises UsageError if it is no address, or a trusted one."""
    if given is None:
        return None
    try:
        found = ip_address(given)
    except ValueError as error:
        raise UsageError(f"--vantage {given[:100]!r} is not an IP address: write it like 198.51.100.7") from error
    address = str((found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found)
    if (entry := trust.network(address)) is not None:
        raise UsageError(
            f"the vantage is an insider: --vantage {address}, and `trusted` has {entry}: ask from another network"
        )
    return address


def _unreadable(then: Evidence, now: Evidence) -> bool:
    """True if a fact of the object cannot be read today that the run could read, or did not ask for."""
    known = [fact for fact in then.unread if fact in now.unread]
    return len(now.unread) > len(known)
