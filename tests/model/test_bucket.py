"""The facts of a bucket that follow from those that were read."""

from __future__ import annotations

from typing import Any

from auditor.model.bucket import NOT_OURS, BucketFacts, Encryption, Semantics
from auditor.model.object import Skipped, Unread
from auditor.model.policy import Policy
from tests.support.samples.bucket import OWNER, facts

DENIED = Unread("ListBuckets", "AccessDenied")
NO_STS = Unread("GetCallerIdentity", "AccessDenied")
NONE = Skipped("there is none")


def test_account_of_the_owner_is_known_only_if_it_is_the_callers() -> None:
    table: list[tuple[dict[str, Any], object]] = [
        ({}, "111122223333"),
        ({"own_id": "b1" * 32}, NOT_OURS),
        ({"own_id": DENIED}, DENIED),
        ({"owner": DENIED}, DENIED),
        ({"account": DENIED}, DENIED),
        ({"account": NONE}, NONE),
        ({"account": NO_STS, "own_id": DENIED}, NO_STS),
        ({"account": NO_STS, "owner": DENIED}, NO_STS),
        ({"account": NONE, "own_id": DENIED}, DENIED),
        ({"account": NO_STS, "own_id": "b1" * 32}, NOT_OURS),
    ]
    for changes, account in table:
        assert facts(**changes).owner_account == account, changes
    assert isinstance(BucketFacts(bucket="b", own_id=OWNER).owner_account, Skipped)


def test_policy_is_parsed_once() -> None:
    text = '{"Statement": []}'
    assert facts(policy=text).parsed_policy is facts(policy=text).parsed_policy
    assert facts(policy="").parsed_policy == Policy()


def test_policy_that_was_not_read_or_is_malformed_has_no_statements() -> None:
    unread = Unread("GetBucketPolicy", "AccessDenied")
    for policy, parsed in ((unread, unread), (NONE, NONE), ("{", Unread("GetBucketPolicy", "Malformed"))):
        assert facts(policy=policy).parsed_policy == parsed, policy


def test_default_encryption_that_another_server_does_not_tell_does_not_exist() -> None:
    assert facts(encryption=DENIED).default_encryption == DENIED
    assert isinstance(facts(encryption=DENIED, semantics=Semantics.CEPH).default_encryption, Skipped)
    assert facts(semantics=Semantics.OTHER).default_encryption == Encryption("AES256")


def test_word_of_another_server_on_the_policy_does_not_count() -> None:
    assert facts(policy_is_public=True).policy_status is True
    assert facts(policy_is_public=DENIED).policy_status == DENIED
    assert facts(policy_is_public=True, semantics=Semantics.CEPH).policy_status is False
    assert facts(policy_is_public=DENIED, semantics=Semantics.OTHER).policy_status is False
