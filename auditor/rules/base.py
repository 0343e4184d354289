"""What a rule is: a pure function from declared facts to hits, with an id, a severity and its own documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.model.bucket import BucketFacts
from auditor.model.finding import Severity

OBJECT_FACTS: Final = frozenset({"ref", "acl", "head", "owner", "digests"})

BUCKET_FACTS: Final = frozenset(
    f"bucket.{name}"
    for name in (
        "owner",
        "ownership",
        "access_block",
        "acl",
        "policy_is_public",
        "policy",
        "restricts_public_policy",
        "versioning",
        "encryption",
        "request_payer",
    )
)

SECTIONS: Final = ("Why", "Flagged", "Not flagged", "Blind to", "Fix")


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found; the judge adds key, rule and fingerprint. severity: where it differs from the rule's."""

    message: str
    grantee: str | None = None
    permission: str | None = None
    severity: Severity | None = None


Check = Callable[..., Iterator[Hit]]
Validate = Callable[[Mapping[str, Any]], None]


def any_options(options: Mapping[str, Any]) -> None:
    """The options of a rule that takes whatever is of the right type."""


@dataclass(frozen=True, slots=True)
class Rule:
    """id: stable for ever ("O02"). name: kebab-case. reads: the facts `check` takes, in its parameters' order.

    A fact's name is `ref`, `acl`, `head`, `owner` (canonical ID of the object's owner, by its ACL where that was read,
    else by the listing), `digests` (only with a ledger), `bucket.X` (X of bucket.BucketFacts), `trusted` (frozenset of
    canonical IDs), or `config.X`: option X of the configuration's [rules.ID], without which the rule is not selected.
    options: each option's name and the Python type its TOML value must have. validate: raises ValueError, one phrase
    for the user, for options of the right types whose values mean nothing.
    """

    id: str
    name: str
    severity: Severity
    reads: tuple[str, ...]
    check: Check
    options: Mapping[str, type] = field(default_factory=dict)
    validate: Validate = any_options

    @property
    def per_object(self) -> bool:
        """Judged for each object; otherwise once for the bucket."""
        return bool(OBJECT_FACTS.intersection(self.reads))

    @property
    def doc(self) -> str:
        """The check's docstring, dedented: lines that begin with the words of SECTIONS."""
        return inspect.getdoc(self.check) or ""

    @property
    def title(self) -> str:
        """The first line of the module's docstring, without the id: "anyone on the internet can read the object"."""
        module = inspect.getmodule(self.check)
        first = (inspect.getdoc(module) or "").partition("\n")[0]
        return first.partition(": ")[2].rstrip(".")


def rule(
    id: str,  # noqa: A002 - "id" is the field's own word for it
    name: str,
    severity: Severity,
    *,
    reads: tuple[str, ...],
    options: Mapping[str, type] | None = None,
    validate: Validate = any_options,
) -> Callable[[Check], Rule]:
    """Make a Rule of a check; a declaration that cannot work fails at import."""
    declared = options or {}

    def wrap(check: Check) -> Rule:
        known = OBJECT_FACTS | BUCKET_FACTS | {"trusted"} | {f"config.{option}" for option in declared}
        if unknown := set(reads) - known:
            raise TypeError(f"{id} reads unknown facts: {sorted(unknown)}")
        parameters: Mapping[str, Any] = inspect.signature(check).parameters
        if len(parameters) != len(reads):
            raise TypeError(f"{id} reads {len(reads)} facts but its check takes {len(parameters)}")
        return Rule(id, name, severity, reads, check, declared, validate)

    return wrap


def bucket_fact(facts: BucketFacts, name: str) -> Any:
    """The value behind a rule's `bucket.X`: a fact, Unread or Skipped."""
    return getattr(facts, name.removeprefix("bucket."))
