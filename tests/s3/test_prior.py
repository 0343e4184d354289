"""Facts of an earlier source: they save exactly their calls, and never cover an object that was written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from msgspec.structs import replace

from auditor.errors import CallFailed
from auditor.model.object import Acl, Ask, Evidence, FactOrigin, Grant, Head, ObjectRef, ReadAt, Skipped, Unread
from auditor.model.reuse import KnownFacts
from auditor.s3.calls import RetryPolicy
from auditor.s3.key_policies import KeyPolicies
from auditor.s3.object_reader import ObjectReader
from tests.conformance.memory import OWNER, Hook, MemoryEngine
from tests.support.fakes.caller import make_caller

BOTH: Final = Ask()
NOT_NEEDED: Final = Skipped("no selected rule needs it")
EARLIER: Final = "2026-02-01T00:00:00Z"
BEFORE: Final = "2026-01-31T00:00:00Z"
PUBLIC: Final = Acl(OWNER, (Grant("http://acs.amazonaws.com/groups/global/AllUsers", "READ"),))


async def unhindered(action: str, key: str) -> None:
    """Answer every call."""


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
    def whole(self) -> KnownFacts:
        """All facts of the object, as earlier runs read them."""
        return KnownFacts(acl=self.acl, acl_at=EARLIER, head=self.head, head_at=BEFORE)

    async def read(self, facts: KnownFacts) -> tuple[Evidence, list[str]]:
        """Return the evidence, and the calls that it took."""
        evidence = await self.reader.read(self.seen, facts)
        return evidence, [action for action, _ in self.engine.asked]


async def test_exactly_the_calls_of_facts_that_are_lacking() -> None:
    for has_acl, has_head, calls in (
        (True, True, []),
        (True, False, ["head"]),
        (False, True, ["acl"]),
        (False, False, ["acl", "head"]),
    ):
        world = World()
        whole = world.whole
        prior = replace(whole, acl=whole.acl if has_acl else None, head=whole.head if has_head else None)
        known = world.reader.known(world.seen, prior)
        evidence, asked = await world.read(prior)
        assert asked == calls
        assert known == (evidence if not calls else None)
        assert (evidence.acl, evidence.head) == (whole.acl, whole.head)
        run = FactOrigin.RUN
        kept = ReadAt(*((EARLIER, None, run, None) if has_acl else (None,) * 4))
        if has_head:
            kept = replace(kept, head=BEFORE, head_from=run)
        assert evidence.read_at == (kept if kept != ReadAt() else None)


async def test_source_and_time_of_each_fact_are_carried_on() -> None:
    world = World()
    evidence, _ = await world.read(replace(world.whole, head_from=FactOrigin.INVENTORY))
    assert evidence.read_at == ReadAt(EARLIER, BEFORE, FactOrigin.RUN, FactOrigin.INVENTORY)


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


@pytest.mark.parametrize("again", [False, True])
async def test_head_that_shows_an_object_written_since_voids_the_earlier_acl(again: bool) -> None:
    """Other bytes, or the same bytes written again."""
    world = World()
    prior = replace(world.whole, head=None)
    world.engine.put("k", b"x" if again else b"newer", acl=PUBLIC)
    found = world.engine.find("k")
    assert found is not None
    if again:
        found.head = replace(found.head, last_modified="2026-03-01T00:00:00Z")
    evidence, asked = await world.read(prior)
    assert (evidence.acl, evidence.read_at, asked) == (PUBLIC, None, ["head", "acl"])
    assert evidence.changed is not again


async def test_earlier_head_of_other_bytes_is_not_used() -> None:
    world = World()
    other = replace(world.head, etag="another", content_type="text/html")
    evidence, asked = await world.read(replace(world.whole, head=other))
    assert (evidence.head, asked) == (world.head, ["head"])


@pytest.mark.parametrize(
    ("refused", "code", "calls"),
    [
        ({"head": 403}, "403", ["head"]),
        ({"head": 404}, "", ["head", "list"]),  # the bucket answers today
        ({"head": 400}, "SSE-C", ["head", "acl"]),  # an ACL costs a twelfth of a listing
        ({"head": 400, "acl": 403}, "SSE-C", ["head", "acl", "list"]),
        ({"head": 400, "acl": 403, "list": 403}, "400", ["head", "acl", "list"]),
    ],
)
async def test_refused_head_behind_an_earlier_acl_is_explained_by_answers_of_today(
    refused: Mapping[str, int], code: str, calls: list[str]
) -> None:
    async def hook(asked: str, key: str) -> None:
        if asked in refused:
            raise CallFailed(asked, "AccessDenied" if asked != "head" else str(refused[asked]), refused[asked])

    world = World(hook)
    evidence, asked = await world.read(replace(world.whole, head=None))
    assert asked == calls
    assert evidence.vanished is not bool(code)
    if code:
        assert isinstance(evidence.head, Unread)
        assert evidence.head.code == code
        assert evidence.read_at == ReadAt(acl=EARLIER, acl_from=FactOrigin.RUN)


async def test_no_acl_is_kept_where_the_acl_of_the_bucket_counts() -> None:
    world = World(stand_in=Acl(OWNER, ()))
    evidence, asked = await world.read(replace(world.whole, acl=PUBLIC))
    assert (evidence.acl, asked) == (world.acl, ["acl"])


@pytest.mark.parametrize(
    ("stored", "source", "asked"),
    [
        ("abc=", FactOrigin.RUN, []),
        (None, FactOrigin.RUN, ["head"]),
        (None, FactOrigin.INVENTORY, []),  # it never names a checksum
    ],
)
async def test_head_that_was_not_asked_for_a_wanted_checksum(
    stored: str | None, source: FactOrigin, asked: list[str]
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
