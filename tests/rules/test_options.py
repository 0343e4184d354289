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
