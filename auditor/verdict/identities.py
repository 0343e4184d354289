"""Domains of condition keys: the values that each key can have in the requests of a party from a place.

Sources: IAM user guide, "AWS global condition context keys"; service authorization reference of S3 and KMS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from auditor.model.access import AudienceKind
from auditor.model.bucket import Semantics
from auditor.model.policy import is_bucket_tag
from auditor.verdict.domains import ABSENT, UNKNOWN, Addresses, Domain, FixedValues, Numbers, Texts, org_ids, org_paths
from auditor.verdict.named import GRANTS_INSTANCE
from auditor.verdict.networks import NOT_PUBLIC, Network
from auditor.verdict.persons import PERSONS, Frame, grants_instance, type_of, user_id
from auditor.verdict.places import SOURCES, Place
from auditor.verdict.principals import ANY_SERVICE, Party, is_fixed
from auditor.verdict.ways import BYTES, VERSION_WAYS, WRITE_ACP

_FREE: Final = Texts(may_be_absent=True)
_NAME: Final = Texts(never=("*$*", "*{*", "*}*"), may_be_absent=True)
"""The domain of a principal's name or tag. IAM allows none of the characters of a policy variable in it."""
_TRUTH: Final = Texts(only=("true", "false"), may_be_absent=True)
_AGE: Final = Numbers(highest=10**9, may_be_absent=True)
HEADERS: Final = {
    "aws:referer": "aws:Referer",
    "aws:useragent": "aws:UserAgent",
    "s3:if-match": "s3:if-match",
    "s3:if-none-match": "s3:if-none-match",
}
"""The keys that a requester sets by a header, each with its usual spelling."""

PLACE_KEYS: Final = frozenset(
    {
        "aws:sourceip",
        "aws:vpcsourceip",
        "aws:sourcevpc",
        "aws:sourcevpce",
        "aws:sourcevpcarn",
        "aws:vpceaccount",
        "aws:vpceorgid",
        "aws:vpceorgpaths",
        "s3:dataaccesspointarn",
        "s3:dataaccesspointaccount",
        "s3:accesspointnetworkorigin",
    }
)
"""The condition keys whose values depend on the place of the requester. Other keys depend on the party, or on
neither."""

_ANYBODYS: Final[dict[str, Domain]] = {
    "aws:securetransport": Texts(only=("true", "false")),
    "s3:tlsversion": Texts(only=("1.2", "1.3"), may_be_absent=True),
    "aws:referer": _FREE,
    "aws:useragent": _FREE,
    "s3:versionid": Texts(),
    "aws:viaawsservice": FixedValues(("false",)),
    **dict.fromkeys(("aws:calledvia", "aws:calledviafirst", "aws:calledvialast"), ABSENT),
    **dict.fromkeys(("s3:prefix", "s3:delimiter", "s3:max-keys"), ABSENT),  # of listings only
}
CONNECTIONS: Final[tuple[dict[str, Domain], ...]] = (
    {"aws:securetransport": FixedValues(("true",)), "s3:tlsversion": FixedValues(("1.3",))},
    {"aws:securetransport": FixedValues(("true",)), "s3:tlsversion": FixedValues(("1.2",))},
    {"aws:securetransport": FixedValues(("false",)), "s3:tlsversion": ABSENT},
)
"""The possible connections, each with the values of its condition keys. A requester chooses one of them."""

CONDITIONAL: Final = frozenset({"s3:if-match", "s3:if-none-match"})
"""The condition keys of conditional requests. AWS documents them for writes. A read can send these headers too; nobody
has verified if the keys then have their values."""

_OF_WRITES: Final = r"s3:x-amz-(acl|grant-.*)"


_OF_OTHERS: Final = (
    r"s3:(x-amz-(server-side-encryption.*|storage-class|copy-source|metadata-directive|website-.*|object-ownership)"
    r"|object-lock-.*|requestobjecttag(keys|/.*)"
    r"|x-amz-(bucket-namespace|object-annotation-directive|object-if-match)|annotation-prefix|max-annotation-results"
    r"|objectcreationoperation|locationconstraint|inventoryaccessibleoptionalfields|isreplicationpauserequest"
    r"|destinationregion|resourcearnbeingauthorized|deliverysourcearn|logtype|accessgrantscope"
    r"|accessgrantslocationscope|existingjob(operation|priority)|requestjob(operation|priority)|jobsuspendedcause)"
)
"""The condition keys of uploads, of other writes and of calls on settings. No request that reaches an object as WAYS do
has them (service authorization reference of S3)."""


