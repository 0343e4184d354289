"""Put the access to one object into plain lines: its verdict, its audience, and a sentence for each reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, repeat
from typing import Any, Final

from msgspec import Struct

from auditor.model.access import ObjectAccess, Reason, ReasonCode, Verdict
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, LOG_DELIVERY
from auditor.reports.phrases import words_of
from auditor.reports.text_table import Column, folded, text_table
from auditor.text import harmless, visible


class ReasonGroup(StrEnum):
    """The effect of a reason on the object. The value is the label of the group's lines."""

    MORE = "and"
    OPENS = "opened by"
    MASKS = "masked by"
    CLOSES = "closed by"
    STORED = "stored"
    LEAVES_OPEN = "unknown"


_MORE, _OPENS, _MASKS, _CLOSES, _STORED, _UNKNOWN = ReasonGroup
SENTENCES: Final[dict[ReasonCode, tuple[ReasonGroup, str]]] = {
    ReasonCode.ACL_GRANT: (_OPENS, "the ACL, which grants {}"),
    ReasonCode.OBJECT_OWNER: (_OPENS, "its owner, who is not the bucket's owner: {}"),
    ReasonCode.POLICY_ALLOW: (_OPENS, "the bucket policy, statement {}, which allows it"),
    ReasonCode.ACCESS_POINT: (_OPENS, "the access point {}"),
    ReasonCode.ACCESS_GRANT: (_OPENS, "the grant {} of S3 Access Grants, as far as the role of its location may read"),
    ReasonCode.POLICY_DENY: (_MASKS, "the bucket policy, statement {}, which denies it"),
    ReasonCode.IGNORE_PUBLIC_ACLS: (_MASKS, "IgnorePublicAcls of the {}: grants to everyone do not count"),
    ReasonCode.RESTRICT_PUBLIC_BUCKETS: (
        _MASKS,
        "RestrictPublicBuckets of the {}: a public policy lets in the owner's account only",
    ),
    ReasonCode.KMS_KEY: (_MASKS, "the KMS key {}, which keeps others out"),
    ReasonCode.CUSTOMER_KEY: (_MASKS, "a key that only the uploader has (SSE-C)"),
    ReasonCode.REQUESTER_PAYS: (_MASKS, "Requester Pays: unsigned requests are refused"),
    ReasonCode.TRUSTED: (_MASKS, "the setting trusted: {} is not an outsider"),
    ReasonCode.ACLS_DISABLED: (_CLOSES, "BucketOwnerEnforced: no grant of an ACL is in force"),
    ReasonCode.NOT_BUCKET_OWNED: (
        _CLOSES,
        "its owner, who is not the bucket's: the bucket policy, statement {}, allows nothing on it",
    ),
    ReasonCode.ENDED: (_CLOSES, "a date: the bucket policy, statement {}, does not allow it now"),
    ReasonCode.STORED_GRANT: (_STORED, "a grant of {}, which takes effect again once ACLs apply"),
    ReasonCode.STORED_OWNER: (_STORED, "another owner, who owns it again once ACLs apply: {}"),
    ReasonCode.ACL_UNREAD: (_UNKNOWN, "its ACL, which was not read ({})"),
    ReasonCode.POLICY_UNREAD: (_UNKNOWN, "the bucket policy, which was not read ({})"),
    ReasonCode.KEY_UNKNOWN: (_UNKNOWN, "{}, which a condition of the bucket policy checks"),
    ReasonCode.ACCESS_POINTS_UNREAD: (_UNKNOWN, "the bucket's access points, which were not read ({})"),
    ReasonCode.BUCKET_TAGS_UNREAD: (
        _UNKNOWN,
        "the bucket's tags, or its ABAC, which were not read ({}): a condition of the bucket policy asks for a tag",
    ),
    ReasonCode.KMS_KEY_UNREAD: (_UNKNOWN, "the policy of the KMS key {}, which was not read"),
    ReasonCode.OWNER_UNKNOWN: (_UNKNOWN, "the bucket's owner, or the number of its account"),
    ReasonCode.TOO_COMPLEX: (_UNKNOWN, "the policies, which are too large to judge exactly: {}"),
    ReasonCode.MORE_AUDIENCES: (_MORE, "{} more, which the lines of a run do not name"),
}
"""The group and the sentence of each reason. `{}` stands for the reason's cause."""

