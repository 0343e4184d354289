"""Read the case files: the facts that a rule must flag and must not flag, in short words.

A case names the facts that its rule reads in the rule's own words: `acl`, or `bucket = { owner = ".." }` for
`bucket.owner`. Accounts are words: `owner` owns the bucket unless a case says otherwise, `friend` is trusted,
`stranger` and any other word is a canonical ID of its own. `AllUsers`, `AuthenticatedUsers`, `LogDelivery` and
`anonymous` stand for S3's own. A grant is written "stranger READ"; an ACL's owner is `owner` where it names none. An
access is the list of the audiences of an exposed object, `anyone` where a case names none; a policy is a list of
statements.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from auditor.model.access import Audience, ObjectAccess, Verdict
from auditor.model.bucket import (
    AccessGrant,
    AccessGrants,
    BucketFacts,
    Encryption,
    GranteeType,
    GrantPermission,
    PublicAccessBlock,
    Semantics,
)
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
    Skipped,
    Unread,
)
from auditor.model.policy import Policy, parse
from auditor.rules.base import SHARED_HEAD, Rule
from auditor.verdict.control import Control, WriteGrants, control_of, write_grants
from auditor.verdict.trust import Trust

FOLDER: Final = Path(__file__).parent / "cases"
HALVES: Final = ("should", "should_not")
WORDS: Final = {
    "AllUsers": ALL_USERS,
    "AuthenticatedUsers": AUTHENTICATED_USERS,
    "LogDelivery": LOG_DELIVERY,
    "anonymous": ANONYMOUS_OWNER,
}
DEFAULTS: Final[Mapping[str, Any]] = {
    "bucket.owner": "owner",
    "bucket.acl": {"grants": ["owner FULL_CONTROL"]},
    "bucket.policy_status": False,
    "bucket.semantics": "aws",
    "trusted": ["friend"],
    "trust": ["friend"],
    "now": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "access": ["anyone"],
    "control": [],
    "write_grants": [],
    **dict.fromkeys(f"head.{name}" for name in SHARED_HEAD),
}


@dataclass(frozen=True, slots=True)
class Expected:
    """A hit that a case expects. says: words that the message must hold. undecided: the API operation that would show
    the deciding fact, if the rule has to be undecided; such a hit has nothing else.
    """

    severity: Severity | None = None
    grantee: str | None = None
    permission: str | None = None
    says: str = ""
    undecided: str | None = None


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
    if unread := set(_flat(written)) - {"head" if name.startswith("head.") else name for name in rule.reads}:
        raise ValueError(f"{rule.id}, {name}: the rule does not read {sorted(unread)}")
    facts |= {f"head.{name}": value for name, value in facts.get("head", {}).items()}
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
    if set(written) == {"undecided"}:
        return Expected(undecided=written["undecided"])
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


def _access(audience: Sequence[str]) -> ObjectAccess:
    """The access to an exposed object, by its audience."""
    return ObjectAccess(Verdict.EXPOSED, tuple(map(Audience.parse, audience)))


def _encryption(written: Mapping[str, Any]) -> Encryption:
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in written.items()}
    return Encryption(**values)


def _policy(statements: Sequence[Mapping[str, Any]]) -> Policy:
    """A policy from its statements: each allows `GetObject` for the whole bucket `audited` unless it says otherwise."""
    plain = {
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Resource": ["arn:aws:s3:::audited/*", "arn:aws:s3:::audited"],
    }
    written = [_statement({**plain, **statement}) for statement in statements]
    return parse(json.dumps({"Version": "2012-10-17", "Statement": written}))


def _control(statements: Sequence[Mapping[str, Any]]) -> Control:
    """The control that a policy of these statements gives over the bucket `audited` of account 111122223333."""
    plain = {"Effect": "Allow", "Resource": ["arn:aws:s3:::audited/*", "arn:aws:s3:::audited"]}
    written = [_statement({**plain, **statement}) for statement in statements]
    text = json.dumps({"Version": "2012-10-17", "Statement": written})
    bucket = BucketFacts(bucket="audited", owner="owner", own_id="owner", account="111122223333", policy=text)
    found = control_of(bucket, Trust.of(["o-friend"]), DEFAULTS["now"])
    if isinstance(found, Unread | Skipped):
        raise ValueError(f"the policy of a case is malformed: {text}")
    return found


def _write_grants(written: Sequence[Mapping[str, str]]) -> WriteGrants:
    """The grants of the account 111122223333 on the bucket `audited`: to another's role, unless they say otherwise."""
    plain = {"grantee_type": "IAM", "grantee": "arn:aws:iam::444455556666:role/x", "scope": "s3://audited/*"}
    grants = tuple(_write_grant(f"g-{number}", {**plain, **one}) for number, one in enumerate(written, 1))
    facts = BucketFacts(bucket="audited", policy="", access_grants=AccessGrants(account="111122223333", grants=grants))
    return write_grants(facts, Trust.of(["u-friend"]), DEFAULTS["now"])


def _write_grant(name: str, written: Mapping[str, Any]) -> AccessGrant:
    types = {"grantee_type": GranteeType(written["grantee_type"]), "permission": GrantPermission(written["permission"])}
    return AccessGrant(id=name, **{**written, **types})


def _statement(statement: dict[str, Any]) -> dict[str, Any]:
    """The statement without the element whose negation it has, too."""
    negated = {name.removeprefix("Not") for name in statement if name.startswith("Not")}
    return {name: value for name, value in statement.items() if name not in negated}


def _as_written(value: Any) -> Any:
    return value


READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "acl": _acl,
    "head": _head,
    "ref": _ref,
    "owner": _account,
    "digests": _digests,
    "trusted": _accounts,
    "trust": lambda words: Trust.of(_accounts(words)),
    "access": _access,
    "dormant": _acl,
    "control": _control,
    "write_grants": _write_grants,
    "bucket.owner": _account,
    "bucket.acl": _acl,
    "bucket.access_block": _access_block,
    "bucket.default_encryption": _encryption,
    "bucket.parsed_policy": _policy,
    "bucket.semantics": Semantics,
}
