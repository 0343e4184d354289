"""The access to an object: its verdict, each audience that gets in, and the reasons.

An audience is read from its text. Which audience contains which follows from their names: an account contains its
principals, a network the networks inside it, an organization its paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations, product
from typing import Final, Self

from msgspec import Struct

from auditor.model.wildcard import matches_arn

MOST_NAMED: Final = 20
"""Largest number of audiences in the line of one object."""

_ANY: Final = "*"
"""The name of an audience that stands for every service, or for the grantees of any instance."""
_WILDCARD: Final = re.compile(r"[*?]")


class Verdict(StrEnum):
    """The widest audience that can reach one object today, the widest first. If several apply, the first counts."""

    EXPOSED = "exposed"
    UNKNOWN = "unknown"
    SHARED = "shared"
    MASKED = "masked"
    DORMANT = "dormant"
    """Nobody gets in today, as with a private object; an S3 Inventory shows a hidden part of the stored ACL that opens
    the object again once ACLs count. No call shows that part."""
    PRIVATE = "private"


def told_verdicts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts by verdict that a report tells its reader: without `dormant` where there is no such object, for
    only an S3 Inventory shows them.
    """
    return {verdict: number for verdict, number in counts.items() if number or verdict != Verdict.DORMANT}


class AudienceKind(StrEnum):
    """The kind of an audience: requesters that do not belong to the bucket's owner or to a trusted party."""

    ANYONE = "anyone"
    """Any request from the internet, even an unsigned one. It has no name."""
    ANY_ACCOUNT = "any-account"
    """Any AWS account, or any user of the server, by a signed request. It has no name."""
    ACCOUNT = "account"
    """An AWS account by its 12 digits, or one of its principals by its ARN."""
    CANONICAL_ID = "canonical-id"
    """An account or an origin access identity of which only the canonical ID is known."""
    ORGANIZATION = "organization"
    """An AWS organization, such as o-a1b2c3d4e5, or a path in one."""
    NETWORK = "network"
    """The addresses of a network, in CIDR notation."""
    VPC = "vpc"
    """A VPC by its ID, or the VPCs of an account by a pattern of ARNs."""
    VPC_ENDPOINT = "vpc-endpoint"
    """A VPC endpoint by its ID."""
    VPC_ACCOUNT = "vpc-account"
    """Requests through the VPC endpoints of an AWS account, by its 12 digits."""
    VPC_ORGANIZATION = "vpc-organization"
    """Requests through the VPC endpoints of an AWS organization, by its ID."""
    SERVICE = "service"
    """An AWS service by its principal, such as logging.s3.amazonaws.com. It acts for any customer, or for a source that
    the name leaves out."""
    SOURCE = "source"
    """An AWS service that acts for one resource or account, by its ARN or its 12 digits, such as a CloudFront
    distribution."""
    ACCESS_POINT = "access-point"
    """The users that an access point of the bucket lets in, by its ARN."""
    ACCESS_GRANTS = "access-grants"
    """The grantees of an S3 Access Grants instance, by its ARN; `*` is any instance that no policy names."""
    IDENTITY_PROVIDER = "identity-provider"
    """The users of an identity provider, by its name or ARN."""
    GROUP = "group"
    """A group in an ACL other than the two public ones, by its URI, such as LogDelivery."""
    DIRECTORY_USER = "directory-user"
    """A user of the corporate directory behind S3 Access Grants, by UUID."""
    DIRECTORY_GROUP = "directory-group"
    """A group of the corporate directory behind S3 Access Grants, by UUID."""


class Audience(Struct, frozen=True):
    """One audience of an object: outside requesters that can reach it. name: None for the two kinds without a name.
    through: the only way on which the audience gets in, such as "network 203.0.113.0/24" or "header aws:Referer"; None
    if there is no such limit.
    """

    kind: AudienceKind
    name: str | None = None
    through: str | None = None

    @property
    def text(self) -> str:
        """The audience in one string: "anyone", "account 444455556666", "organization o-1 through vpc-endpoint vpce-1".
        Object lines and the summary have it in this form.
        """
        named = self.kind.value if self.name is None else f"{self.kind.value} {self.name}"
        return named if self.through is None else f"{named} through {self.through}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the audience that `text` names in the form of Audience.text. Raises ValueError for another text."""
        named, _, through = text.partition(" through ")
        kind, _, name = named.partition(" ")
        return cls(AudienceKind(kind), name or None, through or None)


