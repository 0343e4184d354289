"""The statements that cover a key: wildcards, other services' ARNs, NotResource and policy variables."""

from __future__ import annotations

import json
from typing import Any

from auditor.model.access import Verdict
from auditor.model.object import Acl
from auditor.verdict.judge import access_of
from tests.verdict.case_files import WORDS, bucket_facts

EXPOSED, UNKNOWN, _, _, _, PRIVATE = Verdict
TABLE = [
    # The resource, a key, and True if the resource covers the key: None if that is not known.
    ("arn:aws:s3:::bucket/*", "a/b.txt", True),
    ("*", "a", True),
    ("arn:aws:s3:::*", "a", True),
    ("arn:aws:s3:::buck*", "a", True),
    ("arn:aws:s3:::*/secret", "a/b/secret", True),
    ("arn:aws-cn:s3:::bucket/*", "a", True),
    ("arn:*:s3:::bucket/*", "a", True),
    ("arn:aws:s3:*:*:bucket/*", "a", True),
    ("arn:aws:s3:::bucket/public/*", "public/a/b", True),
    ("arn:aws:s3:::bucket/public/*", "private/a", False),
    ("arn:aws:s3:::bucket/Public/*", "public/a", False),
    ("arn:aws:s3:::bucket/*.jpg", "x.jpg\n", False),
    ("arn:aws:s3:::bucket/a?c", "a/c", True),
    ("arn:aws:s3:::bucket", "a", False),
    ("arn:aws:s3:::other/*", "a", False),
    ("arn:aws:s3:::bucket2/*", "a", False),
    ("arn:aws:sqs:::bucket/*", "a", False),
    ("arn:aws:s3:eu-central-1:111122223333:accesspoint/x/object/*", "a", False),
    ("arn:aws:s3:::bucket/a:b:*", "a:b:c:d", True),
    ("arn:aws:s3:::bucket/${*}", "*", True),
    ("arn:aws:s3:::bucket/${*}", "a", False),
    ("arn:aws:s3:::bucket/\u00e9*", "e\u0301", False),
    ("arn:aws:s3:::bucket/home/${aws:username}/*", "home/ada/x", True),
    ("arn:aws:s3:::bucket/home/${aws:username}/*", "public/x", False),
    ("arn:aws:s3:::bucket/home/${aws:username}/*", "home/ada", False),
    ("arn:aws:s3:::bucket/home/${aws:username}", "home/ada", True),
    ("arn:aws:s3:::bucket/${aws:PrincipalAccount}/*", "999922223333/x", True),
    ("arn:aws:s3:::bucket/${aws:PrincipalAccount}/*", "dir/x", False),
    ("arn:aws:s3:::bucket/home/${aws:username, 'ada'}/*", "home/ada/x", True),
    ("arn:aws:s3:::bucket/" + "*a" * 400 + "*b", "a" * 1000, False),
    ("arn:aws:s3:eu-central-1::bucket/*", "a", None),
    ("arn:aws:s3::tenant:bucket/*", "a", None),
    ("arn:aws:s3:*", "a", None),
    ("", "a", None),
]


def verdict(key: str, version: str = "2012-10-17", **resource: Any) -> Verdict:
    """The verdict of a private object under an Allow for everyone on the resource."""
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", **resource}
    policy = json.dumps({"Version": version, "Statement": statement})
    return access_of(bucket_facts({"public": "unread", "policy": policy}), acl=Acl(WORDS["owner"], ()), key=key).verdict


def test_a_resource_covers_a_key() -> None:
    failures = []
    for resource, key, covers in TABLE:
        # A name that a requester chooses is in the resource for one, and not for another.
        opposite = None if covers is None else (not covers or "${aws:" in resource)
        for name, expected in (("Resource", covers), ("NotResource", opposite)):
            wanted = {True: EXPOSED, False: PRIVATE, None: UNKNOWN}[expected]
            if (found := verdict(key, **{name: resource})) is not wanted:
                failures.append(f"{name} {resource} and the key {key}: {found}")
    assert not failures, failures


def test_policies_of_2008_know_no_variables() -> None:
    named = {"Resource": "arn:aws:s3:::bucket/${aws:username}", "version": "2008-10-17"}
    assert [verdict("ada", **named), verdict("${aws:username}", **named)] == [PRIVATE, EXPOSED]


def test_a_list_of_resources() -> None:
    assert [verdict("a", Resource=[]), verdict("a", NotResource=[])] == [PRIVATE, EXPOSED]
    both = ["arn:aws:s3:::bucket/public/*", "arn:aws:s3:::bucket/b"]
    assert [verdict(key, Resource=both) for key in ("public/a", "b", "a")] == [EXPOSED, EXPOSED, PRIVATE]
    assert verdict("public/a", NotResource=both) is PRIVATE
