"""Sentences of the reports."""

from __future__ import annotations

import pytest

from auditor.model.access import Verdict
from auditor.model.object import ALL_USERS
from auditor.reports import words


@pytest.mark.parametrize(
    ("title", "number", "said"),
    [
        ("anyone on the internet can read the object", 812, "Anyone on the internet can read 812 objects"),
        ("any AWS account can change the object's ACL", 48, "Any AWS account can change the ACL of 48 objects"),
        ("the object is not encrypted at rest by S3", 2, "2 objects are not encrypted at rest by S3"),
        ("the object was not replicated", 3, "3 objects were not replicated"),
        ("an exposed object has the name of a secret", 2, "An exposed object has the name of a secret: 2 objects"),
        ("anyone on the internet can read the object", 1, "Anyone on the internet can read the object: 1 object"),
    ],
)  # fmt: skip
def test_title_of_a_rule_becomes_a_sentence(title: str, number: int, said: str) -> None:
    assert " ".join(part for part in words.sentence_of_rule(title, number, of_bucket=False) if part) == said


def test_rule_of_the_bucket_keeps_its_title() -> None:
    assert words.sentence_of_rule("the bucket policy is public", 1, of_bucket=True) == (
        "The bucket policy is public",
        "",
        "",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("anyone", "anyone on the internet"),
        ("any-account", "any AWS account"),
        ("account 444455556666", "account 444455556666"),
        ("canonical-id " + "b1" * 32, "unknown account b1b1b1b1b1b1…b1b1b1"),
        ("network 203.0.113.0/24", "network 203.0.113.0/24"),
        ("anyone through header aws:Referer", "anyone on the internet, through header aws:Referer"),
        ("vpc-account 444455556666", "account 444455556666, by its VPC endpoints"),
        ("vpc-organization o-1", "organization o-1, by its VPC endpoints"),
        (
            "access-grants arn:aws:s3:r:1:access-grants/d",
            "grantees of the S3 Access Grants instance arn:aws:s3:r:1:access-grants/d",
        ),
        ("others", "others"),
        (None, ""),
    ],
)
def test_audience_in_words(text: str | None, said: str) -> None:
    assert words.audience(text) == said


def test_grantee_is_never_64_digits() -> None:
    assert words.grantee("b1" * 32) == "unknown account b1b1b1b1b1b1…b1b1b1"
    assert words.grantee(ALL_USERS) == "anyone on the internet (AllUsers)"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_sentence_of_a_verdict_without_a_known_audience(verdict: Verdict) -> None:
    before, subject, _ = words.sentence_of_verdict(verdict, "", 3)
    assert before[0].isupper()
    assert subject == "3 objects"


@pytest.mark.parametrize(
    ("seconds", "said"), [(9.44, "9.4 s"), (61, "1 min 1 s"), (1051, "17 min 31 s"), (7500, "2 h 5 min")]
)
def test_duration(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


def test_dates() -> None:
    assert words.short_date("2026-11-12T23:30:00Z") == "12 November 2026"
    assert words.short_date("no time") == "no time"
    assert words.short_date(None) == ""
    assert words.size(1_900_000_000_000) == "1.9 TB"
