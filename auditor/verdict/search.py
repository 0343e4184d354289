"""Search for one request that gets in: values of its condition keys that meet an Allow of each policy in its way, and
no Deny.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from auditor.verdict.steps import Steps

Needs = tuple[tuple[int, int], ...]
"""The tests that a statement needs, as pairs (key, tests): the index of a condition key, and the set of its tests that
must be true, as bits. The statement holds if all these tests are true."""

Options = Mapping[int, Sequence[int]]
"""For each condition key, by index: the sets of tests that can be true together, each as bits. A key without a set
means that no such request exists."""


class Search:
    """The question of one search: can the requester choose the values of his condition keys so that the Allows hold,
    and no Deny does?
    """

    def __init__(self, options: Options, steps: Steps | None = None) -> None:
        self._options = options
        self._steps = steps or Steps()

    def opens(self, allows: Sequence[Sequence[Needs]], denies: Iterable[Needs]) -> bool:
        """Return True if the requester can do so. allows: for each policy in the way, its Allows, one of which has to
        hold. denies: the Denies of all policies. Raises OutOfStepsError.
        """
        denies = list(denies)
        return any(self._together(combination, denies) for combination in product(*allows))

    def _together(self, allows: Sequence[Needs], denies: Sequence[Needs]) -> bool:
        self._steps.spend(2)
        wanted: dict[int, int] = {}
        for needs in allows:
            for key, tests in needs:
                wanted[key] = wanted.get(key, 0) | tests
        chosen: dict[int, Sequence[int]] = {}
        for key, tests in wanted.items():
            chosen[key] = [option for option in self._options[key] if option & tests == tests]
            if not chosen[key]:
                return False
        return self._escapes(chosen, denies)

    def _escapes(self, chosen: dict[int, Sequence[int]], denies: Sequence[Needs]) -> bool:
        """True if the requester can make every Deny false. chosen: for the condition keys whose choice is already
        limited, the options that are left.
        """
        self._steps.spend(2 + 2 * len(denies))
        left: list[tuple[Needs, list[tuple[int, list[int]]]]] = []
        for needs in denies:
            falsified = False
            ways: list[tuple[int, list[int]]] = []
            for key, tests in needs:
                options = chosen.get(key)
                if options is None:
                    options = self._options[key]
                false = [option for option in options if option & tests != tests]
                if false and len(false) == len(options):
                    falsified = True
                    break
                if false:
                    ways.append((key, false))
            if falsified:
                continue
            if not ways:
                return False
            left.append((needs, ways))
        if not left:
            return True
        _, ways = min(left, key=lambda one: len(one[1]))
        rest = [needs for needs, _ in left]
        return any(self._escapes({**chosen, key: false}, rest) for key, false in ways)
