"""Gather: bounded, in order, and clean after every kind of interruption."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.aws.failures import CREDENTIALS_RENEWED
from auditor.errors import BucketError, CallFailed, CredentialsError
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import ALL_USERS, Acl, Ask, Evidence, Grant, Head, ObjectRef, Outcome, Skipped, Unread
from auditor.model.target import Target
from auditor.s3.calls import Caller, ConcurrencyLimit, RetryPolicy
from auditor.s3.gather import Gathered, gather, stand_in
from auditor.s3.listing import Listed, pages
from auditor.s3.object_reader import ObjectReader
from tests.conformance.memory import OWNER, Entry, Hook, MemoryEngine
from tests.support.fakes.caller import FakeTime, make_caller, ref
from tests.support.loop_blocking import free_loop as free_loop

BOTH: Final = Ask()
HEAD: Final = Head(etag="etag of k", content_length=1)
ACL_ONLY: Final = Ask(None, Skipped("not needed"))
HEAD_ONLY: Final = Ask(Skipped("not needed"), None)


class Run:
    """One gathering over an engine in memory. done: the results that the sink has."""

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        page_size: int = 1000,
        hook: Hook | None = None,
        ask: Ask = BOTH,
        max_calls: int | None = None,
        versions: bool = False,
    ) -> None:
        self.engine = MemoryEngine(entries, page_size=page_size)
        if hook is not None:
            self.engine.hook = hook
        self.caller = make_caller(permits=ConcurrencyLimit(4), max_calls=max_calls)
        self.stop = Stop()
        self.done: list[Gathered] = []
        self._ask = ask
        self._target = Target("audited", versions=versions)

    @property
    def keys(self) -> list[str]:
        return [item.step.key for item in self.done]

    @property
    def evidence(self) -> list[Evidence]:
        return [item.evidence for item in self.done if item.evidence is not None]

    async def sink(self, batch: list[Gathered]) -> None:
        self.done += batch
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
        )


def keys(count: int) -> list[str]:
    return [f"k{number:05d}" for number in range(count)]


def objects(count: int) -> list[Entry]:
    return [ref(key) for key in keys(count)]


async def lingers(action: str, key: str) -> None:
    """Let answers arrive in another order than the calls."""
    for _ in range(random.Random(f"{action}{key}").randrange(8)):
        await asyncio.sleep(0)


def versions_of(count: int, each: int) -> list[Entry]:
    """For each key a delete marker and so many versions."""
    entries: list[Entry] = []
    for key in keys(count):
        entries += [key, *(ref(key, f"v{number}") for number in range(each))]
    return entries


class TestVersions:
    async def test_stop_while_waiting_for_the_page_with_the_rest_of_a_key_parts_no_versions(self) -> None:
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

    async def test_end_of_the_budget_parts_no_versions(self) -> None:
        for max_calls in range(8, 40, 3):
            run = Run(versions_of(40, 3), page_size=2, versions=True, max_calls=max_calls)
            assert await run() is False
            assert len(run.evidence) % 3 == 0, max_calls


class TestBudget:
    @pytest.mark.parametrize("ask", [BOTH, ACL_ONLY], ids=["both", "acl-only"])
    async def test_never_one_call_too_many_and_no_object_half_read(self, ask: Ask) -> None:
        for most in range(1, 60, 2):
            run = Run(objects(100), page_size=5, max_calls=most, ask=ask, hook=lingers)
            assert await run() is False
            # The calls that objects in flight might have needed are left over.
            assert most - 10 < len(run.engine.asked) <= most
            assert (run.stop.reason or "").removesuffix(" (MaxCalls)") == "the limit of --max-calls was reached"
            assert [item.outcome for item in run.evidence] == [Outcome.AUDITED] * len(run.evidence)
            assert run.keys == keys(100)[: len(run.keys)]

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


DENIED: Final = ("AccessDenied", 403)
NO_METHOD: Final = ("MethodNotAllowed", 405)
BAD: Final = ("400", 400)
REFUSALS: Final[dict[str, tuple[Ask, str | None, dict[str, tuple[str, int]], tuple[str, str, str, str]]]] = {
    "none": (BOTH, None, {}, ("read", "read", "audited", "acl head")),
    "the ACL": (BOTH, None, {"acl": DENIED}, ("AccessDenied", "read", "undecided", "acl head")),
    "the HEAD": (BOTH, None, {"head": ("403", 403)}, ("read", "403", "undecided", "acl head")),
    "throttled": (HEAD_ONLY, None, {"head": ("503", 503)}, ("", "503", "undecided", "head head head")),
    "no key": (BOTH, None, {"acl": ("NoSuchKey", 404)}, ("", "", "vanished", "acl")),
    "no key, without a code": (BOTH, None, {"acl": ("404", 404)}, ("", "", "vanished", "acl")),
    "no key at the HEAD, after an ACL": (BOTH, None, {"head": ("404", 404)}, ("", "", "vanished", "acl head")),
    "no key at the HEAD alone": (HEAD_ONLY, None, {"head": ("404", 404)}, ("", "", "vanished", "head list")),
    "no version": (BOTH, "v1", {"acl": ("NoSuchVersion", 404)}, ("", "", "vanished", "acl")),
    "a delete marker": (BOTH, "v1", {"acl": NO_METHOD, "head": ("405", 405)}, ("", "", "vanished", "acl head")),
    "a delete marker at the HEAD": (BOTH, "v1", {"head": ("405", 405)}, ("", "", "vanished", "acl head")),
    "no ACLs of versions": (BOTH, "v1", {"acl": NO_METHOD}, ("MethodNotAllowed", "read", "undecided", "acl head")),
    "no ACLs": (BOTH, None, {"acl": NO_METHOD}, ("MethodNotAllowed", "read", "undecided", "acl head")),
    "at AWS": (BOTH, None, {"acl": ("NotImplemented", 501)}, ("NotImplemented", "read", "undecided", "acl head")),
    "no HEAD": (BOTH, None, {"head": ("405", 405)}, ("read", "405", "undecided", "acl head")),
    # Another ACL proves a customer's key for less than a listing, which serves where no ACL is asked for.
    "a customer's key": (BOTH, None, {"head": BAD}, ("read", "SSE-C", "undecided", "acl head acl")),
    "a customer's key, HEAD alone": (HEAD_ONLY, None, {"head": BAD}, ("", "SSE-C", "undecided", "head list")),
    "nothing proves it": (HEAD_ONLY, None, {"head": BAD, "list": DENIED}, ("", "400", "undecided", "head list")),
    "a throttled listing does not": (
        HEAD_ONLY,
        None,
        {"head": BAD, "list": ("SlowDown", 503)},
        ("", "400", "undecided", "head list list list"),
    ),
    "ACL denied": (BOTH, None, {"acl": DENIED, "head": BAD}, ("AccessDenied", "400", "undecided", "acl head list")),
}
"""By refusal: the facts asked for, the version, the refused calls; the codes of both facts, the outcome, the calls."""


class TestReader:
    async def test_facts_that_each_refusal_leaves(self) -> None:
        failures = {}
        for name, (ask, version_id, codes, expected) in REFUSALS.items():
            evidence, engine = await read_one(refuse(**codes), ask=ask, version_id=version_id)
            acl, head = (
                fact.code if isinstance(fact, Unread) else "" if isinstance(fact, Skipped) else "read"
                for fact in (evidence.acl, evidence.head)
            )
            calls = " ".join(action for action, _ in engine.asked)
            if (acl, head, evidence.outcome.value, calls) != expected:
                failures[name] = (acl, head, evidence.outcome.value, calls)
            if evidence.outcome is Outcome.VANISHED:
                assert evidence.acl == evidence.head == Skipped("the object was gone")
        assert not failures, failures

    async def test_equal_acls_are_held_but_once(self) -> None:
        grant = Grant(OWNER, "READ")
        reader, engine, _ = make_reader(refuse())
        acls = [Acl(owner, (grant,)) for owner in (OWNER, OWNER, "other")]
        refs = [engine.put(key, acl=acl) for key, acl in zip("abc", acls, strict=True)]
        found = [(await reader.read(ref)).acl for ref in refs]
        assert found == acls
        assert found[0] is found[1]

    async def test_server_without_acls_of_objects_is_asked_once_and_the_stand_in_counts(self) -> None:
        engine = MemoryEngine([ref("a"), ref("b")], hook=refuse(acl=("NotImplemented", 501)))
        acl = Acl(OWNER, (Grant(ALL_USERS, "READ"),))
        reader = ObjectReader(engine, make_caller(), ACL_ONLY, (), acl)
        assert [(await reader.read(ref(key))).acl for key in "ab"] == [acl, acl]
        assert reader.lacks_acls
        assert engine.count("acl") == 1
        for refusal in (("AccessDenied", 403), ("MethodNotAllowed", 405), ("InternalError", 500)):
            engine.hook = refuse(acl=refusal)
            reader = ObjectReader(engine, make_caller(), ACL_ONLY, (), acl)
            assert (await reader.read(ref("a"))).acl == Unread("GetObjectAcl", refusal[0])
            assert not reader.lacks_acls

    def test_the_stand_in_is_the_buckets_acl(self) -> None:
        lacking, denied = ("GetBucketAcl",), Unread("GetBucketAcl", "AccessDenied")
        for acl, facts in (
            (Acl("o", ()), BucketFacts(bucket="b", semantics=Semantics.OTHER, acl=Acl("o", ()))),
            (None, BucketFacts(bucket="b", semantics=Semantics.OTHER, acl=denied)),
            (Acl("o", ()), BucketFacts(bucket="b", semantics=Semantics.OTHER, owner="o", lacking=lacking)),
            (Acl("", ()), BucketFacts(bucket="b", semantics=Semantics.OTHER, lacking=lacking)),
            (None, BucketFacts(bucket="b", semantics=Semantics.CEPH, acl=Acl("o", ()))),
            (None, BucketFacts(bucket="b", semantics=Semantics.AWS, acl=Acl("o", ()))),
        ):
            assert stand_in(facts) == acl

    @pytest.mark.parametrize(("marker", "outcome"), [("true", Outcome.VANISHED), ("false", Outcome.UNDECIDED)])
    async def test_405_that_names_a_delete_marker(self, marker: str, outcome: Outcome) -> None:
        async def hook(action: str, key: str) -> None:
            raise CallFailed("GetObjectAcl", "MethodNotAllowed", 405, headers={"x-amz-delete-marker": marker})

        evidence, _ = await read_one(hook, ask=ACL_ONLY, version_id="v1")
        assert evidence.outcome is outcome

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

    async def test_expired_credentials_and_a_bucket_that_is_gone_end_a_run_that_only_asks_head(self) -> None:
        for head, listing, error, words in (
            (BAD, ("ExpiredToken", 400), CredentialsError, "expired"),
            (("404", 404), ("NoSuchBucket", 404), BucketError, "no bucket"),
        ):
            reader, _, _ = make_reader(refuse(head=head, list=listing), HEAD_ONLY)
            with pytest.raises(error, match=words):
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
