"""The access points of a bucket. Each is a place from which requests come, with a policy of its own.

They matter only if a condition tests the access point of a request. Else a requester of another account needs no access
point: the bucket policy lets him in, or keeps him out, without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple

from msgspec.structs import replace

from auditor.model.access import AudienceKind
from auditor.model.bucket import AccessPoint, BucketFacts, Semantics
from auditor.model.object import Unread
from auditor.model.policy import Policy, parse
from auditor.verdict.documents import Document, Keys
from auditor.verdict.named import POINT_KEYS, Names
from auditor.verdict.places import INTERNET, Doubt, Place
from auditor.verdict.principals import account_in
from auditor.verdict.public import is_public
from auditor.verdict.steps import Steps

STEPS_OF_PAIR: Final = 5
"""Steps to make the place of an access point to which requests come from a named place."""
_FOR_EVERYONE: Final = '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "*", "Resource": "*"}}'


class PointOfBucket(NamedTuple):
    """One access point of the bucket. document: its policy; None if it was not read, or is malformed. cut: True if the
    access point's own RestrictPublicBuckets keeps out every account but its own.
    """

    place: Place
    document: Document | None
    cut: bool = False


def points_of(facts: BucketFacts, own: str | None, keys: Keys, names: Names) -> list[PointOfBucket]:
    """Return the access points that conditions can test for. own: number of the bucket owner's account, if known."""
    if names.keys.isdisjoint(POINT_KEYS):
        return []
    found = [PointOfBucket(place, None) for place in _named(names, own, read=isinstance(facts.access_points, tuple))]
    points = facts.access_points
    if isinstance(points, tuple):
        found += [_read(point, keys, names) for point in points]
    else:
        anywhere = (f"arn:*:s3:*:{own or '############'}:accesspoint/*", own)
        unnamed = [f"arn:*:s3:*:{account}:accesspoint/*" for account in names.point_accounts if own is None]
        named = [(text, account_in(text)) for text in (*names.points, *unnamed)]
        named = [(text, account) for text, account in named if account is not None and own in (None, account)]
        for text, account in (anywhere, *named):
            place = Place(point=text, point_account=account, own_point=True, doubt=Doubt.OWN_POINTS)
            found.append(PointOfBucket(place, None))
    return found


def _named(names: Names, own: str | None, *, read: bool) -> Iterator[Place]:
    """Yield the access points of other accounts: those that the policy names, and one that any stranger can make. read:
    True if the bucket's own access points were read.
    """
    anywhere = "arn:*:s3:*:############:accesspoint/*"
    for text in names.points:
        account = account_in(text)
        if account is not None and account != own:
            yield Place(AudienceKind.ACCESS_POINT, text, point=text, point_account=account)
    for account in names.point_accounts:
        if account != own:
            text = f"arn:*:s3:*:{account}:accesspoint/*"
            yield Place(AudienceKind.ACCESS_POINT, text, point=text, point_account=account)
    # A value that names no account holds for an access point of any account.
    sure = names.any_point or (read and "s3:accesspointnetworkorigin" not in names.keys)
    doubt = None if sure else Doubt.FOREIGN_POINTS
    yield Place(point=anywhere, own_point=True, doubt=doubt)


def through_places(points: Sequence[PointOfBucket], places: Sequence[Place], steps: Steps) -> Iterator[PointOfBucket]:
    """Yield the access points again, for each named place from which requests come to them. places: the named places, a
    VPC of the requester's own, and the internet.
    """
    elsewhere = [there for there in places if there != INTERNET]
    for own in (True, False):
        some = (one for one in points if _is_own(one) == own)
        for one, there in product(some, elsewhere):
            steps.spend(STEPS_OF_PAIR)
            point = one.place
            if point.private and (there.network is not None or there.vpc not in (None, point.vpc)):
                continue  # it takes requests from its VPC only
            yield one._replace(
                place=replace(
                    there,
                    kind=point.kind or there.kind,
                    name=point.name or there.name,
                    vpc=point.vpc or there.vpc,
                    point=point.point,
                    point_account=point.point_account,
                    own_point=point.own_point,
                    doubt=point.doubt,
                    via=None if own or point.kind is None else there.text,
                    behind=there,
                )
            )


def _is_own(one: PointOfBucket) -> bool:
    """True for an access point of the bucket owner's account, whether it was read or not."""
    return one.document is not None or one.place.doubt is Doubt.OWN_POINTS


def _read(point: AccessPoint, keys: Keys, names: Names) -> PointOfBucket:
    policy = read_policy(point.policy)
    place = Place(
        AudienceKind.ACCESS_POINT,
        point.arn,
        private=point.vpc is not None,
        vpc=point.vpc,
        point=point.arn,
        point_account=point.account,
        own_point=point.vpc is None,
        doubt=Doubt.OWN_POINTS if policy is None else None,
    )
    block = point.public_access_block
    restricted = not isinstance(block, Unread) and block.restrict_public_buckets
    public = point.policy_is_public if isinstance(point.policy_is_public, bool) else None
    if policy is None and restricted and public:
        policy = parse(_FOR_EVERYONE)  # whatever it says, it is public
        place = replace(place, doubt=None)
    if policy is None:
        return PointOfBucket(place, None)
    cut = restricted and (is_public(policy, semantics=Semantics.AWS) if public is None else public)
    start = f"{point.arn}/object/"
    return PointOfBucket(place, Document(policy, keys, names, start=start, whole_arns=True, of="access-point"), cut)


def read_policy(text: object) -> Policy | None:
    """Return the parsed policy; None if its text was not read, or is malformed."""
    try:
        return parse(text) if isinstance(text, str) else None
    except ValueError:
        return None