def ways_with(key: str) -> int | None:
    """Return the ways (actions) whose requests can have the condition key; None if the key does not depend on the
    action.
    """
    if key == "s3:versionid":
        return VERSION_WAYS
    if key in CONDITIONAL:
        return BYTES
    if re.fullmatch(_OF_WRITES, key):
        return WRITE_ACP
    return 0 if re.fullmatch(_OF_OTHERS, key.lower()) else None


_SIGNERS: Final[dict[str, Domain]] = {
    "s3:authtype": Texts(only=("REST-HEADER", "REST-QUERY-STRING", "POST")),
    "s3:signatureversion": Texts(only=("AWS4-HMAC-SHA256", "AWS")),
    "s3:signatureage": Numbers(highest=10**9),
}
_PERSONAL: Final[dict[str, Domain]] = {
    "aws:username": _NAME,
    "aws:sourceidentity": _FREE,
    "aws:federatedprovider": _FREE,
    "aws:multifactorauthpresent": _TRUTH,
    "aws:multifactorauthage": _AGE,
}
_OF_SERVICES: Final = frozenset({"aws:principalservicename", "aws:principalservicenameslist"})


class Situation(Frame, frozen=True):
    """The facts on which the values of condition keys depend. now: the moment of the judgement; None if it is not
    known.
    """

    now: datetime | None
    semantics: Semantics = Semantics.AWS
    tags: Callable[[str], Domain] = lambda _: UNKNOWN
    """Returns the domain of a condition key on a tag of the bucket."""

    # ---- what neither party nor place changes

    def common(self, key: str) -> Domain | None:
        """Return the domain of a condition key that is the same for all requests; None for any other key."""
        if key in _ANYBODYS:
            return _ANYBODYS[key]
        if ways_with(key) is not None:
            return _FREE
        if is_bucket_tag(key):
            return self.tags(key)
        match key:
            case "aws:currenttime":
                return FixedValues((self.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),)) if self.now else UNKNOWN
            case "aws:epochtime":
                return FixedValues((str(int(self.now.timestamp())),)) if self.now else UNKNOWN
            case "aws:requestedregion":
                return FixedValues((self.region,)) if self.region else UNKNOWN
            case "s3:resourceaccount" | "aws:resourceaccount":
                return FixedValues((self.own,)) if self.own else UNKNOWN
            case "kms:viaservice":
                domain = "amazonaws.com.cn" if self.partition == "aws-cn" else "amazonaws.com"
                return FixedValues((f"s3.{self.region}.{domain}",)) if self.region else UNKNOWN
        return None

    # ---- the party

    def of_party(self, key: str, party: Party) -> Domain:
        """Return the domain of a condition key that does not depend on the place."""
        found = self.common(key)
        if found is not None:
            return found
        if key in SOURCES:
            return SOURCES[key](self, party) if party.service else ABSENT
        return self._of_service(key, party) or self._of_signer(key, party)

    def _of_service(self, key: str, party: Party) -> Domain | None:
        if key in _OF_SERVICES and party.service == ANY_SERVICE:
            return Texts(never=tuple(one.service for one in self.names.services if one.service))
        if key in _OF_SERVICES:
            return FixedValues((party.service,)) if party.service else ABSENT
        if key == "aws:principalisawsservice":
            return FixedValues(("true" if party.service else "false",))
        return None

    def _of_signer(self, key: str, party: Party) -> Domain:
        if key in _SIGNERS:
            return _SIGNERS[key] if party.signed else ABSENT
        if key == GRANTS_INSTANCE:
            return grants_instance(self, party)
        if key == "aws:principaltype":
            return type_of(party)
        if key == "aws:userid":
            return user_id(self, party)
        person = party.signed and not party.service
        if key.startswith("aws:principaltag/"):
            return _NAME if person else ABSENT
        if key in _PERSONAL:
            return _PERSONAL[key] if person else ABSENT
        if key in PERSONS:
            return PERSONS[key](self, party) if person else ABSENT
        return UNKNOWN

    # ---- the place

    def of_place(self, key: str, place: Place, party: Party) -> Domain:
        """Return the domain of one of PLACE_KEYS."""
        if key == "aws:sourceip":
            return self._address(place, party)
        if key.startswith("aws:"):
            return self._of_endpoint(key, place) if place.private else ABSENT
        if place.point is None:
            return ABSENT
        if key == "s3:dataaccesspointarn":
            # An ARN has six parts; the wildcards of the pattern stay within one.
            return Texts(only=(place.point,), never=(*self._other_points(place), "*:*:*:*:*:*:*"))
        if key == "s3:dataaccesspointaccount":
            if place.point_account:
                return FixedValues((place.point_account,))
            never = (*self.names.point_accounts, *((self.own,) if self.own else ()))
            return Texts(only=("############",), never=never)
        if place.kind is AudienceKind.ACCESS_POINT and place.own_point:
            return FixedValues(("Internet",))
        return Texts(only=("Internet", "VPC"))

    def _of_endpoint(self, key: str, place: Place) -> Domain:
        """Return the domain of a condition key on the VPC endpoint of a private place, its VPC, or their owners."""
        own = (self.own,) if self.own else ()
        match key:
            case "aws:vpcsourceip":
                return Addresses()
            case "aws:sourcevpc":
                pattern = place.vpc_arn.split(":")[5].removeprefix("vpc/") if place.vpc_arn else "vpc-?*"
                return _fixed_or(place.vpc, pattern, self.names.vpcs)
            case "aws:sourcevpce":
                return _fixed_or(place.vpc_endpoint, "vpce-?*", self.names.vpc_endpoints)
            case "aws:vpceaccount":
                return _fixed_or(place.endpoint_account, "############", (*self.names.endpoint_accounts, *own))
            case "aws:vpceorgid":
                return org_ids(place.endpoint_organization, self.names.endpoint_organizations)
            case "aws:vpceorgpaths":
                return org_paths(place.endpoint_organization, self.names.endpoint_organizations)
        return self._vpc_arn(place, own)

    def _vpc_arn(self, place: Place, own: tuple[str, ...]) -> Domain:
        named = self.names.vpc_arns
        if place.vpc_arn and is_fixed(place.vpc_arn):
            return FixedValues((place.vpc_arn,))
        if place.vpc_arn:
            return Texts(only=(place.vpc_arn,), never=(*filter(is_fixed, named), "*:*:*:*:*:*:*"))
        vpcs = () if place.vpc else (f"*:vpc/{one}" for one in self.names.vpcs)
        accounts = [*own, *(arn.split(":")[4] for arn in named)]
        never = (*vpcs, *(f"arn:*:ec2:*:{one}:*" for one in dict.fromkeys(accounts)), "*:*:*:*:*:*:*")
        return Texts(only=(f"arn:{self.partition}:ec2:?*:############:vpc/{place.vpc or 'vpc-?*'}",), never=never)

    def _other_points(self, place: Place) -> tuple[str, ...]:
        """Return the ARN patterns of the access points that a place excludes, if the place stands for several access
        points. Return () for any other place.
        """
        if place.point is None or is_fixed(place.point):
            return ()
        if place.point in self.names.points:
            return tuple(filter(is_fixed, self.names.points))
        own = (f"arn:*:s3:*:{self.own}:*",) if self.own and place.point_account is None else ()
        return (*self.names.points, *own)

    def _address(self, place: Place, party: Party) -> Domain:
        if place.private:
            return ABSENT
        named: list[Network] = [*self.names.networks]
        if place.network is not None:
            return Addresses(only=(place.network,), never=self.names.inner_networks.get(place.network, ()))
        return Addresses(never=(*named, *NOT_PUBLIC), may_be_absent=party.service is not None)


def _fixed_or(name: str | None, pattern: str, named: Iterable[str]) -> Domain:
    """Return the domain of the one name; without it, of all texts of the pattern but the named ones."""
    return FixedValues((name,)) if name is not None else Texts(only=(pattern,), never=tuple(named))
