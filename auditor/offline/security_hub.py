"""Send the findings of a run to AWS Security Hub: import those of the run, archive those that it no longer has.

Security Hub itself tells which findings of the target are active. So a run that was not sent, a sending that ended half
way or a run folder that is gone leaves nothing behind: the next sending archives what is left over.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, field

from auditor.aws.client import ThreadedClient, open_client
from auditor.aws.failures import explain
from auditor.errors import CallFailed, RunError, UsageError
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.offline.formats.asff import PRODUCT, RUN, HubAccount, LookedAt, findings, ids_of
from auditor.runs.paths import began_at
from auditor.s3.rate import RateLimit

BATCH: Final = 100
"""Most findings of one call, of BatchImportFindings and of GetFindings."""
BATCH_BYTES: Final = 5_500_000
"""Most bytes of the findings of one call. Security Hub takes 6 MB, the rest of the request included."""
CALLS_PER_SECOND: Final = 10
"""Security Hub's limit for BatchImportFindings of an account in a region."""
RIGHTS: Final = "securityhub:BatchImportFindings and securityhub:GetFindings"
_DISABLED: Final = "InvalidAccessException"

Asff = dict[str, Any]


class SentFindings(Struct, frozen=True):
    """The result of sending a run. sent, archived: number of findings that Security Hub took. kept: number of earlier
    findings that stay active, because the run does not show that they are over. failed: ID and error code of each
    finding that Security Hub refused.
    """

    hub: HubAccount
    sent: int
    archived: int
    kept: int
    failed: tuple[tuple[str, str], ...]


class _Import(Struct):
    taken: set[str] = field(default_factory=set)
    failed: list[tuple[str, str]] = field(default_factory=list)


class SecurityHub:
    """The Security Hub of one account and region. Its methods raise RunError, with the reason and the fix."""

    def __init__(self, client: ThreadedClient, hub: HubAccount, rate: RateLimit | None = None) -> None:
        """rate: limits the calls; None for that of Security Hub."""
        self._client = client
        self._hub = hub
        self.rate = rate or RateLimit(CALLS_PER_SECOND)

    async def send(self, summary: Summary, rollups: RollUps, looked: LookedAt) -> SentFindings:
        """Import the findings of the run, and archive those of the target that it no longer has.

        Raises UsageError if Security Hub has findings of a later run of the target.
        """
        present = {one["Id"]: one async for one in self._present(ids_of(summary.target))}
        _check_latest(summary, present.values())
        new = {one["Id"]: one for one in findings(summary, rollups, self._hub)}
        for name in new.keys() & present.keys():
            _keep_begin(new[name], present[name])
        gone = [one for name, one in present.items() if name not in new]
        over = [_archived(one, began_at(summary.run)) for one in gone if looked.shows_end(one)]
        done = await self._import([*new.values(), *over])
        return SentFindings(
            self._hub,
            sent=len(done.taken & new.keys()),
            archived=len(done.taken - new.keys()),
            kept=len(gone) - len(over),
            failed=tuple(done.failed),
        )

    async def _present(self, ids: str) -> AsyncIterator[Asff]:
        """Yield the active findings whose IDs begin so."""
        equals = {"ProductArn": self._hub.product_arn, "AwsAccountId": self._hub.account, "RecordState": "ACTIVE"}
        filters = {name: [{"Value": value, "Comparison": "EQUALS"}] for name, value in equals.items()}
        asked: dict[str, Any] = {"Filters": {**filters, "Id": [{"Value": ids, "Comparison": "PREFIX"}]}}
        while True:
            answer = await self._call("GetFindings", MaxResults=BATCH, **asked)
            for finding in answer.get("Findings", ()):
                if str(finding.get("Id", "")).startswith(ids):
                    yield finding
            if not (token := answer.get("NextToken")):
                return
            asked["NextToken"] = token

    async def _import(self, found: Iterable[Asff]) -> _Import:
        done = _Import()
        for batch in batches(found):
            answer = await self._call("BatchImportFindings", Findings=batch)
            refused = {str(one.get("Id")): str(one.get("ErrorCode")) for one in answer.get("FailedFindings", ())}
            done.failed += refused.items()
            done.taken |= {one["Id"] for one in batch} - refused.keys()
        return done

    async def _call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        await self.rate.take()
        try:
            return await self._client.call(operation, **arguments)
        except CallFailed as failure:
            place = f"Security Hub of account {self._hub.account} in {self._hub.region}"
            if failure.code == _DISABLED:
                raise RunError(f"{place} is not enabled ({failure.code}): enable it, or give its --region") from failure
            raise RunError(explain(place, failure, allow=RIGHTS, absent="enable it")) from failure


@asynccontextmanager
async def open_security_hub(region: str | None, profile: str | None, account: str | None) -> AsyncIterator[SecurityHub]:
    """Open the Security Hub of the caller's account. region: None for that of the environment or the profile.

    account: the account that the user expects; None for any. Raises UsageError if the credentials are another's, and
    RunError if AWS does not tell whose they are.
    """
    options: dict[str, Any] = {"threads": 1, "region": region, "endpoint_url": None, "profile": profile}
    async with open_client("securityhub", **options) as client:
        async with open_client("sts", **{**options, "region": client.region}) as sts:
            try:
                caller = str((await sts.call("GetCallerIdentity"))["Account"])
            except CallFailed as failure:
                fix = {"allow": "sts:GetCallerIdentity", "absent": "check the endpoint"}
                raise RunError(explain("STS", failure, **fix)) from failure
        if account not in (None, caller):
            raise UsageError(
                f"--account is {account}, but the credentials belong to {caller}: Security Hub takes only findings"
                " of the caller's account"
            )
        yield SecurityHub(client, HubAccount(caller, client.region))


def batches(found: Iterable[Asff]) -> Iterator[list[Asff]]:
    """Yield the findings in lists that one call takes: at most BATCH findings and BATCH_BYTES bytes."""
    batch: list[Asff] = []
    size = 0
    for finding in found:
        length = len(json.dumps(finding)) + 2
        if batch and (len(batch) == BATCH or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(finding)
        size += length
    if batch:
        yield batch


def _check_latest(summary: Summary, present: Iterable[Asff]) -> None:
    later = max((str(one.get("ProductFields", {}).get(RUN, "")) for one in present), default="")
    if later > summary.run:
        raise UsageError(
            f"Security Hub has findings of the later run {later} of this target: send that run, or a newer one"
        )


def _keep_begin(new: Asff, present: Asff) -> None:
    """Let a renewed finding be as old as it is in Security Hub: the groups of objects that lack a fact have no time."""
    known = _moment(present.get("CreatedAt"))
    if known is not None and known < datetime.fromisoformat(new["CreatedAt"]):
        new["CreatedAt"] = new["FirstObservedAt"] = known.strftime("%Y-%m-%dT%H:%M:%SZ")


def _archived(finding: Asff, now: str) -> Asff:
    """Return the finding as Security Hub takes it to archive it, without the members that Security Hub has added."""
    kept: Asff = {name: finding[name] for name in _OURS if name in finding}
    fields = {name: value for name, value in finding.get("ProductFields", {}).items() if name.startswith(PRODUCT)}
    return {**kept, "ProductFields": fields, "UpdatedAt": now, "RecordState": "ARCHIVED"}


_OURS: Final[tuple[str, ...]] = (
    *("SchemaVersion", "Id", "ProductArn", "GeneratorId", "AwsAccountId", "CreatedAt", "FirstObservedAt"),
    *("LastObservedAt", "Title", "Description", "Resources", "Compliance", "Remediation", "FindingProviderFields"),
)


def _moment(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else None
