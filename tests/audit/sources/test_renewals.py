"""Events renew ACLs between two nights, and the limits hold without them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.aio.stop import Stop
from auditor.audit.renew import BatchRenewer, EventCounts, EventRenewer, Renewed, Renewer, open_renewer
from auditor.config.layers import Layer, resolve
from auditor.config.settings import Settings
from auditor.errors import OutputError
from auditor.model.bucket import PublicAccessBlock
from auditor.offline.explain import explain_from_run, name_of
from auditor.offline.explanation import render
from auditor.reports.alert import renewal_alert
from auditor.reports.channel_texts import text_of
from auditor.runs.reading import RunReader
from auditor.runs.renewals import read_renewals
from auditor.runs.stores.local import LocalStore
from auditor.s3.rate import RateLimit
from tests.support.fakes.hashing import MemoryQueue
from tests.support.nights import DAY, Nights, asked, keys_asked, timeless
from tests.support.object_events import event_bridge, expose
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

NUMBER: Final = 30
RULES: Final[dict[str, Any]] = {"only": ("O02", "E01")}
ODD_KEY: Final = "a b/ü+%2F\n.txt"


@pytest.fixture
def filled(bucket: StubBucket) -> StubBucket:
    for number in range(NUMBER):
        bucket.put(f"k{number:03}", b"x")
    bucket.put(ODD_KEY, b"x")
    return bucket


def keep(text: str) -> dict[str, Any]:
    return {"keep": resolve([Layer({"keep": text}, str)]).keep}


class Events:
    """Renews from a queue in memory, at the time of the nights."""

    def __init__(self, stub: StubServer, out: Path, nights: Nights) -> None:
        self.queue = MemoryQueue()
        self.told: list[Renewed] = []
        self.store = LocalStore(out)
        self._settings = Settings(endpoint_url=stub.url, max_rate=None)
        self._nights = nights

    async def work(self) -> EventCounts:
        async def told(run: RunReader, renewed: Renewed) -> None:
            self.told.append(renewed)

        def opening(run: RunReader, settings: Settings, rate: RateLimit) -> AbstractAsyncContextManager[Renewer]:
            return open_renewer(run, settings, rate, lambda: datetime.fromtimestamp(self._nights.now, UTC))

        renewer = BatchRenewer(self.store, self._settings, RateLimit(None), told, opening=opening)
        return await EventRenewer(self.queue, renewer, Stop(), idle=1, poll=1).run()


async def test_acl_that_an_event_names_is_read_within_minutes_and_used_by_the_next_night(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    out = tmp_path / "kept"
    nights = Nights(stub, out, **RULES, **keep("acl=90d,head=90d"))
    events = Events(stub, out, nights)
    first = await nights.night(days=0.3)
    for key in ("k003", ODD_KEY):
        expose(filled, key)
        events.queue.put(event_bridge(key))
    stub.forget()
    counts = await events.work()
    assert (counts.messages, counts.failed, counts.renewed.objects) == (2, 0, 2)
    assert sorted(counts.renewed.exposed) == sorted(["k003", ODD_KEY])
    assert events.queue.left == []
    assert asked(stub) == (2, 2)
    run = RunReader(events.store, BUCKET, first.summary["run"])
    (explained,) = explain_from_run(run, name_of(f"s3://{BUCKET}/k003"))
    assert (explained.access.verdict, explained.renewed) == ("exposed", "2027-03-01T09:12:00Z")
    assert "because of an event of S3" in render([explained], 100)
    nights.now += 0.7 * DAY
    live = await nights.live(tmp_path / "live")
    night = await nights.night()
    assert not {"k003", ODD_KEY} & keys_asked(stub, "GetObjectAcl")
    assert timeless(night.objects) == timeless(live.objects)
    assert night.line("k003")["verdict"] == "exposed"
    assert night.line("k003")["read_at"]["acl"] == "2027-03-01T09:12:00Z"
    assert night.line("k003")["read_at"]["head"] == "2027-03-01T02:00:00Z"
    assert {line["key"] for line in night.findings} == {"k003", ODD_KEY}
    (old,) = explain_from_run(run, name_of(f"s3://{BUCKET}/k003"))
    assert (old.access.verdict, old.renewed) == ("private", None)  # it is not the last run any more
    alert = renewal_alert(BUCKET, run.run_id, counts.renewed.exposed)
    assert alert is not None
    assert "2 objects newly exposed" in text_of(alert)
    assert "k003" not in text_of(alert)
    assert renewal_alert(BUCKET, run.run_id, ()) is None


async def test_acl_that_may_not_be_the_one_that_counts_is_asked_again(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    """It differs from the one of a run at about the same time, and another one was read behind a block."""
    nights = Nights(stub, tmp_path, **RULES, **keep("acl=90d,head=90d"))
    events = Events(stub, tmp_path, nights)
    item = filled.objects.versions("k001")[0]
    private = item.grants
    expose(filled, "k001")
    assert (await nights.night(days=0)).line("k001")["verdict"] == "exposed"
    item.grants = private
    events.queue.put(event_bridge("k001"))
    await events.work()
    expose(filled, "k001")  # without an event: it may also have been just so when the night read it
    nights.now += DAY
    night = await nights.night(days=0.5)
    assert "k001" in keys_asked(stub, "GetObjectAcl")
    assert night.line("k001")["verdict"] == "exposed"
    expose(filled, "k002")
    filled.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    events.queue.put(event_bridge("k002"))
    assert (await events.work()).renewed.exposed == ()
    filled.public_access_block = None
    nights.now += DAY / 2
    assert (await nights.night()).line("k002")["verdict"] == "exposed"


async def test_damaged_renewal_keeps_nothing(stub: StubServer, filled: StubBucket, tmp_path: Path) -> None:
    nights = Nights(stub, tmp_path, **RULES, **keep("acl=90d,head=90d"))
    events = Events(stub, tmp_path, nights)
    await nights.night(days=0.5)
    events.queue.put(event_bridge("k001"))
    await events.work()
    assert read_renewals(events.store, BUCKET, "", most=0) is None
    (file,) = (tmp_path / f"bucket={BUCKET}" / "renewals").iterdir()
    file.write_bytes(b"\x1f\x8b")
    with pytest.raises(OutputError, match="is damaged"):
        read_renewals(events.store, BUCKET, "")
    await nights.night()
    assert asked(stub) == (NUMBER + 1, NUMBER + 1)


async def test_acl_that_a_resumed_run_may_have_read_after_the_event_is_asked_again(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    nights = Nights(stub, tmp_path, **RULES, **keep("acl=90d,head=90d"))
    events = Events(stub, tmp_path, nights)
    await nights.night()
    cut = await nights.night(days=0.2, keep=None, max_calls=50)
    assert not cut.summary["complete"]
    events.queue.put(event_bridge("k025"))
    await events.work()
    expose(filled, "k025")  # without an event
    nights.now += DAY / 5
    assert (await nights.night(keep=None, resume=cut.summary["run"])).line("k025")["verdict"] == "exposed"
    assert (await nights.night()).line("k025")["verdict"] == "exposed"
