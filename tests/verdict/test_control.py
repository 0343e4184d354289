"""The control that a bucket policy gives over the bucket, action by action; rule B05 has the situations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.model.access import Verdict
from auditor.model.bucket import PublicAccessBlock
from auditor.model.object import Skipped, Unread
from auditor.verdict.control import OF_BUCKET, OF_OBJECTS, control_of
from auditor.verdict.trust import Trust
from tests.support.samples.bucket import facts

OTHER = {"AWS": "444455556666"}


def control(*statements: dict[str, Any], trusted: tuple[str, ...] = (), **changes: Any) -> dict[str, Verdict]:
    """The verdict of each action under a public access block that is off, without the actions that are private."""
    written = [{"Effect": "Allow", "Resource": "*", **statement} for statement in statements]
    text = json.dumps({"Version": "2012-10-17", "Statement": written})
    given: dict[str, Any] = {"policy": text, "policy_is_public": True, "public_access_block": PublicAccessBlock()}
    found = control_of(facts(**given | changes), Trust.of(trusted), None)
    assert not isinstance(found, Unread | Skipped)
    assert found.keys() == OF_BUCKET | OF_OBJECTS
    return {action: access.verdict for action, access in found.items() if access.verdict is not Verdict.PRIVATE}


@pytest.mark.parametrize("policy", [Unread("GetBucketPolicy", "AccessDenied"), Skipped("not asked")])
def test_policy_that_was_not_read_says_nothing(policy: Unread | Skipped) -> None:
    assert control_of(facts(policy=policy), Trust.of(()), None) == policy


def test_only_the_actions_that_a_statement_covers_count() -> None:
    assert control({"Principal": OTHER, "Action": "s3:PutBucket*"}) == dict.fromkeys(
        (action for action in OF_BUCKET if action.startswith("s3:PutBucket")), Verdict.SHARED
    )
    assert control({"Principal": "*", "Action": "s3:DeleteObject"}) == {"s3:DeleteObject": Verdict.EXPOSED}


def test_a_statement_on_objects_gives_no_action_on_the_bucket_and_the_other_way_round() -> None:
    everything = {"Principal": OTHER, "Action": "*"}
    assert control({**everything, "Resource": "arn:aws:s3:::audited/a*"}).keys() == OF_OBJECTS
    assert control({**everything, "Resource": "arn:aws:s3:::audited"}).keys() == OF_BUCKET
    negated = {"Principal": OTHER, "Action": "*", "NotResource": "arn:aws:s3:::audited/*"}
    text = json.dumps({"Statement": {"Effect": "Allow", **negated}})
    found = control_of(facts(policy=text), Trust.of(()), None)
    assert not isinstance(found, Unread | Skipped)
    assert {action for action, access in found.items() if access.verdict is Verdict.SHARED} == OF_BUCKET


def test_the_block_masks_and_trusted_parties_do_not_count() -> None:
    everyone = {"Principal": "*", "Action": "s3:PutObject"}
    block = PublicAccessBlock(restrict_public_buckets=True)
    assert control(everyone, public_access_block=block) == {"s3:PutObject": Verdict.MASKED}
    assert control({"Principal": OTHER, "Action": "s3:PutObject"}, trusted=("444455556666",)) == {}


def test_a_condition_on_a_header_of_the_request_is_met_by_choice() -> None:
    header = {"StringEquals": {"s3:x-amz-acl": "bucket-owner-full-control"}}
    assert control({"Principal": OTHER, "Action": "s3:PutObject", "Condition": header}) == {
        "s3:PutObject": Verdict.SHARED
    }
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject"}
    allow = {"Principal": OTHER, "Action": "s3:PutObject"}
    assert control(allow, {**deny, "Condition": header}) == {"s3:PutObject": Verdict.SHARED}
    assert control(allow, deny) in ({}, {"s3:PutObject": Verdict.MASKED})


@pytest.mark.parametrize("key", ["s3:if-none-match", "s3:if-match"])
def test_a_conditional_write_is_a_choice(key: str) -> None:
    """As a bucket policy that wants conditional writes has it."""
    allow = {"Principal": OTHER, "Action": "s3:PutObject"}
    only = {"Null": {key: "false"}}
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Condition": {"Null": {key: "true"}}}
    assert control({**allow, "Condition": only}) == {"s3:PutObject": Verdict.SHARED}
    assert control(allow, deny) == {"s3:PutObject": Verdict.SHARED}


def test_a_deny_closes_only_if_it_covers_every_key() -> None:
    allow = {"Principal": OTHER, "Action": "s3:PutObject"}
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:*"}
    part = control(allow, {**deny, "Resource": "arn:aws:s3:::audited/vault/*"})
    whole = control(allow, {**deny, "Resource": "arn:aws:s3:::audited/*"})
    assert (part, whole) == ({"s3:PutObject": Verdict.SHARED}, {"s3:PutObject": Verdict.MASKED})
