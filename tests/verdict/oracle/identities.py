"""List the requesters of a policy and an ACL, each in every choice of its identity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from tests.verdict.oracle.candidates import has_wildcard, instances
from tests.verdict.oracle.conditions import Values, like, marked
from tests.verdict.oracle.names import Named
from tests.verdict.oracle.statements import OF_SERVICES, Identity

FRESH_ACCOUNT: Final = "999900001111"
ANOTHER_ACCOUNT: Final = "999900002222"
FRESH_ORGANIZATION: Final = "o-zzfresh"
FRESH_CANONICAL: Final = "f" * 64
_SOME_SERVICE: Final = "zz.amazonaws.com"
"""A service that no policy names. It is a requester only where a policy asks for a key that services have."""
Keys = Mapping[str, Values]


@dataclass(frozen=True, eq=False)
class Who:
    """One requester with one choice of its identity. kind and name: those of its audience. organization: the one that
    it belongs to in this choice.
    """

    kind: str
    name: str | None
    identity: Identity
    keys: Keys
    organization: str | None = None
    stranger: bool = False
    source: tuple[str, ...] = ()
    """ARN and account of the resource for which a service acts."""
    sources: frozenset[tuple[str, str | None]] = frozenset()
    """Kinds and names of the services and sources to which a service with its source belongs."""
    instance: str | None = None
    """The account of the S3 Access Grants instance that gave the requester its credentials."""


def identities(
    names: Named,
    own_account: str,
    owner: str,
    numbers: Iterable[str],
    unique_ids: Iterable[str],
    *,
    by_number: bool,
) -> Iterator[Who]:
    """Return each requester in each choice of its identity. own_account and owner are the bucket's, no requesters.

    numbers: the account numbers in the object's key, with which a policy's variable may compare. unique_ids: those of
    others' principals. by_number: True if a policy's variable tells accounts apart of which principals are named.
    """
    unsigned = {**_NO_PRINCIPAL, "aws:principaltype": ("Anonymous",), "aws:userid": ("anonymous",)}
    yield Who("anyone", None, Identity(), unsigned, stranger=True)
    accounts = [account for account in names.accounts if account != own_account]
    organizations = list(names.organizations)
    unnamed = dict.fromkeys([*fresh_accounts(names), *numbers])
    arns = [*names.principals, *names.arn_patterns]
    of_principals = {arn.split(":")[4] for arn in arns if arn.count(":") >= 5}
    fresh = [account for account in unnamed if account not in (*names.accounts, *of_principals, own_account)]
    outside: list[str | None] = [None, *_fresh_organizations(names)]
    anywhere = [*outside, *organizations]
    for account in fresh:
        yield from _principals(names, "any-account", None, account, outside, stranger=True)
        for organization in organizations:
            yield from _principals(names, "organization", organization, account, [organization])
    others = sorted(of_principals - {*accounts, own_account, "cloudfront"})
    for account in (*accounts, *(others if by_number else ())):
        yield from _principals(names, "account", account, account, anywhere)
    yield from _named_principals(names, own_account, fresh, anywhere)
    for account, unique in product((*fresh, *accounts, *sorted(of_principals - {*accounts, own_account})), unique_ids):
        yield from _by_unique_id(names, unique, account, anywhere)
    for account in (*fresh, *accounts):
        known = account if account in accounts else None
        yield from _of_acl(names, owner, known, account, anywhere)
    for account in others:
        yield from _of_acl(names, owner, account, account, anywhere)
    yield from _origin_identities(names, owner, fresh, anywhere)
    yield from _every_service(names)
    yield from _grantees(names, own_account, anywhere)
    for provider in names.providers:
        home = provider.split(":")[4:5]
        for account in home if provider not in PUBLIC_PROVIDERS else fresh:
            if account != own_account:
                yield from _federated(names, provider, account, anywhere)


def _origin_identities(names: Named, owner: str, fresh: list[str], organizations: list[str | None]) -> Iterator[Who]:
    """Return the canonical IDs as CloudFront's origin access identities, each of which has a canonical ID."""
    for arn in (text for text in names.principals if text.startswith("arn:aws:iam::cloudfront:")):
        for canonical, number in product((one for one in names.canonicals if one != owner), fresh):
            identity = Identity(True, "cloudfront", arn, canonical)
            yield from _with_arn(names, "canonical-id", canonical, number, arn, identity, organizations)


