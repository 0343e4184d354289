"""Compile a policy: for each statement, find the parties, actions, condition keys and tests on which it depends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.bucket import Semantics
from auditor.model.policy import Policy, Statement, is_bucket_tag
from auditor.model.wildcard import split, variables_of
from auditor.verdict.conditions import ConditionTest, compile_test, key_name
from auditor.verdict.identities import HEADERS, PLACE_KEYS
from auditor.verdict.named import SOURCE_KEYS, Names
from auditor.verdict.principals import PrincipalSet
from auditor.verdict.resources import KeyClass, KeyCoverage
from auditor.verdict.search import Needs
from auditor.verdict.ways import WAYS, ways_of

_SERVICE_KEYS: Final = SOURCE_KEYS | {
    "aws:principalisawsservice",
    "aws:principalservicename",
    "aws:principalservicenameslist",
}
_DEFAULT: Final = re.compile(r"\$\{[^}]*,")
CONNECTION: Final = "aws:securetransport"
MEMBERSHIP: Final = "aws:principalorgid"
ENDPOINT_MEMBERSHIP: Final = "aws:vpceorgid"
PATHS_OF: Final = {MEMBERSHIP: "aws:principalorgpaths", ENDPOINT_MEMBERSHIP: "aws:vpceorgpaths"}
"""Condition keys on an organization's ID, each with the key on the paths in the organization."""
_JOINED: Final = {
    "s3:tlsversion": CONNECTION,
    "aws:principalorgpaths": MEMBERSHIP,
    "aws:vpceorgpaths": ENDPOINT_MEMBERSHIP,
    "aws:resourceaccount": "s3:resourceaccount",
}
"""Condition keys that describe one fact together with another key: one connection, one membership or one account. Tests
of such a key are kept with the tests of the other key."""

MOST_OF_CAUSE: Final = 256
"""Largest number of characters of a condition key or principal that a reason names."""

_TAG_VARIABLE: Final = re.compile(r"(\$\{\s*)((?:aws:resourcetag|s3:buckettag)/)", re.IGNORECASE)
_DATES: Final = frozenset({"aws:currenttime", "aws:epochtime"})


class Key(Struct):
    """A condition key, with its tests in all policies. name: the form that all its spellings share (key_name). spelled:
    the spelling that a policy uses first.

    A Key without tests stands for a yes-or-no question that no single condition key answers, such as whether a Resource
    covers an object. variables: the policy variables on which the answer depends; empty if the answer cannot be known.
    """

    name: str
    spelled: str
    tests: list[ConditionTest]
    variables: frozenset[str] = frozenset()
    negated: bool = False
    """True if the question is about NotResource. If a variable has no text, the statement then covers the object."""
    has_default: bool = False
    """True if a variable has a default, so that the answer is not known if the variable has no text."""

    @property
    def of_place(self) -> bool:
        return self.name in PLACE_KEYS or not PLACE_KEYS.isdisjoint(self.depends_on)

    @property
    def depends_on(self) -> frozenset[str]:
        """The policy variables in the values of this key's tests."""
        return self.variables.union(*(test.variables for test in self.tests))

    @property
    def is_header(self) -> bool:
        return self.name in HEADERS

    @property
    def header(self) -> str:
        """The usual spelling of the header that a requester sends to set this key."""
        return HEADERS.get(self.name, self.spelled)


class Keys:
    """All condition keys of the policies of one bucket, by index."""

    def __init__(self) -> None:
        self.listed: list[Key] = []
        self._places: dict[str, int] = {}
        self._questions: dict[tuple[tuple[str, ...], bool], int] = {}

    def needs(self, test: ConditionTest) -> tuple[int, int]:
        """Return the index of the test's condition key, and the bit of the test among the key's tests. A new test is
        added.
        """
        place = self.place_of(test.key)
        tests = self.listed[place].tests
        if test not in tests:
            tests.append(test)
        return place, 1 << tests.index(test)

    def question(self, cause: str) -> int:
        """Add a Key for a yes-or-no question that nobody can answer, and return its index. cause: the words for
        reasons.
        """
        return self._add(Key(f"?{len(self.listed)}", cause[:MOST_OF_CAUSE], []))

    def place_of(self, key: str) -> int:
        """Return the index of a condition key. A new key is added, without a test."""
        name = key_name(key)
        name = _JOINED.get(name, name)
        if name not in self._places:
            self._places[name] = self._add(Key(name, key[:MOST_OF_CAUSE], []))
        return self._places[name]

    def covers(self, resources: tuple[str, ...], *, negated: bool, variables: bool) -> int:
        """Return the index of the Key for the question if these resources cover the object. Statements with equal
        resources share one Key.
        """
        question = (resources, negated)
        if question not in self._questions:
            parts = (part for text in resources for part in split(text, variables=variables))
            found = variables_of(parts)
            default = variables and any(map(_DEFAULT.search, resources))
            cause = min(found, default="Resource")[:MOST_OF_CAUSE]
            key = Key(f"?{len(self.listed)}", cause, [], found, negated, default)
            self._questions[question] = self._add(key)
            for name in found:
                self.place_of(name)
        return self._questions[question]

    def _add(self, key: Key) -> int:
        self.listed.append(key)
        return len(self.listed) - 1