_GRANTEES: Final = {
    ALL_USERS: "everyone (AllUsers)",
    AUTHENTICATED_USERS: "every AWS account (AuthenticatedUsers)",
    LOG_DELIVERY: "S3's log delivery",
    ANONYMOUS_OWNER: "everyone (the anonymous user)",
}

_WORDS: Final = {
    Verdict.EXPOSED: ("exposed to", "exposed to anyone on the internet, or to any AWS account"),
    Verdict.UNKNOWN: ("unknown; it may be open to more than", "unknown: perhaps nobody else gets in, perhaps anyone"),
    Verdict.SHARED: ("shared with", "shared with another account"),
    Verdict.MASKED: ("masked from", "masked: nobody else gets in today"),
    Verdict.DORMANT: ("closed today to all but", "dormant: nobody else gets in today"),
    Verdict.PRIVATE: ("closed to all but", "private: nobody else gets in"),
}
"""The sentence of each verdict: the words that stand before the audiences, and those for an access that names none."""


class Explanation(Struct, frozen=True, kw_only=True):
    """The access to one object version, with the things that nobody looked at. run: ID of the run that the access comes
    from; None if the object was read just now.
    """

    bucket: str
    key: str
    version_id: str | None
    access: ObjectAccess
    not_looked_at: tuple[str, ...]
    run: str | None = None
    renewed: str | None = None
    """When the object was read again after the run, because of an event; None if it was not."""

    @property
    def uri(self) -> str:
        """The object's URI, and its version, safe to print."""
        version = f" (version {visible(self.version_id)})" if self.version_id is not None else ""
        return f"{visible(f's3://{self.bucket}/{self.key}')}{version}"

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as the JSON value that `auditor explain --format json` prints."""
        return {
            "bucket": self.bucket,
            "key": self.key,
            "version_id": self.version_id,
            "run": self.run,
            "renewed": self.renewed,
            "verdict": self.access.verdict.value,
            "audience": [audience.text for audience in self.access.audience],
            "reasons": [reason.text for reason in self.access.reasons],
            **{group.name.lower(): list(sentences_of(self.access.reasons, group)) for group in ReasonGroup},
            "not_looked_at": list(self.not_looked_at),
        }


def render(explanations: Sequence[Explanation], room: int) -> str:
    """Return the explanations as lines for the terminal, safe to print. The things that nobody looked at come once, at
    the end, because they are the same for all objects of a bucket: in lines of at most `room` columns.
    """
    lines = [line for one in explanations for line in _block(one)]
    unseen = dict.fromkeys(phrase for one in explanations for phrase in one.not_looked_at)
    if unseen:
        lines += ["not looked at:", *(line for one in unseen for line in folded(f"  {harmless(one)}", room, "    "))]
    return "".join(f"{line}\n" for line in lines)


def _block(one: Explanation) -> Iterator[str]:
    access = one.access
    first, *more = [visible(words_of(one)) for one in access.audience] or [""]
    before, alone = _WORDS[access.verdict]
    words = f"{before} {first}" if first else alone
    yield f"{one.uri} is {words}"
    rows = [("and", audience) for audience in more]
    for group in ReasonGroup:
        labels = chain([group.value], repeat(""))
        rows += zip(labels, sentences_of(access.reasons, group), strict=False)
    if one.renewed is not None:
        rows.append(("read", f"{one.renewed}, after the run, because of an event of S3"))
    if access.verdict is Verdict.PRIVATE and not access.reasons:
        rows.append(("opened by", "nothing: no grant, no statement of the bucket policy, no other owner"))
    yield from text_table([Column(), Column()], rows, indent="  ", gap=" ")


def sentences_of(reasons: Iterable[Reason], group: ReasonGroup) -> Iterator[str]:
    """Yield the sentence of each reason of this group, safe to print."""
    for reason in reasons:
        found, sentence = SENTENCES[reason.code]
        if found is group:
            yield sentence.format(_cause(reason))


def _cause(reason: Reason) -> str:
    cause = reason.cause or "?"
    if reason.code in (ReasonCode.ACL_GRANT, ReasonCode.STORED_GRANT):
        grantee, _, permission = cause.rpartition(" ")
        return f"{visible(permission)} to {_GRANTEES.get(grantee, visible(grantee))}"
    if reason.code in (ReasonCode.OBJECT_OWNER, ReasonCode.STORED_OWNER):
        return _GRANTEES.get(cause, visible(cause))
    return visible(cause)
