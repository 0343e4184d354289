"""A rule refuses options of the right type with an invalid value."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.rules import RULES

BY_ID = {rule.id: rule for rule in RULES}


@pytest.mark.parametrize(
    ("required", "says"),
    [
        ([], "at least one"),
        ([7], "text"),
        ([["owner"]], "text"),
        (["owner", ""], "not empty"),
        (["  "], "not empty"),
        (["cost centre"], "without spaces"),
        ([" owner"], "without spaces"),
        (["x-amz-meta-owner"], "without x-amz-meta-"),
        (["X-Amz-Meta-Owner"], "without x-amz-meta-"),
    ],
)
def test_required_metadata_that_means_nothing_is_refused(required: list[Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        BY_ID["M01"].validate({"required": required})


def test_required_metadata_names_are_accepted() -> None:
    BY_ID["M01"].validate({"required": ["owner", "Retention-Class"]})


def test_rule_without_options_accepts_none() -> None:
    for rule in RULES:
        if not rule.options:
            rule.validate({})


@pytest.mark.parametrize(
    ("rule", "options", "says"),
    [
        ("E02", {"accepted": []}, "at least one"),
        ("E02", {"accepted": ["aws kms"]}, "such as aws:kms"),
        ("E02", {"accepted": [7]}, "such as aws:kms"),
        ("E03", {"keys": []}, "at least one"),
        ("E03", {"keys": ["arn:aws:kms:eu-west-1:111122223333:alias/mine"]}, "no alias"),
        ("E03", {"keys": [["k"]]}, "no alias"),
        ("M02", {"patterns": {}}, "at least one"),
        ("M02", {"patterns": {"x-amz-meta-owner": "a"}}, "without x-amz-meta-"),
        ("M02", {"patterns": {"cost centre": "a"}}, "without spaces"),
        ("M02", {"patterns": {"owner": 7}}, "a text for each name"),
        ("M02", {"patterns": {"owner": "(a"}}, "ends within a group"),
        ("M02", {"patterns": {"owner": "(?=a)"}}, "only plain groups"),
        ("M07", {"hosts": ["https://www.example.com"]}, "names of hosts"),
        ("M07", {"hosts": ["*.*.example.com"]}, "names of hosts"),
        ("M07", {"hosts": [7]}, "names of hosts"),
        ("L01", {"mode": "governance", "retention_readable": True}, "GOVERNANCE or COMPLIANCE"),
        ("L02", {"days": -1, "retention_readable": True}, "from 0 to"),
        ("L02", {"days": 36501, "retention_readable": True}, "from 0 to"),
        ("R02", {"hours": -1}, "from 0 to"),
        ("R02", {"hours": 8761}, "from 0 to"),
    ],
)
def test_options_that_mean_nothing_are_refused_in_one_sentence(rule: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        BY_ID[rule].validate(options)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("E02", {"accepted": ["aws:kms", "aws:kms:dsse"]}),
        ("E03", {"keys": ["arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"]}),
        ("E03", {"keys": ["mrk-1234abcd12ab34cd56ef1234567890ab"]}),
        ("M02", {"patterns": {"Owner": "team-[a-z]+", "retention": "[0-9]{1,2}-years"}}),
        ("M07", {"hosts": []}),
        ("M07", {"hosts": ["www.example.com", "*.example.com"]}),
        ("L01", {"mode": "COMPLIANCE", "retention_readable": False}),
        ("L02", {"days": 0, "retention_readable": True}),
        ("R02", {"hours": 8760}),
    ],
)
def test_options_that_a_rule_accepts(rule: str, options: dict[str, Any]) -> None:
    assert {name: type(value) for name, value in options.items()} == BY_ID[rule].options
    BY_ID[rule].validate(options)
