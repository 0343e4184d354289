"""List the places from which requests come: the internet, a VPC of his own, and each place that a policy names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.verdict.oracle.candidates import around, instances, is_narrow, networks, of_the_internet
from tests.verdict.oracle.conditions import Values, like, marked
from tests.verdict.oracle.identities import ANOTHER_ACCOUNT, FRESH_ORGANIZATION, Keys, fresh_accounts
from tests.verdict.oracle.names import ACCOUNT_IN_ARN, Named


@dataclass(frozen=True, eq=False)
class Where:
    """One place. kind: internet, own-vpc, network, vpc-endpoint, vpc, vpc-account or vpc-organization; all but the
    first two have a name. accounts: the owners of the VPC endpoint and of its VPC. organization: that of the first.
    wider: kinds and names of the places in which this one is.
    """

    kind: str
    name: str | None
    keys: Keys
    address: str | None = None
    accounts: tuple[str, ...] = ()
    organization: str | None = None
    wider: frozenset[tuple[str, str | None]] = frozenset()


def places(names: Named, vpcs: Iterable[str], own_account: str) -> Iterator[Where]:
    """Return each place from which a requester can send a request, with each choice of its addresses. vpcs: those of
    access points. own_account: the bucket's.
    """
    listed = networks(names.values("aws:sourceip"))
    narrow = [network for network in listed if is_narrow(network)]
    for address in dict.fromkeys(address for network in (*listed, *_SOMEWHERE) for address in around(network)):
        inside = [network for network in narrow if address in network]
        keys: dict[str, Values] = {"aws:sourceip": (str(address),)}
        if inside:
            yield Where("network", str(max(inside, key=lambda network: network.prefixlen)), keys, str(address))
        elif of_the_internet(address):
            yield Where("internet", None, keys, str(address))
    vpcs = list(dict.fromkeys([*names.exact("aws:sourcevpc"), *_ids_in_arns(names), *vpcs]))
    endpoints = names.exact("aws:sourcevpce")
    own_vpcs = [text for text in _ids(names, "aws:sourcevpc", "vpc-") if text not in vpcs]
    own_endpoints = [text for text in _ids(names, "aws:sourcevpce", "vpce-") if text not in endpoints]
    private = [
        "10.9.9.9",
        *(str(address) for network in networks(names.values("aws:vpcsourceip")) for address in around(network)),
    ]
    for inner in dict.fromkeys(private):
        for vpc in (*own_vpcs, *vpcs):
            for endpoint in (*own_endpoints, *endpoints):
                keys = {"aws:sourcevpc": (vpc,), "aws:sourcevpce": (endpoint,), "aws:vpcsourceip": (inner,)}
                named: list[tuple[str, str | None]] = [("vpc-endpoint", endpoint)] if endpoint in endpoints else []
                named += [("vpc", vpc)] if vpc in vpcs else []
                yield from _owned(names, keys, named, vpc, own_account)


def _owned(
    names: Named, keys: Keys, named: list[tuple[str, str | None]], vpc: str, own_account: str
) -> Iterator[Where]:
    """Return the requests through an endpoint, for each owner of the endpoint and of its VPC."""
    accounts = names.exact("aws:vpceaccount")
    organizations = _organizations(names)
    for (arn, of_vpc), account, (organization, path) in itertools.product(
        _arns(names, vpc, own_account),
        _endpoint_accounts(names, own_account),
        _members(names, organizations),
    ):
        pattern = next((text for text in names.patterns("aws:sourcevpcarn") if _is_of(text, of_vpc, arn)), None)
        found = [*named]
        if pattern is not None and not any(kind == "vpc" for kind, _ in named):
            found.append(("vpc", pattern))
        found += [("vpc-account", account)] if account in accounts else []
        found += [("vpc-organization", organization)] if organization in organizations else []
        kind, name = found[0] if found else ("own-vpc", None)
        asked: dict[str, Values] = {
            "aws:sourcevpcarn": (arn,),
            "aws:vpceaccount": (account,),
            "aws:vpceorgid": None if organization is None else (organization,),
            "aws:vpceorgpaths": None if path is None else (path,),
        }
        yield Where(
            kind,
            name,
            {**keys, **{key: value for key, value in asked.items() if key in names.tests}},
            accounts=tuple(owner for owner in (account, of_vpc) if owner),
            organization=organization,
            wider=frozenset(one for one in found[1:] if not (kind == "vpc-endpoint" and one[0] == "vpc")),
        )


def _endpoint_accounts(names: Named, own_account: str) -> tuple[str, ...]:
    """Return accounts that may own an endpoint: strangers', the named ones, and those of named principals."""
    if "aws:vpceaccount" not in names.tests:
        return ("",)
    arns = (*names.principals, *names.arn_patterns)
    of_principals = (arn.split(":")[4] for arn in arns if arn.count(":") > 4 and arn.split(":")[4].isdigit())
    # A stranger may send his requests through an endpoint of another one of his accounts.
    fresh = (*fresh_accounts(names), ANOTHER_ACCOUNT)
    accounts = (*fresh, *names.exact("aws:vpceaccount"), *names.accounts, *of_principals, own_account)
    return tuple(dict.fromkeys(accounts))


