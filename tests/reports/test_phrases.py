"""Audiences, grantees, times and sizes in words."""

from __future__ import annotations

from auditor.model.object import ALL_USERS
from auditor.reports import phrases


def test_grantee_is_never_64_digits() -> None:
    assert phrases.grantee("b1" * 32) == "unknown account b1b1b1b1b1b1…b1b1b1"
    assert phrases.grantee(ALL_USERS) == "anyone on the internet (AllUsers)"


def test_dates() -> None:
    assert phrases.short_date("2026-11-12T23:30:00Z") == "12 November 2026"
    assert phrases.short_date("no time") == "no time"
    assert phrases.short_date(None) == ""
    assert phrases.size(1_900_000_000_000) == "1.9 TB"


AUDIENCES = {
    "anyone": "anyone on the internet",
    "any-account": "any AWS account",
    "account 444455556666": "account 444455556666",
    "canonical-id " + "b1" * 32: "unknown account b1b1b1b1b1b1…b1b1b1",
    "network 203.0.113.0/24": "network 203.0.113.0/24",
    "anyone through header aws:Referer": "anyone on the internet, through header aws:Referer",
    "vpc-account 444455556666": "account 444455556666, by its VPC endpoints",
    "vpc-organization o-1": "organization o-1, by its VPC endpoints",
    "access-grants arn:a": "grantees of the S3 Access Grants instance arn:a",
    "others": "others",
    None: "",
}


def test_audiences_and_durations_in_words() -> None:
    assert {text: phrases.audience(text) for text in AUDIENCES} == AUDIENCES
    durations = {9.44: "9.4 s", 61: "1 min 1 s", 1051: "17 min 31 s", 7500: "2 h 5 min"}
    assert {seconds: phrases.duration(seconds) for seconds in durations} == durations