class ReasonCode(StrEnum):
    """The stable codes of reasons. Each code names one fact that opens, hides or closes an object, or that leaves its
    verdict undecided.
    """

    # It opens.
    ACL_GRANT = "acl-grant"
    """A grant of the object's ACL. Cause: GRANTEE PERMISSION."""
    OBJECT_OWNER = "object-owner"
    """Another account owns the object. Cause: the owner's canonical ID."""
    POLICY_ALLOW = "policy-allow"
    """A statement of the bucket policy allows it. Cause: the statement's Sid, or "#" and its number."""
    ACCESS_POINT = "access-point"
    """An access point of the bucket lets requests in. Cause: its ARN."""
    ACCESS_GRANT = "access-grant"
    """A grant of S3 Access Grants hands out credentials of a role of the bucket owner's account. Cause: the grant's
    ID."""
    # It hides: without it, an audience would get in.
    POLICY_DENY = "policy-deny"
    """A statement of the bucket policy denies it. Cause: as for policy-allow."""
    IGNORE_PUBLIC_ACLS = "ignore-public-acls"
    """The switch IgnorePublicAcls is on. Cause: "bucket" or "account"."""
    RESTRICT_PUBLIC_BUCKETS = "restrict-public-buckets"
    """RestrictPublicBuckets is on, and the policy is public. Cause: "bucket", "account" or "access point ARN"."""
    KMS_KEY = "kms-key"
    """The object's KMS key keeps requests out. Cause: the key's ARN or ID."""
    CUSTOMER_KEY = "customer-key"
    """Only the uploader has the object's key (SSE-C)."""
    REQUESTER_PAYS = "requester-pays"
    """The requester pays, so unsigned requests are refused."""
    TRUSTED = "trusted"
    """Only trusted audiences get in. Cause: the entry of `trusted`."""
    # It closes for good.
    ACLS_DISABLED = "acls-disabled"
    """BucketOwnerEnforced: ACLs do not count."""
    NOT_BUCKET_OWNED = "not-bucket-owned"
    """An Allow of the bucket policy does not reach the object, because another account owns it. Cause: as for
    policy-allow."""
    ENDED = "ended"
    """The dates of an Allow of the bucket policy are past, or still to come. Cause: as for policy-allow."""
    # It is stored, and counts for nothing today.
    STORED_GRANT = "stored-grant"
    """A grant of the stored ACL, hidden today, takes effect again once ACLs apply. Cause: GRANTEE PERMISSION."""
    STORED_OWNER = "stored-owner"
    """The stored ACL names another owner, who owns the object again once ACLs apply. Cause: the owner's canonical
    ID."""
    # It is not known.
    ACL_UNREAD = "acl-unread"
    """The ACL was not read. Cause: the error code, or "skipped"."""
    POLICY_UNREAD = "policy-unread"
    """The bucket policy was not read, or cannot be parsed. Cause: the error code."""
    KEY_UNKNOWN = "key-unknown"
    """A condition tests a key whose value is not known. Cause: the key, such as s3:ExistingObjectTag/public."""
    ACCESS_POINTS_UNREAD = "access-points-unread"
    """The bucket policy delegates to access points, which were not read. Cause: the error code, or "skipped"."""
    BUCKET_TAGS_UNREAD = "bucket-tags-unread"
    """A condition tests a tag of the bucket, and the tags, or whether ABAC is on, were not read. Cause: the error code,
    or "skipped"."""
    KMS_KEY_UNREAD = "kms-key-unread"
    """The verdict depends on the policy of the object's KMS key, which was not read. Cause: the key's ARN or ID."""
    OWNER_UNKNOWN = "owner-unknown"
    """The canonical ID or account of the bucket's owner is not known."""
    TOO_COMPLEX = "too-complex"
    """The policy is too large to judge exactly. Cause: the number and its limit, such as "1,200,004 steps, at most
    1,200,000"."""
    # It is not named.
    MORE_AUDIENCES = "more-audiences"
    """More audiences get in than the line names. Cause: how many more."""