def _is_of(pattern: str, account: str, arn: str) -> bool:
    """True if the pattern names the account of VPCs, and the VPC is one of them."""
    return bool(account) and f":{account}:" in pattern and like(marked(pattern), arn)


def _ids_in_arns(names: Named) -> list[str]:
    found = [text.split(":")[-1].removeprefix("vpc/") for text in names.values("aws:sourcevpcarn")]
    return [text for text in found if text.startswith("vpc-") and not re.search("[*?]", text)]


def _arns(names: Named, vpc: str, own_account: str) -> Iterator[tuple[str, str]]:
    """Return ARNs that the VPC may have, each with the account in it if the policies name the account."""
    if "aws:sourcevpcarn" not in names.tests:
        yield "", ""
        return
    named = names.values("aws:sourcevpcarn")
    fixed = [text for text in named if ACCOUNT_IN_ARN.match(text) and text.endswith(f":vpc/{vpc}")]
    accounts = dict.fromkeys(found[1] for text in named if (found := ACCOUNT_IN_ARN.match(text)))
    regions = dict.fromkeys(["eu-west-9", *(text.split(":")[3].replace("*", "q") for text in named)])
    if fixed:  # the ID of a VPC occurs once
        for text in fixed:
            for arn in instances(text, tuple(regions)):
                yield arn, arn.split(":")[4]
        return
    for region in regions:
        for account in (*fresh_accounts(names), *accounts, own_account):
            yield f"arn:aws:ec2:{region}:{account}:vpc/{vpc}", account if account in (*accounts, own_account) else ""


def _organizations(names: Named) -> list[str]:
    texts = [*names.exact("aws:vpceorgid"), *(text.partition("/")[0] for text in names.values("aws:vpceorgpaths"))]
    return [text for text in dict.fromkeys(texts) if not re.search("[*?]", text)]


def _members(names: Named, organizations: list[str]) -> Iterator[tuple[str | None, str | None]]:
    """Return organizations of an endpoint's account, each with a path in it; None and None for an account without."""
    yield None, None
    if not organizations and not any(key in names.tests for key in ("aws:vpceorgid", "aws:vpceorgpaths")):
        return
    for organization in (FRESH_ORGANIZATION, *organizations):
        yield organization, f"{organization}/r-zz/ou-zz/"
        for text in names.values("aws:vpceorgpaths"):
            first, slash, rest = text.partition("/")
            if first == organization or re.search("[*?]", first):
                for path in instances(organization + slash + rest, ("", "q", "q/")):
                    yield organization, path


_SOMEWHERE: Final = networks(["8.8.8.8/32", "2600:1f00::1/128"])


def _ids(names: Named, key: str, begin: str) -> list[str]:
    """Return IDs of a requester's own VPC or endpoint that the patterns of the policy match, and another one."""
    found = [f"{begin}zzfresh"]
    for pattern in names.patterns(key):
        found += [text for text in instances(pattern, ("", "zz")) if text.startswith(begin)]
    return list(dict.fromkeys(found))