class Clause(Struct, frozen=True, eq=False):
    """One compiled statement. name: its Sid or index, for reasons. needs: the tests that must be true. who, what:
    indices of the Keys for two questions: if Principal is for the party, and if Resource is for the object. They count
    only where the answer is not known.
    """

    name: str
    allows: bool
    ways: int
    principals: PrincipalSet
    needs: Needs
    who: int
    what: int
    conditional: bool
    for_services: bool
    """True if a condition asks for a service or its source."""
    dated: Needs = ()
    """The tests on the date of the request, as in `needs`."""
    until: str | None = None
    """The date until which an Allow holds."""


class Document:
    """A compiled policy: of the bucket, of an access point or of a KMS key. of: the resource whose tags the policy's
    conditions see, in one word; "" for the bucket.
    """

    def __init__(
        self,
        policy: Policy,
        keys: Keys,
        names: Names,
        *,
        start: str,
        ways: tuple[str, ...] = WAYS,
        whole_arns: bool = False,
        semantics: Semantics = Semantics.AWS,
        of: str = "",
    ) -> None:
        self.clauses: list[Clause] = []
        resources: list[tuple[bool, tuple[str, ...]]] = []
        for name, written in zip(policy.names, policy.statements, strict=True):
            statement = _with_tags_of(of, written) if of else written
            covered = ways_of(statement.actions, ways, negated=statement.not_action)
            if not covered:
                continue
            clause = _compile(name, statement, covered, keys, names, policy.variables, semantics)
            self.clauses.append(clause)
            resources.append((statement.not_resource, resources_of(statement, policy.variables, semantics)))
        self.coverage = KeyCoverage(resources, start, variables=policy.variables, whole_arns=whole_arns)

    def class_of(self, key: str) -> KeyClass:
        return self.coverage.class_of(key)

    def clauses_of(
        self, covered: KeyClass, folders: Mapping[int, tuple[int, int]] | None = None
    ) -> list[tuple[Clause, Needs]]:
        """Return the statements that cover the object keys of a class, each with the tests that it needs for these
        keys.

        folders: by the statement's index, the test that replaces the question if the statement's Resource covers the
        object.
        """
        found: list[tuple[Clause, Needs]] = []
        for place, clause in enumerate(self.clauses):
            if covered.surely >> place & 1:
                found.append((clause, clause.needs))
            elif covered.perhaps >> place & 1:
                need = (folders or {}).get(place, (clause.what, 1))
                found.append((clause, _with(clause.needs, need)))
        return found


def _with_tags_of(resource: str, statement: Statement) -> Statement:
    """Return the statement with `resource` before each condition key on a tag, which is not a tag of the bucket."""

    def named(text: str) -> str:
        return _TAG_VARIABLE.sub(rf"\1{resource}:\2", text)

    return replace(
        statement,
        resources=tuple(map(named, statement.resources)),
        conditions=tuple(
            (operator, f"{resource}:{key}" if is_bucket_tag(key) else key, tuple(map(named, values)))
            for operator, key, values in statement.conditions
        ),
    )


def _with(needs: Needs, need: tuple[int, int]) -> Needs:
    joined = dict(needs)
    joined[need[0]] = joined.get(need[0], 0) | need[1]
    return tuple(joined.items())


def resources_of(statement: Statement, variables: bool, semantics: Semantics) -> tuple[str, ...]:
    """Return the resources of a statement. Ceph does not expand `${*}`, `${?}` and `${$}`, and it is not known if it
    takes a variable's default, so there all of these count as unknown variables.
    """
    if semantics is not Semantics.CEPH or not variables:
        return statement.resources
    return tuple(re.sub(r"\$\{(?:[*?$]|[^},]*,[^}]*)\}", "${ceph:escape}", text) for text in statement.resources)


def _compile(
    name: str, statement: Statement, ways: int, keys: Keys, names: Names, variables: bool, semantics: Semantics
) -> Clause:
    principals = PrincipalSet(statement.principals, negated=statement.not_principal, semantics=semantics)
    names.add_principals(principals.named)
    needs: dict[int, int] = {}
    dated: dict[int, int] = {}
    until: list[str] = []
    kinds: set[str] = set()
    for operator, key, values in statement.conditions:
        kinds.add(key_name(key))
        try:
            test = compile_test(operator, key, values, variables=variables, semantics=semantics)
        except ValueError:
            needs[keys.question(key or operator)] = 1
            continue
        names.add_test(key, () if operator.lower() == "null" else values)
        place, bit = keys.needs(test)
        needs[place] = needs.get(place, 0) | bit
        if key_name(key) in _DATES:
            dated[place] = dated.get(place, 0) | bit
            if "lessthan" in operator.lower():
                until += values
    spelled = ", ".join(text for _, text in statement.principals)
    return Clause(
        name,
        statement.allows,
        ways,
        principals,
        tuple(needs.items()),
        keys.question(spelled[:100]),
        keys.covers(resources_of(statement, variables, semantics), negated=statement.not_resource, variables=variables),
        bool(statement.conditions),
        not kinds.isdisjoint(_SERVICE_KEYS),
        tuple(dated.items()),
        max(until, default=None),
    )