class Reason(Struct, frozen=True):
    """One reason of an object's access. cause: the grant, statement, switch, key or error code that made the reason;
    None if the reason's code needs none.
    """

    code: ReasonCode
    cause: str | None = None

    @property
    def text(self) -> str:
        """The reason in one string: "acls-disabled", "policy-allow: PublicRead". Object lines have it in this form."""
        return self.code.value if self.cause is None else f"{self.code.value}: {self.cause}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the reason that `text` names in the form of Reason.text. Raises ValueError for another text."""
        code, _, cause = text.partition(": ")
        return cls(ReasonCode(code), cause or None)


class ObjectAccess(Struct, frozen=True, cache_hash=True):
    """The access to one object version: the verdict, each audience that gets in, and the reasons. An audience is listed
    only if no wider one contains it.

    A judge gives objects with equal access the same ObjectAccess, so that a run makes few of them. The cache of object
    lines uses the access as its key, so its hash is computed only once.
    """

    verdict: Verdict
    audience: tuple[Audience, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def more(self) -> int:
        """How many more audiences get in than `audience` names; at least 1 if a reason says that there are more."""
        causes = [(one.cause or "").replace(",", "") for one in self.reasons if one.code is ReasonCode.MORE_AUDIENCES]
        return sum(int(cause) if cause.isdecimal() else 1 for cause in causes)

    @property
    def strangers(self) -> str:
        """The strangers that an exposed object lets in, in words: anyone on the internet, or any AWS account."""
        signed = self.audience and all(one.kind is not AudienceKind.ANYONE for one in self.audience)
        return "any AWS account" if signed else "anyone on the internet"


_KINDS: Final = {kind: place for place, kind in enumerate(AudienceKind)}
_SIGNED: Final = frozenset(
    {
        AudienceKind.ACCESS_GRANTS,
        AudienceKind.ACCOUNT,
        AudienceKind.CANONICAL_ID,
        AudienceKind.DIRECTORY_GROUP,
        AudienceKind.DIRECTORY_USER,
        AudienceKind.GROUP,
        AudienceKind.IDENTITY_PROVIDER,
        AudienceKind.ORGANIZATION,
    }
)
"""The kinds of audiences whose requesters all belong to the audience "any AWS account"."""
_PLACES: Final = frozenset(
    {
        AudienceKind.NETWORK,
        AudienceKind.VPC,
        AudienceKind.VPC_ENDPOINT,
        AudienceKind.VPC_ACCOUNT,
        AudienceKind.VPC_ORGANIZATION,
        AudienceKind.ACCESS_POINT,
    }
)
"""The kinds of audiences that are everybody at one place. The field `through` of other audiences can name a place."""
_PATTERNED: Final = frozenset(
    {AudienceKind.ACCESS_GRANTS, AudienceKind.ACCESS_POINT, AudienceKind.ACCOUNT, AudienceKind.SOURCE}
)
"""The kinds of audiences whose name can be an ARN with wildcards."""


def known_audiences(texts: Iterable[str]) -> Iterator[Audience]:
    """Yield the audiences that these texts name, in the form of Audience.text. A text of another form is left out: it
    stands for the rest of many, or is of a later version.
    """
    for text in texts:
        with suppress(ValueError):
            yield Audience.parse(text)


def contains(wide: Audience, narrow: Audience) -> bool:
    """True if each requester of the audience `narrow` is one of the audience `wide`, as far as their names tell."""
    return wide == narrow or wide in WiderAudiences((wide,)).of(narrow)


def widest(audiences: Iterable[Audience]) -> tuple[Audience, ...]:
    """Return the audiences that no other one contains, each once, in their order."""
    found = dict.fromkeys(audiences)
    wider = WiderAudiences(found)
    return tuple(one for one in found if not any(other in found for other in wider.of(one)))


@lru_cache(4096)
def listed(access: ObjectAccess) -> ObjectAccess:
    """Return the access as an object's line has it: with the MOST_NAMED widest audiences, and with a reason that says
    how many more there are. An access with fewer audiences is returned as it is.

    An audience without a limit comes before one with a limit. Then they come in the order of AudienceKind, wider
    networks first, and then in the order of their texts.
    """
    more = len(access.audience) - MOST_NAMED
    if more <= 0:
        return access
    named = tuple(sorted(access.audience, key=_order)[:MOST_NAMED])
    reason = Reason(ReasonCode.MORE_AUDIENCES, f"{more:,}")
    return ObjectAccess(access.verdict, named, (*access.reasons, reason))


def _order(audience: Audience) -> tuple[bool, int, int, str]:
    network = _network(audience.name or "") if audience.kind is AudienceKind.NETWORK else None
    length = 0 if network is None else network.prefixlen
    return audience.through is not None, _KINDS[audience.kind], length, audience.text


class WiderAudiences:
    """Finds the wider audiences that contain an audience, by their names. audiences: those among which to look."""

    def __init__(self, audiences: Iterable[Audience]) -> None:
        named: dict[AudienceKind, dict[str, None]] = {}
        for one in audiences:
            for kind, name in ((one.kind, one.name), _place(one)):
                if kind is not None and name is not None:
                    named.setdefault(kind, {})[name] = None
        networks = map(_network, named.get(AudienceKind.NETWORK, ()))
        self._lengths = {network.prefixlen for network in networks if network is not None}
        self._patterns = {kind: list(filter(_WILDCARD.search, named.get(kind, ()))) for kind in _PATTERNED}

    def of(self, audience: Audience) -> Iterator[Audience]:
        """Yield the audiences that contain this one, whether they get in or not. An audience with a limit is inside the
        same audience without the limit, and inside the audience of its place.
        """
        kind, place = _place(audience)
        places = [] if kind is None or place is None else [place, *self._wider(kind, place)]
        limits = [
            *(f"{kind} {name}" for name in places),
            *([] if places else [audience.through]),
            *_fewer_headers(audience),
            None,
        ]
        parties = [(audience.kind, audience.name)]
        parties += [(audience.kind, name) for name in self._wider(audience.kind, audience.name)]
        if audience.kind in (AudienceKind.SERVICE, AudienceKind.SOURCE):
            parties.append((AudienceKind.SERVICE, _ANY))
        if audience.kind is AudienceKind.ACCESS_GRANTS:
            parties.append((AudienceKind.ACCESS_GRANTS, _ANY))
        if audience.kind in _SIGNED:
            parties.append((AudienceKind.ANY_ACCOUNT, None))
        parties.append((AudienceKind.ANYONE, None))
        for (party, name), through in product(parties, limits):
            if (wider := Audience(party, name, through)) != audience:
                yield wider
        if kind is not None:
            yield from (Audience(kind, name) for name in places)

    def _wider(self, kind: AudienceKind, name: str | None) -> Iterator[str]:
        """Yield the wider names of the same kind, of audiences that contain this one."""
        if name is None:
            return
        if kind is AudienceKind.NETWORK and (network := _network(name)) is not None:
            yield from (str(network.supernet(new_prefix=n)) for n in self._lengths if n < network.prefixlen)
        if kind in (AudienceKind.ACCOUNT, AudienceKind.SOURCE):
            parts = name.split(":", 5)
            if len(parts) == 6 and re.fullmatch("[0-9]{12}", parts[4]):
                yield parts[4]
        if kind in (AudienceKind.ORGANIZATION, AudienceKind.SOURCE) and name.startswith("o-"):
            steps = name.split("/")
            yield from ("/".join(steps[:length]) for length in range(1, len(steps)))
        if kind in _PATTERNED:
            yield from (one for one in self._patterns[kind] if one != name and matches_arn(one, name))


def _fewer_headers(audience: Audience) -> Iterator[str]:
    """Yield the limit of an audience that has to send several headers, with some of the headers left out."""
    _, _, text = (audience.through or "").partition("header ")
    headers = text.split(" and ")
    for size in range(1, len(headers)):
        yield from (f"header {' and '.join(some)}" for some in combinations(headers, size))


def _place(audience: Audience) -> tuple[AudienceKind | None, str | None]:
    """Return kind and name of the place through which an audience gets in; None and None for any other limit."""
    kind, _, name = (audience.through or "").partition(" ")
    return (AudienceKind(kind), name) if kind in _PLACES else (None, None)


@lru_cache(4096)
def _network(name: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(name)
    except ValueError:
        return None
