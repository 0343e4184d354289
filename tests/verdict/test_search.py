"""Search for a request: values of the keys that meet an Allow of each policy in its way, and no Deny."""

from __future__ import annotations

from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from auditor.verdict.search import Needs, Search

needs = st.dictionaries(st.integers(0, 2), st.integers(1, 3), max_size=3).map(lambda one: tuple(one.items()))
choices = st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True)
policies = st.lists(st.lists(needs, max_size=3), min_size=1, max_size=2)
ONE = {0: [0, 1, 2], 1: [0, 1], 2: [1]}


@given(st.fixed_dictionaries({0: choices, 1: choices, 2: choices}), policies, st.lists(needs, max_size=4))
@example(ONE, [[()]], [((1, 1),)])
@example(ONE, [[((1, 1),)]], [((1, 1),)])
@example(ONE, [[((0, 1),)], [((0, 2),)]], [])
@example(ONE, [[((0, 3),), ()]], [((2, 1),)])
def test_agrees_with_trying_every_request(
    options: dict[int, list[int]], allows: list[list[Needs]], denies: list[Needs]
) -> None:
    def holds(some: Needs, request: tuple[int, ...]) -> bool:
        return all(request[key] & tests == tests for key, tests in some)

    def is_open(request: tuple[int, ...]) -> bool:
        allowed = all(any(holds(one, request) for one in policy) for policy in allows)
        return allowed and not any(holds(deny, request) for deny in denies)

    requests = product(*(options[key] for key in range(3)))
    assert Search(options).opens(allows, denies) is any(map(is_open, requests))
