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

FORMS = [
    ACCOUNT,
    ROLE,
    ROOT,
    CANONICAL,
    OAI,
    DISTRIBUTION,
    LOG_DELIVERY,
    "arn:aws-cn:s3:::logs",
    "arn:aws:iam:::user/backup",
    "arn:aws:iam::tenant:user/backup",
    "backup",
    "tenant$backup",
    "ops@example.org",
    "AIDACKCEVSQ6C2EXAMPLE",
    "E1ABCDEF",
    "logging.s3.amazonaws.com",
    "o-a1b2c3d4e5",
    "o-a1b2c3d4e5/r-ab12/ou-ab12-11111111/",
    "vpc-0123abcd",
    "vpce-0123abcd",
    "203.0.113.0/24",
    "203.0.113.7",
    "10.0.0.0/8",
    "2001:db8::/32",
]


@pytest.mark.parametrize("entry", FORMS)
def test_each_form_is_an_entry(entry: str) -> None:
    check_entry(entry)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
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
    ],
)
def test_another_text_is_refused_with_the_fix(entry: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_entry(entry)


@pytest.mark.parametrize(
    ("entry", "kind", "value"),
    [
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
    ],
)
def test_a_trusted_principal(entry: str, kind: str, value: str) -> None:
    assert Trust.of([entry]).principal(kind, value) == entry


@pytest.mark.parametrize(
    ("entry", "kind", "value"),
    [
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
    ],
)
def test_another_principal_is_not_trusted(entry: str, kind: str, value: str) -> None:
    trust = Trust.of([entry])
    assert trust.principal(kind, value) is None
    assert not trust.used


def test_a_group_of_acls_is_trusted_by_its_uri_and_a_public_one_never() -> None:
    everyone = "http://acs.amazonaws.com/groups/global/AllUsers"
    trust = Trust.of([LOG_DELIVERY, everyone])
    assert trust.canonical(LOG_DELIVERY) == LOG_DELIVERY
    assert trust.canonical(everyone) is None


def test_an_organization_contains_its_paths_and_a_path_does_not_contain_the_organization() -> None:
    assert Trust.of(["o-1"]).organization("o-1/r-1/ou-1/*") == "o-1"
    assert Trust.of(["o-1/r-1/"]).organization("o-1/r-1/ou-1/") == "o-1/r-1/"
    assert Trust.of(["o-1/r-1/"]).organization("o-1/r-1") == "o-1/r-1/"
    assert Trust.of(["o-1/r-1/"]).organization("o-1") is None
    assert Trust.of(["o-1/r-1/"]).organization("o-1/r-2/") is None
    assert Trust.of(["o-1"]).organization("o-*") is None
    assert Trust.of(["o-1"]).organization("o-1/r-*/ou-1") is None
    assert Trust.of(["o-1"]).organization("o-11") is None


@pytest.mark.parametrize(
    ("entries", "cidr", "entry"),
    [
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
    ],
)
def test_a_network_is_trusted_by_the_networks_that_cover_it(entries: list[str], cidr: str, entry: str | None) -> None:
    assert Trust.of(entries).network(cidr) == entry


def test_vpcs_and_vpc_endpoints_are_trusted_by_their_id() -> None:
    trust = Trust.of(["vpc-1", "vpce-2"])
    assert [trust.exactly(one) for one in ("vpc-1", "vpce-2", "vpce-1", "vpce-*")] == ["vpc-1", "vpce-2", None, None]


@pytest.mark.parametrize(
    ("entry", "source", "trusted"),
    [
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
    ],
)
def test_the_source_of_a_services_request(entry: str, source: str, trusted: bool) -> None:
    assert Trust.of([entry]).source(source) == (entry if trusted else None)


def test_entries_that_trusted_nothing_are_named_after_a_run() -> None:
    trust = Trust.of(["o-1", "vpc-1", "203.0.113.0/25", "203.0.113.128/25", "backup"])
    assert trust.unused() == ("203.0.113.0/25", "203.0.113.128/25", "backup", "o-1", "vpc-1")
    trust.network("203.0.113.0/24")
    trust.organization("o-1")
    trust.organization("o-2")
    assert trust.used == {"o-1", "203.0.113.0/25", "203.0.113.128/25"}
    assert trust.unused() == ("backup", "vpc-1")
    assert trust.unused(["vpc-1"]) == ("backup",)
