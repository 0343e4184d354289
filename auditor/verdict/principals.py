"""The parties that send requests, and the parties that a statement's Principal or NotPrincipal stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from auditor.model.access import AudienceKind
from auditor.model.bucket import Semantics
from auditor.model.object import ANONYMOUS_OWNER
from auditor.model.policy import EVERYONE
from auditor.model.wildcard import Wildcard
from auditor.verdict.trust import Arn

_ACCOUNT: Final = re.compile(r"[0-9]{12}")
_UNIQUE_ID: Final = re.compile(r"A[A-Z]{3}[A-Z0-9]{12,}")
_WILD: Final = re.compile(r"[*?$]")

PUBLIC_PROVIDERS: Final = frozenset(
    {"accounts.google.com", "cognito-identity.amazonaws.com", "graph.facebook.com", "www.amazon.com"}
)
"""Identity providers at which anybody can sign up."""


class Party(Struct, frozen=True):
    """The sender of a request, such as an account, a principal, a service or everyone. kind, name: as in Audience.

    The other fields identify the party; None for an unknown or unnamed one. A party that is neither signed nor a
    service is everyone, unsigned.
    """

    kind: AudienceKind
    name: str | None = None
    signed: bool = True
    account: str | None = None
    """Number of the party's account, or a tenant of Ceph."""
    arn: str | None = None
    """The party's ARN, if it is one principal."""
    arn_pattern: str | None = None
    """Pattern of the ARNs of the party, if it is several principals of one account."""
    patterns: tuple[str, ...] = ()
    """The ARN patterns in the bucket's policies that match the party's ARN."""
    canonical: str | None = None
    """Canonical ID; on Ceph USER or TENANT$USER."""
    service: str | None = None
    source: str | None = None
    """ARN, account or organization on whose behalf the service sends the request, as a policy names it."""
    source_account: str | None = None
    source_organization: str | None = None
    provider: str | None = None
    unique_id: str | None = None
    """The party's unique ID, such as AROAEXAMPLE, if it is one principal. It is the part of aws:userid before the
    colon."""
    linked: Party | None = None
    """The account or principal that this party is, if a policy names the party by its canonical ID."""
    free: bool = False
    """True for a party that may belong to any of the named organizations."""
    organization: str | None = None
    grants: str | None = None
    """ARN, or pattern of ARNs, of the S3 Access Grants instance that gave the party its credentials; ANY_INSTANCE for
    an instance that no policy names."""
    point: str | None = None
    vended: int = 0
    """The ways that a grant of S3 Access Grants allows, for a party that holds the credentials of an unknown role of
    the bucket owner's account; 0 for any other party."""


ANY_SERVICE: Final = "*"
"""The service of a party that stands for any AWS service."""

ANY_INSTANCE: Final = "*"
"""The S3 Access Grants instance of a party that stands for the grantees of any instance without a name."""

ANONYMOUS: Final = Party(AudienceKind.ANYONE, signed=False)
ANY_ACCOUNT: Final = Party(AudienceKind.ANY_ACCOUNT)


def is_account(text: str) -> bool:
    return bool(_ACCOUNT.fullmatch(text))


def account_in(arn: str) -> str | None:
    """Return the account number that an ARN, or a pattern of one, names as its fifth part; None if there is none."""
    parts = arn.split(":", 5)
    return parts[4] if len(parts) == 6 and is_account(parts[4]) else None


def is_fixed(text: str) -> bool:
    """True if the text has neither a wildcard nor a policy variable."""
    return not _WILD.search(text)


def party_of(kind: str, value: str, semantics: Semantics = Semantics.AWS) -> Party | None:
    """Return the party that a policy's principal names. Return None for everyone, and for a text that does not surely
    name a party. kind: AWS, CanonicalUser, Service or Federated.
    """
    if not is_fixed(value) or _is_everyone(kind, value):
        return None
    match kind:
        case "CanonicalUser":
            return of_canonical(value)
        case "Service":
            return Party(AudienceKind.SERVICE, value, service=value)
        case "Federated":
            return Party(AudienceKind.IDENTITY_PROVIDER, value, provider=value)
    if is_account(value):
        return Party(AudienceKind.ACCOUNT, value, account=value)
    arn = Arn.parse(value)
    if arn is None and semantics is Semantics.OTHER and not _UNIQUE_ID.fullmatch(value):
        return Party(AudienceKind.ACCOUNT, value, canonical=value)  # such a server knows its users by plain names
    if arn is None or arn.service not in ("iam", "sts"):
        return None
    if arn.resource == "root":
        return Party(AudienceKind.ACCOUNT, arn.account, account=arn.account)
    return Party(AudienceKind.ACCOUNT, value, account=arn.account, arn=value, canonical=_ceph_user(arn))


def of_canonical(canonical_id: str) -> Party:
    tenant, dollar, _ = canonical_id.partition("$")  # only Ceph has tenants
    return Party(AudienceKind.CANONICAL_ID, canonical_id, canonical=canonical_id, account=tenant if dollar else None)


