"""Judge and oracle name the same audience: the widest of those who get in, each with the limit that it really has."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.model.bucket import AccessPoint, PublicAccessBlock
from auditor.model.object import AUTHENTICATED_USERS, LOG_DELIVERY, Acl, Grant, Skipped
from auditor.verdict.judge import VerdictJudge
from tests.verdict.oracle.recipe import CURRENT, DENIED, FRIEND, FRIENDS, OTHER, OURS, OWNER, PLAIN, THEIRS, Recipe
from tests.verdict.oracle.topics import DISTRIBUTION, POINT, ROLE
from tests.verdict.oracle.verdict import judge
from tests.verdict.oracle.worlds import NOW

SKIPPED = Skipped("no selected rule needs it")
THEIR_POINTS = f"arn:*:s3:*:{THEIRS}:accesspoint/*"
OWN_POINTS = f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/*"
FOLDERS = "arn:aws:s3:::bucket/${aws:PrincipalAccount}/*"
ROLES = f"arn:aws:iam::{THEIRS}:role/*"
BUCKETS = {"StringLike": {"aws:SourceArn": "arn:aws:s3:::*"}}
DISTRIBUTIONS = f"arn:aws:cloudfront::{THEIRS}:distribution/*"
DEFAULT = "arn:aws:s3:::bucket/${aws:username, 'dir'}/*"
REFERER_ABSENT = {"StringLikeIfExists": {"aws:Referer": "*.example.org/*"}}
AT_POINT = {"ArnLike": {"s3:DataAccessPointArn": POINT}}
AT_POINTS = {"ArnLike": {"s3:DataAccessPointArn": OWN_POINTS}}
UNIQUE = {"StringLike": {"aws:userid": "AROAEXAMPLE:*"}}
REFERER = {"StringLike": {"aws:Referer": "*"}}
OUTSIDE = {"StringNotEqualsIfExists": {"aws:PrincipalOrgID": "o-1"}}
PROVIDER = {"Federated": f"arn:aws:iam::{THEIRS}:saml-provider/p"}
NEAR = {"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}
NEARBY = {"IpAddress": {"aws:SourceIp": "203.0.112.0/20"}}
KMS = replace(PLAIN, server_side_encryption="aws:kms", sse_kms_key_id="key-1")
OTHERS = {"CanonicalUser": [OTHER, FRIEND]}


def allow(condition: Any = None, **fields: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::bucket/*",
    }
    whole |= ({"Condition": condition} if condition else {}) | fields
    for name in ("Principal", "Resource"):
        if f"Not{name}" in fields:
            del whole[name]
    return whole


def deny(condition: Any = None, **fields: Any) -> dict[str, Any]:
    return allow(condition, **({"Effect": "Deny", "Action": "s3:*"} | fields))


def recipe(*statements: dict[str, Any], **fields: Any) -> Recipe:
    return Recipe(statements=list(statements), **fields)


def acl(*grantees: str) -> Acl:
    return Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), *(Grant(grantee, "READ") for grantee in grantees)))


THROUGH_POINT = json.dumps({"Version": "2012-10-17", "Statement": allow(Resource=f"{POINT}/object/*")})
CASES: list[tuple[str, Recipe, set[str]]] = [
    (
        "a unique ID in place of the account and the role that it may belong to",
        recipe(allow(UNIQUE, Principal={"AWS": [FRIENDS, ROLE]}), acl=acl(LOG_DELIVERY)),
        {"account AROAEXAMPLE", f"group {LOG_DELIVERY}"},
    ),
    (
        "a header that a canonical ID needs unless it is an account that gets in without",
        recipe(allow(REFERER, Principal=OTHERS), allow(Principal={"AWS": FRIENDS})),
        {f"account {FRIENDS}", *(f"canonical-id {one} through header aws:Referer" for one in (OTHER, FRIEND))},
    ),
    (
        "a header that everyone needs at an endpoint",
        recipe(allow(REFERER | {"StringEquals": {"aws:SourceVpce": "vpce-2"}})),
        {"vpc-endpoint vpce-2 through header aws:Referer"},
    ),
    (
        "an account through its own access points only",
        recipe(allow({"StringEquals": {"s3:DataAccessPointAccount": THEIRS}}, Principal={"AWS": THEIRS})),
        {f"account {THEIRS} through access-point {THEIR_POINTS}"},
    ),
    (
        "everyone whom another account's access points let in",
        recipe(allow({"StringEquals": {"s3:DataAccessPointAccount": THEIRS}})),
        {f"access-point {THEIR_POINTS}"},
    ),
    (
        "an account that needs a header, with and without an access point",
        recipe(
            deny({"StringNotLike": {"aws:Referer": "*"}}),
            allow(
                {"ArnNotLike": {"s3:DataAccessPointArn": OWN_POINTS}},
                Principal={"AWS": THEIRS},
            ),
        ),
        {f"account {THEIRS} through header aws:Referer"},
    ),
    (
        "an endpoint at access points that were not read",
        recipe(
            allow(Principal={"AWS": THEIRS}),
            allow({"StringLike": {"s3:DataAccessPointArn": OWN_POINTS}, "StringEquals": {"aws:SourceVpce": "vpce-2"}}),
            facts={"access_points": SKIPPED},
        ),
        {f"account {THEIRS}", "any-account through vpc-endpoint vpce-2"},
    ),
    (
        "an owner and a stranger of an unread ACL within the organization that may get in",
        recipe(deny(OUTSIDE), acl=DENIED, ref=replace(CURRENT, owner=OTHER)),
        {"organization o-1"},
    ),
    (
        "a role outside the organization that gets in",
        recipe(
            allow({"StringEquals": {"aws:PrincipalOrgID": "o-1"}}),
            allow({"StringEquals": {"aws:PrincipalOrgID": "o-2"}}, Principal={"AWS": ROLE}),
        ),
        {"organization o-1", f"account {ROLE}"},
    ),
    (
        "a group of an ACL whose members get in by the pattern of roles",
        recipe(
            deny({"ArnNotLike": {"aws:PrincipalArn": f"arn:aws:iam::{THEIRS}:role/*"}}),
            acl=acl(AUTHENTICATED_USERS, LOG_DELIVERY),
        ),
        {f"account arn:aws:iam::{THEIRS}:role/*"},
    ),
    (
        "an account that everyone, unsigned, contains",
        recipe(
            allow({"StringLike": {"aws:userid": "anonymous"}}),
            allow(Principal={"AWS": THEIRS}),
            facts={"policy_is_public": False},
        ),
        {"anyone"},
    ),
    (
        "a unique ID that no request of the named account needs",
        recipe(
            allow({"StringEquals": {"aws:PrincipalAccount": THEIRS}}),
            allow(UNIQUE | {"StringEquals": {"aws:PrincipalAccount": OURS}}),
        ),
        {f"account {THEIRS}"},
    ),
    (
        "a canonical ID that gets in from its own VPC as the account that gets in from the internet",
        recipe(
            allow(Principal={"AWS": THEIRS}),
            deny({"StringLike": {"aws:SourceVpce": "vpce-*"}}, NotPrincipal={"CanonicalUser": OTHER}),
        ),
        {f"account {THEIRS}"},
    ),
    (
        "a canonical ID within the organization of the account that it is",
        recipe(
            allow(Principal={"AWS": THEIRS}),
            deny({"StringNotEquals": {"aws:PrincipalOrgID": "o-2"}}),
            deny(Principal={"CanonicalUser": OTHER}, Action="s3:PutObject"),
        ),
        {f"account {THEIRS}"},
    ),
    (
        "a canonical ID in two networks, in one of them as a role",
        recipe(
            allow(Principal={"CanonicalUser": OTHER}),
            deny({"NotIpAddress": {"aws:SourceIp": "203.0.113.0/24"}}),
            deny({"NotIpAddress": {"aws:SourceIp": "203.0.113.128/25"}}, NotPrincipal={"AWS": [OURS, ROLE]}),
        ),
        {f"canonical-id {OTHER} through network 203.0.113.0/24"},
    ),
    (
        "a network, with and without an access point of another account",
        recipe(
            allow({"ArnNotLike": {"s3:DataAccessPointArn": OWN_POINTS}}),
            deny({"NotIpAddressIfExists": {"aws:SourceIp": "198.51.100.7"}}),
        ),
        {"network 198.51.100.7/32"},
    ),
    (
        "an access point that the policy names by account and by ARN",
        recipe(
            allow({"StringLike": {"s3:DataAccessPointArn": OWN_POINTS}}),
            deny({"StringNotEquals": {"s3:DataAccessPointAccount": OURS}}, Action="s3:GetObject"),
            acl=acl(FRIEND),
            facts={"account": DENIED},
        ),
        {f"access-point {OWN_POINTS}", f"canonical-id {FRIEND}"},
    ),
    (
        "any service, where the policy of the key admits everyone",
        recipe(
            allow({"Bool": {"aws:PrincipalIsAWSService": "true"}}),
            head=replace(PLAIN, server_side_encryption="aws:kms", sse_kms_key_id="key-1"),
            facts={"key_policies": {"key-1": json.dumps({"Statement": [allow(Action="kms:*", Resource="*")]})}},
        ),
        {"service *"},
    ),
    (
        "a canonical ID as another principal of the account of a trusted role",
        recipe(
            allow(Principal={"CanonicalUser": OTHER}, Resource=FOLDERS),
            allow(Principal={"AWS": ROLE}),
            ref=replace(CURRENT, key=f"{THEIRS}/x"),
            trusted=(ROLE,),
        ),
        {f"canonical-id {OTHER}"},
    ),
    (
        "an account whose number is in the key, of which the policy names one role",
        recipe(allow(Resource=FOLDERS), allow(Principal={"AWS": ROLE}), ref=replace(CURRENT, key=f"{THEIRS}/x")),
        {f"account {THEIRS}"},
    ),
    (
        "a service for a bucket of one account",
        recipe(allow(BUCKETS | {"StringEquals": {"aws:SourceAccount": THEIRS}})),
        {f"source {THEIRS}"},
    ),
    (
        "a service for one bucket, of one account",
        recipe(allow({"StringEquals": {"aws:SourceArn": "arn:aws:s3:::source", "aws:SourceAccount": THEIRS}})),
        {"source arn:aws:s3:::source"},
    ),
    (
        "a service for distributions of one account",
        recipe(
            allow({"StringLike": {"aws:SourceArn": DISTRIBUTIONS}, "StringEquals": {"aws:SourceAccount": THEIRS}}),
        ),
        {f"source {DISTRIBUTIONS}"},
    ),
    (
        "a service for buckets, and for those of one account",
        recipe(allow(BUCKETS), allow({"StringEquals": {"aws:SourceAccount": THEIRS}})),
        {"source arn:aws:s3:::*", f"source {THEIRS}"},
    ),
    (
        "an account of a trusted organization as a source",
        recipe(
            allow({"StringEquals": {"aws:SourceOrgID": "o-1"}, "StringNotEquals": {"aws:SourceAccount": OURS}}),
            allow({"StringEquals": {"aws:SourceOrgID": "o-1", "aws:SourceAccount": THEIRS}}),
            acl=acl(FRIEND),
            trusted=("o-1",),
        ),
        {f"canonical-id {FRIEND}"},
    ),
    (
        "buckets of a trusted account as sources",
        recipe(allow(BUCKETS | {"StringEquals": {"aws:SourceAccount": THEIRS}}), acl=acl(FRIEND), trusted=(THEIRS,)),
        {f"canonical-id {FRIEND}"},
    ),
    (
        "a service for every source, and every service for one",
        recipe(
            allow(Principal={"Service": "logging.s3.amazonaws.com"}),
            allow({"StringEquals": {"aws:SourceAccount": THEIRS}}),
        ),
        {"service logging.s3.amazonaws.com", f"source {THEIRS}"},
    ),
    (
        "a role within the pattern of roles",
        recipe(allow(Principal={"AWS": ROLE}), allow({"ArnLike": {"aws:PrincipalArn": ROLES}})),
        {f"account {ROLES}"},
    ),
    (
        "an account for its users with a path that has colons",
        recipe(
            allow(
                {
                    "StringLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/x"},
                    "ArnNotLike": {"aws:PrincipalArn": ROLES},
                },
                Principal={"AWS": THEIRS},
            )
        ),
        {f"account {THEIRS}"},
    ),
    (
        "a header that is needed if the account is the bucket's",
        recipe(
            allow(Principal={"Service": "logging.s3.amazonaws.com"}),
            deny(REFERER_ABSENT | {"StringEquals": {"aws:ResourceAccount": OURS}}),
            facts={"own_id": DENIED},
        ),
        {"service logging.s3.amazonaws.com"},
    ),
    (
        "two keys of the bucket's account that differ",
        recipe(
            allow({"StringEquals": {"aws:ResourceAccount": THEIRS, "s3:ResourceAccount": OURS}}, Principal=OTHERS),
            acl=acl(FRIEND),
            facts={"account": DENIED},
        ),
        {f"canonical-id {FRIEND}"},
    ),
    (
        "users of an organization and of a provider at an access point of the bucket",
        recipe(
            allow(AT_POINT, Principal={"Federated": "accounts.google.com"}),
            allow(AT_POINT | {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}),
            facts={"access_points": (AccessPoint(arn=POINT, account=OURS, vpc="vpc-1", policy=THROUGH_POINT),)},
        ),
        {
            f"identity-provider accounts.google.com through access-point {POINT}",
            f"organization o-1 through access-point {POINT}",
        },
    ),
    (
        "everyone whom the access points of a trusted account let in",
        recipe(allow({"StringEquals": {"s3:DataAccessPointAccount": THEIRS}}), acl=acl(FRIEND), trusted=(THEIRS,)),
        {f"canonical-id {FRIEND}"},
    ),
    (
        "a canonical ID through a network, and from anywhere as the account that gets in",
        recipe(
            allow({"StringEquals": {"aws:PrincipalAccount": THEIRS}}),
            allow({"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}, Principal={"CanonicalUser": OTHER}),
        ),
        {f"account {THEIRS}", f"canonical-id {OTHER} through network 203.0.113.0/24"},
    ),
    (
        "everyone at a network, next to any account at a wider one",
        recipe(allow(NEAR), allow(NEARBY | {"Null": {"aws:PrincipalArn": "false"}})),
        {"network 203.0.113.0/24", "any-account through network 203.0.112.0/20"},
    ),
    (
        "everyone at a network, next to a wider one that needs a header",
        recipe(allow(NEAR), allow(NEARBY | REFERER)),
        {"network 203.0.113.0/24", "network 203.0.112.0/20 through header aws:Referer"},
    ),
    (
        "an account at a network within that of any account",
        recipe(
            allow(NEARBY | {"NotIpAddress": NEAR["IpAddress"], "Null": {"aws:PrincipalArn": "false"}}),
            allow(NEAR, Principal={"AWS": THEIRS}),
        ),
        {"any-account through network 203.0.112.0/20"},
    ),
    (
        "a bucket within the pattern of buckets",
        recipe(allow({"ArnEquals": {"aws:SourceArn": "arn:aws:s3:::source"}}), allow(BUCKETS)),
        {"source arn:aws:s3:::*"},
    ),
    (
        "a bucket without a header, next to the pattern of buckets with one",
        recipe(
            allow({"ArnEquals": {"aws:SourceArn": "arn:aws:s3:::source"}}),
            allow(BUCKETS | {"StringLike": BUCKETS["StringLike"] | REFERER["StringLike"]}),
        ),
        {"source arn:aws:s3:::source", "source arn:aws:s3:::* through header aws:Referer"},
    ),
    (
        "a bucket within the pattern of one account's buckets",
        recipe(
            allow({"ArnNotLike": {"aws:SourceArn": "arn:aws:s3:::source"}}, Principal={"AWS": THEIRS}),
            allow(BUCKETS | {"StringEquals": {"aws:SourceAccount": OURS}}),
        ),
        {f"account {THEIRS}", f"source {OURS}"},
    ),
    (
        "a distribution next to the pattern of another account's distributions",
        recipe(
            allow({"ArnEquals": {"aws:SourceArn": DISTRIBUTION}}), allow({"ArnLike": {"aws:SourceArn": DISTRIBUTIONS}})
        ),
        {f"source {DISTRIBUTION}", f"source {DISTRIBUTIONS}"},
    ),
    (
        "an access point within a pattern of another account's access points",
        recipe(allow(AT_POINT), allow(AT_POINTS), facts={"account": FRIENDS}),
        {f"access-point {OWN_POINTS}"},
    ),
    (
        "an access point within a pattern, which is named first",
        recipe(allow(AT_POINTS), allow(AT_POINT), facts={"account": FRIENDS}),
        {f"access-point {OWN_POINTS}"},
    ),
    (
        "an access point without a header, next to the pattern of access points with one",
        recipe(allow(AT_POINT), allow(AT_POINTS | REFERER), facts={"account": FRIENDS}),
        {f"access-point {POINT}", f"access-point {OWN_POINTS} through header aws:Referer"},
    ),
    (
        "an account through an access point, and through the pattern of it",
        recipe(
            allow(AT_POINT, Principal={"AWS": THEIRS}),
            allow(AT_POINTS, Principal={"AWS": THEIRS}),
            facts={"account": FRIENDS},
        ),
        {f"account {THEIRS} through access-point {OWN_POINTS}"},
    ),
    (
        "every service for a distribution, next to one service for everything of its account",
        recipe(
            deny({"StringNotEquals": {"aws:SourceAccount": OURS}}),
            allow({"ArnEquals": {"aws:SourceArn": DISTRIBUTION}}),
            allow(Principal={"Service": "logging.s3.amazonaws.com"}),
        ),
        {f"source {OURS}"},
    ),
    (
        "every service for a distribution, next to one service",
        recipe(
            allow({"ArnEquals": {"aws:SourceArn": DISTRIBUTION}}),
            allow({"StringEquals": {"aws:SourceAccount": OURS}}, Principal={"Service": "logging.s3.amazonaws.com"}),
            allow(Principal={"Service": "logging.s3.amazonaws.com"}),
        ),
        {f"source {DISTRIBUTION}", "service logging.s3.amazonaws.com"},
    ),
    (
        "nobody, under an unread KMS key and a policy that names one role of an account",
        recipe(allow({"StringNotLike": {"aws:PrincipalArn": ROLE}}), head=KMS),
        set(),
    ),
    (
        "a canonical ID that is not known, at the VPCs from which nobody is denied",
        recipe(
            deny({"StringNotLike": {"aws:SourceVpc": ["vpc-1", "vpc-2"]}}, NotPrincipal={"AWS": [OURS, THEIRS]}),
            allow(Principal={"AWS": THEIRS}),
            acl=DENIED,
            facts={"public_access_block": PublicAccessBlock(ignore_public_acls=True)},
        ),
        {f"account {THEIRS}", "canonical-id ? through vpc vpc-1", "canonical-id ? through vpc vpc-2"},
    ),
    (
        "an identity provider within the endpoint that everyone may use",
        recipe(allow(), allow(Principal=PROVIDER), deny({"StringNotEquals": {"aws:SourceVpce": "vpce-2"}})),
        {"vpc-endpoint vpce-2"},
    ),
    (
        "an identity provider at an endpoint, next to an account",
        recipe(allow(Principal={"AWS": THEIRS} | PROVIDER), deny({"StringNotEquals": {"aws:SourceVpce": "vpce-2"}})),
        {
            f"account {THEIRS} through vpc-endpoint vpce-2",
            f"identity-provider {PROVIDER['Federated']} through vpc-endpoint vpce-2",
        },
    ),
    (
        "a canonical ID of the organization at an endpoint, which the organization uses from one VPC",
        recipe(
            deny({"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}),
            deny(OUTSIDE),
            allow({"StringEquals": {"aws:SourceVpc": "vpc-1"}}),
            acl=acl(OTHER),
        ),
        {"organization o-1 through vpc-endpoint vpce-1"},
    ),
    (
        "a canonical ID of the organization at a VPC, within an account whose endpoints the organization uses",
        recipe(
            deny({"StringNotEquals": {"aws:VpceAccount": THEIRS}}),
            deny(OUTSIDE),
            allow({"StringEquals": {"aws:VpceOrgID": "o-9"}}),
            allow({"StringEquals": {"aws:SourceVpc": "vpc-1"}}, Principal={"CanonicalUser": OTHER}),
        ),
        {f"organization o-1 through vpc-account {THEIRS}"},
    ),
    (
        "a canonical ID at an access point from an endpoint, within an account whose endpoints the organization uses",
        recipe(
            deny(OUTSIDE),
            allow({"StringEquals": {"aws:VpceAccount": THEIRS}}),
            allow(
                AT_POINT | {"StringEquals": {"aws:SourceVpce": "vpce-1", "aws:VpceAccount": THEIRS}},
                Principal={"CanonicalUser": OTHER},
            ),
            facts={"access_points": SKIPPED},
        ),
        {f"organization o-1 through vpc-account {THEIRS}"},
    ),
    (
        "an endpoint that a statement on the folders of users names, for an object in none of them",
        recipe(
            allow({"StringEquals": {"aws:SourceVpc": "vpc-2"}}),
            deny(
                {"StringNotEqualsIfExists": {"aws:SourceVpce": "vpce-2"}},
                Resource="arn:aws:s3:::bucket/home/${aws:username}/*",
            ),
        ),
        {"vpc vpc-2"},
    ),
    (
        "an endpoint that a statement on the folders of users names, for an object in such a folder",
        recipe(
            allow({"StringEquals": {"aws:SourceVpc": "vpc-2"}}),
            deny(
                {"StringNotEqualsIfExists": {"aws:SourceVpce": "vpce-2"}},
                Resource="arn:aws:s3:::bucket/${aws:username}/*",
            ),
        ),
        {"vpc vpc-2", "vpc-endpoint vpce-2"},
    ),
    ("everyone without a user name, in the folder that is the default", recipe(allow(Resource=DEFAULT)), {"anyone"}),
    (
        "users, where those without a name are denied the folder that is the default",
        recipe(allow(), deny(Resource=DEFAULT)),
        {"any-account"},
    ),
    (
        "everyone without a user name, where all folders but the default are denied",
        recipe(allow(), deny(NotResource=DEFAULT)),
        {"anyone"},
    ),
    (
        "users, where the default is another folder",
        recipe(allow(Resource="arn:aws:s3:::bucket/${aws:username, 'other'}/*")),
        {"any-account"},
    ),
    (
        "a canonical ID of the organization from anywhere, next to the organization at a VPC",
        recipe(deny(OUTSIDE), allow({"StringEquals": {"aws:SourceVpc": "vpc-1"}}), acl=acl(OTHER)),
        {f"canonical-id {OTHER}", "organization o-1 through vpc vpc-1"},
    ),
]


@pytest.mark.parametrize(("name", "given", "audience"), CASES, ids=[name for name, _, _ in CASES])
def test_the_audience(name: str, given: Recipe, audience: set[str]) -> None:
    case = given.case()
    engine = VerdictJudge(case.facts, case.trusted, versions=case.versions, now=datetime.fromisoformat(NOW))
    assert {one.text for one in engine.access(case.ref, case.acl, case.head).audience} == audience, name
    assert judge(case).audience == audience, name
