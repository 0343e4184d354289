"""Find which tests of a condition key can be true together, where the key alone does not tell: several keys that one
fact decides, and policy variables whose text nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from msgspec.structs import replace

from auditor.verdict.conditions import ConditionTest, key_name
from auditor.verdict.documents import CONNECTION, PATHS_OF, Key
from auditor.verdict.domains import ABSENT, Domain, FixedValues, Texts, Unknown
from auditor.verdict.identities import CONNECTIONS
from auditor.verdict.steps import KeySteps
from auditor.verdict.values import truth_vectors

ACCOUNT_KEYS: Final = frozenset({"aws:principalaccount", "kms:calleraccount", "aws:vpceaccount"})
OWNER_KEYS: Final = frozenset({"aws:resourceaccount", "s3:resourceaccount"})

_OTHERS: Final = FixedValues(("the account of another",))
"""Stands for the number of the bucket owner's account, which no outsider has."""
_SOME_TEXT: Final = FixedValues(("\uffff",))
"""Stands for the text of a variable that nobody knows."""


def bits(vectors: Iterable[Sequence[bool]]) -> tuple[int, ...]:
    return tuple(sorted({sum(1 << i for i, true in enumerate(vector) if true) for vector in vectors}))


def truth_of(
    key: Key, tests: Sequence[ConditionTest], domain: Domain, paths: Domain, steps: KeySteps
) -> tuple[int, ...]:
    """Return the sets of a condition key's tests that can be true together, as bits. The tests are bound to one
    requester. domain: the key's values. paths: the values of the key on paths, for a key on an organization's ID.
    Raises TooComplexError.
    """
    if key.name == CONNECTION:
        return bits(vector for one in CONNECTIONS for vector in outcomes_of(tests, one, steps))
    of_paths = PATHS_OF.get(key.name)
    if any(key_name(test.key) == of_paths for test in tests):
        both = _memberships(key.name, domain, paths)
        return bits(vector for one in both for vector in outcomes_of(tests, one, steps))
    return bits(truth_vectors(tests, domain, steps))


def _memberships(name: str, organization: Domain, paths: Domain) -> Iterator[Mapping[str, Domain]]:
    """Yield the values of the organization's ID and of its paths for a member, and also for no member if that is
    possible. A request has both condition keys or none. name: the condition key on the organization's ID.
    """
    may_be_absent = isinstance(organization, Texts) and organization.may_be_absent
    if may_be_absent:
        yield {name: ABSENT, PATHS_OF[name]: ABSENT}
    both = {name: organization, PATHS_OF[name]: paths}
    yield {
        name: replace(one, may_be_absent=False) if may_be_absent and isinstance(one, Texts) else one
        for name, one in both.items()
    }


def outcomes_of(
    tests: Sequence[ConditionTest], situation: Mapping[str, Domain], steps: KeySteps
) -> Iterator[tuple[bool, ...]]:
    """Yield the possible outcomes of tests on several condition keys, whose values do not depend on each other.
    situation: the domain of each key.
    """
    places: dict[str, list[int]] = {}
    for place, test in enumerate(tests):
        places.setdefault(key_name(test.key), []).append(place)
    each = [truth_vectors([tests[place] for place in some], situation[name], steps) for name, some in places.items()]
    for vectors in product(*each):
        steps.spend(1 + len(tests))
        found = {
            place: true
            for some, vector in zip(places.values(), vectors, strict=True)
            for place, true in zip(some, vector, strict=True)
        }
        yield tuple(found[place] for place in range(len(tests)))


def known_for(key: Key, bound: Mapping[str, Domain]) -> Mapping[str, Domain]:
    """Return the domains of the policy variables in a key's tests, for an outsider. If the number of the bucket owner's
    account is not known, it still differs from every account number of an outsider.
    """
    if key.name not in ACCOUNT_KEYS:
        return bound
    return {
        name: _OTHERS if name in OWNER_KEYS and isinstance(domain, Unknown) else domain
        for name, domain in bound.items()
    }


def states_of(
    key: Key, domain: Domain, bound: Mapping[str, Domain], steps: KeySteps
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the sets of a condition key's tests that can be true together: first if an unknown policy variable has no
    text, then if it has one.

    This is for a key whose text the requester chooses freely, with one unknown variable in its tests. Return None for
    other keys. Raises TooComplexError.
    """
    unknown = [name for name, one in bound.items() if isinstance(one, Unknown)]
    if len(unknown) != 1 or not (isinstance(domain, Texts) and domain.only == ("*",)):
        return None
    without, within = (
        bits(truth_vectors([test.bind({**bound, unknown[0]: one}) for test in key.tests], domain, steps))
        for one in (ABSENT, _SOME_TEXT)
    )
    return without, within
