"""Leases of ranges: never more functions at work than ranges at once, whatever fails and is redriven."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest

from auditor.errors import OutputError, RunTaken
from auditor.lambdas.claims import AFTER_DEADLINE
from auditor.lambdas.range_leases import RangeLease, RangeLeases
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store
from tests.support.servers.clients import client

RUN = "20260102T030405Z-0a1b2c"
DEADLINE = 900.0


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def leases(store: Store, clock: Clock) -> RangeLeases:
    return RangeLeases(store, "audited", RUN, clock)


def take(leases: RangeLeases, range_id: str, attempt: str = "first", at_once: int = 2) -> RangeLease:
    return leases.take(range_id, attempt, at_once=at_once, seconds=DEADLINE)


def test_a_redriven_range_waits_for_the_function_that_may_be_alive(leases: RangeLeases, clock: Clock) -> None:
    take(leases, "00001")
    clock.now += DEADLINE
    with pytest.raises(RunTaken, match="before the redrive may be working on range 00001, until 2027-01-15T08:15:05Z"):
        take(leases, "00001", "redriven")
    clock.now += AFTER_DEADLINE
    take(leases, "00001", "redriven")


def test_a_redriven_range_goes_on_once_that_function_has_ended(leases: RangeLeases) -> None:
    before = take(leases, "00001")
    with pytest.raises(RunTaken):
        take(leases, "00001", "redriven")
    leases.give_back(before)
    take(leases, "00001", "redriven")


def test_the_retry_of_an_attempt_takes_the_place_of_a_killed_function(leases: RangeLeases) -> None:
    killed = take(leases, "00001")
    again = take(leases, "00001")
    leases.give_back(killed)  # it was not dead after all: its end ends no lease of another one
    with pytest.raises(RunTaken):
        take(leases, "00001", "redriven")
    leases.give_back(again)
    take(leases, "00001", "redriven")


def test_no_more_ranges_than_at_once_have_leases(leases: RangeLeases, clock: Clock) -> None:
    first = take(leases, "00001")
    take(leases, "00002")
    with pytest.raises(RunTaken, match="range 00003 waits, because functions may be working on 2 others, of 2"):
        take(leases, "00003", "redriven")
    leases.give_back(first)
    take(leases, "00003", "redriven")
    with pytest.raises(RunTaken):
        take(leases, "00001", "redriven")
    clock.now += DEADLINE + AFTER_DEADLINE + 1
    take(leases, "00001", "redriven")


def test_the_refused_leave_no_lease(leases: RangeLeases) -> None:
    held = take(leases, "00001", at_once=1)
    for number in range(2, 9):
        with pytest.raises(RunTaken):
            take(leases, f"{number:05}", at_once=1)
    leases.give_back(held)
    take(leases, "00009", at_once=1)


def test_foreign_files_and_other_runs_do_not_count(leases: RangeLeases, store: Store, clock: Clock) -> None:
    for name in ("00001", "00001-soon-a-b", "note.txt", "00001-\N{ARABIC-INDIC DIGIT THREE}-a-b"):
        store.put(f"bucket=audited/leases/{RUN}/{name}", b"")
    other = RangeLeases(store, "audited", "20260102T030405Z-ffffff", clock)
    take(other, "00001", "another")
    take(leases, "00001", at_once=1)


def test_the_leases_of_killed_functions_are_deleted_with_the_end_of_the_run(leases: RangeLeases, store: Store) -> None:
    take(leases, "00001")
    take(leases, "00002")
    leases.forget()
    assert store.list(f"bucket=audited/leases/{RUN}/") == []


def test_in_a_bucket_as_in_a_directory(moto_url: str, clock: Clock) -> None:
    name = f"results-{uuid4().hex[:12]}"
    s3 = client("s3", moto_url)
    s3.create_bucket(Bucket=name)
    s3.close()
    with open_store(f"s3://{name}/audits", endpoint_url=moto_url) as store:
        leases = RangeLeases(store, "audited", RUN, clock)
        held = take(leases, "00001", at_once=1)
        with pytest.raises(RunTaken):
            take(leases, "00001", "redriven", at_once=1)
        with pytest.raises(RunTaken):
            take(leases, "00002", at_once=1)
        leases.give_back(held)
        take(leases, "00001", "redriven", at_once=1)
        leases.forget()
        assert store.list("bucket=audited/leases/") == []


@dataclass
class Machine:
    """Step Functions and its functions, in one thread: children are aborted, functions are killed or work on.

    alive: the functions at work, each with its lease and its deadline. children: the ranges whose child is at work, in
    the present attempt, with that child's function.
    """

    leases: RangeLeases
    clock: Clock
    chance: random.Random
    at_once: int
    left: list[str]
    attempt: int = 0
    alive: dict[str, tuple[RangeLease, float]] = field(default_factory=dict)
    children: set[str] = field(default_factory=set)

    def invoke(self) -> None:
        """Start a child or a hop of one, as far as the map's concurrency allows."""
        waiting = [one for one in self.left if one not in self.children]
        if waiting and len(self.children) < self.at_once:
            self.children.add(self.chance.choice(waiting))
        idle = [one for one in self.children if one not in self.mine()]
        if not idle:
            return
        range_id = self.chance.choice(sorted(idle))
        try:
            attempt = f"{range_id}, redrive {self.attempt}"
            lease = self.leases.take(range_id, attempt, at_once=self.at_once, seconds=DEADLINE)
        except RunTaken:
            return
        self.alive[f"{self.attempt} {range_id}"] = (lease, self.clock.now + DEADLINE)

    def mine(self) -> set[str]:
        """The ranges on which functions of the present attempt work."""
        return {name.split()[1] for name in self.alive if name.split()[0] == str(self.attempt)}

    def end(self, *, kill: bool) -> None:
        """End a function: in order, or killed, without a word."""
        if not self.alive:
            return
        name = self.chance.choice(sorted(self.alive))
        lease, _ = self.alive.pop(name)
        if not kill:
            self.leases.give_back(lease)
        attempt, range_id = name.split()
        if not kill and attempt == str(self.attempt) and self.chance.random() < 0.3:
            self.left.remove(range_id)
            self.children.discard(range_id)

    def redrive(self) -> None:
        """The execution fails, and is redriven at once. Its functions work on."""
        self.attempt += 1
        self.children.clear()

    def pass_time(self) -> None:
        self.clock.now += self.chance.uniform(0, 300)
        for name, (_, deadline) in [*self.alive.items()]:
            if deadline <= self.clock.now:
                del self.alive[name]  # Lambda kills it


