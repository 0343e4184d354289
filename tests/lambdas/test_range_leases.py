"""Leases of ranges: never more functions at work than ranges at once, whatever fails and is redriven."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from auditor.errors import RunTaken
from auditor.lambdas.range_leases import RangeLease, RangeLeases
from auditor.runs.stores.local import LocalStore

RUN = "20260102T030405Z-0a1b2c"
DEADLINE = 900.0


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


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


@pytest.mark.parametrize("seed", range(4))
def test_the_functions_at_work_are_never_more_than_at_once_and_all_ranges_end(tmp_path: Path, seed: int) -> None:
    chance, clock, store = random.Random(seed), Clock(), LocalStore(tmp_path)
    leases = RangeLeases(store, "audited", RUN, clock)
    for name in ("00001", "00001-soon-a-b", "note.txt", "00001-\N{ARABIC-INDIC DIGIT THREE}-a-b"):
        store.put(f"bucket=audited/leases/{RUN}/{name}", b"")  # foreign files do not count
    machine = Machine(leases, clock, chance, seed + 1, [f"{number:05}" for number in range(1, 11)])
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
    leases.forget()
    assert store.list(f"bucket=audited/leases/{RUN}/") == []