def _grantees(names: Named, own_account: str, anywhere: list[str | None]) -> Iterator[Who]:
    """Return the grantees of S3 Access Grants instances: principals of the instance's account."""
    for instance, name in _instances(names, own_account):
        account = instance.split(":")[4]
        for who in _anybody(names, "access-grants", name, Identity(True, account), anywhere, account):
            yield replace(who, keys={**who.keys, "s3:accessgrantsinstancearn": (instance,)}, instance=account)


def _instances(names: Named, own_account: str) -> Iterator[tuple[str, str]]:
    """Return ARNs of S3 Access Grants instances, each with the name that the policies have for it."""
    if "s3:accessgrantsinstancearn" not in names.tests:
        return
    values = names.values("s3:accessgrantsinstancearn")
    of_principals = [arn.split(":")[4] for arn in (*names.principals, *names.arn_patterns) if arn.count(":") > 4]
    accounts = (account for account in (*fresh_accounts(names), *names.accounts, *of_principals) if account.isdigit())
    arns = [f"arn:aws:s3:eu-west-9:{account}:access-grants/default" for account in accounts] + values
    for pattern in values:
        for arn in instances(pattern, ("q", "default", FRESH_ACCOUNT)):
            pieces = arn.split(":")
            arns.append(":".join([*pieces[:4], pieces[4] if pieces[4].isdigit() else FRESH_ACCOUNT, *pieces[5:]]))
    for arn in (text for text in dict.fromkeys(arns) if not has_wildcard(text)):
        named = [arn] if arn in values else [text for text in values if like(marked(text), arn)]
        if named or arn.split(":")[4] != own_account:
            yield arn, named[0] if named else "*"


def _federated(names: Named, provider: str, account: str, organizations: Iterable[str | None]) -> Iterator[Who]:
    identity, public = Identity(True, provider=provider), provider in PUBLIC_PROVIDERS
    for arn in _arns(names, account):
        yield from _with_arn(
            names, "identity-provider", provider, account, arn, identity, organizations, stranger=public
        )


def _by_unique_id(names: Named, unique: str, account: str, organizations: Iterable[str | None]) -> Iterator[Who]:
    """Return the principal of a unique ID, in each session of it."""
    sessions = [f"{unique}:zz", unique]
    sessions += [one for text in names.values("aws:userid") for one in instances(text, ("zz", "bob"))]
    for who in _anybody(names, "account", unique, Identity(True, account), organizations, account):
        for text in sessions:
            if text.partition(":")[0] == unique:
                yield replace(who, keys={**who.keys, "aws:userid": (text,)})


def _every_service(names: Named) -> Iterator[Who]:
    for service in (*names.services, *([_SOME_SERVICE] if any(map(names.asks, OF_SERVICES)) else [])):
        yield from _services(names, service)


def _of_acl(
    names: Named, owner: str, known: str | None, account: str, organizations: Iterable[str | None]
) -> Iterator[Who]:
    """Return the canonical IDs and groups as principals of an account. known: the account as policies may name it."""
    for canonical in names.canonicals:
        if canonical != owner:
            identity = Identity(True, known, canonical=canonical)
            yield from _anybody(names, "canonical-id", canonical, identity, organizations, account)
    for group in names.groups:
        yield from _anybody(names, "group", group, Identity(True, known, groups=(group,)), organizations, account)


def _anybody(
    names: Named,
    kind: str,
    name: str,
    identity: Identity,
    organizations: Iterable[str | None],
    account: str,
) -> Iterator[Who]:
    """Return a requester who may be any principal of an account."""
    named = [arn for arn in names.principals if f":{account}:" in arn]
    within = [
        arn for pattern in names.arn_patterns if f":{account}:" in pattern for arn in _arns(names, account, pattern)
    ]
    for arn in (*_arns(names, account), *named, *within):
        whole = identity if identity.account is None else replace(identity, arn=arn)
        yield from _with_arn(names, kind, name, account, arn, whole, organizations)