@pytest.mark.parametrize("seed", range(20))
def test_the_functions_at_work_are_never_more_than_at_once_and_all_ranges_end(
    leases: RangeLeases, clock: Clock, seed: int
) -> None:
    chance = random.Random(seed)
    machine = Machine(leases, clock, chance, chance.randint(1, 4), [f"{number:05}" for number in range(1, 11)])
    steps = 0
    while machine.left:
        steps += 1
        assert steps < 20_000, "the ranges wait for each other"
        happens = chance.random()
        if happens < 0.5:
            machine.invoke()
        elif happens < 0.8:
            machine.end(kill=False)
        elif happens < 0.88:
            machine.end(kill=True)
        elif happens < 0.9:
            machine.redrive()
        else:
            machine.pass_time()
        working = [lease.range_id for lease, _ in machine.alive.values()]
        assert len(working) <= machine.at_once
        assert len(set(working)) == len(working), "a range is audited by two functions at once"


class SilentStore:
    """A store that deletes nothing."""

    def __init__(self, store: Store) -> None:
        self.put, self.list = store.put, store.list

    def delete(self, path: str) -> None:
        raise OutputError("the store does not answer")


def test_a_lease_that_cannot_be_ended_ends_by_itself(store: Store, clock: Clock) -> None:
    leases = RangeLeases(SilentStore(store), "audited", RUN, clock)  # type: ignore[arg-type]
    leases.give_back(take(leases, "00001"))
    leases.forget()
    with pytest.raises(RunTaken):
        take(leases, "00001", "redriven")
    clock.now += DEADLINE + AFTER_DEADLINE + 1
    take(leases, "00001", "redriven")
