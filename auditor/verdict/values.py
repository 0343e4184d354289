"""Find truth vectors: the outcomes that the tests on one condition key can have together, for values of the key's
domain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise, product
from typing import Final

from auditor.verdict.conditions import ConditionTest, Networks, Ordered, Patterns, Presence
from auditor.verdict.domains import Addresses, Domain, FixedValues, Numbers, Texts, Unknown
from auditor.verdict.globs import Glob, memberships
from auditor.verdict.networks import Network, parse_address, parse_network
from auditor.verdict.steps import KeySteps, TooComplexError
from auditor.verdict.variables import sieve

Vector = tuple[bool, ...]
Witnesses = dict[Vector, tuple[str, ...]]
"""Truth vectors, each with example values of the condition key that give it. Without values, the key is absent."""

_WHOLE: Final = re.compile("0|[1-9][0-9]{0,30}")
_OCTETS: Final = re.compile(r"((0|[1-9][0-9]{0,2})\.){1,3}")
_BEGINS_ADDRESS: Final = re.compile("[0-9a-fA-F:.]*")


def truth_vectors(tests: Sequence[ConditionTest], domain: Domain, steps: KeySteps | None = None) -> frozenset[Vector]:
    """Return the truth vectors: each has the outcomes of all tests, in order, for one value of the domain. The tests
    are on the condition key with this domain, and bound to one requester. Raises TooComplexError.
    """
    return frozenset(witnesses(tests, domain, steps))


def witnesses(tests: Sequence[ConditionTest], domain: Domain, steps: KeySteps | None = None) -> Witnesses:
    """Return the truth vectors, as truth_vectors() does, each with an example of the condition key's values."""
    found = _Found(tests, steps or KeySteps())
    if isinstance(domain, FixedValues):
        found.add(domain.values)
        return found.witnesses
    if isinstance(domain, Unknown):
        domain = Texts(may_be_absent=True, many=any(test.multi for test in tests))
    if domain.may_be_absent:
        found.add(())
    examples = _examples(tests, domain, found.steps)
    if isinstance(domain, Texts) and domain.many:
        found.add_several([text for text in examples if text])
    else:
        for text in examples:
            found.add((text,))
    return found.witnesses


def _examples(tests: Sequence[ConditionTest], domain: Texts | Addresses | Numbers, steps: KeySteps) -> list[str]:
    """Return example values of the domain: one of each kind that the tests distinguish."""
    match domain:
        case Texts():
            return _texts(tests, domain, steps)
        case Addresses():
            return _addresses(tests, domain, steps)
        case Numbers():
            return _numbers(tests, domain)