def _named_principals(names: Named, own_account: str, fresh: list[str], anywhere: list[str | None]) -> Iterator[Who]:
    for arn in names.principals:
        account = arn.split(":")[4] if arn.count(":") >= 5 else ""
        numbers = [account] if account.isdigit() else fresh
        for number in numbers:
            if number != own_account:
                yield from _with_arn(names, "account", arn, number, arn, Identity(True, account, arn), anywhere)
    for pattern in names.arn_patterns:
        account = pattern.split(":")[4]
        if account != own_account:
            for arn in _arns(names, account, within=pattern):
                yield from _with_arn(names, "account", pattern, account, arn, Identity(True, account, arn), anywhere)


_NO_PRINCIPAL: Final[Keys] = {
    "aws:principalisawsservice": ("false",),
    "aws:viaawsservice": ("false",),
}


def fresh_accounts(names: Named) -> list[str]:
    """Return account numbers that the policies do not name: one for each of their patterns, and another one."""
    patterns = names.patterns("aws:principalaccount", "s3:dataaccesspointaccount", "aws:vpceaccount")
    patterns += [text.split(":")[4] for text in names.patterns("aws:principalarn") if text.count(":") >= 5]
    found = [FRESH_ACCOUNT]
    for pattern in patterns:
        fixed = len(pattern.replace("*", ""))
        if has_wildcard(pattern) and pattern != "*" and fixed <= 12:
            place = pattern.find("*")
            text = pattern if place < 0 else pattern[:place] + "7" * (12 - fixed) + pattern[place:].replace("*", "")
            found.append(text.replace("?", "7"))
    return list(dict.fromkeys(found))


def _fresh_organizations(names: Named) -> list[str]:
    patterns = names.patterns("aws:principalorgid")
    patterns += [text.partition("/")[0] for text in names.patterns("aws:principalorgpaths")]
    found = [FRESH_ORGANIZATION]
    for pattern in patterns:
        found += [text for text in instances(pattern, ("", "zzfresh")) if text.startswith("o-")]
    return [text for text in dict.fromkeys(found) if text not in names.organizations]


def _principals(
    names: Named,
    kind: str,
    name: str | None,
    account: str,
    organizations: Iterable[str | None],
    *,
    stranger: bool = False,
) -> Iterator[Who]:
    """Return the principals of an account whom nothing names."""
    for arn in _arns(names, account):
        identity = Identity(True, account, arn, FRESH_CANONICAL)
        yield from _with_arn(names, kind, name, account, arn, identity, organizations, stranger=stranger)


def _arns(names: Named, account: str, within: str | None = None) -> list[str]:
    """Return ARNs of an account's principals that the policies do not name. within: the only pattern that may match."""
    begin = f"arn:aws:iam::{account}:"
    found = [f"{begin}user/zz", f"{begin}role/zz"]
    for pattern in names.patterns("aws:principalarn"):
        pieces = pattern.split(":", 5)
        end = pieces[-1] if len(pieces) == 6 else pattern.rpartition(":")[2]
        for text in instances(end, ("", "q", "zz", "q/q", "role/q", "user/q")):
            found += [begin + text, f"arn:aws:sts::{account}:{text}"]
            found += [f"{begin}{kind}/q:{text}" for kind in ("role", "user")]  # a path may have colons
    patterns = [marked(pattern) for pattern in names.arn_patterns]
    wanted = None if within is None else marked(within)
    matched = ((arn, {pattern for pattern in patterns if like(pattern, arn)}) for arn in dict.fromkeys(found))
    return [arn for arn, by in matched if arn not in names.principals and (wanted in by if wanted else not by)]


def _with_arn(
    names: Named,
    kind: str,
    name: str | None,
    account: str,
    arn: str,
    identity: Identity,
    organizations: Iterable[str | None],
    *,
    stranger: bool = False,
) -> Iterator[Who]:
    for organization in organizations:
        for path in _paths(names, organization):
            yield Who(
                kind,
                name,
                identity,
                {
                    **_NO_PRINCIPAL,
                    "aws:principalarn": (arn,),
                    "aws:principalaccount": (account,),
                    **({"aws:principaltype": (_type(arn),)} if arn in names.principals else {}),
                    "aws:principalorgid": None if organization is None else (organization,),
                    "aws:principalorgpaths": path,
                },
                organization,
                stranger,
            )


