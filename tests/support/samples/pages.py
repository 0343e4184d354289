"""A page with every section, made of the files of a run that is made up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any, Final

from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.model.finding import Severity
from auditor.model.rollup import FirstStep, Group, GroupKind, RollUps, Sample, Totals, TrendNight
from auditor.model.summary import CallCounts, Changes, Coverage, ExceptedCounts, Summary, UnreadCount
from auditor.model.target import Target
from auditor.rules import RULES
from tests.support.samples.reports import RUN, PageSource, sample_file, sample_summary

TARGET: Final = Target("acme-data-prod")
_PREFIXES: Final = (
    ("exports/2026/q3/", Verdict.EXPOSED, 812, 0),
    ("exports/2026/q4/", Verdict.EXPOSED, 37, 37),
    ("static/beta/", Verdict.EXPOSED, 211, 0),
    ("backups/legacy/", Verdict.EXPOSED, 96, 0),
    ("uploads/inbox/", Verdict.EXPOSED, 48, 0),
    ("exports/partners/", Verdict.SHARED, 4_610, 0),
    ("uploads/inbox/", Verdict.SHARED, 260, 0),
    ("vault/", Verdict.UNKNOWN, 312, 0),
    ("backups/pg/", Verdict.MASKED, 22_140, 0),
)
_FINDINGS: Final = (
    ("O01", "uploads/inbox/", 48, 0, "anyone on the internet"),
    ("O02", "exports/2026/q3/", 812, 0, "anyone on the internet"),
    ("O02", "exports/2026/q4/", 37, 37, "anyone on the internet"),
    ("B02", None, 1, 0, ""),
    ("B04", None, 1, 0, ""),
    ("O04", "backups/legacy/", 96, 0, "any AWS account"),
    ("O07", "exports/partners/", 310, 0, "account “Kranz Analytics”"),
    ("E01", "backups/legacy/", 12_500, 0, ""),
    ("O08", "exports/partners/", 4_300, 0, "account “Kranz Analytics”"),
    ("O08", "uploads/inbox/", 260, 0, "unknown account 9f31c0de77aa…417c"),
    ("K01", "uploads/inbox/", 64, 3, ""),
)
KEYS: Final = {
    "exports/2026/q3/": "customers-{:04}.parquet",
    "exports/2026/q4/": "customers-{:04}.parquet",
    "exports/partners/": "kranz/2026-10/orders-{:02}.csv",
    "uploads/inbox/": "2026-11-12/cv-{:04}.pdf",
    "backups/legacy/": "crm-20{:02}.tar.gz",
    "static/beta/": "build/app-{}.js",
    "backups/pg/": "base/2026-11-{:02}.tar.zst",
    "vault/": "contract-{:03}.pdf",
}
_INTENDED: Final = 18_402


def rich_summary() -> Summary:
    verdicts = {"exposed": 1_204 + _INTENDED, "unknown": 312, "shared": 4_870, "masked": 22_140}
    verdicts |= {"dormant": 0, "private": 1_000_722}
    severities: dict[str, int] = dict.fromkeys(Severity, 0)
    rules: dict[str, int] = {}
    for rule, _, count, _, _ in _FINDINGS:
        rules[rule] = rules.get(rule, 0) + count
        severities[_severity(rule)] += count
    return replace(
        sample_summary(target=TARGET),
        run="20261122T030004Z-5f20c1",
        out="s3://acme-reports/audits/bucket=acme-data-prod/run=20261122T030004Z-5f20c1",
        engine="direct",
        coverage=Coverage(listed=1_047_662, audited=1_047_338, vanished=12, undecided=312, delete_markers=0),
        verdicts=verdicts,
        findings=severities,
        rules=rules,
        unread=(UnreadCount("GetObjectAcl", "AccessDenied", 312),),
        calls=CallCounts(list=1_049, head=1_047_662, acl=1_047_662, retried=31, throttled=0),
        seconds=1_051,
    )


def rich_page() -> PageSource:
    """Return the files of a large run, with something in every section."""
    steps = (
        FirstStep(
            change="turn on BlockPublicAcls and IgnorePublicAcls", closes=993, of=1_204, how="--ignore-public-acls"
        ),
        FirstStep(change="narrow policy statement PublicSite", closes=1_204, of=1_204),
        FirstStep(change="let the auditor read ACLs below vault/", closes=1_204, of=1_204, decides=312),
    )
    rollups = RollUps(
        run=RUN,
        target=TARGET,
        complete=True,
        totals=Totals(verdicts={}, findings={}, rules={}, undecided=312, new=None, excepted=_INTENDED),
        groups=(*_openings(), *_findings()),
        first=steps,
        nights=tuple(_nights()),
    )
    counts = {"new": 37, "resolved": 52, "gone": 14}
    changes = Changes(
        against="20261121T030004Z-5f20c0",
        classes={**counts, "worsened": 2},
        verdicts={"exposed": counts, "shared": {"worsened": 2}},
    )
    summary = replace(
        rich_summary(),
        changes=changes,
        excepted=ExceptedCounts({"exposed": _INTENDED}, {}, 0),
        exceptions=_exceptions(),
    )
    return PageSource(summary=summary, bucket=sample_file(target=TARGET), rollups=rollups)


def _exceptions() -> tuple[ExceptionUse, ...]:
    return (
        ExceptionUse(
            id="WEB-1",
            rule=None,
            verdict=Verdict.EXPOSED,
            prefix="static/site/",
            matched=_INTENDED,
            owner="web@acme.example",
            reason="the web site",
            until="2027-03-31",
            state=ExceptionState.ACTIVE,
        ),
        ExceptionUse(
            id="OLD-7",
            rule="O08",
            verdict=None,
            prefix="exports/agency/",
            matched=0,
            owner="partners@acme.example",
            reason="agency contract",
            until="2027-03-31",
            state=ExceptionState.UNUSED,
        ),
    )


def _severity(rule: str) -> Severity:
    return next(one.severity for one in RULES if one.id == rule)


def group_of(**values: Any) -> Group:
    """A group of a page's roll-ups, of objects unless the values say otherwise."""
    plain: dict[str, Any] = dict.fromkeys(("rule", "verdict", "severity", "audience", "new", "since"))
    return Group(**{**plain, "kind": GroupKind.VERDICT, "rest": False, "bytes": 0, "excepted": 0, **values})


