"""The control that a bucket policy gives over the bucket, action by action; rule B05 has the situations."""

from __future__ import annotations

import json
from typing import Any

from auditor.model.access import Verdict
from auditor.model.bucket import AccessGrants, PublicAccessBlock
from auditor.model.object import Skipped, Unread
from auditor.verdict.control import OF_BUCKET, OF_OBJECTS, control_of, write_grants
from auditor.verdict.trust import Trust
from tests.support.samples.bucket import facts
from tests.verdict.case_files import INSTANCE, access_grant

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


def test_policy_that_was_not_read_says_nothing() -> None:
    for policy in (Unread("GetBucketPolicy", "AccessDenied"), Skipped("not asked")):
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


def test_the_block_masks_and_trusted_parties_do_not_count() -> None:
    everyone = {"Principal": "*", "Action": "s3:PutObject"}
    block = PublicAccessBlock(restrict_public_buckets=True)
    assert control(everyone, public_access_block=block) == {"s3:PutObject": Verdict.MASKED}
    assert control({"Principal": OTHER, "Action": "s3:PutObject"}, trusted=("444455556666",)) == {}


def test_a_condition_on_a_header_of_the_request_is_met_by_choice() -> None:
    header = {"StringEquals": {"s3:x-amz-acl": "bucket-owner-full-control"}}
    conditional = {"Null": {"s3:if-none-match": "true", "s3:if-match": "true"}}
    assert control({"Principal": OTHER, "Action": "s3:PutObject", "Condition": header}) == {
        "s3:PutObject": Verdict.SHARED
    }
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject"}
    allow = {"Principal": OTHER, "Action": "s3:PutObject"}
    for condition in (header, conditional):
        assert control(allow, {**deny, "Condition": condition}) == {"s3:PutObject": Verdict.SHARED}
    assert control(allow, deny) in ({}, {"s3:PutObject": Verdict.MASKED})


def test_a_deny_closes_only_if_it_covers_every_key() -> None:
    allow = {"Principal": OTHER, "Action": "s3:PutObject"}
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:*"}
    part = control(allow, {**deny, "Resource": "arn:aws:s3:::audited/vault/*"})
    whole = control(allow, {**deny, "Resource": "arn:aws:s3:::audited/*"})
    assert (part, whole) == ({"s3:PutObject": Verdict.SHARED}, {"s3:PutObject": Verdict.MASKED})


# ---- S3 Access Grants of writing

_WRITES = ["s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion"]
_ROLE = "arn:aws:iam::444455556666:role/x"


def _written_by(*statements: dict[str, Any], trusted: tuple[str, ...] = (), **changes: Any) -> dict[str, list[str]]:
    """The IDs of the grants that let others write, by their audience, under a bucket policy of these statements."""
    written = [{"Effect": "Deny", "Principal": "*", "Resource": "*", **statement} for statement in statements]
    listed = (
        access_grant("g-1", {"to": _ROLE, "permission": "WRITE", "scope": "s3://audited/a*"}),
        access_grant("g-2", {"to": _ROLE, "permission": "READWRITE", "scope": "s3://audited/*"}),
        access_grant("g-3", {"to": "user u-1", "permission": "READ", "scope": "s3://audited/*"}),
        access_grant("g-4", {"to": "group u-2", "permission": "WRITE", "scope": "s3://audited/*"}),
    )
    given: dict[str, Any] = {
        "policy": json.dumps({"Version": "2012-10-17", "Statement": written}) if written else "",
        "access_grants": AccessGrants(account="111122223333", instance=INSTANCE, grants=listed),
    }
    found = write_grants(facts(**given | changes), Trust.of(trusted), None)
    return {party: [grant.id for grant in grants] for party, grants in found.items()}


_ALL = {f"account {_ROLE}": ["g-1", "g-2"], "directory-group u-2": ["g-4"]}


def test_grants_of_writing_count_for_outsiders() -> None:
    assert _written_by() == _ALL
    assert _written_by(trusted=("u-2",)) == {f"account {_ROLE}": ["g-1", "g-2"]}
    assert _written_by(trusted=("u-2", "444455556666")) == {}


def test_facts_that_were_not_read_close_no_grant_and_give_no_control() -> None:
    for unread in (Unread("Operation", "AccessDenied"), Skipped("not asked")):
        assert _written_by(policy=unread) == _ALL
        assert _written_by(access_grants=unread) == {}


def test_a_deny_closes_grants_of_writing_only_if_no_action_of_writing_is_left() -> None:
    assert _written_by({"Action": _WRITES}) == {}
    assert _written_by({"Action": "s3:*"}) == {}
    assert _written_by({"Action": _WRITES[:2]}) == _ALL
    assert _written_by({"Action": _WRITES, "Resource": "arn:aws:s3:::audited/a*"}) == _ALL
    assert _written_by({"Action": "s3:Get*"}) == _ALL
    outside = {"StringNotEquals": {"aws:PrincipalAccount": "111122223333"}}
    assert _written_by({"Action": _WRITES, "Condition": outside}) == _ALL
    endpoint = {"Action": _WRITES, "Condition": {"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}}
    assert _written_by(endpoint) == _ALL
    assert _written_by(endpoint, trusted=("vpce-1",)) == {}


def test_a_grant_gives_no_action_by_the_bucket_policy() -> None:
    grants = AccessGrants(account="111122223333", grants=(access_grant("g-1", {"to": _ROLE, "scope": "s3://*"}),))
    assert control(access_grants=grants) == {}
