"""The condition operators of IAM. compile_test() compiles one test of a policy, and the test then tells which values of
a request meet it.

Source: IAM user guide, pages "Condition operators", "Single-valued vs. multivalued context keys" and "Variables and
tags".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.bucket import Semantics
from auditor.model.wildcard import Part, variables_of
from auditor.verdict.comparisons import Comparison, Ordered, Patterns, Presence
from auditor.verdict.domains import Domain
from auditor.verdict.operators import OPERATORS, TextForm, as_aws, as_ceph
from auditor.verdict.variables import bind


class Quantifier(Enum):
    """How a test treats a condition key with several values."""

    ONE = ""
    ALL = "forallvalues"
    ANY = "foranyvalue"


class ConditionTest(Struct, frozen=True, kw_only=True):
    """One test of a statement's Condition: a comparison, a key and its values."""

    key: str
    """The condition key as the policy writes it. key_name() returns the form that all spellings of a key share."""
    comparison: Comparison
    negated: bool = False
    if_exists: bool = False
    quantifier: Quantifier = Quantifier.ONE
    ceph: bool = False
    """True if Ceph evaluates the test. On Ceph, a negated operator is not met by an absent key; with several values, it
    is met by a value that differs from one of them."""
    variables: frozenset[str] = frozenset()
    """The condition keys of the policy variables in the values, in lower case. If there are any, call bind() before the
    test is asked."""
    _form: TextForm = TextForm()
    _values: tuple[tuple[Part, ...], ...] = ()

    @property
    def multi(self) -> bool:
        """True for the prefixes ForAllValues and ForAnyValue."""
        return self.quantifier is not Quantifier.ONE

    @property
    def every(self) -> bool:
        """True if all of several values have to meet the test; False if one is enough."""
        return self.quantifier is Quantifier.ALL or (self.negated and not self.multi and not self.ceph)

    @property
    def when_absent(self) -> bool:
        """The outcome for a request without the condition key."""
        if isinstance(self.comparison, Presence):
            return self.comparison.absent
        if self.multi and not self.ceph:
            return self.quantifier is Quantifier.ALL
        return self.if_exists or (self.quantifier is Quantifier.ALL if self.ceph else self.negated)

    def bind(self, domains: Mapping[str, Domain]) -> ConditionTest:
        """Return this test for one requester: each policy variable in the values is replaced by its text.

        domains: the values that the requester's condition keys can have, by the key in lower case. A key without a
        domain is absent. If the requester chooses the text of a variable, he also decides if a value with the variable
        matches; other uses of the same variable are not taken into account.
        """
        if not self.variables:
            return self
        return replace(
            self, comparison=self._form.compare([bound for value in self._values for bound in bind(value, domains)])
        )

    def outcome(self, values: Sequence[str] | None) -> bool | None:
        """Return whether a request with these values of the condition key meets the test. None, or no value, stands for
        an absent key. The result None means that the requester decides, by the text of a policy variable.
        """
        if isinstance(self.comparison, Presence):
            return self.comparison.present if values else self.comparison.absent
        if self.multi and not self.ceph:
            # An empty text counts as no value (IAM user guide, multivalued context keys).
            values = [value for value in values or () if value]
        if not values:
            return self.when_absent
        each = [self.of_one(value) for value in values]
        if (not self.every) in each:
            return not self.every
        return None if None in each else self.every

    def of_one(self, value: str) -> bool | None:
        """Return the outcome for one value of a condition key that is present, in the form of outcome()."""
        if self.ceph and self.negated and isinstance(self.comparison, Patterns | Ordered):
            return self.comparison.differs(value)
        match = self.comparison.matches(value)
        return None if match is None else match != self.negated


def key_name(key: str) -> str:
    """Return the form that all spellings of a condition key share. Key names are not case-sensitive. The names of
    object tags are left as they are, because two tags of an object may differ in case only.
    """
    head, slash, tag = key.partition("/")
    head = head.lower()
    return f"{head}{slash}{tag if head.startswith('s3:') else tag.lower()}"


def compile_test(
    operator: str,
    key: str,
    values: Sequence[str],
    *,
    variables: bool,
    semantics: Semantics = Semantics.AWS,
) -> ConditionTest:
    """Compile one test of a Condition. Names of operators are not case-sensitive.

    variables: True if `${key}` in a value is a policy variable, and `${*}`, `${?}` and `${$}` are the characters
    (Version 2012-10-17). semantics: the server's rules; for Ceph see as_ceph(). Raises ValueError if AWS would refuse
    the test, or if its meaning is not documented: an unknown operator, a value of the wrong form, an ARN of fewer than
    six parts.
    """
    name = operator.lower()
    quantifier = next((q for q in Quantifier if q.value and name.startswith(f"{q.value}:")), Quantifier.ONE)
    if quantifier is not Quantifier.ONE:
        name = name[len(quantifier.value) + 1 :]
    if_exists = name.endswith("ifexists")
    name = name.removesuffix("ifexists")
    known = OPERATORS.get(name)
    ceph = semantics is Semantics.CEPH
    if known is None or (name == "null" and (quantifier is not Quantifier.ONE or (if_exists and not ceph))):
        raise ValueError("the operator is unknown")
    if not key:
        raise ValueError("the operator has no key")
    comparison, parts = (as_ceph if ceph else as_aws)(name, values, variables=variables)
    return ConditionTest(
        key=key,
        comparison=comparison,
        negated=known.negated,
        if_exists=if_exists,
        quantifier=quantifier,
        ceph=ceph,
        variables=frozenset().union(*map(variables_of, parts)),
        _form=known.form,
        _values=parts,
    )
