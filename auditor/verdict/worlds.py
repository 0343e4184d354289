"""The worlds of one object. A world is one possible completion of the facts that are not known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from auditor.model.access import Reason, Verdict
from auditor.verdict.object_facts import AclView
from auditor.verdict.places import Doubt
from auditor.verdict.steps import Excess, OutOfStepsError

MOST_WORLDS: Final = 512
"""Largest number of worlds that are tried one by one."""


_WORLDS: Final = "completions of the facts that are not known"


class World(NamedTuple):
    """One possible completion of the unknown facts.

    acl: the object's ACL. allows_all: True if a bucket policy that was not read allows everything to everyone.
    own_account, own_canonical: number and canonical ID of the bucket owner; None for one without a name in the
    policies. points: the doubts about access points that come true. unclear: True if parties of an unknown account are
    outsiders. bare_reads: True if a read never has the keys of conditional requests (identities.CONDITIONAL). It counts
    for Denies only; to an Allow, a read always has them.

    keys: for each condition key that the world decides, the set of its true tests. high: decides about the condition
    keys that `keys` lacks. True: each Allow that depends on such a key holds, and each Deny does not. False: the
    opposite.
    """

    acl: AclView
    allows_all: bool
    own_account: str | None
    own_canonical: str | None
    points: tuple[Doubt, ...]
    unclear: bool
    bare_reads: bool
    keys: Mapping[int, int]
    high: bool = True


class Unknowns(NamedTuple):
    """The facts that are not known, each with all its possible values. keys: by the condition key's index. of_owner:
    for each condition key on the bucket owner's account number, the possible sets of true tests, by that number.
    """

    acls: Sequence[AclView]
    allows_all: Sequence[bool]
    own_accounts: Sequence[str | None]
    own_canonicals: Sequence[str | None]
    points: Sequence[tuple[Doubt, ...]]
    unclear: Sequence[bool]
    bare_reads: Sequence[bool]
    keys: Mapping[int, Sequence[int]]
    of_owner: Mapping[int, Mapping[str | None, Sequence[int]]] = MappingProxyType({})

    def worlds(self, too_complex: Iterable[int]) -> tuple[list[World], Excess | None]:
        """Return the worlds, and None. If there are too many worlds, condition keys are left out; those that are too
        complex are left out always. Then there are two extreme worlds for each completion of the other facts: every
        world lies between two of these. The second value is then the number that is too large, if it is that of the
        worlds. too_complex: the condition keys whose combinations are not all known. Raises OutOfStepsError if there
        are too many completions of the other facts.
        """
        others: tuple[Any, ...] = self[: self._fields.index("keys")]
        facts = math.prod(map(len, others))
        if facts > MOST_WORLDS:
            raise OutOfStepsError(Excess(facts, _WORLDS, MOST_WORLDS))
        keys = {key: options for key, options in self.keys.items() if key not in set(too_complex)}
        size = facts * math.prod(map(len, keys.values()))
        if size > MOST_WORLDS:
            keys = {}
        bounds = (True, False) if len(keys) < len(self.keys) else (True,)
        found = [
            World._make((*fact, dict(zip(keys, truth, strict=True)), high))
            for fact in product(*others)
            for truth in product(*keys.values())
            for high in bounds
        ]
        excess = Excess(size, _WORLDS, MOST_WORLDS) if size > MOST_WORLDS else None
        return [world for world in found if self._is_possible(world)], excess

    def _is_possible(self, world: World) -> bool:
        """True if the world's account number of the bucket owner agrees with the tests on this number."""
        return all(
            world.keys[key] in truth[world.own_account] for key, truth in self.of_owner.items() if key in world.keys
        )

    def causes(self, worlds: Sequence[World], verdicts: Sequence[Verdict], names: Mapping[Any, Reason]) -> list[Reason]:
        """Return the reasons for those unknown facts on which the verdict depends. names: the reason of each fact, by
        its field in World or its condition key.
        """
        found: list[Reason] = []
        for name, reason in names.items():
            others: dict[Any, set[Verdict]] = {}
            for world, verdict in zip(worlds, verdicts, strict=True):
                others.setdefault(_without(world, name), set()).add(verdict)
            if any(len(different) > 1 for different in others.values()):
                found.append(reason)
        return list(dict.fromkeys(found))


def _without(world: World, name: str | int) -> tuple[Any, ...]:
    """Return all values of a world but one. name: the field or condition key to leave out."""
    keys = tuple(item for item in world.keys.items() if item[0] != name)
    rest = tuple(value for field, value in zip(World._fields, world, strict=True) if field not in (name, "keys"))
    return (rest, keys)
