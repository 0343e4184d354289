"""Gather: bounded, in order, and clean after every kind of interruption."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.aws.failures import CREDENTIALS_RENEWED
from auditor.errors import BucketError, CallFailed, CredentialsError
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import ALL_USERS, Acl, Ask, Evidence, Grant, Head, ObjectRef, Outcome, Skipped, Unread
from auditor.model.target import Target
from auditor.s3.calls import Caller, RetryPolicy
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.gather import Gathered, gather
from auditor.s3.listing import Listed, pages
from auditor.s3.object_facts import stand_in
from auditor.s3.object_reader import ObjectReader
from tests.conformance.memory import OWNER, Entry, Hook, MemoryEngine
from tests.support.fakes.caller import FakeTime, make_caller, ref
from tests.support.loop_blocking import free_loop as free_loop

BOTH: Final = Ask()
HEAD: Final = Head(etag="etag of k", content_length=1)
ACL_ONLY: Final = Ask(None, Skipped("not needed"))
HEAD_ONLY: Final = Ask(Skipped("not needed"), None)
NEITHER: Final = Ask(Skipped("not needed"), Skipped("not needed"))

ORDINARY_TASKS: Final = 6
"""Tasks of a gathering that read no object: the test, the reader of pages, the drain, and those of Stop.race."""


class Run:
    """One gathering over an engine in memory. done: the results that the sink has."""

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        permits: int = 4,
        page_size: int = 1000,
        hook: Hook | None = None,
        ask: Ask = BOTH,
        max_calls: int | None = None,
        versions: bool = False,
        window: int = 2000,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.engine = MemoryEngine(entries, page_size=page_size)
        if hook is not None:
            self.engine.hook = hook
        self.caller = make_caller(permits=ConcurrencyLimit(permits), max_calls=max_calls, retry=retry)
        self.stop = Stop()
        self.done: list[Gathered] = []
        self.after: Callable[[], None] = lambda: None
        self._ask = ask
        self._target = Target("audited", versions=versions)
        self._window = window

    @property
    def keys(self) -> list[str]:
        return [item.step.key for item in self.done]

    @property
    def evidence(self) -> list[Evidence]:
        return [item.evidence for item in self.done if item.evidence is not None]

    async def sink(self, batch: list[Gathered]) -> None:
        self.done += batch
        self.after()
        await asyncio.sleep(0)

    def listing(self) -> AsyncGenerator[list[Listed], None]:
        return pages(self.engine, self.caller, self._target)

    async def __call__(self) -> bool:
        return await gather(
            self.listing(),
            ObjectReader(self.engine, self.caller, self._ask, ("sha256",)),
            self.caller,
            self.stop,
            self.sink,
            calls_per_object=self._ask.calls,
            whole_keys=self._target.versions,
            window=self._window,
        )


def keys(count: int) -> list[str]:
    return [f"k{number:05d}" for number in range(count)]


def objects(count: int) -> list[Entry]:
    return [ref(key) for key in keys(count)]


async def settle(rounds: int = 300) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


async def lingers(action: str, key: str) -> None:
    """Let answers arrive in another order than the calls."""
    for _ in range(random.Random(f"{action}{key}").randrange(8)):
        await asyncio.sleep(0)


class TestBounds:
    async def test_no_more_objects_in_flight_than_permits_and_no_task_without_one(self) -> None:
        run = Run(objects(200), permits=4, page_size=50, hook=lingers)
        assert await run() is True
        assert run.keys == keys(200)
        assert run.engine.peak == 4
        assert run.engine.tasks <= 4 + ORDINARY_TASKS

    async def test_one_slow_object_holds_back_a_window_and_no_more(self) -> None:
        release = asyncio.Event()

        async def hold_the_first(action: str, key: str) -> None:
            if key == "k00000":
                await release.wait()

        run = Run(objects(500), permits=4, page_size=20, hook=hold_the_first, window=30, ask=ACL_ONLY)
        task = asyncio.create_task(run())
        await settle(3000)
        assert run.done == []
        assert 30 <= run.engine.count("acl") <= 32
        assert run.engine.count("list") <= 4
        release.set()
        assert await task is True
        assert run.keys == keys(500)

    async def test_next_page_is_listed_while_objects_are_read(self) -> None:
        release = asyncio.Event()

        async def hold(action: str, key: str) -> None:
            if action != "list":
                await release.wait()

        run = Run(objects(40), permits=4, page_size=10, hook=hold)
        task = asyncio.create_task(run())
        await settle()
        assert run.engine.count("list") == 3  # the one at work, one that waits, one in the lister's hand
        release.set()
        assert await task is True

    async def test_nothing_is_asked_that_no_rule_needs(self) -> None:
        for ask, asked in ((ACL_ONLY, {"list", "acl"}), (HEAD_ONLY, {"list", "head"}), (NEITHER, {"list"})):
            run = Run(objects(10), ask=ask)
            assert await run() is True
            assert {action for action, _ in run.engine.asked} == asked
            assert all(evidence.outcome is Outcome.AUDITED for evidence in run.evidence)


class TestInterruptions:
    @pytest.mark.parametrize("action", ["list", "acl", "head"])
    async def test_cancelled_while_calling_leaves_no_task_behind(self, action: str) -> None:
        async def hold(asked: str, key: str) -> None:
            if asked == action and (action != "list" or run.engine.count("list") > 1):
                await asyncio.Event().wait()

        before = asyncio.all_tasks()
        run = Run(objects(100), page_size=10, hook=hold)
        task = asyncio.create_task(run())
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before

    @pytest.mark.parametrize("rounds", range(0, 60, 7))
    async def test_cancelled_at_any_moment_the_listing_is_closed(self, rounds: int) -> None:
        before, closed = asyncio.all_tasks(), list[bool]()
        run = Run(objects(100), page_size=7, hook=lingers)
        inner = run.listing

        async def listing() -> AsyncGenerator[list[Listed], None]:
            try:
                async with aclosing(inner()) as steps:
                    async for page in steps:
                        yield page
            finally:
                closed.append(True)

        run.listing = listing  # type: ignore[method-assign]
        task = asyncio.create_task(run())
        await settle(rounds + 3)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == before
        assert closed in ([True], [])  # not even begun, or closed

    async def test_error_that_dooms_the_run_is_raised_as_itself(self) -> None:
        async def doom(action: str, key: str) -> None:
            await lingers(action, key)
            if key == "k00050":
                raise CallFailed("GetObjectAcl", "ExpiredToken", 400)

        before = asyncio.all_tasks()
        run = Run(objects(200), hook=doom)
        with pytest.raises(CredentialsError, match="expired"):
            await run()
        assert asyncio.all_tasks() == before
        assert run.keys == keys(200)[: len(run.keys)]
        assert len(run.keys) <= 50

    async def test_listing_that_breaks_off_is_raised_as_itself(self) -> None:
        async def break_off(action: str, key: str) -> None:
            if action == "list" and run.engine.count("list") == 3:
                raise CallFailed("ListObjectsV2", "AccessDenied", 403)

        run = Run(objects(200), page_size=10, hook=break_off)
        with pytest.raises(BucketError, match="AccessDenied"):
            await run()

    async def test_stop_in_the_middle_of_a_page_finishes_what_is_in_flight(self) -> None:
        run = Run(objects(300), page_size=100, hook=lingers)

        def stop() -> None:
            if len(run.done) >= 20:
                run.stop.set("enough")

        run.after = stop
        assert await run() is False
        assert 20 <= len(run.done) < 100
        assert run.keys == keys(300)[: len(run.done)]
        assert run.engine.count("acl") == run.engine.count("head") == len(run.done)

    async def test_stop_while_waiting_for_a_page(self) -> None:
        async def hold(action: str, key: str) -> None:
            if action == "list" and run.engine.count("list") == 2:
                await asyncio.Event().wait()

        before = asyncio.all_tasks()
        run = Run(objects(30), page_size=10, hook=hold)
        task = asyncio.create_task(run())
        await settle()
        run.stop.set("enough")
        assert await task is False
        assert run.keys == keys(10)
        assert asyncio.all_tasks() == before


def versions_of(count: int, each: int) -> list[Entry]:
    """For each key a delete marker and so many versions."""
    entries: list[Entry] = []
    for key in keys(count):
        entries += [key, *(ref(key, f"v{number}") for number in range(each))]
    return entries


class TestVersions:
    @pytest.mark.parametrize("page_size", [2, 3, 4, 5, 6])
    async def test_stop_never_parts_the_versions_of_a_key(self, page_size: int) -> None:
        run = Run(versions_of(40, 3), page_size=page_size, versions=True, hook=lingers)

        def stop() -> None:
            if len(run.evidence) >= 20:
                run.stop.set("enough")

        run.after = stop
        assert await run() is False
        assert 20 <= len(run.evidence) < 120
        whole = len(run.evidence) // 3
        assert [(item.ref.key, item.ref.version_id) for item in run.evidence] == [
            (key, f"v{number}") for key in keys(whole) for number in range(3)
        ]

    async def test_nor_does_a_stop_while_waiting_for_the_page_with_the_rest(self) -> None:
        begun = asyncio.Event()

        async def stop(action: str, key: str) -> None:
            if action == "list" and run.engine.count("list") == 2:
                await begun.wait()
                run.stop.set("enough")
                await asyncio.sleep(0)
            elif action == "head":
                begun.set()

        run = Run(versions_of(2, 3), page_size=2, versions=True, hook=stop)
        assert await run() is False
        assert [item.ref.version_id for item in run.evidence] == ["v0", "v1", "v2"]

    @pytest.mark.parametrize("max_calls", range(8, 40, 3))
    async def test_nor_does_the_end_of_the_budget(self, max_calls: int) -> None:
        run = Run(versions_of(40, 3), page_size=2, versions=True, max_calls=max_calls)
        assert await run() is False
        assert len(run.evidence) % 3 == 0

    async def test_each_delete_marker_counts_once(self) -> None:
        for page_size in range(1, 9):
            run = Run([*versions_of(10, 2), "z", "z"], page_size=page_size, versions=True)
            assert await run() is True
            assert sum(item.step.delete_markers for item in run.done) == 12
            assert len(run.evidence) == 20

    async def test_delete_markers_alone_are_handed_on_as_steps(self) -> None:
        run = Run(["a", "b", "c"], versions=True)
        assert await run() is True
        assert [(item.step.key, item.evidence) for item in run.done] == [("a", None), ("b", None), ("c", None)]


class TestBudget:
    @pytest.mark.parametrize("ask", [BOTH, ACL_ONLY])
    @pytest.mark.parametrize("max_calls", range(1, 60, 2))
    async def test_never_one_call_too_many_and_no_object_half_read(self, max_calls: int, ask: Ask) -> None:
        run = Run(objects(100), page_size=5, max_calls=max_calls, ask=ask, hook=lingers)
        assert await run() is False
        assert len(run.engine.asked) <= max_calls
        assert (run.stop.reason or "").removesuffix(" (MaxCalls)") == "the limit of --max-calls was reached"
        assert [item.outcome for item in run.evidence] == [Outcome.AUDITED] * len(run.evidence)
        assert run.keys == keys(100)[: len(run.keys)]
        assert len(run.engine.asked) > max_calls - 10  # what objects in flight might have needed is left over

    async def test_budget_that_is_enough_is_no_stop(self) -> None:
        run = Run(objects(10), page_size=5, max_calls=22)
        assert await run() is True
        assert len(run.engine.asked) == 22

    async def test_budget_that_retries_use_up_leaves_objects_undecided(self) -> None:
        async def slow(action: str, key: str) -> None:
            if action == "acl":
                raise CallFailed("GetObjectAcl", "SlowDown", 503)

        run = Run(objects(10), max_calls=12, hook=slow, ask=ACL_ONLY)
        assert await run() is False
        assert len(run.engine.asked) == 12
        assert {item.acl for item in run.evidence} <= {
            Unread("GetObjectAcl", "MaxCalls"),
            Unread("GetObjectAcl", "SlowDown"),
        }


async def read_one(
    hook: Hook, *, ask: Ask = BOTH, version_id: str | None = None, algorithms: tuple[str, ...] = ()
) -> tuple[Evidence, MemoryEngine]:
    found = replace(ref("k", version_id), checksum_algorithms=algorithms)
    reader, engine, _ = make_reader(hook, ask, entries=[found])
    return await reader.read(found), engine


def make_reader(
    hook: Hook, ask: Ask = BOTH, time: FakeTime | None = None, entries: Sequence[Entry] = (ref("k"),)
) -> tuple[ObjectReader, MemoryEngine, Caller]:
    engine = MemoryEngine(entries, hook=hook)
    caller = make_caller(time, retry=RetryPolicy(3))
    return ObjectReader(engine, caller, ask, ("sha256",)), engine, caller


def refuse(**codes: tuple[str, int]) -> Hook:
    """Fails the calls named, with code and status."""
    actions = {"acl": "GetObjectAcl", "head": "HeadObject", "list": "ListObjectsV2"}

    async def hook(action: str, key: str) -> None:
        if action in codes:
            code, status = codes[action]
            raise CallFailed(actions[action], code, status)

    return hook


class TestReader:
    async def test_everything_read(self) -> None:
        evidence, engine = await read_one(refuse())
        assert isinstance(evidence.acl, Acl)
        assert evidence.head == HEAD
        assert evidence.outcome is Outcome.AUDITED
        assert [action for action, _ in engine.asked] == ["acl", "head"]

    async def test_equal_acls_are_held_but_once(self) -> None:
        grant = Grant(OWNER, "READ")
        reader, engine, _ = make_reader(refuse())
        acls = [Acl(owner, (grant,)) for owner in (OWNER, OWNER, "other")]
        refs = [engine.put(key, acl=acl) for key, acl in zip("abc", acls, strict=True)]
        found = [(await reader.read(ref)).acl for ref in refs]
        assert found == acls
        assert found[0] is found[1]

    async def test_denied_acl_does_not_keep_head_from_being_read(self) -> None:
        evidence, _ = await read_one(refuse(acl=("AccessDenied", 403)))
        assert evidence.acl == Unread("GetObjectAcl", "AccessDenied")
        assert isinstance(evidence.head, Head)
        assert evidence.outcome is Outcome.UNDECIDED

    async def test_denied_head(self) -> None:
        evidence, _ = await read_one(refuse(head=("403", 403)))
        assert evidence.head == Unread("HeadObject", "403")
        assert evidence.outcome is Outcome.UNDECIDED

    @pytest.mark.parametrize("codes", [{"acl": ("NoSuchKey", 404)}, {"head": ("404", 404)}, {"acl": ("404", 404)}])
    async def test_gone_since_it_was_listed(self, codes: dict[str, tuple[str, int]]) -> None:
        evidence, _ = await read_one(refuse(**codes))
        assert (evidence.ref, evidence.outcome) == (ref("k"), Outcome.VANISHED)
        assert evidence.acl == evidence.head == Skipped("the object was gone")

    @pytest.mark.parametrize(
        ("codes", "outcome"),
        [
            ({"acl": ("NoSuchVersion", 404)}, Outcome.VANISHED),
            ({"acl": ("MethodNotAllowed", 405), "head": ("405", 405)}, Outcome.VANISHED),
            ({"acl": ("MethodNotAllowed", 405)}, Outcome.UNDECIDED),
            ({"head": ("405", 405)}, Outcome.VANISHED),
        ],
    )
    async def test_version_that_is_a_delete_marker_now(
        self, codes: dict[str, tuple[str, int]], outcome: Outcome
    ) -> None:
        evidence, _ = await read_one(refuse(**codes), version_id="v1")
        assert evidence.outcome is outcome

    async def test_server_without_acls_of_objects_is_asked_once_and_the_stand_in_counts(self) -> None:
        engine = MemoryEngine([ref("a"), ref("b")], hook=refuse(acl=("NotImplemented", 501)))
        acl = Acl(OWNER, (Grant(ALL_USERS, "READ"),))
        reader = ObjectReader(engine, make_caller(), ACL_ONLY, (), acl)
        assert [(await reader.read(ref(key))).acl for key in "ab"] == [acl, acl]
        assert reader.lacks_acls
        assert engine.count("acl") == 1

    @pytest.mark.parametrize("refusal", [("AccessDenied", 403), ("MethodNotAllowed", 405), ("InternalError", 500)])
    async def test_another_refusal_does_not_make_the_stand_in_count(self, refusal: tuple[str, int]) -> None:
        engine = MemoryEngine([ref("a")], hook=refuse(acl=refusal))
        reader = ObjectReader(engine, make_caller(), ACL_ONLY, (), Acl(OWNER, ()))
        assert (await reader.read(ref("a"))).acl == Unread("GetObjectAcl", refusal[0])
        assert not reader.lacks_acls

    async def test_at_aws_no_acl_stands_in(self) -> None:
        evidence, _ = await read_one(refuse(acl=("NotImplemented", 501)))
        assert evidence.acl == Unread("GetObjectAcl", "NotImplemented")

    @pytest.mark.parametrize(
        ("facts", "acl"),
        [
            ({"semantics": Semantics.OTHER, "acl": Acl("o", ())}, Acl("o", ())),
            ({"semantics": Semantics.OTHER, "acl": Unread("GetBucketAcl", "AccessDenied")}, None),
            ({"semantics": Semantics.OTHER, "owner": "o", "lacking": ("GetBucketAcl",)}, Acl("o", ())),
            ({"semantics": Semantics.OTHER, "lacking": ("GetBucketAcl",)}, Acl("", ())),
            ({"semantics": Semantics.CEPH, "acl": Acl("o", ())}, None),
            ({"semantics": Semantics.AWS, "acl": Acl("o", ())}, None),
        ],
    )
    def test_the_stand_in_is_the_buckets_acl(self, facts: dict[str, Any], acl: Acl | None) -> None:
        assert stand_in(BucketFacts(bucket="b", **facts)) == acl

    async def test_405_without_a_version_is_a_server_without_acls(self) -> None:
        evidence, _ = await read_one(refuse(acl=("MethodNotAllowed", 405)))
        assert evidence.acl == Unread("GetObjectAcl", "MethodNotAllowed")
        assert evidence.outcome is Outcome.UNDECIDED
        evidence, _ = await read_one(refuse(head=("405", 405)))
        assert evidence.unread == (Unread("HeadObject", "405"),)

    @pytest.mark.parametrize(("marker", "outcome"), [("true", Outcome.VANISHED), ("false", Outcome.UNDECIDED)])
    async def test_405_that_names_a_delete_marker(self, marker: str, outcome: Outcome) -> None:
        async def hook(action: str, key: str) -> None:
            raise CallFailed("GetObjectAcl", "MethodNotAllowed", 405, headers={"x-amz-delete-marker": marker})

        evidence, _ = await read_one(hook, ask=ACL_ONLY, version_id="v1")
        assert evidence.outcome is outcome

    async def test_throttled_to_the_end_is_undecided(self) -> None:
        evidence, engine = await read_one(refuse(head=("503", 503)))
        assert evidence.head == Unread("HeadObject", "503")
        assert engine.count("head") == 3

    async def test_customers_key_when_the_acl_was_read(self) -> None:
        evidence, engine = await read_one(refuse(head=("400", 400)))
        assert evidence.head == Unread("HeadObject", "SSE-C")
        assert engine.asked == [("acl", "k"), ("head", "k"), ("acl", "k")]  # the ACL proves it, for less than a listing

    async def test_customers_key_when_the_acl_was_not_asked_is_proved_by_a_call_with_a_body(self) -> None:
        reader, engine, caller = make_reader(refuse(head=("400", 400)), HEAD_ONLY)
        evidence = await reader.read(ref("k"))
        assert evidence.head == Unread("HeadObject", "SSE-C")
        assert (engine.count("list"), dict(caller.counts)) == (1, {"head": 1, "list": 1})

    async def test_one_proof_speaks_for_all_that_were_refused_before_it(self) -> None:
        refs = [ref(f"k{number}") for number in range(20)]
        reader, engine, _ = make_reader(refuse(head=("400", 400)), HEAD_ONLY, entries=refs)
        read = await asyncio.gather(*map(reader.read, refs))
        assert {evidence.head for evidence in read} == {Unread("HeadObject", "SSE-C")}
        assert engine.count("list") == 1

    async def test_a_refusal_after_the_proof_asks_for_another(self) -> None:
        time = FakeTime()
        reader, engine, _ = make_reader(refuse(head=("400", 400)), HEAD_ONLY, time=time)
        await reader.read(ref("before"))
        time.now += 1
        await reader.read(ref("after"))
        assert engine.count("list") == 2

    async def test_expired_credentials_end_a_run_that_only_asks_head(self) -> None:
        reader, _, _ = make_reader(refuse(head=("400", 400), list=("ExpiredToken", 400)), HEAD_ONLY)
        with pytest.raises(CredentialsError, match="expired"):
            await reader.read(ref("k"))

    @pytest.mark.parametrize("ask", [BOTH, HEAD_ONLY], ids=["both", "head-only"])
    async def test_400_of_credentials_that_were_renewed_is_not_called_sse_c(self, ask: Ask) -> None:
        expired = refuse(head=("400", 400), acl=(CREDENTIALS_RENEWED, 400), list=(CREDENTIALS_RENEWED, 400))
        refused: set[str] = set()

        async def hook(action: str, key: str) -> None:
            before_expiry = action == "acl" and not refused
            if not before_expiry and "list" not in refused and "acl" not in refused:
                refused.add(action)
                await expired(action, key)

        evidence, engine = await read_one(hook, ask=ask)
        assert evidence.head == HEAD
        assert engine.count("head") == 2

    async def test_bucket_that_is_gone_ends_a_run_that_only_asks_head(self) -> None:
        reader, _, _ = make_reader(refuse(head=("404", 404), list=("NoSuchBucket", 404)), HEAD_ONLY)
        with pytest.raises(BucketError, match="no bucket"):
            await reader.read(ref("k"))

    async def test_object_that_is_gone_from_a_bucket_that_answers_has_vanished(self) -> None:
        for ask, proofs in ((HEAD_ONLY, 1), (BOTH, 0)):  # an ACL that was read proves it already
            evidence, engine = await read_one(refuse(head=("404", 404)), ask=ask)
            assert evidence.outcome is Outcome.VANISHED
            assert engine.count("list") == proofs

    @pytest.mark.parametrize("code", [("AccessDenied", 403), ("SlowDown", 503)])
    async def test_proof_that_fails_leaves_the_400_as_it_is(self, code: tuple[str, int]) -> None:
        evidence, _ = await read_one(refuse(head=("400", 400), list=code), ask=HEAD_ONLY)
        assert evidence.head == Unread("HeadObject", "400")

    async def test_proof_that_failed_is_asked_for_again_by_the_next_refusal(self) -> None:
        reader, engine, _ = make_reader(refuse(head=("400", 400), list=("AccessDenied", 403)), HEAD_ONLY)
        for _ in range(2):
            assert (await reader.read(ref("k"))).head == Unread("HeadObject", "400")
        assert engine.count("list") == 2

    async def test_400_after_renewed_credentials_beside_an_acl_that_was_denied_is_not_called_sse_c(self) -> None:
        async def hook(action: str, key: str) -> None:
            if action == "list" and engine.count("list") == 1:
                raise CallFailed("ListObjectsV2", CREDENTIALS_RENEWED, 400)
            await refuse(acl=("AccessDenied", 403), head=("400", 400))(action, key)

        reader, engine, _ = make_reader(hook)
        evidence = await reader.read(ref("k"))
        assert evidence.unread == (Unread("GetObjectAcl", "AccessDenied"), Unread("HeadObject", "400"))
        assert engine.count("head") == 2

    async def test_400_beside_an_acl_that_was_denied_is_not_called_sse_c(self) -> None:
        evidence, _ = await read_one(refuse(acl=("AccessDenied", 403), head=("400", 400)))
        assert evidence.unread == (Unread("GetObjectAcl", "AccessDenied"), Unread("HeadObject", "400"))

    async def test_overwritten_since_it_was_listed_has_heads_values(self) -> None:
        reader, engine, _ = make_reader(refuse())
        stored = engine.find("k")
        assert stored is not None
        stored.head = Head(
            "new", 9, last_modified="2027-01-01T00:00:00Z", storage_class="GLACIER", checksum_type="FULL_OBJECT"
        )
        listed = replace(
            ref("k"), checksum_algorithms=("SHA256",), checksum_type="COMPOSITE", storage_class="STANDARD_IA"
        )
        evidence = await reader.read(listed)
        assert evidence.changed
        assert evidence.ref == ObjectRef(
            "k", "new", 9, "2027-01-01T00:00:00Z", storage_class="GLACIER", owner=OWNER, checksum_type="FULL_OBJECT"
        )
        assert evidence.outcome is Outcome.AUDITED
        stored.head = Head(etag="new", content_length=9)
        evidence = await reader.read(listed)
        assert (evidence.ref.last_modified, evidence.ref.storage_class) == (listed.last_modified, "STANDARD")

    async def test_owner_is_asked_of_the_acl_where_the_listing_names_none(self) -> None:
        ask = Ask(Skipped("not needed"), Skipped("not needed"), acl_for_owner=True)
        reader, engine, _ = make_reader(refuse(), ask)
        await reader.read(ref("k"))
        assert engine.count("acl") == 0
        evidence = await reader.read(ref("k", owner=None))
        assert engine.count("acl") == 1
        assert isinstance(evidence.owner, str)


class TestChecksums:
    """ChecksumMode needs kms:Decrypt where the object is encrypted with KMS."""

    async def test_asked_only_where_the_listing_names_a_wanted_algorithm(self) -> None:
        for algorithms, asked in (((), False), (("CRC32",), False), (("CRC32", "SHA256"), True)):
            _, engine = await read_one(refuse(), algorithms=algorithms)
            assert engine.checksums == [asked]

    async def test_403_that_goes_away_without_it_and_the_run_stops_asking(self) -> None:
        reader, engine, _ = make_reader(refuse())

        async def no_decrypt(action: str, key: str) -> None:
            if action == "head" and engine.checksums[-1]:
                raise CallFailed("HeadObject", "403", 403)

        engine.hook = no_decrypt
        wanted = replace(ref("k"), checksum_algorithms=("SHA256",))
        first, second = await reader.read(wanted), await reader.read(wanted)
        assert first.head == second.head == HEAD
        assert engine.checksums == [True, False, False]

    async def test_403_that_stays_is_denied_and_the_run_goes_on_asking(self) -> None:
        reader, engine, _ = make_reader(refuse(head=("403", 403)))
        wanted = replace(ref("k"), checksum_algorithms=("SHA256",))
        evidence = await reader.read(wanted)
        assert evidence.head == Unread("HeadObject", "403")
        await reader.read(wanted)
        assert engine.checksums == [True, False, True, False]
