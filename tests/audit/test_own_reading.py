"""The status of the bucket policy by our own reading, where the server's says nothing."""

from __future__ import annotations

import json
from typing import Any, Final

from auditor.audit.ask_bucket import with_own_reading
from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import Skipped, Unread

NAMED: Final = {"AWS": "arn:aws:iam:::user/backup"}
POINT: Final = "s3:DataAccessPointArn"
LACKS: Final = Skipped("the server does not say whether a policy is public")


def policy(principal: Any, condition: Any = None) -> str:
    statement = {"Effect": "Allow", "Principal": principal, "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/*"}
    return json.dumps({"Statement": [statement | ({"Condition": condition} if condition else {})]})


def status(semantics: Semantics, said: Any, text: Any) -> object:
    given = BucketFacts(bucket="b", semantics=semantics, policy_is_public=said, policy=text)
    return with_own_reading(given).policy_is_public


def test_our_reading_is_the_status_where_the_server_says_nothing_of_worth() -> None:
    for text, public in (
        (policy(NAMED), False),
        (policy("*"), True),
        (policy("*", {"StringLike": {"aws:Referer": "https://x/*"}}), True),
        (policy("*", {"IpAddress": {"aws:SourceIp": "203.0.113.0/24"}}), False),
        (policy("*", {"StringEquals": {"aws:SourceVpc": "vpc-1"}}), False),
        (policy("*", {"StringLike": {"aws:SourceVpc": ["vpc-1", "vpc-*"]}}), True),
        (policy("*", {"StringLike": {"aws:userid": "AROAEXAMPLE:*"}}), False),
        (policy("*", {"StringLike": {"aws:userid": "AROA*"}}), True),
        (policy("*", {"ArnLike": {POINT: "arn:aws:s3:*:111122223333:accesspoint/*"}}), False),
        (policy("*", {"ArnLike": {POINT: "arn:aws:s3:*:*:accesspoint/x"}}), True),
        (policy("*", {"ArnLike": {POINT: "arn:aws:s3:*:111122223333"}}), True),
        ("", False),
    ):
        for semantics, said in ((Semantics.CEPH, True), (Semantics.CEPH, False), (Semantics.OTHER, LACKS)):
            assert status(semantics, said, text) is public, (semantics, said, text)
    for word in (True, False, Unread("GetBucketPolicyStatus", "AccessDenied")):
        for semantics in (Semantics.AWS, Semantics.OTHER):
            assert status(semantics, word, policy("*")) == word
    assert status(Semantics.OTHER, LACKS, Unread("GetBucketPolicy", "AccessDenied")) == LACKS