def _ceph_user(arn: Arn) -> str | None:
    """Return the canonical ID of the Ceph user that an ARN names. Return None for an ARN with an AWS account number."""
    if is_account(arn.account) or arn.account == "cloudfront" or not arn.resource.startswith("user/"):
        return None
    user = arn.resource.removeprefix("user/")
    return f"{arn.account}${user}" if arn.account else user


def ceph_user(arn: str) -> str | None:
    """Return the canonical ID of a user whose ARN Ceph writes; None for another text."""
    found = Arn.parse(arn)
    return None if found is None or found.service != "iam" else _ceph_user(found)


def _is_everyone(kind: str, value: str) -> bool:
    """True if the principal means everyone: `*`, or the anonymous canonical ID. In Ceph, also an empty name, and the
    root of an empty tenant.
    """
    if (kind, value) == EVERYONE or (kind == "CanonicalUser" and value == ANONYMOUS_OWNER):
        return True
    if kind != "AWS":
        return False
    arn = Arn.parse(value)
    return not value or (arn is not None and arn.service == "iam" and (arn.account, arn.resource) == ("", "root"))


class PrincipalSet:
    """The parties that a statement's Principal names; if negated, all parties that NotPrincipal does not name."""

    def __init__(
        self,
        principals: Iterable[tuple[str, str]],
        *,
        negated: bool,
        semantics: Semantics,
    ) -> None:
        self._negated = negated
        self._everyone = False
        self._accounts: set[str] = set()
        self._names: set[tuple[str, str]] = set()
        self._patterns: list[Wildcard] = []
        self._unclear = False
        self.named: list[Party] = []
        for kind, value in principals:
            anonymous = kind == "CanonicalUser" and value == ANONYMOUS_OWNER
            if _is_everyone(kind, value) and not (anonymous and semantics is Semantics.CEPH):
                self._everyone = True
            elif (party := party_of(kind, value, semantics)) is not None:
                self._add(party)
            elif kind == "AWS" and not is_fixed(value):
                self._patterns.append(Wildcard.of(value))
            else:
                self._unclear = True  # a unique ID, such as that of a deleted principal, or no principal at all

    def _add(self, party: Party) -> None:
        self.named.append(party)
        if party.arn is None and party.account is not None and party.canonical is None:
            self._accounts.add(party.account)
        self._names.update(names_of(party))
        if party.arn is not None and (role := role_of(party.arn)) is not None:
            self._names.add(("role", role))  # it stands for each session of the role

    @property
    def everyone(self) -> bool:
        """True if the statement is for all parties without a name in the policies."""
        return self._everyone != self._negated

    def has(self, party: Party, *, allows: bool, names: Sequence[tuple[str, str]] | None = None) -> bool | None:
        """True if the statement is for the party; None if that is not known. allows: False for a Deny. names: the
        party's names_of(), if they are at hand.
        """
        if party.vended:
            return self._has_each_role(party.account)
        if self._everyone:
            return not self._negated
        listed = self._lists(party, names_of(party) if names is None else names, allows=allows != self._negated)
        return None if listed is None else listed != self._negated

    def _has_each_role(self, account: str | None) -> bool:
        """True if the statement is for each role of the account."""
        if not self._negated:
            return self._everyone or account in self._accounts
        some = any(one.service is None and one.account in (None, account) for one in self.named)
        return not (self._everyone or self._patterns or self._unclear or some)

    def _lists(self, party: Party, names: Sequence[tuple[str, str]], *, allows: bool) -> bool | None:
        if not self._names.isdisjoint(names):
            return True
        if party.account is not None and party.account in self._accounts:
            return True
        if not party.signed or party.service or party.provider:
            return False
        if self._patterns:
            if party.arn is not None:
                return any(pattern.matches(party.arn) for pattern in self._patterns)
            return None
        # An unclear principal is one party. To those who are not named it opens perhaps, and closes nothing.
        return None if self._unclear and allows and party.arn is None else False


def names_of(party: Party) -> list[tuple[str, str]]:
    """Return the principals, as pairs (kind, value), by which a statement can name the party itself."""
    role = role_of_session(party.arn) if party.arn is not None else None
    names = (
        ("canonical", party.canonical),
        ("service", party.service),
        ("provider", party.provider),
        ("arn", party.arn),
        ("role", role),
    )
    return [(kind, name) for kind, name in names if name is not None]


def role_of_session(text: str) -> str | None:
    """Return ACCOUNT/ROLE for the ARN of a role's session; None for another ARN."""
    arn = Arn.parse(text)
    if arn is None or not arn.resource.startswith("assumed-role/"):
        return None
    return f"{arn.account}/{arn.resource.split('/')[1]}"


def role_of(text: str) -> str | None:
    """Return ACCOUNT/ROLE for the ARN of a role; None for another ARN."""
    arn = Arn.parse(text)
    if arn is None or not arn.resource.startswith("role/"):
        return None
    return f"{arn.account}/{arn.resource.rpartition('/')[2]}"
