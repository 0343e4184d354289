"""The conditions that people write into policies, by topic."""

from __future__ import annotations

from typing import Any, Final

from tests.verdict.oracle.recipe import OURS, THEIRS

POINT: Final = f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/p"
DISTRIBUTION: Final = f"arn:aws:cloudfront::{OURS}:distribution/E1EXAMPLE"
ROLE: Final = f"arn:aws:iam::{THEIRS}:role/reader"

Tests = tuple[tuple[str, str, Any], ...]
"""Conditions as triples (operator, key, values)."""


def _each(operators: str, key: str, *values: Any) -> Tests:
    return tuple((operator, key, value) for operator in operators.split() for value in values)


_EQUALS: Final = "StringEquals StringNotEquals StringLike StringNotLike StringEqualsIfExists StringNotEqualsIfExists"
_NETWORKS: Final = (
    *("203.0.113.0/24", "203.0.113.128/25", "198.51.100.7/32", "198.51.100.7", "10.0.0.0/8", "192.168.0.0/16"),
    *("52.0.0.0/8", "8.0.0.0/7", "0.0.0.0/0", "0.0.0.0/1", ["0.0.0.0/1", "128.0.0.0/1"]),
    *(["203.0.113.0/24", "2001:db8::/32"], ["203.0.113.0/24", "198.51.100.0/24"], "2001:db8:1::/48", "::/0"),
)
_NEXT: Final = ["203.0.113.0/24", "192.0.2.0/24"]
TOPICS: Final[dict[str, Tests]] = {
    "network": _each(
        "IpAddress NotIpAddress IpAddress NotIpAddress NotIpAddressIfExists IpAddressIfExists",
        "aws:SourceIp",
        *_NETWORKS,
    ),
    "near network": _each(
        "IpAddress NotIpAddress", "aws:SourceIp", "203.0.113.0/24", "203.0.113.128/25", "203.0.112.0/20", _NEXT
    ),
    "inner network": _each(
        "IpAddress NotIpAddress NotIpAddressIfExists", "aws:VpcSourceIp", "10.0.0.0/8", "10.1.0.0/16"
    ),
    "endpoint": _each(_EQUALS, "aws:SourceVpce", "vpce-1", ["vpce-1", "vpce-2"], "vpce-2")
    + _each("StringLike StringNotLike", "aws:SourceVpce", "vpce-*", "vpce-0a*"),
    "vpc": _each(_EQUALS, "aws:SourceVpc", "vpc-1", ["vpc-1", "vpc-2"]) + _each("StringLike", "aws:SourceVpc", "vpc-*"),
    "organization": _each(_EQUALS, "aws:PrincipalOrgID", "o-1", ["o-1", "o-2"], "o-2")
    + _each("StringLike StringNotLike", "aws:PrincipalOrgID", "o-*"),
    "paths": _each(
        "ForAnyValue:StringLike ForAllValues:StringLike ForAnyValue:StringNotLike",
        "aws:PrincipalOrgPaths",
        "o-1/r-1/*",
        "o-1/*",
    ),
    "account": _each(_EQUALS, "aws:PrincipalAccount", OURS, THEIRS, [OURS, THEIRS])
    + _each("StringLike", "aws:PrincipalAccount", "12*", "*"),
    "arn": _each(
        "ArnLike ArnNotLike StringLike StringNotLike ArnEquals ArnNotEquals ArnNotLikeIfExists",
        "aws:PrincipalArn",
        f"arn:aws:iam::{OURS}:role/*",
        f"arn:aws:iam::{THEIRS}:role/*",
        "arn:aws:iam::*:role/x",
        ROLE,
        [f"arn:aws:iam::{OURS}:*", ROLE],
    ),
    "type": _each(
        "StringEquals StringNotEquals StringLike", "aws:PrincipalType", "Anonymous", "User", ["AssumedRole", "User"]
    ),
    "user id": _each("StringLike StringNotLike", "aws:userid", "AROAEXAMPLE:*", "*:bob", "anonymous"),
    "user name": _each("StringEquals StringNotEquals StringLike StringNotEqualsIfExists", "aws:username", "bob", "b*"),
    "principal tag": _each(_EQUALS, "aws:PrincipalTag/team", "red", ["red", "blue"]),
    "service": (
        *_each("Bool BoolIfExists", "aws:PrincipalIsAWSService", "false", "true"),
        *_each("StringEquals StringNotEquals", "aws:PrincipalServiceName", "logging.s3.amazonaws.com"),
    ),
    "via": (
        *_each("Bool BoolIfExists", "aws:ViaAWSService", "false", "true"),
        *_each("ForAnyValue:StringEquals", "aws:CalledVia", "athena.amazonaws.com"),
    ),
    "source": (
        *_each(
            "ArnLike ArnEquals StringEquals ArnNotLike StringNotEquals",
            "aws:SourceArn",
            DISTRIBUTION,
            "arn:aws:s3:::source",
        ),
        *_each("ArnLike StringLike", "aws:SourceArn", f"arn:aws:cloudfront::{THEIRS}:distribution/*", "arn:aws:s3:::*"),
        *_each("StringEquals StringNotEquals StringNotEqualsIfExists", "aws:SourceAccount", OURS, THEIRS),
    ),
    "source organization": _each("StringEquals StringNotEquals StringNotEqualsIfExists", "aws:SourceOrgID", "o-1"),
    "transport": (
        *_each("Bool BoolIfExists", "aws:SecureTransport", "true", "false"),
        *_each("NumericLessThan NumericGreaterThanEquals NumericLessThanIfExists", "s3:TlsVersion", "1.2", "1.3"),
    ),
    "referer": _each(
        f"{_EQUALS} StringEqualsIgnoreCase StringNotEqualsIgnoreCase StringLikeIfExists",
        "aws:Referer",
        "https://www.example.com/*",
        ["*.example.com/*", "*.example.org/*"],
        "secret",
        "*",
    ),
    "agent": _each(
        "StringEquals StringNotEquals StringLike StringNotLike", "aws:UserAgent", "secret", "*bot*", "Amazon CloudFront"
    ),
    "version": _each("StringEquals StringNotEquals", "s3:VersionId", "v1", "v2"),
    "signature": (
        *_each("StringEquals StringNotEquals", "s3:authType", "REST-HEADER", ["REST-HEADER", "REST-QUERY-STRING"]),
        *_each("NumericLessThan NumericGreaterThan NumericGreaterThanIfExists", "s3:signatureAge", "600000"),
    ),
    "date": (
        *_each(
            "DateLessThan DateGreaterThan DateGreaterThanEquals",
            "aws:CurrentTime",
            "2020-01-01T00:00:00Z",
            "2090-01-01T00:00:00Z",
        ),
        *_each("DateLessThan NumericLessThan NumericGreaterThan", "aws:EpochTime", "1577836800", "3786912000"),
    ),
    "object tag": (
        *_each(_EQUALS, "s3:ExistingObjectTag/public", "true", ["yes", "true"]),
        ("StringEquals", "aws:PrincipalTag/team", "${s3:ExistingObjectTag/team}"),
    ),
    "other key": (
        *_each("Bool BoolIfExists", "aws:MultiFactorAuthPresent", "true", "false"),
        *_each("StringEquals StringNotEquals", "s3:x-amz-server-side-encryption", "aws:kms", "AES256"),
        *_each("ForAllValues:StringEquals ForAnyValue:StringEquals", "aws:TagKeys", ["a", "b"]),
        *_each("NumericGreaterThan NumericLessThan", "ec2:RoleDelivery", "2"),
    ),
    "point": (
        *_each("StringEquals StringNotEquals StringNotEqualsIfExists", "s3:DataAccessPointAccount", OURS, THEIRS),
        *_each(
            "ArnLike StringLike ArnNotLike",
            "s3:DataAccessPointArn",
            POINT,
            f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/*",
        ),
    ),
    "bucket's own": (
        *_each("StringEquals StringNotEquals", "aws:ResourceAccount", OURS, THEIRS),
        *_each("StringEquals StringNotEquals", "s3:ResourceAccount", OURS),
        *_each("StringEquals StringNotEquals", "aws:RequestedRegion", "eu-central-1", "us-east-1"),
        *_each("StringEquals StringNotEquals", "aws:PrincipalAccount", "${aws:ResourceAccount}"),
    ),
}
NULL_KEYS: Final = (
    *(
        "aws:PrincipalArn",
        "aws:PrincipalOrgID",
        "aws:SourceVpce",
        "aws:SourceIp",
        "aws:Referer",
        "aws:PrincipalAccount",
    ),
    *("s3:ExistingObjectTag/public", "aws:SourceArn", "aws:username"),
)
COMMON: Final = ("network", "endpoint", "organization", "account", "arn", "transport", "referer", "source", "service")

_VPC_ARN: Final = "arn:aws:ec2:eu-central-1:{}:vpc/{}"
_TEAM: Final = "${aws:PrincipalTag/team}"
KEYS_OF_2026: Final[dict[str, Tests]] = {
    "endpoint account": _each(_EQUALS, "aws:VpceAccount", OURS, THEIRS, [OURS, THEIRS])
    + _each("StringLike StringNotLike", "aws:VpceAccount", "*", f"{THEIRS[:4]}*")
    + _each("StringEquals StringNotEquals", "aws:VpceAccount", "${aws:PrincipalAccount}", "${aws:ResourceAccount}"),
    "endpoint organization": _each(_EQUALS, "aws:VpceOrgID", "o-1", ["o-1", "o-2"], "o-2")
    + _each("StringLike StringNotLike", "aws:VpceOrgID", "o-*"),
    "endpoint paths": _each(
        "ForAnyValue:StringLike ForAllValues:StringLike ForAnyValue:StringNotLike ForAllValues:StringNotLike",
        "aws:VpceOrgPaths",
        "o-1/r-1/*",
        "o-1/*",
    ),
    "vpc arn": _each(
        "ArnEquals ArnLike ArnNotEquals ArnNotLike StringEquals StringNotEqualsIfExists",
        "aws:SourceVpcArn",
        _VPC_ARN.format(THEIRS, "vpc-1"),
        _VPC_ARN.format(OURS, "vpc-1"),
        [_VPC_ARN.format(THEIRS, "vpc-1"), _VPC_ARN.format(OURS, "vpc-3")],
    )
    + _each(
        "ArnLike ArnNotLike StringLike StringNotLike",
        "aws:SourceVpcArn",
        _VPC_ARN.format(THEIRS, "*"),
        _VPC_ARN.format(OURS, "*"),
        _VPC_ARN.format("*", "*"),
    ),
    "bucket tag": _each(_EQUALS, "aws:ResourceTag/team", "red", ["red", "blue"], "r*")
    + _each(_EQUALS, "s3:BucketTag/team", "red", ["red", "blue"]),
    "own tag": _each("StringEquals StringNotEquals StringLike", "aws:ResourceTag/team", _TEAM)
    + _each("StringEquals StringNotEquals", "aws:PrincipalTag/team", "${aws:ResourceTag/team}", "red"),
    "grants": _each(
        "ArnEquals ArnLike ArnNotEquals ArnNotLike StringEquals StringNotEqualsIfExists",
        "s3:AccessGrantsInstanceArn",
        f"arn:aws:s3:eu-central-1:{THEIRS}:access-grants/default",
        f"arn:aws:s3:eu-central-1:{OURS}:access-grants/default",
    ),
    "conditional read": _each("StringEquals StringNotEquals StringLike", "s3:if-none-match", "*", "x")
    + _each("StringEquals StringNotEquals StringNotEqualsIfExists", "s3:if-match", "x", ["x", "y"]),
}
"""Conditions on the keys that AWS has had since 2023."""
NULL_KEYS_OF_2026: Final = (
    *("aws:VpceAccount", "aws:VpceOrgID", "aws:SourceVpcArn", "aws:ResourceTag/team", "s3:BucketTag/team"),
    *("s3:AccessGrantsInstanceArn", "s3:if-match", "s3:if-none-match", "aws:SourceVpce", "aws:PrincipalOrgID"),
)
COMMON_WITH_2026: Final = ("network", "endpoint", "vpc", "organization", "account", "transport", "principal tag")