def _openings() -> list[Group]:
    who = {Verdict.EXPOSED: "anyone on the internet", Verdict.SHARED: "account “Kranz Analytics”"}
    found = [
        group_of(
            id=f"place{at}",
            verdict=verdict,
            audience=who.get(verdict, ""),
            prefix=prefix,
            count=count,
            new=new,
            since="2026-11-17T03:00:00Z",
            samples=_samples(prefix),
        )
        for at, (prefix, verdict, count, new) in enumerate(_PREFIXES)
    ]
    site = group_of(
        id="place99",
        verdict=Verdict.EXPOSED,
        audience="anyone on the internet",
        prefix="static/site/",
        count=_INTENDED,
        excepted=_INTENDED,
        samples=(Sample("static/site/index.html"),),
    )
    return [*found, site]


def _findings() -> list[Group]:
    return [
        group_of(
            kind=GroupKind.FINDING,
            id=f"finding{at}",
            rule=rule,
            severity=_severity(rule),
            audience=who,
            prefix=prefix,
            count=count,
            new=new,
            since="2026-11-17T03:00:00Z",
            samples=_samples(prefix) if prefix else (),
        )
        for at, (rule, prefix, count, new, who) in enumerate(_FINDINGS)
    ]


def _samples(prefix: str) -> tuple[Sample, ...]:
    return tuple(Sample(prefix + KEYS[prefix].format(number)) for number in range(1, 5))


def _nights() -> Iterator[TrendNight]:
    first = date(2026, 10, 24)
    for at in range(30):
        exposed = 41 if at < 11 else 259 if at < 24 else 1_219 if at < 29 else 1_204
        intended, day = 17_000 + 48 * at, (first + timedelta(at)).isoformat()
        verdicts = {"exposed": exposed + intended, "shared": 4_300 + 19 * at}
        night = TrendNight(day, f"run{at}", verdicts, {}, 312, 1_000_000, {"exposed": intended})
        yield TrendNight(day) if at == 17 else night
