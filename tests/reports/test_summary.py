"""The summary of the contract, its exit code, and what the run did not look at."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.finding import RuleUndecided, Severity
from auditor.model.object import Skipped, Unread
from auditor.model.summary import AcceptedHoles
from auditor.reports.summary import exit_code, holes, not_looked_at
from tests.support.samples.reports import denied, finding, judged, sample_summary, tally_of, target

LOST = RuleUndecided("B01", "GetBucketAcl", "AccessDenied")


def test_accepted_object_stays_counted_and_hides_no_other() -> None:
    tally = tally_of(denied("a"), judged("b", finding("b")))
    tally.accept()
    made = sample_summary(tally)
    assert made.coverage.undecided == 1
    assert made.accepted == AcceptedHoles(undecided=1)
    assert exit_code(made, Severity.HIGH) == 3
    tally.add(denied("c"))
    assert exit_code(sample_summary(tally), Severity.HIGH) == 4


def facts(**changes: Any) -> BucketFacts:
    known: dict[str, Any] = {
        "bucket": "audited", "region": "us-east-1", "owner": "o", "own_id": "o", "account": "111122223333",
        "ownership": "ObjectWriter", "public_access_block": Skipped("x"), "account_public_access_block": Skipped("y"),
        "acl": Skipped("z"), "policy_is_public": False, "policy": "", "versioning": "Never",
        "encryption": Skipped("w"), "request_payer": "BucketOwner",
    }  # fmt: skip
    return BucketFacts(**(known | changes))


def test_what_is_never_looked_at_is_always_said() -> None:
    words = " ".join(not_looked_at(facts(), target(versions=True)))
    for word in ("IAM", "access points", "CloudFront", "presigned", "KMS", "tags", "organization"):
        assert word in words


def test_versions_prefix_and_range() -> None:
    words = not_looked_at(facts(), target(prefix="a\nb", start_after="m", stop_at="\u202ez"))
    assert any("--versions" in item for item in words)
    assert "keys that do not begin with a\\nb" in words
    assert "keys up to and including m" in words
    assert "keys after \\u202ez" in words
    whole = not_looked_at(facts(), target(versions=True))
    assert not any("versions other" in item or item.startswith("keys ") for item in whole)


def test_what_was_skipped_is_said_with_its_reason() -> None:
    words = not_looked_at(
        facts(account_public_access_block=Skipped("a custom endpoint has none")),
        target(),
        acl=Skipped("ACLs are disabled"),
        head=Skipped("no selected rule needs it"),
    )
    assert "ACLs of the objects: ACLs are disabled" in words
    assert "metadata, headers and encryption of the objects: no selected rule needs it" in words
    assert "public access block of the account: a custom endpoint has none" in words


def test_another_server_than_aws_is_said_and_each_call_that_it_lacks() -> None:
    here = facts(semantics=Semantics.OTHER, lacking=("GetBucketPolicy", "GetBucketVersioning"))
    words = not_looked_at(here, target())
    assert "policy of the bucket: there is none, because the server lacks GetBucketPolicy" in words
    assert "versioning: there is none, because the server lacks GetBucketVersioning" in words
    assert any("--semantics other" in item for item in words)
    assert any("--semantics ceph" in item for item in not_looked_at(facts(semantics=Semantics.CEPH), target()))
    assert not any("--semantics" in item for item in not_looked_at(facts(), target()))


def test_exit_codes_of_findings() -> None:
    critical, high, medium, info = Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.INFO
    cases = [(critical, high, 3), (high, high, 3), (medium, high, 0), (info, info, 3), (high, critical, 0)]
    for severity, fail_on, code in [*cases, (critical, None, 0)]:
        made = sample_summary(tally_of(judged("a", finding("a", severity=severity))))
        assert exit_code(made, fail_on) == code, (severity, fail_on)
    assert exit_code(sample_summary(), info) == 0


def test_holes_and_those_accepted() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"complete": False}, ["the listing did not reach its end"]),
        ({"tally": tally_of(denied("a"))}, ["1 object undecided"]),
        ({"rules_undecided": [LOST, LOST]}, ["2 rules undecided"]),
        ({"rules_undecided": [LOST, LOST], "accepted_rules": 1}, ["1 rule undecided"]),
        ({"rules_undecided": [LOST], "accepted_rules": 1}, []),
    ]
    for changes, words in cases:
        made = sample_summary(**changes)
        assert (holes(made), exit_code(made, Severity.HIGH)) == (words, 4 if words else 0), changes


def test_counts_that_do_not_add_up_make_no_summary() -> None:
    tally = tally_of(judged("a"))
    tally.coverage["audited"] = 0
    with pytest.raises(ValueError, match="do not add up"):
        sample_summary(tally)


def test_setting_that_could_not_be_read_is_said_though_no_rule_needs_it() -> None:
    words = not_looked_at(facts(policy=Unread("GetBucketPolicy", "AccessDenied")), target())
    assert "policy of the bucket, which could not be read: GetBucketPolicy AccessDenied" in words


def test_account_of_a_foreign_bucket_is_told_as_not_looked_at() -> None:
    words = "account of the bucket's owner: another account owns the bucket, and no call returns its number"
    assert words in not_looked_at(facts(own_id="b1" * 32), target())
    assert words not in not_looked_at(facts(), target())
