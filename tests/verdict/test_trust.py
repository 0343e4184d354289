"""Entries of the setting `trusted`: the requesters, places and sources that each trusts, and the idle ones."""

from __future__ import annotations

import pytest

from auditor.model.trusted_entry import check_entry
from auditor.verdict.trust import Trust

ACCOUNT = "444455556666"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/ops/deploy"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
CANONICAL = "b" * 64
OAI = "arn:aws:iam::cloudfront:user/CloudFront Origin Access Identity E2ABCDEF"
DISTRIBUTION = "arn:aws:cloudfront::111122223333:distribution/E1ABCDEF"
LOG_DELIVERY = "http://acs.amazonaws.com/groups/s3/LogDelivery"

FORMS = (
    *(ACCOUNT, ROLE, ROOT, CANONICAL, OAI, DISTRIBUTION, LOG_DELIVERY, "arn:aws-cn:s3:::logs"),
    *("arn:aws:iam:::user/backup", "arn:aws:iam::tenant:user/backup", "backup", "tenant$backup", "ops@example.org"),
    *("AIDACKCEVSQ6C2EXAMPLE", "E1ABCDEF", "logging.s3.amazonaws.com", "o-a1b2c3d4e5"),
    *("o-a1b2c3d4e5/r-ab12/ou-ab12-11111111/", "vpc-0123abcd", "vpce-0123abcd"),
    *("203.0.113.0/24", "203.0.113.7", "10.0.0.0/8", "2001:db8::/32"),
)
REFUSED = [
    ("*", "cannot contain a wildcard"),
    ("vpce-*", "cannot contain a wildcard"),
    (f"arn:aws:iam::{ACCOUNT}:role/*", "cannot contain a wildcard"),
    ("http://acs.amazonaws.com/groups/global/AuthenticatedUsers", "public group"),
    ("arn:aws:iam", "six parts"),
    ("arn:aws:s3:::", "six parts"),
    ("a b", "commas"),
    ("a\u200bb", "commas"),
    ("10.0.0.0/7", "wider than /8"),
    ("::/0", "wider than /32"),
    ("10.0.0.0/33", "give an account"),
    ("somebody/else", "give an account"),
    ("4444-5555-6666", "without hyphens"),
    ("vpce-ABC!", "lowercase letters"),
    ("x" * 2049, "at most 2048"),
]
TRUSTED = [
    (ACCOUNT, "AWS", ACCOUNT),
    (ACCOUNT, "AWS", ROOT),
    (ACCOUNT, "AWS", ROLE),
    (ACCOUNT, "AWS", f"arn:aws:sts::{ACCOUNT}:assumed-role/deploy/session"),
    (ACCOUNT, "AWS", f"arn:aws:iam::{ACCOUNT}:role/*"),
    (ROOT, "AWS", ACCOUNT),
    (ROOT, "AWS", ROLE),
    (ROLE, "AWS", ROLE),
    (ROLE, "AWS", f"arn:aws:sts::{ACCOUNT}:assumed-role/deploy/session"),
    (OAI, "AWS", OAI),
    ("E2ABCDEF", "AWS", OAI),
    (CANONICAL, "CanonicalUser", CANONICAL),
    ("backup", "AWS", "arn:aws:iam:::user/backup"),
    ("tenant$backup", "AWS", "arn:aws:iam::tenant:user/backup"),
    ("arn:aws:iam::tenant:user/backup", "CanonicalUser", "tenant$backup"),
    ("AIDAX", "AWS", "AIDAX"),
    ("logging.s3.amazonaws.com", "Service", "logging.s3.amazonaws.com"),
    ("accounts.google.com", "Federated", "accounts.google.com"),
]
NOT_TRUSTED = [
    (ROLE, "AWS", ACCOUNT),
    (ROLE, "AWS", f"arn:aws:iam::{ACCOUNT}:role/other"),
    (ROLE, "AWS", "arn:aws:sts::999999999999:assumed-role/deploy/session"),
    (ACCOUNT, "AWS", "arn:aws:iam::999999999999:root"),
    (ACCOUNT, "AWS", f"arn:aws:iam::*:role/{ACCOUNT}"),
    (ACCOUNT, "AWS", f"arn:aws:*::{ACCOUNT}:role/x"),
    (ACCOUNT, "AWS", f"arn:aws:lambda::{ACCOUNT}:function:x"),
    (ACCOUNT, "Federated", f"arn:aws:iam::{ACCOUNT}:saml-provider/x"),
    ("backup", "AWS", "arn:aws:iam::evil:user/backup"),
    ("logging.s3.amazonaws.com", "Service", "cloudfront.amazonaws.com"),
    ("*", "AWS", "*"),
    (CANONICAL, "CanonicalUser", "c" * 64),
]
NETWORKS = [
    (["203.0.113.0/24"], "203.0.113.0/24", "203.0.113.0/24"),
    (["203.0.113.0/24"], "203.0.113.7", "203.0.113.0/24"),
    (["203.0.113.9/24"], "203.0.113.128/25", "203.0.113.9/24"),
    (["203.0.113.0/24"], "203.0.112.0/23", None),
    (["203.0.113.0/24"], "203.0.114.0/24", None),
    (["203.0.113.0/25", "203.0.113.128/25"], "203.0.113.0/24", "203.0.113.0/25"),
    (["203.0.113.0/25"], "203.0.113.0/24", None),
    (["2001:db8::/32"], "2001:db8:1::/48", "2001:db8::/32"),
    (["2001:db8::/32"], "203.0.113.0/24", None),
    (["203.0.113.0/24"], "2001:db8::/32", None),
    (["0.0.0.0/0"], "203.0.113.0/24", None),
    (["203.0.113.0/24"], "no network", None),
]
SOURCES = [
    (DISTRIBUTION, DISTRIBUTION, True),
    ("E1ABCDEF", DISTRIBUTION, True),
    ("111122223333", DISTRIBUTION, True),
    ("111122223333", "111122223333", True),
    ("111122223333", "arn:aws:cloudfront::111122223333:distribution/*", True),
    ("arn:aws:s3:::logs", "arn:aws:s3:::logs", True),
    ("E1ABCDEF", "arn:aws:cloudfront::111122223333:distribution/*", False),
    ("E1ABCDEF", "arn:aws:sns::111122223333:E1ABCDEF", False),
    ("111122223333", "arn:aws:cloudfront::*:distribution/E1ABCDEF", False),
    ("111122223333", "arn:aws:*:*:111122223333:x", False),
    ("111122223333", "arn:aws:s3:::111122223333", False),
    (DISTRIBUTION, "arn:aws:cloudfront::111122223333:distribution/E2", False),
]


