"""Say if a bucket is ready for ACLs to be turned off (BucketOwnerEnforced), by the facts of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    AUTHENTICATED_USERS,
    LOG_DELIVERY,
    Acl,
    Outcome,
    Skipped,
    Unread,
)
from auditor.model.target import Target
from auditor.offline.fix_kit.policy_change import KitObject
from auditor.offline.what_if_report import OTHERS
from auditor.rules.bucket.b05_others_control import LOG_WRITER
from auditor.text import counted, visible

MOST_NAMED: Final = 10
"""Largest number of owners, and of grantees, that are named."""
_OWNERS: Final = 1000
_NAMES: Final = {
    LOG_DELIVERY: "S3's log delivery, which writes access logs: let the bucket policy allow logging.s3.amazonaws.com"
    " s3:PutObject in its place",
    LOG_WRITER: "awslogsdelivery, which writes CloudFront's legacy logs: move the distributions to standard"
    " logging (v2), or keep ACLs on this bucket",
    ALL_USERS: "everyone (AllUsers)",
    AUTHENTICATED_USERS: "any AWS account (AuthenticatedUsers)",
    ANONYMOUS_OWNER: "everyone (the anonymous user)",
}
_NEEDED: Final = {"acl": "the bucket's ACL", "ownership": "Object Ownership", "policy": "the bucket policy"}
"""The facts of the bucket without which nothing can be said, if they were not asked for, too."""
_HELPING: Final = {
    "public_access_block": "the bucket's public access block",
    "account_public_access_block": "the account's public access block",
    "request_payer": "the setting Requester Pays",
}


class Readiness(StrEnum):
    """The state of a bucket before ACLs are turned off."""

    READY = "ready"
    NOT_READY = "not ready"
    NOT_KNOWN = "not known"


class Assessment(Struct, frozen=True):
    """The readiness at one moment. blocks: sentences on what stands against it. unknown: sentences on what was not
    looked at.
    """

    blocks: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def state(self) -> Readiness:
        if self.blocks:
            return Readiness.NOT_READY
        return Readiness.NOT_KNOWN if self.unknown else Readiness.READY

    def to_dict(self) -> dict[str, Any]:
        return {"state": self.state.value, "blocks": list(self.blocks), "unknown": list(self.unknown)}


class SeenObjects:
    """Counts the facts of a run's objects that matter to readiness. own: canonical ID of the bucket's owner."""

    def __init__(self, own: str) -> None:
        self._own = own
        self.unread: Counter[str] = Counter()
        """Number of objects whose ACL was not read, by the error code or reason."""
        self.owners: Counter[str] = Counter()
        """Number of objects that others own, by the canonical ID of the owner."""

    def add(self, one: KitObject) -> None:
        line = one.line
        if line.outcome is Outcome.VANISHED:
            return
        if isinstance(line.acl, Acl):
            owner: str | None = line.acl.owner
        else:
            owner = line.owner
            self.unread[line.acl.code if isinstance(line.acl, Unread) else line.acl.reason] += 1
        if owner is not None and owner != self._own:
            known = owner in self.owners or len(self.owners) < _OWNERS
            self.owners[owner if known else OTHERS] += 1


def assess(target: Target, facts: BucketFacts, seen: SeenObjects, lacking: Iterable[str]) -> Assessment:
    """Return the readiness by the counts of a whole run. lacking: sentences on the grants that the bucket policy is to
    carry and does not.
    """
    return Assessment((*_of_bucket_acl(facts), *_of_owners(seen), *lacking), tuple(_unknown(target, facts, seen)))


def _of_bucket_acl(facts: BucketFacts) -> Iterator[str]:
    held: dict[str, list[str]] = {}
    for grant in facts.acl.grants if isinstance(facts.acl, Acl) else ():
        if grant.grantee != facts.owner:
            held.setdefault(grant.grantee, []).append(grant.permission)
    for grantee, permissions in list(held.items())[:MOST_NAMED]:
        name = _NAMES.get(grantee, f"the other account {visible(grantee)}")
        yield f"S3 refuses while the bucket's ACL grants {visible(', '.join(permissions))} to {name}"
    if (more := len(held) - MOST_NAMED) > 0:
        yield f"S3 refuses while the bucket's ACL grants something to {more:,} more"


def _of_owners(seen: SeenObjects) -> Iterator[str]:
    for owner, number in seen.owners.most_common(MOST_NAMED):
        name = "nobody (the anonymous user)" if owner == ANONYMOUS_OWNER else visible(owner)
        words = "would belong to the bucket's owner, so that an Allow of the bucket policy reaches them"
        yield f"{counted(number, 'object')} of the owner {name} {words}"
    if (more := len(seen.owners) - MOST_NAMED) > 0:
        yield f"objects of {more:,} more owners would belong to the bucket's owner"


def _unknown(target: Target, facts: BucketFacts, seen: SeenObjects) -> Iterator[str]:
    yield from _unlisted(target, facts)
    for name, words in {**_NEEDED, **_HELPING}.items():
        fact = getattr(facts, name)
        if isinstance(fact, Unread) or (name in _NEEDED and isinstance(fact, Skipped)):
            yield f"{words} was not read ({_reason(fact)})"
    for reason, number in seen.unread.most_common(MOST_NAMED):
        yield f"the ACL of {counted(number, 'object')} was not read ({visible(reason)})"


def _unlisted(target: Target, facts: BucketFacts) -> Iterator[str]:
    """Yield sentences on the objects that the run did not list."""
    versioning = facts.versioning
    if target.prefix or target.start_after is not None or target.stop_at is not None:
        yield "the run covered only a part of the bucket: audit the whole bucket"
    if facts.semantics is not Semantics.AWS:
        yield "the server is not AWS, and may not have Object Ownership"
    if target.versions or versioning == "Never":
        return
    if isinstance(versioning, str):
        yield "the bucket keeps older versions, and the run did not look at them: audit with --versions"
    else:
        yield f"it is not known whether the bucket keeps older versions ({_reason(versioning)})"


def _reason(fact: Unread | Skipped) -> str:
    return visible(fact.code if isinstance(fact, Unread) else fact.reason)
