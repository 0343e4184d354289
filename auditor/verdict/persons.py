"""Domains of the condition keys that tell which principal sends a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from auditor.verdict.domains import ABSENT, Domain, FixedValues, Texts, org_ids, org_paths
from auditor.verdict.named import Names
from auditor.verdict.principals import ANY_INSTANCE, Party, is_account, is_fixed, role_of, role_of_session
from auditor.verdict.trust import Arn


class Frame(Struct, frozen=True):
    """The facts on which the values of these condition keys depend. own: number of the bucket owner's account. region:
    that of the bucket. Each is None if it is not known.
    """

    names: Names
    own: str | None
    region: str | None

    @property
    def partition(self) -> str:
        region = self.region or ""
        return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"


def type_of(party: Party) -> Domain:
    if not party.signed:
        return FixedValues(("Anonymous",))
    if party.service:
        return ABSENT
    if party.vended:
        return FixedValues(("AssumedRole",))
    arn = Arn.parse(party.arn) if party.arn else None
    kind = arn.resource.partition("/")[0] if arn else ""
    found = {"user": "User", "role": "AssumedRole", "assumed-role": "AssumedRole"}.get(kind)
    return FixedValues((found,)) if found else Texts(only=("Account", "User", "FederatedUser", "AssumedRole"))


def user_id(frame: Frame, party: Party) -> Domain:
    if not party.signed:
        return FixedValues(("anonymous",))
    if party.service:
        return ABSENT
    if party.unique_id:
        return Texts(only=(party.unique_id, f"{party.unique_id}:*"))
    unique_ids = () if party.free else tuple(frame.names.unique_ids)
    named = [text for one in unique_ids for text in (one, f"{one}:*")]
    return Texts(only=("A*", "############"), never=(*named, *_not_his(frame, party)))


def grants_instance(frame: Frame, party: Party) -> Domain:
    if party.grants is None:
        return ABSENT
    if is_fixed(party.grants):
        return FixedValues((party.grants,))
    named = frame.names.grants_instances
    if party.grants != ANY_INSTANCE:
        return Texts(only=(party.grants,), never=tuple(filter(is_fixed, named)))
    own = (f"arn:*:s3:*:{frame.own}:*",) if frame.own else ()
    account = party.account or "############"
    return Texts(only=(f"arn:*:s3:?*:{account}:access-grants/?*",), never=(*named, *own, "*:*:*:*:*:*:*"))


def _not_his(frame: Frame, party: Party) -> list[str]:
    """Return the accounts to which the party does not belong: the bucket owner's account, and the accounts that the
    policies name. The named accounts are left out for a party that may belong to any of them. The users of an identity
    provider may belong to a trusted account.
    """
    accounts = [] if party.free else [*frame.names.accounts]
    if party.provider:
        accounts = [one for one in accounts if one not in frame.names.only_trusted]
    if frame.own and frame.own not in accounts:
        accounts.append(frame.own)
    return [account for account in accounts if account != home_of(party)]


def home_of(party: Party) -> str | None:
    """Return the number of the account to which the party or its identity provider belongs."""
    text = party.provider or ""
    return party.account or (_account_in(text) if text.count(":") >= 5 else None)


def _account(frame: Frame, party: Party) -> Domain:
    home = home_of(party)
    if home and is_account(home):
        return FixedValues((home,))
    return Texts(only=("############",), never=tuple(_not_his(frame, party)))


def _arn(frame: Frame, party: Party) -> Domain:
    if party.arn:
        return _of_session(frame, party.arn) or FixedValues((party.arn,))
    home = home_of(party)
    if party.vended:
        return Texts(only=(f"arn:{frame.partition}:iam::{home}:role/?*",))
    inner = [arn for arn in frame.names.arns if ":iam:" in arn and _account_in(arn) == home]
    if party.arn_pattern:
        return Texts(only=(party.arn_pattern,), never=tuple(inner))
    start = f"arn:{frame.partition}"
    account = home or "############"
    kinds = ("iam::{}:root", "iam::{}:user/?*", "iam::{}:role/?*", "sts::{}:federated-user/?*")
    never = [f"{start}:*::{one}:*" for one in _not_his(frame, party)] if not home else []
    if home:
        patterns = [one.arn_pattern for one in frame.names.parties if one.arn_pattern]
        never += [text for text in (*inner, *patterns) if _account_in(text) == home]
    return Texts(only=tuple(f"{start}:{kind.format(account)}" for kind in kinds), never=tuple(never))


def _of_session(frame: Frame, text: str) -> Domain | None:
    """Return the possible ARNs of the role behind a session's ARN, because the role may have a path. Return None for
    the ARN of another principal.
    """
    role = role_of_session(text)
    if role is None:
        return None
    account, name = role.split("/")
    named = [one for one in frame.names.arns if role_of(one) == role]
    start = f"arn:{text.split(':')[1]}:iam::{account}:role/"
    return Texts(only=(f"{start}{name}", f"{start}*/{name}", *named))


def _account_in(arn: str) -> str:
    return arn.split(":", 5)[4]


def _organization(frame: Frame, party: Party) -> Domain:
    return org_ids(party.organization, () if party.free else frame.names.organizations)


def _paths(frame: Frame, party: Party) -> Domain:
    return org_paths(party.organization, () if party.free else frame.names.organizations)


PERSONS: Final[dict[str, Callable[[Frame, Party], Domain]]] = {
    "aws:principalarn": _arn,
    "aws:principalaccount": _account,
    "kms:calleraccount": _account,
    "aws:principalorgid": _organization,
    "aws:principalorgpaths": _paths,
}
"""For each condition key of a principal, the function that returns its domain. Unsigned requests and services do not
have these keys."""
