"""Read the case files: the facts that a rule must flag and must not flag, in short words.

A case names the facts that its rule reads in the rule's own words: `acl`, or `bucket = { owner = ".." }` for
`bucket.owner`. Accounts are words: `owner` owns the bucket unless a case says otherwise, `friend` is trusted,
`stranger` and any other word is a canonical ID of its own. `AllUsers`, `AuthenticatedUsers`, `LogDelivery` and
`anonymous` stand for S3's own. A grant is written "stranger READ"; an ACL's owner is `owner` where it names none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from auditor.model.bucket import PublicAccessBlock
from auditor.model.finding import Severity
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    AUTHENTICATED_USERS,
    LOG_DELIVERY,
    Acl,
    DigestSources,
    Grant,
    Head,
    ObjectRef,
)
from auditor.rules.base import Rule

FOLDER: Final = Path(__file__).parent / "cases"
HALVES: Final = ("should", "should_not")
WORDS: Final = {
    "AllUsers": ALL_USERS,
    "AuthenticatedUsers": AUTHENTICATED_USERS,
    "LogDelivery": LOG_DELIVERY,
    "anonymous": ANONYMOUS_OWNER,
}
DEFAULTS: Final[Mapping[str, Any]] = {"bucket.owner": "owner", "trusted": ["friend"]}


@dataclass(frozen=True, slots=True)
class Expected:
    """A hit that a case expects. says: words that the message must hold."""

    severity: Severity
    grantee: str | None = None
    permission: str | None = None
    says: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """facts: every fact that the rule reads, in its order, as the judge would pass it."""

    name: str
    facts: tuple[Any, ...]
    hits: tuple[Expected, ...]


def read_cases(rule: Rule, half: str) -> list[Case]:
    """One half of a rule's case file. Raises ValueError for a case with a missing or an unknown fact."""
    stem = rule.check.__module__.rpartition(".")[2]
    file = tomllib.loads((FOLDER / f"{stem}.toml").read_text())
    if set(file) != set(HALVES):
        raise ValueError(f"{rule.id}: a case file has {' and '.join(HALVES)}, not {sorted(file)}")
    return [_case(rule, dict(written), half) for written in file[half]]


def _case(rule: Rule, written: dict[str, Any], half: str) -> Case:
    name = written.pop("name")
    hits = tuple(_expected(hit) for hit in written.pop("hits", []))
    if bool(hits) != (half == "should"):
        raise ValueError(f"{rule.id}, {name}: `should` expects hits, `should_not` none")
    facts = {**DEFAULTS, **_flat(written)}
    if unread := set(_flat(written)) - set(rule.reads):
        raise ValueError(f"{rule.id}, {name}: the rule does not read {sorted(unread)}")
    if missing := set(rule.reads) - set(facts):
        raise ValueError(f"{rule.id}, {name}: the case lacks {sorted(missing)}")
    return Case(name, tuple(READERS.get(fact, _as_written)(facts[fact]) for fact in rule.reads), hits)


def _flat(written: Mapping[str, Any]) -> dict[str, Any]:
    """`bucket = { owner = "x" }` as `{"bucket.owner": "x"}`; likewise `config`."""
    flat: dict[str, Any] = {}
    for name, value in written.items():
        if name in ("bucket", "config"):
            flat.update({f"{name}.{part}": inner for part, inner in value.items()})
        else:
            flat[name] = value
    return flat


def _expected(written: Mapping[str, str]) -> Expected:
    hit: dict[str, Any] = {**written, "severity": Severity(written["severity"])}
    if "grantee" in hit:
        hit["grantee"] = _account(hit["grantee"])
    return Expected(**hit)


def _account(word: str) -> str:
    return WORDS.get(word, word)


def _accounts(words: Sequence[str]) -> frozenset[str]:
    return frozenset(map(_account, words))


def _acl(written: Mapping[str, Any]) -> Acl:
    if unknown := set(written) - {"owner", "grants"}:
        raise ValueError(f"an ACL has owner and grants, not {sorted(unknown)}")
    grants = (grant.split() for grant in written["grants"])
    return Acl(
        _account(written.get("owner", "owner")),
        tuple(Grant(_account(grantee), permission) for grantee, permission in grants),
    )


def _head(written: Mapping[str, Any]) -> Head:
    return Head(**{"etag": "e", "content_length": 1, **written})


def _ref(written: Mapping[str, Any]) -> ObjectRef:
    return ObjectRef(**{"etag": "e", "size": 1, "last_modified": "2026-01-02T03:04:05Z", **written})


def _digests(written: Mapping[str, Any]) -> DigestSources:
    return DigestSources(**written)


def _access_block(on: Sequence[str]) -> PublicAccessBlock:
    """A list of the switches that are on."""
    return PublicAccessBlock(**dict.fromkeys(on, True))


def _as_written(value: Any) -> Any:
    return value


READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "acl": _acl,
    "head": _head,
    "ref": _ref,
    "owner": _account,
    "digests": _digests,
    "trusted": _accounts,
    "bucket.owner": _account,
    "bucket.acl": _acl,
    "bucket.access_block": _access_block,
}
