"""Search for a request: values of the keys that meet an Allow of each policy in its way, and no Deny."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.verdict.search import Needs, Search
from auditor.verdict.steps import OutOfStepsError

OPTIONS = {0: (0b00, 0b01, 0b10), 1: (0b0, 0b1), 2: (0b1,)}
ALWAYS: Needs = ()


def opens(allow: Needs, *denies: Needs) -> bool:
    return Search(OPTIONS).opens([[allow]], denies)


def test_an_allow_holds_if_one_value_meets_all_of_its_tests() -> None:
    assert opens(ALWAYS)
    assert opens(((0, 0b01), (1, 0b1)))
    assert not opens(((0, 0b11),)), "no value meets both tests"


def test_a_deny_closes_only_if_the_requester_cannot_avoid_it() -> None:
    assert not opens(ALWAYS, ALWAYS)
    assert not opens(ALWAYS, ((2, 0b1),)), "the key has one value"
    assert opens(ALWAYS, ((1, 0b1),))
    assert not opens(((1, 0b1),), ((1, 0b1),)), "what meets the Allow meets the Deny"
    assert opens(((1, 0b1),), ((1, 0b1), (0, 0b01))), "another key of the Deny is left"


def test_one_of_several_allows_is_enough_in_each_policy_and_each_policy_needs_one() -> None:
    assert Search(OPTIONS).opens([[((0, 0b11),), ALWAYS]], [])
    assert not Search(OPTIONS).opens([[ALWAYS], []], [])
    assert not Search(OPTIONS).opens([[((0, 0b01),)], [((0, 0b10),)]], []), "one value cannot meet both"


def test_too_many_steps_are_no_answer() -> None:
    """Each of eight requests has to fall into one of seven holes, and no two into the same: only trying tells."""
    options = {key: tuple(1 << hole for hole in range(7)) for key in range(8)}
    apart = [((one, 1 << hole), (other, 1 << hole)) for one in range(8) for other in range(one) for hole in range(7)]
    with pytest.raises(OutOfStepsError):
        Search(options).opens([[ALWAYS]], apart)


needs = st.dictionaries(st.integers(0, 2), st.integers(1, 3), max_size=3).map(lambda one: tuple(one.items()))
choices = st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True)


@given(st.fixed_dictionaries({0: choices, 1: choices, 2: choices}), needs, st.lists(needs, max_size=4))
def test_agrees_with_trying_every_request(options: dict[int, list[int]], allow: Needs, denies: list[Needs]) -> None:
    def holds(some: Needs, request: tuple[int, ...]) -> bool:
        return all(request[key] & tests == tests for key, tests in some)

    requests = product(*(options[key] for key in range(3)))
    expected = any(holds(allow, one) and not any(holds(deny, one) for deny in denies) for one in requests)
    assert Search(options).opens([[allow]], denies) is expected


@pytest.mark.parametrize("empty", [{0: (), 1: (0,), 2: (0,)}])
def test_a_key_without_an_option_meets_no_test(empty: dict[int, tuple[int, ...]]) -> None:
    assert not Search(empty).opens([[((0, 0b1),)]], [])
