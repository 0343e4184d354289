"""Facts of an earlier source: they save exactly their calls, and never cover an object that was written again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.errors import CallFailed
from auditor.model.object import Acl, Ask, Evidence, FactSource, Grant, Head, ObjectRef, ReadAt, Skipped, Unread
from auditor.model.reuse import NO_PRIOR, Prior
from auditor.s3.calls import RetryPolicy
from auditor.s3.gather import Gathered, gather
from auditor.s3.key_policies import KeyPolicies
from auditor.s3.listing import Listed
from auditor.s3.object_reader import ObjectReader
from tests.conformance.memory import MODIFIED, OWNER, Hook, MemoryEngine
from tests.support.fakes.caller import make_caller

BOTH: Final = Ask()
NOT_NEEDED: Final = Skipped("no selected rule needs it")
EARLIER: Final = "2026-02-01T00:00:00Z"
BEFORE: Final = "2026-01-31T00:00:00Z"
PUBLIC: Final = Acl(OWNER, (Grant("http://acs.amazonaws.com/groups/global/AllUsers", "READ"),))


async def unhindered(action: str, key: str) -> None:
    """Answer every call."""


def refuse(action: str, code: str, status: int) -> Hook:
    names = {"acl": "GetObjectAcl", "head": "HeadObject", "list": "ListObjectsV2"}

    async def hook(asked: str, key: str) -> None:
        if asked == action:
            raise CallFailed(names[action], code, status)

    return hook


class World:
    """One object "k" in memory, and a reader of it. seen: the object as it is listed."""

    def __init__(
        self,
        hook: Hook = unhindered,
        ask: Ask = BOTH,
        *,
        stand_in: Acl | None = None,
        keys: Mapping[str, str] | None = None,
        algorithms: Sequence[str] = ("sha256",),
        **members: Any,
    ) -> None:
        self.engine = MemoryEngine(hook=hook)
        self.seen: ObjectRef = self.engine.put("k", b"x", **members)
        self.caller = make_caller(retry=RetryPolicy(1))
        self.policies: list[str] = []
        policies = None if keys is None else KeyPolicies(self.caller, self._policy, keys)
        self.reader = ObjectReader(self.engine, self.caller, ask, algorithms, stand_in, policies)

    async def _policy(self, key: str) -> str:
        self.policies.append(key)
        return '{"Statement": []}'

    @property
    def head(self) -> Head:
        found = self.engine.find("k")
        assert found is not None
        return found.head

    @property
    def acl(self) -> Acl:
        found = self.engine.find("k")
        assert found is not None
        return found.acl

    @property
    def whole(self) -> Prior:
        """All facts of the object, as earlier runs read them."""
        return Prior(acl=self.acl, acl_at=EARLIER, head=self.head, head_at=BEFORE)

    async def read(self, prior: Prior) -> tuple[Evidence, list[str]]:
        """Return the evidence, and the calls that it took."""
        evidence = await self.reader.read(self.seen, prior)
        return evidence, [action for action, _ in self.engine.asked]


@pytest.mark.parametrize(
    ("has_acl", "has_head", "calls"),
    [(True, True, []), (True, False, ["head"]), (False, True, ["acl"]), (False, False, ["acl", "head"])],
)
async def test_exactly_the_calls_of_facts_that_are_lacking(has_acl: bool, has_head: bool, calls: list[str]) -> None:
    world = World()
    whole = world.whole
    prior = replace(whole, acl=whole.acl if has_acl else None, head=whole.head if has_head else None)
    known = world.reader.known(world.seen, prior)
    evidence, asked = await world.read(prior)
    assert asked == calls
    assert known == (evidence if not calls else None)
    assert (evidence.acl, evidence.head) == (whole.acl, whole.head)
    kept = ReadAt(
        EARLIER if has_acl else None,
        BEFORE if has_head else None,
        FactSource.RUN if has_acl else None,
        FactSource.RUN if has_head else None,
    )
    assert evidence.read_at == (kept if kept != ReadAt() else None)


async def test_source_and_time_of_each_fact_are_carried_on() -> None:
    world = World()
    evidence, _ = await world.read(replace(world.whole, head_from=FactSource.INVENTORY))
    assert evidence.read_at == ReadAt(EARLIER, BEFORE, FactSource.RUN, FactSource.INVENTORY)


async def test_a_fact_that_the_run_does_not_ask_for_is_not_used() -> None:
    world = World(ask=Ask(NOT_NEEDED, NOT_NEEDED))
    prior = replace(world.whole, acl=PUBLIC)
    evidence, asked = await world.read(prior)
    assert (evidence.acl, evidence.head, evidence.read_at, asked) == (NOT_NEEDED, NOT_NEEDED, None, [])
    assert world.reader.known(world.seen, prior) == evidence


async def test_owner_that_the_listing_does_not_name_comes_from_the_earlier_acl() -> None:
    world = World(ask=Ask(NOT_NEEDED, NOT_NEEDED, acl_for_owner=True))
    world.seen = replace(world.seen, owner=None)
    evidence, asked = await world.read(world.whole)
    assert (evidence.owner, asked) == (OWNER, [])


async def test_head_that_shows_other_bytes_voids_the_earlier_acl() -> None:
    world = World()
    prior = replace(world.whole, head=None)
    world.engine.put("k", b"newer", acl=PUBLIC)
    evidence, asked = await world.read(prior)
    assert (evidence.acl, evidence.changed, evidence.read_at) == (PUBLIC, True, None)
    assert asked == ["head", "acl"]


async def test_head_that_shows_the_same_bytes_written_again_voids_the_earlier_acl() -> None:
    world = World()
    prior = replace(world.whole, head=None)
    world.engine.put("k", b"x", acl=PUBLIC)
    found = world.engine.find("k")
    assert found is not None
    found.head = replace(found.head, last_modified="2026-03-01T00:00:00Z")
    evidence, asked = await world.read(prior)
    assert (evidence.acl, evidence.read_at, asked) == (PUBLIC, None, ["head", "acl"])


async def test_earlier_head_of_other_bytes_is_not_used() -> None:
    world = World()
    other = replace(world.head, etag="another", content_type="text/html")
    evidence, asked = await world.read(replace(world.whole, head=other))
    assert (evidence.head, asked) == (world.head, ["head"])


async def test_denied_call_for_the_lacking_fact_leaves_the_object_undecided() -> None:
    world = World(refuse("head", "403", 403))
    evidence, _ = await world.read(replace(world.whole, head=None))
    assert evidence.head == Unread("HeadObject", "403")
    assert evidence.read_at == ReadAt(acl=EARLIER, acl_from=FactSource.RUN)


async def test_earlier_acl_does_not_prove_that_a_head_without_an_object_means_a_gone_object() -> None:
    world = World(refuse("head", "404", 404))
    evidence, asked = await world.read(replace(world.whole, head=None))
    assert evidence.vanished
    assert asked == ["head", "list"]  # the bucket answers today


async def test_customers_key_behind_an_earlier_acl_is_proved_by_this_acl() -> None:
    world = World(refuse("head", "400", 400))
    evidence, asked = await world.read(replace(world.whole, head=None))
    assert evidence.head == Unread("HeadObject", "SSE-C")
    assert asked == ["head", "acl"]  # an ACL costs a twelfth of a listing
    assert evidence.read_at == ReadAt(acl=EARLIER, acl_from=FactSource.RUN)


async def test_customers_key_behind_an_earlier_acl_that_is_denied_today_is_proved_by_a_listing() -> None:
    async def hook(asked: str, key: str) -> None:
        if asked != "list":
            raise CallFailed("GetObjectAcl", "AccessDenied", 403) if asked == "acl" else CallFailed("Head", "400", 400)

    world = World(hook)
    evidence, asked = await world.read(replace(world.whole, head=None))
    assert evidence.head == Unread("HeadObject", "SSE-C")
    assert asked == ["head", "acl", "list"]


async def test_head_that_nothing_explains_behind_an_earlier_acl_is_not_called_sse_c() -> None:
    async def hook(asked: str, key: str) -> None:
        raise CallFailed("Any", "400" if asked == "head" else "AccessDenied", 400 if asked == "head" else 403)

    world = World(hook)
    evidence, _ = await world.read(replace(world.whole, head=None))
    assert evidence.head == Unread("HeadObject", "400")


async def test_no_acl_is_kept_where_the_acl_of_the_bucket_counts() -> None:
    world = World(stand_in=Acl(OWNER, ()))
    evidence, asked = await world.read(replace(world.whole, acl=PUBLIC))
    assert (evidence.acl, asked) == (world.acl, ["acl"])


@pytest.mark.parametrize(
    ("stored", "source", "asked"),
    [
        ("abc=", FactSource.RUN, []),
        (None, FactSource.RUN, ["head"]),
        (None, FactSource.INVENTORY, []),  # it never names a checksum
    ],
)
async def test_head_that_was_not_asked_for_a_wanted_checksum(
    stored: str | None, source: FactSource, asked: list[str]
) -> None:
    world = World(checksum_sha256="abc=")
    assert world.seen.checksum_algorithms == ("SHA256",)
    prior = replace(world.whole, head=replace(world.head, checksum_sha256=stored), head_from=source)
    assert (await world.read(prior))[1] == asked


async def test_policy_of_the_key_that_an_earlier_head_names_is_read() -> None:
    world = World(keys={}, sse_kms_key_id="key-1")
    assert world.reader.known(world.seen, world.whole) is None
    _, asked = await world.read(world.whole)
    assert (asked, world.policies) == ([], ["key-1"])
    assert world.reader.known(world.seen, world.whole) is not None


async def test_prior_of_a_step_reaches_the_reader() -> None:
    world = World()
    done: list[Gathered] = []

    async def steps() -> AsyncGenerator[list[Listed], None]:
        yield [Listed("k", world.seen, prior=replace(world.whole, acl=None)), Listed("k", world.seen)]

    async def sink(batch: list[Gathered]) -> None:
        done.extend(batch)

    assert await gather(steps(), world.reader, world.caller, Stop(), sink, calls_per_object=2)
    assert [action for action, _ in world.engine.asked].count("head") == 1
    assert [one.evidence.read_at for one in done if one.evidence] == [
        ReadAt(head=BEFORE, head_from=FactSource.RUN),
        None,
    ]


def test_nothing_known_is_not_known() -> None:
    world = World()
    assert world.reader.known(world.seen, NO_PRIOR) is None
    assert world.seen.last_modified == MODIFIED