def test_forms_of_entries_and_other_texts_are_refused_with_the_fix() -> None:
    for entry in FORMS:
        check_entry(entry)
    for entry, says in REFUSED:
        with pytest.raises(ValueError, match=says):
            check_entry(entry)


def test_trusted_principals_and_others() -> None:
    for entry, kind, value in TRUSTED:
        assert Trust.of([entry]).principal(kind, value) == entry, (entry, value)
    for entry, kind, value in NOT_TRUSTED:
        trust = Trust.of([entry])
        assert (trust.principal(kind, value), trust.used) == (None, frozenset()), (entry, value)
    everyone = "http://acs.amazonaws.com/groups/global/AllUsers"
    trust = Trust.of([LOG_DELIVERY, everyone])
    assert [trust.canonical(one) for one in (LOG_DELIVERY, everyone)] == [LOG_DELIVERY, None]


def test_an_organization_contains_its_paths_and_a_path_does_not_contain_the_organization() -> None:
    for entry, trusted, others in (
        ("o-1", ["o-1/r-1/ou-1/*"], ["o-*", "o-1/r-*/ou-1", "o-11"]),
        ("o-1/r-1/", ["o-1/r-1/ou-1/", "o-1/r-1"], ["o-1", "o-1/r-2/"]),
    ):
        assert [Trust.of([entry]).organization(one) for one in trusted] == [entry] * len(trusted)
        assert [Trust.of([entry]).organization(one) for one in others] == [None] * len(others)


def test_networks_places_and_sources() -> None:
    for entries, cidr, found in NETWORKS:
        assert Trust.of(entries).network(cidr) == found, (entries, cidr)
    trust = Trust.of(["vpc-1", "vpce-2"])
    assert [trust.exactly(one) for one in ("vpc-1", "vpce-2", "vpce-1", "vpce-*")] == ["vpc-1", "vpce-2", None, None]
    for entry, source, trusted in SOURCES:
        assert Trust.of([entry]).source(source) == (entry if trusted else None), (entry, source)


def test_entries_that_trusted_nothing_are_named_after_a_run() -> None:
    trust = Trust.of(["o-1", "vpc-1", "203.0.113.0/25", "203.0.113.128/25", "backup"])
    assert trust.unused() == ("203.0.113.0/25", "203.0.113.128/25", "backup", "o-1", "vpc-1")
    trust.network("203.0.113.0/24")
    trust.organization("o-1")
    trust.organization("o-2")
    assert trust.used == {"o-1", "203.0.113.0/25", "203.0.113.128/25"}
    assert trust.unused() == ("backup", "vpc-1")
    assert trust.unused(["vpc-1"]) == ("backup",)
