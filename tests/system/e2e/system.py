"""The running deployment: fire events, wait for their work, read the results."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from auditor.hashing.queue.message import HashTask
from auditor.ledger.dynamodb.table import own_name
from tests.system.e2e.deployment import SERVICE, Deployment
from tests.system.e2e.environment import Answer
from tests.system.e2e.poller import Poller
from tests.system.e2e.queues import Queues
from tests.system.e2e.runtime import Invoked, LocalLambda

AUDIT: Final = f"{SERVICE}-audit"
VERIFY: Final = f"{SERVICE}-verify"
RENEW: Final = f"{SERVICE}-renew"


@dataclass(frozen=True, slots=True)
class System:
    """The deployment and its runtime."""

    deployment: Deployment
    local: LocalLambda
    poller: Poller
    queues: Queues

    def fire(
        self, event: Any, function: str = AUDIT, *, seconds: float = 300.0, times: int = 1
    ) -> list[dict[str, Any]]:
        """Invoke a function asynchronously, as its schedule does, and wait for it and for the executions that it
        starts: as they ended. times: so many deliveries of the event at once.
        """
        before = len(self.local.invoked)
        for _ in range(times):
            self.local.invoke_later(function, event)
        self.local.settle()
        answers = [one.answer for one in self.local.invoked[before:] if one.answer.error is None]
        started = [arn for answer in answers for arn in json.loads(answer.payload).get("executions", ())]
        return [self.deployment.ended(arn, seconds) for arn in started]

    def summaries(self, function: str = AUDIT) -> list[dict[str, Any]]:
        """Of every run, or every verification, in each answer that has them, in the order of the answers."""
        answers = [told(one.answer) for one in self.local.invoked if one.function == function and not one.answer.error]
        return [summary for answer in answers for summary in answer.get("runs", ())]

    def steps(self, action: str) -> list[Invoked]:
        """The invocations by the state machine for one action, killed ones included."""
        events = [one for one in self.local.invoked if isinstance(one.event, dict)]
        return [one for one in events if one.event.get("action") == action]

    def ranges(self) -> list[tuple[str, str | None]]:
        """The range of each invocation that worked on one, and its error, but for those that left it to others."""
        found = [one for one in self.steps("range") if b'"RunTaken"' not in one.answer.payload]
        return [(one.event["pair"]["range"], one.answer.error) for one in found]

    def put(self, bucket: str, objects: dict[str, bytes]) -> list[HashTask]:
        s3 = self.deployment.client("s3")
        put = {key: s3.put_object(Bucket=bucket, Key=key, Body=data)["ETag"] for key, data in objects.items()}
        return [HashTask(key, None, etag.strip('"'), len(objects[key])) for key, etag in put.items()]

    def digests(self, bucket: str) -> dict[str, str]:
        """Key to SHA-256, of the ledger's entries of the bucket."""
        return {one["pk"]["S"].partition("/")[2]: sha256_in(one) for one in self.items(bucket)}

    def identities(self, bucket: str) -> dict[tuple[str, str], str]:
        """Key and ETag to SHA-256, an entry each."""
        found = {
            (one["pk"]["S"].partition("/")[2], one["sk"]["S"].partition("#")[2]): one for one in self.items(bucket)
        }
        return {identity: sha256_in(one) for identity, one in found.items()}

    def items(self, bucket: str) -> list[dict[str, Any]]:
        """The ledger's digests of the bucket; notices and leases have names that begin with a space."""
        table = self.deployment.outputs()["LedgerTable"]
        found = map(own_name, self.deployment.client("dynamodb").scan(TableName=table)["Items"])
        mine = (one for one in found if one["pk"]["S"].startswith(f"{bucket}/"))
        return [dict(one) for one in mine if not one["sk"]["S"].startswith(" ")]

    def report(self, bucket: str) -> dict[str, bytes]:
        """Everything in the reports bucket about one audited bucket."""
        place, prefix = self.reports()
        s3, below = self.deployment.client("s3"), f"{prefix}/bucket={bucket}/"
        found = s3.list_objects_v2(Bucket=place, Prefix=below).get("Contents", [])
        return {
            one["Key"].removeprefix(below): s3.get_object(Bucket=place, Key=one["Key"])["Body"].read() for one in found
        }

    def reports(self) -> tuple[str, str]:
        """The reports bucket, and the prefix in it."""
        place, _, prefix = self.deployment.outputs()["Reports"].removeprefix("s3://").partition("/")
        return place, prefix

    def runs(self, bucket: str) -> set[str]:
        """The IDs of all runs of a bucket."""
        names = {name.partition("/")[0] for name in self.report(bucket)}
        return {name.removeprefix("run=") for name in names if name.startswith("run=")}

    def end_lease(self, bucket: str) -> None:
        """As if all the minutes of a dead invocation's lease had gone by."""
        (place, prefix), s3 = self.reports(), self.deployment.client("s3")
        key = f"{prefix}/bucket={bucket}/lease.json"
        lease = json.loads(s3.get_object(Bucket=place, Key=key)["Body"].read())
        s3.put_object(Bucket=place, Key=key, Body=json.dumps(lease | {"until": 0.0}).encode())

    def letters(self) -> list[str]:
        """The bodies of the dead letters, which are then gone."""
        return self.queues.taken(self.deployment.outputs()["DeadLetterQueueUrl"])

    def waiting(self, output: str) -> int:
        return self.poller.waiting(self.deployment.outputs()[output])

    def send(self, output: str, body: str) -> None:
        url = self.deployment.outputs()[output]
        self.queues.sqs.send_message(QueueUrl=url, MessageBody=body)


Make = Callable[..., System]


def told(answer: Answer) -> Any:
    assert answer.error is None, answer.payload
    return json.loads(answer.payload)


def sha256_in(item: dict[str, Any]) -> str:
    (found,) = {value for value in strings(item) if len(value) == 64}
    return found


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def expected(objects: dict[str, bytes]) -> dict[str, str]:
    return {key: hashlib.sha256(data).hexdigest() for key, data in objects.items()}


def keys(report: dict[str, bytes], folder: str) -> list[str]:
    parts = [gzip.decompress(body) for name, body in report.items() if f"/{folder}/" in name]
    return [json.loads(line)["key"] for part in parts for line in part.splitlines()]


def heard(system: System, url: str) -> list[str]:
    """What the deployed topic was told, by the queue of the fixture `alerts`."""
    return [json.loads(body)["Message"] for body in system.queues.taken(url)]
