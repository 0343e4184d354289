"""The function that renews what S3's events name, as Lambda calls it."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import uuid4

import boto3
import pytest

from auditor.audit.renew import Renewer, open_renewer
from auditor.config.channels import Channels
from auditor.config.layers import Layer, resolve
from auditor.config.settings import Settings
from auditor.errors import RunError, UsageError
from auditor.lambdas.invocation_frame import FunctionContext
from auditor.lambdas.renew import RenewFunction
from auditor.model.dates import iso_date
from auditor.model.object import ALL_USERS
from auditor.offline.explain import explain_from_run, name_of
from auditor.runs.reading import RunReader
from auditor.runs.renewals import RenewedObject, read_renewals
from auditor.runs.stores.local import LocalStore
from auditor.s3.rate import RateLimit
from tests.support.deadline import Deadline
from tests.support.function_account import Account
from tests.support.nights import DAY, Nights, asked, keys_asked
from tests.support.object_events import by_topic, event_bridge, expose, notification
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import BLACK_HOLE, Fault
from tests.support.servers.world import Odd, StubBucket

NUMBER: Final = 40
RULES: Final[dict[str, Any]] = {"only": ("O02", "E01")}
KEYS: Final = [f"k{number:03}" for number in range(NUMBER)]
Failed = list[str]


class Topic(Account):
    """Refuses alerts while `refuses` is True."""

    refuses = False

    async def publish(self, subject: str, message: str) -> None:
        if self.refuses:
            raise RunError("the topic refused")
        await super().publish(subject, message)


class Deployed:
    """The function beside a folder of runs. function: one of its processes."""

    def __init__(self, stub: StubServer, out: Path, nights: Nights | None = None, **variables: str) -> None:
        self.topic = Topic()
        self.store = LocalStore(out)
        self.stopping = Deadline()
        self._nights = nights
        self._environ = {
            "AUDITOR_OUT": str(out),
            "AUDITOR_ENDPOINT_URL": stub.url,
            "AUDITOR_MAX_RATE": "5000",
            **variables,
        }
        self.function = self.process()

    def process(self) -> RenewFunction:
        return RenewFunction(self._environ, self._opening)

    def _opening(self, run: RunReader, settings: Settings, rate: RateLimit) -> AbstractAsyncContextManager[Renewer]:
        if self._nights is None:
            return open_renewer(run, settings, rate)
        now = self._nights.now
        return open_renewer(run, settings, rate, lambda: datetime.fromtimestamp(now, UTC))

    async def deliver(self, *bodies: str, function: RenewFunction | None = None) -> Failed:
        """Hand the messages to the function in one batch, and return the numbers of those that must come again."""
        records = [
            {"messageId": str(number), "receiptHandle": "r", "body": body, "attributes": {}}
            for number, body in enumerate(bodies)
        ]
        context = FunctionContext(seconds_left=600, channels=Channels(topic=self.topic), stopping=self.stopping)
        answer = await (function or self.function).handle({"Records": records}, context)
        return [one["itemIdentifier"] for one in answer["batchItemFailures"]]

    def renewals(self) -> dict[str, RenewedObject]:
        return {key: one for (key, _), one in (read_renewals(self.store, BUCKET, "") or {}).items()}


@pytest.fixture
def filled(bucket: StubBucket) -> StubBucket:
    for key in KEYS:
        bucket.put(key, b"x")
    return bucket


@pytest.fixture
def nights(stub: StubServer, filled: StubBucket, tmp_path: Path) -> Nights:
    return Nights(stub, tmp_path, **RULES, keep=resolve([Layer({"keep": "acl=90d,head=90d"}, str)]).keep)


@pytest.fixture
def deployed(stub: StubServer, tmp_path: Path, nights: Nights) -> Deployed:
    return Deployed(stub, tmp_path, nights)


FORMS: Final[tuple[Callable[[str], str], ...]] = (
    event_bridge,
    lambda key: event_bridge(key, kind="Object Created"),
    notification,
    lambda key: notification(key, event="ObjectCreated:CompleteMultipartUpload"),
    lambda key: by_topic(notification(key)),
)


async def test_every_form_of_an_event_names_an_object_of_any_key(
    filled: StubBucket, deployed: Deployed, nights: Nights
) -> None:
    for key in ODD_KEYS:
        filled.put(key, b"x")
    first = await nights.night(days=0.3)
    named = [line["key"] for line in first.objects if line["key"] not in KEYS]
    assert len(named) > 3 * len(FORMS)
    for key in named:
        expose(filled, key)
    forms = [form for _, form in zip(named, itertools.cycle(FORMS), strict=False)]
    assert await deployed.deliver(*(form(key) for key, form in zip(named, forms, strict=True))) == []
    found = deployed.renewals()
    assert {key: one.line.verdict for key, one in found.items()} == dict.fromkeys(named, "exposed")
    (message,) = deployed.topic.messages
    assert f"{len(named)} objects newly exposed" in message
    run = RunReader(deployed.store, BUCKET, first.summary["run"])
    (explained,) = explain_from_run(run, name_of(f"s3://{BUCKET}/{named[0]}"))
    assert explained.renewed == "2027-03-01T09:12:00Z"


async def test_order_of_events_does_not_matter_because_the_object_is_read_as_it_is(
    stub: StubServer, filled: StubBucket, deployed: Deployed, nights: Nights
) -> None:
    await nights.night(days=0.3)
    expose(filled, "k001")
    filled.objects.remove("k002")
    newer, older = (notification("k001", event="ObjectCreated:Put", sequencer=one) for one in ("00B0", "00AF"))
    gone = notification("k002", event="ObjectCreated:Put", sequencer="00AA")
    removed = notification("k002", event="ObjectRemoved:Delete", sequencer="00AB")
    assert await deployed.deliver(newer, removed, gone, older) == []
    assert deployed.renewals().keys() == {"k001"}
    night = await nights.night()
    assert night.line("k001")["verdict"] == "exposed"
    assert "k002" not in {line["key"] for line in night.objects}


async def test_message_that_fails_comes_again_and_no_other(
    filled: StubBucket, deployed: Deployed, nights: Nights, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await nights.night(days=0.1)
    latest = tmp_path / f"bucket={BUCKET}" / "latest.json"
    whole = latest.read_bytes()
    latest.write_text("{}")
    unknown = event_bridge("k001", "nobody-audits-this")
    test = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": BUCKET})
    assert await deployed.deliver(unknown, event_bridge("k001"), test) == ["1"]
    assert "nobody-audits-this has no complete run yet" in caplog.text
    latest.write_bytes(whole)
    assert await deployed.deliver(event_bridge("k001")) == []
    assert deployed.renewals().keys() == {"k001"}


async def test_alert_that_is_refused_comes_again_with_its_message_and_is_told_once(
    stub: StubServer, filled: StubBucket, deployed: Deployed, nights: Nights
) -> None:
    await nights.night(days=0.1)
    expose(filled, "k001")
    deployed.topic.refuses = True
    assert await deployed.deliver(event_bridge("k001")) == ["0"]
    assert deployed.renewals() == {}
    deployed.topic.refuses = False
    stub.forget()
    assert await deployed.deliver(*[event_bridge("k001"), notification("k001", "k001")] * 3) == []
    assert asked(stub) == (1, 1), "duplicates in a batch are read once"
    nights.now += 100
    assert await deployed.deliver(event_bridge("k001")) == []
    assert len(deployed.topic.messages) == 1


async def test_acl_that_is_denied_is_undecided_and_asked_again_by_the_night(
    stub: StubServer, filled: StubBucket, deployed: Deployed, nights: Nights
) -> None:
    await nights.night(days=0.3)
    expose(filled, "k001")
    filled.odd["GetObjectAcl"] = Odd.DENIED
    assert await deployed.deliver(event_bridge("k001")) == []
    assert deployed.renewals()["k001"].line.verdict == "unknown"
    del filled.odd["GetObjectAcl"]
    night = await nights.night()
    assert "k001" in keys_asked(stub, "GetObjectAcl")
    assert night.line("k001")["verdict"] == "exposed"


async def test_all_messages_come_again_when_s3_is_silent_until_the_deadline(
    stub: StubServer, deployed: Deployed, nights: Nights
) -> None:
    await nights.night(days=0.1)
    deployed.stopping.margin = 0.1

    def silent(operation: str, key: str, nth: int) -> Fault:
        deployed.stopping.come()
        return BLACK_HOLE

    stub.faults = [silent]
    assert await deployed.deliver(event_bridge("k001"), event_bridge("k002")) == ["0", "1"]


async def test_renewals_of_an_audited_reports_bucket_are_no_events_to_renew_after(
    stub: StubServer, deployed: Deployed, nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    await nights.night(days=0.1)
    monkeypatch.setattr(LocalStore, "uri", lambda self, path="": f"s3://{BUCKET}/audits/{path}")
    stub.forget()
    mine = event_bridge(f"audits/bucket={BUCKET}/renewals/20270301T081200Z-aaaaaa.jsonl.gz", kind="Object Created")
    assert await deployed.deliver(mine) == []
    assert len(stub.calls) == 0


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
async def test_no_fact_is_older_than_its_limit_when_a_tenth_of_the_events_is_dropped(
    stub: StubServer, filled: StubBucket, tmp_path: Path, seed: int
) -> None:
    """Nor is a new encryption under the same ETag, which S3 has no event for, seen later than its limit."""
    dice = Random(seed)
    limits = {"acl": 4 * DAY, "head": 7 * DAY}
    keep = resolve([Layer({"keep": "acl=4d,head=7d"}, str)]).keep
    nights = Nights(stub, tmp_path, **RULES, keep=keep)
    deployed = Deployed(stub, tmp_path, nights)
    exposed: dict[str, float] = {}
    encrypted: dict[str, float] = {}
    etags = {key: filled.objects.versions(key)[0].etag for key in KEYS}
    dropped = 0
    for _ in range(14):
        began = nights.now
        night = await nights.night(days=0.5 + dice.uniform(-0.01, 0.01))
        for line in night.objects:
            at = line.get("read_at") or {"acl": None, "head": None}
            ages = {fact: 0.0 if at[fact] is None else began - iso_date(at[fact]).timestamp() for fact in limits}
            assert all(0 <= ages[fact] <= limits[fact] for fact in limits)
            assert line["etag"] == etags[line["key"]]
        for changed, limit, seen in (
            (exposed, limits["acl"], {line["key"] for line in night.objects if _is_public(line)}),
            (encrypted, limits["head"], {line["key"] for line in night.objects if _under_kms(line)}),
        ):
            assert {key for key, at in changed.items() if at <= began - limit} <= seen <= changed.keys()
        bodies: list[str] = []
        for key in dice.sample([key for key in KEYS if key not in exposed], 2):
            expose(filled, key)
            exposed[key] = nights.now
            if dice.random() < 0.1:
                dropped += 1
            else:
                bodies += [dice.choice([event_bridge, notification])(key)] * dice.choice([1, 1, 2])
        (key,) = dice.sample([key for key in KEYS if key not in encrypted], 1)
        filled.objects.versions(key)[0].sse = "aws:kms"
        encrypted[key] = nights.now
        dice.shuffle(bodies)
        half = len(bodies) // 2
        processes = [deployed.process() for _ in range(2)]
        left = await asyncio.gather(
            *(
                deployed.deliver(*part, function=one)
                for part, one in zip((bodies[:half], bodies[half:]), processes, strict=True)
            )
        )
        assert left == [[], []]
        nights.now += 0.5 * DAY
    assert dropped > 0


def _is_public(line: dict[str, Any]) -> bool:
    """By its ACL: the public cannot use the key of an object under KMS, whose verdict is another one."""
    return any(grant["grantee"] == ALL_USERS for grant in line["acl"]["grants"])


def _under_kms(line: dict[str, Any]) -> bool:
    return str(line["head"]["server_side_encryption"]) == "aws:kms"


async def test_malformed_message_is_a_dead_letter_with_its_reason(
    stub: StubServer, nights: Nights, tmp_path: Path, moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", moto_url)
    sqs = boto3.client("sqs", endpoint_url=moto_url)
    url = sqs.create_queue(QueueName=uuid4().hex)["QueueUrl"]
    deployed = Deployed(stub, tmp_path, nights, AUDITOR_DEAD_LETTER_QUEUE=url)
    await nights.night(days=0.1)
    poison = ["not JSON", event_bridge("k001", "NO BUCKET"), json.dumps({"Records": [{"eventSource": "aws:s3"}]})]
    assert await deployed.deliver(event_bridge("k001"), *poison) == []
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
    letters = {one["Body"]: one["MessageAttributes"]["reason"]["StringValue"] for one in answer["Messages"]}
    assert letters.keys() == {*poison}
    assert "JSON" in letters["not JSON"]
    assert "detail.bucket.name" in letters[poison[1]]
    assert deployed.renewals().keys() == {"k001"}
    sqs.delete_queue(QueueUrl=url)
    assert await deployed.deliver(event_bridge("k001"), "not JSON") == ["1"]
    sqs.close()


async def test_wrong_event_or_setting_is_one_sentence(stub: StubServer, tmp_path: Path) -> None:
    cases: tuple[tuple[dict[str, Any], dict[str, str], str], ...] = (
        ({}, {}, "the event has no Records"),
        ({"Records": [{"body": "{}"}]}, {}, "no messageId"),
        ({"Records": []}, {"AUDITOR_OUT": ""}, "AUDITOR_OUT is not set: the renew function needs it"),
        ({"Records": []}, {"AUDITOR_MAX_RATE": "fast"}, "AUDITOR_MAX_RATE"),
    )
    for event, variables, sentence in cases:
        with pytest.raises(UsageError, match=sentence):
            await Deployed(stub, tmp_path, None, **variables).function.handle(event, FunctionContext(seconds_left=60))
