"""ASFF by botocore's own validation and the documented limits; nothing passes that was not looked at."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.access import Verdict
from auditor.model.finding import RuleUndecided
from auditor.model.rollup import GroupKind
from auditor.offline.formats import FORMATS
from auditor.offline.formats.asff import HubAccount, findings, ids_of
from auditor.offline.formats.base import PLAIN
from tests.offline.formats.consumers import CONSUMERS
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.hostile import HostileRun
from tests.support.samples.reports import denied, finding, judged, rollups_of, sample_summary, tally_of, target

HUB = HubAccount("111122223333", "eu-central-1")
LONG = [*ODD_KEYS.values(), "\x1b" * 1024, "\U0001f600" * 256, "a/" * 500 + "b", "\ud800"]
LIMITS = {"Id": 512, "GeneratorId": 512, "Title": 256, "Description": 1024, "ProductArn": 2048}


def check(found: list[dict[str, Any]]) -> None:
    """Fail unless Security Hub's API can take the findings, by its model and by its documented limits."""
    assert CONSUMERS["asff"].faults(json.dumps(found)) == []
    for one in found:
        assert all(1 <= len(one[name].encode()) <= limit for name, limit in LIMITS.items()), one
        assert 1 <= len(one["Resources"]) <= 32
        assert all(len(resource["Id"].encode()) <= 512 for resource in one["Resources"])
        assert len(one["ProductFields"]) <= 50
        assert all(value.strip() and len(value.encode()) <= 2048 for value in one["ProductFields"].values())
        assert len(json.dumps(one)) < 240_000
        text = one.get("Remediation", {}).get("Recommendation", {}).get("Text", "x")
        assert 1 <= len(text.encode()) <= 512


def of(*judgements: Any, **changes: Any) -> list[dict[str, Any]]:
    summary = sample_summary(tally_of(*judgements), **changes)
    return list(findings(summary, replace(rollups_of(*judgements), target=summary.target), HUB))


def status(found: list[dict[str, Any]], kind: str) -> list[str]:
    return [one["Compliance"]["Status"] for one in found if one["ProductFields"]["s3-auditor/kind"] == kind]


def test_the_coverage_passes_only_if_everything_was_looked_at() -> None:
    rule = RuleUndecided("B01", "GetBucketPolicy", "AccessDenied")
    assert status(of(judged("a")), "coverage") == ["PASSED"]
    assert status(of(denied("a")), "coverage") == ["WARNING"]
    assert status(of(judged("a"), complete=False), "coverage") == ["WARNING"]
    assert status(of(judged("a"), rules_undecided=(rule,)), "coverage") == ["WARNING"]
    assert status(of(), "coverage") == ["WARNING"]


def test_ids_are_the_same_from_run_to_run_and_of_one_target_alone() -> None:
    many = [judged("s/a", finding("s/a"), verdict=Verdict.EXPOSED), denied("v/b")]
    first, later = of(*many), of(*many, run="20270102T030405Z-ffffff")
    assert [one["Id"] for one in first] == [one["Id"] for one in later]
    assert len({one["Id"] for one in first}) == len(first)
    assert first[0]["UpdatedAt"] < later[0]["UpdatedAt"]
    others = [target(prefix="s/"), target(versions=True), target(start_after="a"), target(stop_at="a")]
    assert len({ids_of(one) for one in (target(), *others)}) == 5


def group(**changes: Any) -> dict[str, Any]:
    made = rollups_of(judged("s/a", finding("s/a"), verdict=Verdict.EXPOSED))
    groups = tuple(replace(one, **changes) for one in made.groups if one.kind is GroupKind.FINDING)
    return list(findings(sample_summary(), replace(made, groups=groups), HUB))[-1]


def test_what_an_exception_covers_does_not_fail_and_does_not_pass() -> None:
    assert group()["Compliance"] == {"Status": "FAILED"}
    covered = group(excepted=1)
    assert covered["Compliance"] == {"Status": "WARNING"}
    assert covered["FindingProviderFields"]["Severity"] == {"Label": "INFORMATIONAL"}
    assert "An exception covers 1 of 1." in covered["Description"]


def test_a_run_without_an_account_is_refused_with_the_fix() -> None:
    with pytest.raises(UsageError, match="--account"):
        list(FORMATS["asff"](sample_summary(), HostileRun([]), replace(PLAIN, region="eu-west-1")))


def test_hostile_keys_make_valid_findings() -> None:
    for key in LONG:
        many = [judged(key, finding(key), verdict=Verdict.EXPOSED), denied(f"{key}/x"), denied(f"{key}/y")]
        found = of(*many, target=target(prefix=key), rules_undecided=(RuleUndecided("B01", key, key),))
        check(found)


def test_a_finding_is_as_old_as_its_group() -> None:
    now = "2026-01-02T03:04:05Z"
    ages = [("2025-12-31T01:00:00+02:00", "2025-12-30T23:00:00Z"), ("2025-12-31T01:00:00Z", "2025-12-31T01:00:00Z")]
    others = [(since, now) for since in (None, "2030-01-01T00:00:00Z", "yesterday", "2025-12-31T01:00:00")]
    for since, said in [*ages, *others]:
        found = group(since=since)
        assert found["CreatedAt"] == found["FirstObservedAt"] == said
        assert found["UpdatedAt"] == found["LastObservedAt"] == now


def test_undecided_groups_and_rules_neither_pass_nor_fail() -> None:
    rule = RuleUndecided("B01", "GetBucketPolicy", "AccessDenied")
    found = of(denied("v/a"), denied("v/b"), rules_undecided=(rule,))
    assert status(found, "undecided") == ["NOT_AVAILABLE"]
    assert status(found, "undecided-rule") == ["NOT_AVAILABLE"]
    (group,) = (one for one in found if one["ProductFields"]["s3-auditor/kind"] == "undecided")
    assert group["Title"] == "2 objects could not be looked at, GetObjectAcl AccessDenied, in s3://audited/v/"


def test_the_arn_is_of_the_regions_partition() -> None:
    there = HubAccount("111122223333", "cn-north-1")
    assert there.product_arn == "arn:aws-cn:securityhub:cn-north-1:111122223333:product/111122223333/default"
    made = rollups_of(judged("s/a", finding("s/a")))
    found = list(findings(sample_summary(), made, there))
    assert [one["Id"] for one in found[1]["Resources"]] == ["arn:aws-cn:s3:::audited", "arn:aws-cn:s3:::audited/s/a"]


def test_dormant_objects_are_a_low_warning_and_never_passed() -> None:
    found = of(judged("a", verdict=Verdict.DORMANT), judged("b"))
    check(found)
    (dormant,) = [one for one in found if one["ProductFields"]["s3-auditor/kind"] == "verdict"]
    assert dormant["Compliance"]["Status"] == "WARNING"
    assert dormant["FindingProviderFields"]["Severity"]["Label"] == "LOW"
    assert "once ACLs count" in dormant["Title"] + dormant["Description"]
