"""The recorder counts each object once, in the state of its digests, and writes its lines to the run folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from auditor.audit.excepting import RunExceptions
from auditor.audit.line_writer import LineWriter
from auditor.audit.record_judge import RecordJudge
from auditor.audit.recorder import Recorder
from auditor.audit.standing import Standings
from auditor.config.settings import Settings
from auditor.errors import QueueError
from auditor.hashing.queue.send import Dispatcher
from auditor.hashing.status import HashStatus, HashStatusFinder
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts, PublicAccessBlock
from auditor.model.exception import ExceptionEntry
from auditor.model.finding import RuleUndecided
from auditor.model.object import ALL_USERS, Acl, DigestSources, Evidence, Grant, Head, ObjectRef, Skipped, Unread
from auditor.model.reuse import NamesOnly
from auditor.reports.rollup import RollUpBuilder
from auditor.rules import RULES
from auditor.rules.judge import Judge
from auditor.rules.plan import make_plan
from auditor.rules.selection import select
from auditor.runs.folder import RunFolder
from auditor.runs.reading import RunReader
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from auditor.s3.gather import Gathered
from auditor.s3.listing import Listed
from tests.support.run_lines import run_lines
from tests.support.samples.bucket import OWNER, facts
from tests.support.samples.reports import RUN, target

accepting = partial(ExceptionEntry, owner="me", until="2999-12-31")

OWN = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
HEAD = Head(etag="e", content_length=1, server_side_encryption="AES256")
KNOWN, PENDING = HashStatus("known"), HashStatus("pending")
BEGAN = "2026-01-02T03:04:05Z"


def item(key: str, markers: int = 0, **changes: Any) -> Gathered:
    ref = ObjectRef(key, "e", 7, "2026-01-02T03:04:05Z", owner=OWNER, storage_class="STANDARD_IA")
    values: dict[str, Any] = {"acl": OWN, "head": HEAD, **changes}
    return Gathered(Listed(key, ref, markers), Evidence(ref, **values))


@dataclass
class Queue:
    """A dispatcher whose queue accepts as many objects as the test says."""

    queued: int = 0
    added: list[str] = field(default_factory=list)
    at_the_end: int = 0

    unsent: tuple[()] = ()

    def add(self, objects: Iterable[ObjectRef]) -> None:
        self.added += [ref.key for ref in objects]

    async def send(self) -> None:
        """The test says what the queue has accepted."""

    async def close(self) -> None:
        self.queued += self.at_the_end
        raise QueueError("the queue refused the rest")


class Bench:
    """A recorder on a run folder, with the hash status of each key as the test gives it."""

    def __init__(
        self,
        out: Path,
        *,
        states: dict[str, HashStatus] | None = None,
        queue: Queue | None = None,
        bucket: BucketFacts | None = None,
        tally: Tally | None = None,
        part_lines: int = 1000,
        **settings: Any,
    ) -> None:
        bucket, self.store = bucket or facts(), LocalStore(out)
        self.tally = tally or Tally()
        self.folder = RunFolder(
            self.store, "audited", RUN, target=target(), tally=self.tally, part_lines=part_lines, clock=lambda: 0.0
        )
        self.folder.prepare()
        self.calls: Counter[str] = Counter()
        self.flushed = 0
        self._states = states
        judge, given = Judge(make_plan(select(RULES, {}, (), ()), bucket), bucket), Settings(**settings)
        self.recorder = Recorder(
            judge=RecordJudge(judge, self.tally),
            standings=Standings(BEGAN),
            lines=LineWriter(
                self.folder,
                self.tally,
                RunExceptions(given, "bucket", BEGAN, self.tally),
                RollUpBuilder(),
                keeps_values=given.keep_metadata,
            ),
            fixity=None if states is None else cast(HashStatusFinder, self),
            dispatcher=cast(Dispatcher, queue),
            calls=self.calls,
            io=self._io,
        )

    healed = 0

    async def find(self, batch: list[Evidence]) -> list[HashStatus | None]:
        assert self._states is not None
        return [None if evidence.vanished else self._states[evidence.ref.key] for evidence in batch]

    async def _io(self, step: Callable[[], None]) -> None:
        self.flushed += 1
        step()

    def lines(self, kind: str) -> list[dict[str, Any]]:
        self.folder.save()
        return run_lines(RunReader(self.store, "audited", RUN), kind)


Open = Callable[..., Bench]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as stack:

        def bench(**options: Any) -> Bench:
            made = Bench(tmp_path, **options)
            stack.callback(made.folder.close)
            return made

        yield bench


async def test_each_object_has_the_state_of_its_digests(opened: Open) -> None:
    differing = DigestSources(stored={"sha256": "aa"}, recorded={"sha256": "bb"})
    states = {
        "a": KNOWN,
        "b": HashStatus("hashed_now"),
        "c": PENDING,
        "d": HashStatus("pending", left_for_cost=True),
        "e": HashStatus("unhashable", routed=True),
        "f": HashStatus("pending", digests=differing),
    }
    queue = Queue()
    bench = opened(states=states, queue=queue)
    gone = item("e1", acl=Skipped("gone"), head=Skipped("gone"), vanished=True)
    await bench.recorder.record([item("a", 2), item("b"), Gathered(Listed("b1", None, 1), None), item("c"), item("d")])
    await bench.recorder.record([item("e"), gone, item("f"), Gathered(Listed("g", None, 3), None)])
    assert queue.added == ["c", "f"]
    assert bench.tally.hashing == {"known": 1, "hashed_now": 1, "queued": 0, "unhashable": 1, "pending": 3}
    assert (bench.tally.left_objects, bench.tally.left_bytes) == ({"STANDARD_IA": 1}, {"STANDARD_IA": 7})
    assert bench.tally.routed == {"objects": 1, "bytes": 7}
    assert bench.tally.coverage["delete_markers"] == 6
    bench.tally.check(hashing=True)
    hashed = {line["key"]: line["hashed"] for line in bench.lines("objects")}
    assert hashed == {"a": True, "b": True, "c": False, "d": False, "e": False, "e1": None, "f": False}
    assert [line["key"] for line in bench.lines("routed")] == ["e"]
    assert [(line["key"], line["rule"]) for line in bench.lines("findings")] == [("f", "I03")]
    assert bench.folder.position == "g"


async def test_objects_count_as_queued_once_the_queue_has_them(opened: Open) -> None:
    queue = Queue(at_the_end=5)
    bench = opened(states=dict.fromkeys("abcde", PENDING), queue=queue)
    for keys, accepted, counted in (("ab", 0, (2, 0)), ("c", 1, (2, 1)), ("d", 2, (2, 2)), ("e", 2, (3, 2))):
        queue.queued = accepted
        await bench.recorder.record([item(key) for key in keys])
        assert (bench.tally.hashing["pending"], bench.tally.hashing["queued"]) == counted
    with pytest.raises(QueueError):
        await bench.recorder.send_rest()
    assert (bench.tally.hashing["pending"], bench.tally.hashing["queued"]) == (0, 5)


async def test_accepted_and_other_undecided_objects_have_lines(opened: Open) -> None:
    everyone = (
        '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject",'
        ' "Resource": "arn:aws:s3:::audited/open"}}'
    )
    open_bucket = facts(policy=everyone, public_access_block=Skipped("none"), ownership=BUCKET_OWNER_ENFORCED)
    vault = accepting("the vault is closed", prefix="vault/", action="HeadObject", code="AccessDenied")
    bench = opened(bucket=open_bucket, exceptions=(vault,))
    bench.recorder.record_bucket()
    denied, disabled = Unread("HeadObject", "AccessDenied"), Skipped("ACLs are disabled")
    await bench.recorder.record([item("open", acl=disabled), item("shut", acl=disabled)])
    await bench.recorder.record([item("vault/a", acl=disabled, head=denied), item("z", acl=disabled, head=denied)])
    assert (bench.tally.accepted, bench.tally.coverage["undecided"]) == (1, 2)
    assert [line["key"] for line in bench.lines("undecided")] == ["vault/a", "z"]
    assert sum(bench.tally.rules.values()) == len(bench.lines("findings"))


@pytest.mark.parametrize("states", [None, {"k": KNOWN}], ids=["no ledger", "ledger"])
async def test_rule_that_lacks_a_value_of_an_earlier_run_is_undecided(
    opened: Open, states: dict[str, HashStatus] | None
) -> None:
    public = Acl(OWNER, (Grant(ALL_USERS, "READ"),))
    none = PublicAccessBlock()
    bench = opened(states=states, bucket=facts(public_access_block=none, account_public_access_block=none))
    head = replace(HEAD, metadata=NamesOnly(["password"]))
    await bench.recorder.record([item("k", acl=public, head=head)])
    assert RuleUndecided("O15", "HeadObject", "NotStored") in bench.tally.rules_undecided(())


async def test_versions_of_a_key_stay_together(opened: Open) -> None:
    bench = opened(part_lines=1)
    for key, version in (("a", "2"), ("a", "1"), ("b", "1")):
        ref = ObjectRef(key, "e", 7, "2026-01-02T03:04:05Z", version, owner=OWNER)
        await bench.recorder.record([Gathered(Listed(key, ref), Evidence(ref, OWN, HEAD))])
    assert bench.folder.position == "a"
    assert [line["version_id"] for line in run_lines(RunReader(bench.store, "audited", RUN), "objects")] == ["2", "1"]


async def test_calls_of_earlier_hops_count_too(opened: Open) -> None:
    tally = Tally()
    tally.calls.update(list=10, acl=5)
    bench = opened(tally=tally)
    bench.calls.update(list=1, head=2, bucket=9)
    await bench.recorder.record([item("a")])
    bench.calls.update(head=1)
    bench.recorder.count_calls()
    assert bench.tally.calls == {"list": 11, "head": 3, "acl": 5, "retried": 0, "throttled": 0}