def _type(arn: str) -> str:
    """Return the value of aws:PrincipalType for a principal."""
    kind = arn.split(":")[5].partition("/")[0]
    return {"user": "User", "root": "Account", "federated-user": "FederatedUser"}.get(kind, "AssumedRole")


def _paths(names: Named, organization: str | None) -> list[Values]:
    if organization is None:
        return [None]
    found = [f"{organization}/r-zz/ou-zz/"]
    for text in names.values("aws:principalorgpaths"):
        first, slash, rest = text.partition("/")
        if first == organization or has_wildcard(first):
            found += instances(organization + slash + rest, ("", "q", "q/"))
    return [(text,) for text in dict.fromkeys(found)]


def _services(names: Named, service: str) -> Iterator[Who]:
    base: dict[str, Values] = {
        "aws:principalisawsservice": ("true",),
        "aws:viaawsservice": ("false",),
        "aws:principalservicename": (service,),
        "aws:principalservicenameslist": (service,),
    }
    accounts = names.exact("aws:sourceaccount", "aws:sourceowner")
    arns = names.values("aws:sourcearn")
    organizations = names.exact("aws:sourceorgid")
    for arn, account in [*_sources(arns, accounts), (None, None)]:
        for organization in (FRESH_ORGANIZATION, None, *organizations):
            kind, name = _source_name(service, arn, account, arns, accounts)
            if organization in organizations and kind == "service":
                kind, name = "source", str(organization)
            if name == _SOME_SERVICE:
                name = "*"
            source: dict[str, Values] = {
                "aws:sourcearn": None if arn is None else (arn,),
                "aws:sourceaccount": None if account is None else (account,),
                "aws:sourceowner": None if account is None else (account,),
                "aws:sourceorgid": None if organization is None else (organization,),
                "aws:sourceorgpaths": None if organization is None else (f"{organization}/r-zz/",),
            }
            identity = Identity(True, service=service, by_acl=name != "*")
            pair = tuple(text for text in (arn, account) if text)
            named = {("source", pattern) for pattern in arns if arn is not None and like(marked(pattern), arn)}
            named |= {("source", one) for one in (account, organization) if one in (*accounts, *organizations)}
            named |= {("service", service), ("service", "*")}
            # AWS services do not say from which address they come, or come from one of their own.
            for address in ({}, {"aws:sourceip": None}):
                yield Who(
                    kind,
                    name,
                    identity,
                    {**base, **source, **address},
                    organization,
                    source=pair,
                    sources=frozenset(named),
                )


def _sources(arns: list[str], accounts: list[str]) -> Iterator[tuple[str, str]]:
    """Return pairs of the ARN and the account of a resource. An ARN without an account fits every account."""
    for account in (FRESH_ACCOUNT, *accounts):
        yield f"arn:aws:any:eu-west-9:{account}:zz", account
    for pattern in arns:
        for arn in instances(pattern, ("q", "")):
            pieces = arn.split(":")
            account = pieces[4] if len(pieces) > 5 else ""
            if account.isdigit():
                yield arn, account
            elif not account:
                for some in (FRESH_ACCOUNT, *accounts):
                    yield arn, some
            else:
                for some in (FRESH_ACCOUNT, *accounts):
                    yield ":".join([*pieces[:4], some, *pieces[5:]]), some


def _source_name(
    service: str, arn: str | None, account: str | None, arns: list[str], accounts: list[str]
) -> tuple[str, str]:
    """Return the audience of a service: its source by the named ARN, pattern of its account, account or pattern."""
    matching = [pattern for pattern in arns if arn is not None and like(marked(pattern), arn)]
    named = [arn] if arn in matching else []
    named += [pattern for pattern in matching if f":{account}:" in pattern]
    named += [account] if account in accounts else []
    return next((("source", name) for name in (*named, *matching) if name), ("service", service))


PUBLIC_PROVIDERS: Final = frozenset(
    {"accounts.google.com", "graph.facebook.com", "www.amazon.com", "cognito-identity.amazonaws.com"}
)
"""Identity providers that give an identity to everybody."""