class _Found:
    """Collects the truth vectors of the tests on one condition key."""

    def __init__(self, tests: Sequence[ConditionTest], steps: KeySteps) -> None:
        self._tests = tests
        self.steps = steps
        self.witnesses: Witnesses = {}

    def add(self, values: tuple[str, ...]) -> None:
        """Add the truth vectors of these values. There are several if the requester decides on an outcome."""
        self.steps.spend(1 + len(self._tests))
        for vector in self._choices([test.outcome(values) for test in self._tests]):
            self.witnesses.setdefault(vector, values)

    def add_several(self, texts: Sequence[str]) -> None:
        """Add the truth vectors of each non-empty set of these texts."""
        self.steps.spend(len(texts) * len(self._tests))
        single = {vector: text for text in texts for vector in self._choices([t.of_one(text) for t in self._tests])}
        every = [test.every for test in self._tests]
        sets: Witnesses = {vector: (text,) for vector, text in single.items()}
        waiting = list(sets)
        while waiting:
            first = waiting.pop()
            self.steps.spend(len(single) * (1 + len(every) // 8))
            for second, text in single.items():
                both = tuple(a and b if all_ else a or b for a, b, all_ in zip(first, second, every, strict=True))
                if both not in sets:
                    sets[both] = (*sets[first], text)
                    waiting.append(both)
        for vector, values in sets.items():
            self.witnesses.setdefault(vector, values)

    def _choices(self, outcomes: Sequence[bool | None]) -> Iterator[Vector]:
        self.steps.spend((1 << outcomes.count(None)) - 1)
        return product(*((True, False) if outcome is None else (outcome,) for outcome in outcomes))


# ---- one value of each kind that the tests tell apart


def _texts(tests: Sequence[ConditionTest], domain: Texts, steps: KeySteps) -> list[str]:
    patterned = [test for test in tests if isinstance(test.comparison, Patterns)]
    sets = [globs for test in patterned for globs in _sets(test)]
    kept = sieve(domain)
    if domain.many or any(test.multi for test in tests):
        sets.append((Glob.of([]),))  # An empty text is no value.
    texts = list(memberships(sets, kept, steps).values())
    steps.spend(len(texts) * sum(map(len, sets)) // 2)
    more = _other_kinds(tests, steps)
    if not more:
        return texts
    steps.spend(len(tests) * sum(len(others) for _, others in more))
    # A text can be a number, a date or an address, too. The texts of all kinds together are enough only if they give
    # each combination of what the kinds give alone.
    combinations = len({tuple(test.of_one(text) for test in patterned) for text in texts})
    for alike, others in more:
        combinations *= len({tuple(test.of_one(text) for test in alike) for text in others})
        texts += [text for text in others if kept.keeps(text)]
    valued = [test for test in tests if not isinstance(test.comparison, Presence)]
    if len({tuple(test.of_one(text) for test in valued) for text in texts}) != combinations:
        raise TooComplexError
    return texts


def _sets(test: ConditionTest) -> Iterator[tuple[Glob, ...]]:
    """Yield the sets of texts on which the outcome of a test depends: it is the same for all texts that are in the same
    sets. A set is a tuple of patterns; a text is in the set if one of them matches it.
    """
    assert isinstance(test.comparison, Patterns)
    if test.ceph and test.negated:
        yield from ((glob,) for glob in test.comparison.sure)
    else:
        yield test.comparison.sure
    for chosen in test.comparison.perhaps:
        yield from chosen


def _other_kinds(tests: Sequence[ConditionTest], steps: KeySteps) -> list[tuple[list[ConditionTest], list[str]]]:
    """Return the tests that do not compare texts, in groups of one kind. Each group has one example text for each of
    the tests' combined outcomes.
    """
    found: list[tuple[list[ConditionTest], list[str]]] = []
    for dates in (False, True):
        ordered = [test for test in tests if isinstance(test.comparison, Ordered) and test.comparison.dates == dates]
        limits = {limit for test in ordered if isinstance(test.comparison, Ordered) for limit in test.comparison.limits}
        if ordered:
            found.append((ordered, ["x", *_between(sorted(limits))]))
    networks = [test for test in tests if isinstance(test.comparison, Networks)]
    if networks:
        found.append((networks, ["x", *_addresses(networks, Addresses(), steps)]))
    return found


def _between(limits: Sequence[Decimal]) -> list[str]:
    """Return the limits in order, with one number between each two limits, one below all and one above all."""
    with localcontext(prec=1_000):
        gaps = [(a + b) / 2 for a, b in pairwise(limits)]
        outside = [limits[0] - 1, limits[-1] + 1] if limits else []
        return [_plain(value) for value in (*limits, *gaps, *outside)]


def _plain(value: Decimal) -> str:
    """Write a number without exponent. It has at least five digits before the point, because four digits could be a
    year.
    """
    whole, point, fraction = f"{abs(value):f}".partition(".")
    return f"{'-' if value < 0 else ''}{whole.zfill(5)}{point}{fraction}"


def _addresses(tests: Sequence[ConditionTest], domain: Addresses, steps: KeySteps) -> list[str]:
    only, never = Networks.of(domain.only), Networks.of(domain.never)
    told = [never]
    for test in tests:
        match test.comparison:
            case Networks():
                told.append(test.comparison)
            case Patterns(sure, perhaps):
                globs = [*sure, *(glob for kept in perhaps for found in kept for glob in found)]
                told.append(Networks.of(tuple(network for glob in globs for network in _as_networks(glob))))
    found: list[str] = []
    for version, firsts, lasts in only.ranges:
        for first, last in zip(firsts, lasts, strict=True):
            cuts = sorted({first, *(cut for networks in told for cut in networks.cuts(version, first, last))})
            steps.spend(2 * len(cuts))
            for begin, following in zip(cuts, [*cuts[1:], last + 1], strict=True):
                # The first address is often that of the network itself.
                number = min(begin + 1, following - 1)
                text = str(IPv4Address(number) if version == 4 else IPv6Address(number))
                if not never.matches(text):
                    found.append(text)
    return found


def _as_networks(glob: Glob) -> list[Network]:
    """Return networks whose addresses, as texts, are all texts that the pattern matches. Return no network if the
    pattern matches every address, or none. Raises TooComplexError for other patterns.
    """
    head = glob.head
    if glob.literal is not None:
        address = parse_address(head)
        return [] if address is None else [parse_network(head)]
    if glob.accepts_all(glob.prune(1)) or not _BEGINS_ADDRESS.fullmatch(head):
        return []
    if not (_OCTETS.fullmatch(head) and glob.accepts_all(1 << len(head)) and len(glob.tokens) == len(head)):
        raise TooComplexError
    octets = head.split(".")[:-1]
    try:
        return [parse_network(".".join(octets + ["0"] * (4 - len(octets))) + f"/{8 * len(octets)}")]
    except ValueError:
        return []


def _numbers(tests: Sequence[ConditionTest], domain: Numbers) -> list[str]:
    points = {domain.lowest, domain.highest}
    dates = False
    for test in tests:
        match test.comparison:
            case Ordered(limits=limits):
                dates = dates or test.comparison.dates
                points.update(floor + i for limit in limits for floor in [math.floor(limit)] for i in (-1, 0, 1))
            case Patterns(sure, perhaps):
                globs = [*sure, *(glob for kept in perhaps for found in kept for glob in found)]
                literals = [glob.literal for glob in globs if not glob.accepts_all(glob.prune(1))]
                if None in literals:
                    raise TooComplexError
                points.update(int(text) + i for text in literals if text and _WHOLE.fullmatch(text) for i in (-1, 0, 1))
    inside = sorted(point for point in points if domain.lowest <= point <= domain.highest)
    # A date of four digits can be a year; one of five is seconds.
    return [f"{point:05d}" if dates else str(point) for point in inside]
