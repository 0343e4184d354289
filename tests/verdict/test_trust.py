"""Entries of the setting `trusted`: the requesters, places and sources that each trusts, and the idle ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from auditor.model.trusted_entry import check_entry
from auditor.verdict.trust import Trust

LOG_DELIVERY = "http://acs.amazonaws.com/groups/s3/LogDelivery"
TABLES = tomllib.loads((Path(__file__).parent / "tables" / "trust.toml").read_text(encoding="utf-8"))


def test_forms_of_entries_and_other_texts_are_refused_with_the_fix() -> None:
    for entry in TABLES["forms"]:
        check_entry(entry)
    for entry, says in TABLES["refused"]:
        with pytest.raises(ValueError, match=says):
            check_entry(entry)


def test_trusted_principals_and_others() -> None:
    for entry, kind, value in TABLES["trusted"]:
        assert Trust.of([entry]).principal(kind, value) == entry, (entry, value)
    for entry, kind, value in TABLES["strange"]:
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
    for entries, cidr, found in TABLES["networks"]:
        assert Trust.of(entries).network(cidr) == (found or None), (entries, cidr)
    trust = Trust.of(["vpc-1", "vpce-2"])
    assert [trust.exactly(one) for one in ("vpc-1", "vpce-2", "vpce-1", "vpce-*")] == ["vpc-1", "vpce-2", None, None]
    for entry, source, trusted in TABLES["sources"]:
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
