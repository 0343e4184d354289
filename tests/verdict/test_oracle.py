"""The oracle itself: the idioms and situations that the S3 User Guide decides, and conditions one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, AccessPoint, BucketFacts, PublicAccessBlock
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    AUTHENTICATED_USERS,
    Acl,
    Grant,
    Head,
    ObjectRef,
    Skipped,
    Unread,
)
from tests.verdict.oracle.conditions import holds
from tests.verdict.oracle.verdict import judge
from tests.verdict.oracle.worlds import Case

OWNER, OTHER = "a" * 64, "b" * 64
OURS, THEIRS = "111122223333", "444455556666"
DENIED = Unread("Operation", "AccessDenied")
EXPOSED, UNKNOWN, SHARED, MASKED, _, PRIVATE = Verdict
HEAD = Head(etag="e", content_length=1, server_side_encryption="AES256")
KMS = replace(HEAD, server_side_encryption="aws:kms", sse_kms_key_id="key-1")
SSE_C = replace(HEAD, server_side_encryption=None, sse_customer_algorithm="AES256")
RESTRICTS = PublicAccessBlock(restrict_public_buckets=True)


def acl(*grants: tuple[str, str], owner: str = OWNER) -> Acl:
    return Acl(owner, (Grant(owner, "FULL_CONTROL"), *(Grant(*grant) for grant in grants)))


OWN = acl()


def case(
    *statements: dict[str, Any],
    acl: Acl | Unread | Skipped = OWN,
    head: Head = HEAD,
    trusted: tuple[str, ...] = (),
    **facts: Any,
) -> Case:
    values: dict[str, Any] = {
        "region": "eu-central-1",
        "owner": OWNER,
        "own_id": OWNER,
        "account": OURS,
        "ownership": "ObjectWriter",
        "public_access_block": PublicAccessBlock(),
        "account_public_access_block": PublicAccessBlock(),
        "policy_is_public": DENIED,
        "policy": json.dumps({"Version": "2012-10-17", "Statement": statements}) if statements else "",
        "versioning": "Enabled",
        "request_payer": "BucketOwner",
        "access_points": (),
        "key_policies": {},
    }
    bucket = BucketFacts(bucket="bucket", **(values | facts))
    ref = ObjectRef("dir/key", "e", 1, "2026-01-02T03:04:05Z", owner=OWNER)
    return Case(facts=bucket, acl=acl, head=head, ref=ref, trusted=trusted)


def allow(condition: Any = None, **fields: Any) -> dict[str, Any]:
    whole = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    return whole | ({"Condition": condition} if condition else {}) | fields


def deny(condition: Any = None, **fields: Any) -> dict[str, Any]:
    return allow(condition, **({"Effect": "Deny", "Action": "s3:*"} | fields))


PUBLIC = acl((ALL_USERS, "READ"))
ORGANIZATION = {"StringNotEquals": {"aws:PrincipalOrgID": "o-1"}}
ENDPOINT = {"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}
OFFICE = {"NotIpAddress": {"aws:SourceIp": "203.0.113.0/24"}}
CLOUDFRONT = {"Service": "cloudfront.amazonaws.com"}
DISTRIBUTION = f"arn:aws:cloudfront::{OURS}:distribution/E1"
OAI = "arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity E1"
POINT = f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/p"
OF_THEIRS = f"arn:aws:cloudfront::{THEIRS}:distribution/*"
DELEGATES = {"StringEquals": {"s3:DataAccessPointAccount": OURS}}
THROUGH_POINT = allow(Resource=f"{POINT}/object/*")


def point(*statements: dict[str, Any], **fields: Any) -> dict[str, Any]:
    text = json.dumps({"Version": "2012-10-17", "Statement": statements})
    return {"access_points": (AccessPoint(**({"arn": POINT, "account": OURS, "policy": text} | fields)),)}


def only_if(operator: str, key: str, *values: str) -> dict[str, Any]:
    return allow({operator: {key: list(values)}})


IDIOMS: list[tuple[str, Case, Verdict, set[str]]] = [
    ("1", case(allow()), EXPOSED, {"anyone"}),
    ("2 TLS", case(only_if("Bool", "aws:SecureTransport", "true")), EXPOSED, {"anyone"}),
    ("2 TLS 1.2", case(only_if("NumericGreaterThanEquals", "s3:TlsVersion", "1.2")), EXPOSED, {"anyone"}),
    ("3", case(only_if("StringLike", "aws:Referer", "*example*")), EXPOSED, {"anyone through header aws:Referer"}),
    ("4", case(only_if("IpAddress", "aws:SourceIp", "203.0.113.0/24")), SHARED, {"network 203.0.113.0/24"}),
    ("5", case(only_if("IpAddress", "aws:SourceIp", "0.0.0.0/0")), EXPOSED, {"anyone"}),
    ("5 halves", case(only_if("IpAddress", "aws:SourceIp", "0.0.0.0/1", "128.0.0.0/1")), EXPOSED, {"anyone"}),
    ("6", case(only_if("IpAddress", "aws:SourceIp", "10.0.0.0/8")), SHARED, {"network 10.0.0.0/8"}),
    ("7", case(only_if("StringEquals", "aws:SourceVpce", "vpce-1")), SHARED, {"vpc-endpoint vpce-1"}),
    ("7 VPC", case(only_if("StringEquals", "aws:SourceVpc", "vpc-1")), SHARED, {"vpc vpc-1"}),
    ("7 trusted", case(only_if("StringEquals", "aws:SourceVpce", "vpce-1"), trusted=("vpce-1",)), PRIVATE, set()),
    ("8", case(only_if("StringLike", "aws:SourceVpce", "vpce-*")), EXPOSED, {"anyone"}),
    ("9", case(only_if("StringEquals", "aws:PrincipalOrgID", "o-1")), SHARED, {"organization o-1"}),
    ("9 trusted", case(only_if("StringEquals", "aws:PrincipalOrgID", "o-1"), trusted=("o-1",)), PRIVATE, set()),
    ("10", case(only_if("StringEquals", "aws:PrincipalAccount", OURS)), PRIVATE, set()),
    ("11", case(only_if("ArnLike", "aws:PrincipalArn", f"arn:aws:iam::{OURS}:role/*")), PRIVATE, set()),
    (
        "11 another account",
        case(only_if("ArnLike", "aws:PrincipalArn", f"arn:aws:iam::{THEIRS}:role/*")),
        SHARED,
        {f"account arn:aws:iam::{THEIRS}:role/*"},
    ),
    ("12", case(only_if("ArnLike", "aws:PrincipalArn", "arn:aws:iam::*:role/x")), EXPOSED, {"any-account"}),
    ("13", case(only_if("StringNotEquals", "aws:PrincipalType", "Anonymous")), EXPOSED, {"any-account"}),
    ("14", case(only_if("Null", "aws:PrincipalArn", "false")), EXPOSED, {"any-account"}),
    ("15", case(only_if("DateLessThan", "aws:CurrentTime", "2020-01-01T00:00:00Z")), PRIVATE, set()),
    ("16", case(only_if("DateLessThan", "aws:CurrentTime", "2090-01-01T00:00:00Z")), EXPOSED, {"anyone"}),
    ("17", case(only_if("StringEquals", "s3:ExistingObjectTag/public", "true")), UNKNOWN, set()),
    ("18", case(allow(DELEGATES), access_points=DENIED), UNKNOWN, set()),
    ("18 none", case(allow(DELEGATES)), PRIVATE, set()),
    (
        "18 not the owner's, closed",
        case(allow(DELEGATES), allow({"StringLike": {"aws:SourceArn": OF_THEIRS}}), own_id=OTHER, **point()),
        SHARED,
        {f"source {OF_THEIRS}", f"access-point arn:*:s3:*:{OURS}:accesspoint/*"},
    ),
    ("18 all", case(allow(DELEGATES), **point(THROUGH_POINT)), EXPOSED, {f"any-account through access-point {POINT}"}),
    (
        "18 one",
        case(allow(DELEGATES), **point(THROUGH_POINT | {"Principal": {"AWS": THEIRS}})),
        SHARED,
        {f"account {THEIRS} through access-point {POINT}"},
    ),
    (
        "18 VPC",
        case(allow(DELEGATES), **point(THROUGH_POINT, vpc="vpc-1")),
        SHARED,
        {f"access-point {POINT}"},
    ),
    ("19", case(allow(Principal={"AWS": THEIRS})), SHARED, {f"account {THEIRS}"}),
    (
        "20",
        case(allow({"StringEquals": {"aws:SourceArn": DISTRIBUTION}}, Principal=CLOUDFRONT)),
        SHARED,
        {f"source {DISTRIBUTION}"},
    ),
    (
        "20 trusted",
        case(allow({"StringEquals": {"aws:SourceArn": DISTRIBUTION}}, Principal=CLOUDFRONT), trusted=("E1",)),
        PRIVATE,
        set(),
    ),
    ("21", case(allow(Principal=CLOUDFRONT)), SHARED, {"service cloudfront.amazonaws.com"}),
    ("22", case(allow(Principal={"AWS": OAI})), SHARED, {f"account {OAI}"}),
    ("22 canonical", case(allow(Principal={"CanonicalUser": OTHER})), SHARED, {f"canonical-id {OTHER}"}),
    ("22 trusted", case(allow(Principal={"CanonicalUser": OTHER}), trusted=(OTHER,)), PRIVATE, set()),
    ("23", case(allow(), deny(ORGANIZATION)), SHARED, {"organization o-1"}),
    (
        "24",
        case(allow(Principal={"Federated": "accounts.google.com"})),
        EXPOSED,
        {"identity-provider accounts.google.com"},
    ),
    ("24 SAML", case(allow(Principal={"Federated": f"arn:aws:iam::{THEIRS}:saml-provider/p"})), UNKNOWN, set()),
    ("25", case(deny(ENDPOINT), acl=PUBLIC), SHARED, {"vpc-endpoint vpce-1"}),
    ("25 trusted", case(deny(ENDPOINT), acl=PUBLIC, trusted=("vpce-1",)), MASKED, set()),
    ("26", case(deny(ORGANIZATION), acl=PUBLIC), SHARED, {"organization o-1"}),
    ("26 trusted", case(deny(ORGANIZATION), acl=PUBLIC, trusted=("o-1",)), MASKED, set()),
    ("27", case(deny(OFFICE), acl=PUBLIC), SHARED, {"network 203.0.113.0/24"}),
    ("27 trusted", case(deny(OFFICE), acl=PUBLIC, trusted=("203.0.112.0/20",)), MASKED, set()),
    ("28", case(deny({"Bool": {"aws:SecureTransport": "false"}}), acl=PUBLIC), EXPOSED, {"anyone"}),
    ("28 TLS", case(deny({"NumericLessThan": {"s3:TlsVersion": "1.2"}}), acl=PUBLIC), EXPOSED, {"anyone"}),
    (
        "29",
        case(
            {name: value for name, value in deny(NotPrincipal={"AWS": OURS}).items() if name != "Principal"}, acl=PUBLIC
        ),
        MASKED,
        set(),
    ),
    (
        "30",
        case(
            deny(
                {
                    "StringNotEqualsIfExists": {"aws:PrincipalOrgID": "o-1"},
                    "BoolIfExists": {"aws:PrincipalIsAWSService": "false"},
                }
            ),
            acl=PUBLIC,
            trusted=("o-1",),
        ),
        MASKED,
        set(),
    ),
    ("31", case(deny(Action="s3:GetObject"), acl=PUBLIC), EXPOSED, {"anyone"}),
    ("32", case(allow(), acl=acl(owner=OTHER)), SHARED, {f"canonical-id {OTHER}"}),
    ("33", case(acl=acl((ALL_USERS, "READ"), owner=OTHER)), EXPOSED, {"anyone"}),
    ("34", case(allow(), acl=acl(owner=OTHER), ownership=BUCKET_OWNER_ENFORCED), EXPOSED, {"anyone"}),
    ("35", case(acl=acl(owner=ANONYMOUS_OWNER)), EXPOSED, {"anyone"}),
    ("35 ACLs off", case(acl=acl(owner=ANONYMOUS_OWNER), ownership=BUCKET_OWNER_ENFORCED), PRIVATE, set()),
    (
        "36",
        case(allow(), allow(Principal={"AWS": THEIRS}), policy_is_public=True, public_access_block=RESTRICTS),
        MASKED,
        set(),
    ),
    (
        "37",
        case(allow(Principal={"AWS": THEIRS}), policy_is_public=False, public_access_block=RESTRICTS),
        SHARED,
        {f"account {THEIRS}"},
    ),
    ("38", case(account_public_access_block=PublicAccessBlock(ignore_public_acls=True)), PRIVATE, set()),
    (
        "38 stored",
        case(acl=PUBLIC, account_public_access_block=PublicAccessBlock(ignore_public_acls=True)),
        MASKED,
        set(),
    ),
    ("39", case(acl=PUBLIC, request_payer="Requester"), EXPOSED, {"any-account"}),
    ("40", case(acl=PUBLIC, head=KMS), MASKED, set()),
    ("40 signed", case(acl=acl((AUTHENTICATED_USERS, "READ")), head=KMS), MASKED, set()),
    ("40 SSE-C", case(acl=PUBLIC, head=SSE_C), MASKED, set()),
]
SITUATIONS: list[tuple[str, Case, Verdict, set[str]]] = [
    ("2", case(acl=acl((ANONYMOUS_OWNER, "READ_ACP"))), EXPOSED, {"anyone"}),
    (
        "4 services stay",
        case(allow(), allow(Principal=CLOUDFRONT), public_access_block=RESTRICTS),
        SHARED,
        {"service cloudfront.amazonaws.com"},
    ),
    (
        "5 the key admits all",
        case(
            acl=PUBLIC,
            head=KMS,
            key_policies={"key-1": json.dumps({"Statement": [allow(Action="kms:*", Resource="*")]})},
        ),
        EXPOSED,
        {"any-account"},
    ),
    (
        "5 the key admits us",
        case(
            acl=PUBLIC,
            head=KMS,
            key_policies={
                "key-1": json.dumps({"Statement": [allow(Principal={"AWS": OURS}, Action="kms:*", Resource="*")]})
            },
        ),
        MASKED,
        set(),
    ),
    ("9 own account", case(deny({"StringNotEquals": {"aws:PrincipalAccount": OURS}}), acl=PUBLIC), MASKED, set()),
    (
        "10 signed grant",
        case(acl=acl((AUTHENTICATED_USERS, "READ")), request_payer="Requester"),
        EXPOSED,
        {"any-account"},
    ),
    (
        "sight 4 NotAction",
        case({name: value for name, value in allow(NotAction="s3:Put*").items() if name != "Action"}),
        EXPOSED,
        {"anyone"},
    ),
    ("sight 6", case(allow(Principal={"AWS": THEIRS}), deny(Principal={"AWS": THEIRS})), MASKED, set()),
    ("sight 7", case(deny(), acl=DENIED), MASKED, set()),
    ("sight 7, open", case(acl=DENIED), UNKNOWN, set()),
    ("sight 9", case(allow(Action="s3:PutObjectAcl"), ownership=BUCKET_OWNER_ENFORCED), PRIVATE, set()),
    ("sight 11", case(allow(Action="s3:GetObjectVersionForReplication")), EXPOSED, {"anyone"}),
    (
        "a tag that an Allow wants and a Deny spares",
        case(
            only_if("StringEquals", "s3:ExistingObjectTag/x", "1"),
            allow({"StringNotEquals": {"s3:ExistingObjectTag/x": "1"}}),
        ),
        EXPOSED,
        {"anyone"},
    ),
    (
        "an organization, and a Deny for a public provider",
        case(
            only_if("StringEquals", "aws:PrincipalOrgID", "o-1"),
            deny(
                {"StringEquals": {"aws:PrincipalOrgID": "o-2"}},
                Action="s3:GetObject",
                Principal={"Federated": "accounts.google.com"},
            ),
            policy_is_public=False,
        ),
        SHARED,
        {"organization o-1"},
    ),
    ("a policy unread", case(policy=DENIED), UNKNOWN, set()),
    ("a policy unread, a public ACL", case(policy=DENIED, acl=PUBLIC), EXPOSED, {"anyone"}),
    ("our number is not known", case(allow(Principal={"AWS": THEIRS}), account=DENIED), UNKNOWN, set()),
]


@pytest.mark.parametrize(
    ("name", "given", "verdict", "audience"),
    IDIOMS + SITUATIONS,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_guide_decides(name: str, given: Case, verdict: Verdict, audience: set[str]) -> None:
    answer = judge(given)
    assert answer.verdict is verdict, name
    if verdict is not UNKNOWN:
        assert answer.audience == audience, name


@pytest.mark.parametrize(
    ("operator", "wanted", "given", "expected"),
    [
        ("StringEquals", ("a",), ("a",), True),
        ("StringEquals", ("a*",), ("ab",), False),
        ("StringEquals", ("a",), None, False),
        ("StringNotEquals", ("a",), None, True),
        ("StringNotEquals", ("a", "b"), ("b",), False),
        ("StringEqualsIfExists", ("a",), None, True),
        ("ForAllValues:StringEquals", ("a",), None, True),
        ("ForAllValues:StringEquals", ("a",), ("a", "b"), False),
        ("ForAnyValue:StringEquals", ("a",), ("a", "b"), True),
        ("ForAnyValue:StringNotEquals", ("a",), None, False),
        ("StringLike", ("${user}/*",), ("bob/x",), True),
        ("StringLike", ("${nobody}/*",), ("bob/x",), False),
        ("StringNotLike", ("${nobody}/*",), ("bob/x",), True),
        ("StringLike", ("${nobody, 'bob'}/*",), ("bob/x",), True),
        ("StringLike", ("a${*}",), ("ab",), False),
        ("StringLike", ("a${*}",), ("a*",), True),
        ("ArnLike", ("arn:aws:iam::*:role/x",), ("arn:aws:iam::1:role/x",), True),
        ("ArnLike", ("arn:*:role/x",), ("arn:aws:iam::1:role/x",), False),
        ("ArnNotLike", ("arn:aws:iam::*:role/x",), None, True),
        ("IpAddress", ("10.0.0.0/8",), ("::1",), False),
        ("NotIpAddress", ("10.0.0.0/8",), ("11.0.0.1",), True),
        ("NumericLessThan", ("1.2",), ("1.1",), True),
        ("NumericLessThan", ("1.2",), None, False),
        ("DateGreaterThan", ("2020-01-01T00:00:00Z",), ("1782907200",), True),
        ("Bool", ("true",), ("True",), True),
        ("Null", ("true",), None, True),
        ("Null", ("false",), None, False),
        ("Null", ("false",), ("",), True),
    ],
)
def test_a_condition(operator: str, wanted: tuple[str, ...], given: tuple[str, ...] | None, expected: bool) -> None:
    assert holds(operator, wanted, given, {"user": ("bob",)}) is expected
