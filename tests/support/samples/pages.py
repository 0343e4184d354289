"""A page with every section, made of the files of a run that is made up."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.object import Unread
from auditor.model.run_lines import UndecidedLine
from auditor.model.summary import CallCounts, Coverage, Summary, UnreadCount
from auditor.model.target import Target
from auditor.reports.highlights import Highlights
from auditor.reports.page import signs
from auditor.reports.page.build import PageSource
from auditor.reports.page.curve import Night
from auditor.reports.page.data import ChangeCard, ExceptionRow, FirstChange, SampleView
from auditor.reports.page.from_rollups import GroupFacts
from auditor.reports.page.places import PlaceCount, places_of
from auditor.rules import RULES
from tests.support.samples.reports import sample_file, sample_summary

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
    ("O01", "uploads/inbox/", Verdict.EXPOSED, 48, 0, "anyone on the internet"),
    ("O02", "exports/2026/q3/", Verdict.EXPOSED, 812, 0, "anyone on the internet"),
    ("O02", "exports/2026/q4/", Verdict.EXPOSED, 37, 37, "anyone on the internet"),
    ("B02", None, None, 1, 0, ""),
    ("B04", None, None, 1, 0, ""),
    ("O04", "backups/legacy/", Verdict.EXPOSED, 96, 0, "any AWS account"),
    ("O07", "exports/partners/", Verdict.SHARED, 310, 0, "account “Kranz Analytics”"),
    ("E01", "backups/legacy/", Verdict.PRIVATE, 12_500, 0, ""),
    ("O08", "exports/partners/", Verdict.SHARED, 4_300, 0, "account “Kranz Analytics”"),
    ("O08", "uploads/inbox/", Verdict.SHARED, 260, 0, "unknown account 9f31c0de77aa…417c"),
    ("K01", "uploads/inbox/", Verdict.PRIVATE, 64, 3, ""),
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
    for rule, _, _, count, _, _ in _FINDINGS:
        rules[rule] = rules.get(rule, 0) + count
        severities[_severity(rule)] += count
    return replace(
        sample_summary(target=TARGET),
        run="20261122T030004Z-5f20c1",
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
    shown = Highlights()
    shown.undecided.append(UndecidedLine("vault/contract-001.pdf", None, (Unread("GetObjectAcl", "AccessDenied"),), ()))
    counts = [
        PlaceCount(prefix, signs.BY_VERDICT[verdict], number, new, f"place{at}")
        for at, (prefix, verdict, number, new) in enumerate(_PREFIXES)
    ]
    counts.append(PlaceCount("static/site/", signs.INTENDED, _INTENDED, 0, "place99"))
    return PageSource(
        summary=rich_summary(),
        shown=shown,
        bucket=sample_file(target=TARGET),
        groups=[*_openings(), *_findings()],
        places=places_of(counts),
        first=(
            FirstChange("Turn on BlockPublicAcls and IgnorePublicAcls", "on the bucket", 993, "of 1,204 exposed close"),
            FirstChange("Narrow policy statement PublicSite", "to static/site/*", 211, "close"),
            FirstChange("Let the auditor read ACLs below vault/", "s3:GetObjectAcl", 312, "decided"),
        ),
        since="Since the run of 21 November",
        changes=(
            ChangeCard("+", 37, "new", "Objects that are open now and were not, 37 of them exposed."),
            ChangeCard("+", 2, "worsened", "Objects with a wider audience than in the last run."),
            ChangeCard("−", 52, "resolved", "Read again, and no longer open."),
            ChangeCard("", 14, "gone", "Deleted objects that had findings. They do not count as resolved."),
        ),
        new={"exposed": 37, "shared": 0, "unknown": 0, "masked": 0, "dormant": 0},
        nights=_nights(),
        exceptions=_exceptions(),
        intended={"exposed": _INTENDED},
    )


def _exceptions() -> tuple[ExceptionRow, ...]:
    web, agency = "exposed below static/site/", "O08 below exports/agency/"
    return (
        ExceptionRow("WEB-1", web, _INTENDED, "web@acme.example", "the web site", "31 March 2027", False),
        ExceptionRow("OLD-7", agency, 0, "partners@acme.example", "agency contract", "unused: remove it", True),
    )


def _severity(rule: str) -> Severity:
    return next(one.severity for one in RULES if one.id == rule)


def _openings() -> list[GroupFacts]:
    who = {Verdict.EXPOSED: "anyone on the internet", Verdict.SHARED: "account “Kranz Analytics”"}
    found = [
        GroupFacts(
            id=f"place{at}",
            rule=None,
            verdict=verdict,
            severity=None,
            who=who.get(verdict, ""),
            prefix=prefix,
            count=count,
            new=new,
            since="2026-11-17T03:00:00Z",
            samples=_samples(prefix),
        )
        for at, (prefix, verdict, count, new) in enumerate(_PREFIXES)
    ]
    site = GroupFacts(
        id="place99", rule=None, verdict=Verdict.EXPOSED, severity=None, who="anyone on the internet",
        prefix="static/site/", count=_INTENDED, excepted=_INTENDED, samples=(SampleView("static/site/index.html"),),
    )  # fmt: skip
    return [*found, site]


def _findings() -> list[GroupFacts]:
    return [
        GroupFacts(
            id=f"finding{at}",
            rule=rule,
            verdict=verdict,
            severity=_severity(rule),
            who=who,
            prefix=prefix,
            count=count,
            new=new,
            since="2026-11-17T03:00:00Z",
            samples=_samples(prefix) if prefix else (),
        )
        for at, (rule, prefix, verdict, count, new, who) in enumerate(_FINDINGS)
    ]


def _samples(prefix: str) -> tuple[SampleView, ...]:
    return tuple(SampleView(prefix + KEYS[prefix].format(number)) for number in range(1, 5))


def _nights() -> list[Night]:
    first, nights = date(2026, 10, 24), []
    for at in range(30):
        exposed = 41 if at < 11 else 259 if at < 24 else 1_219 if at < 29 else 1_204
        counts = {"exposed": exposed, "shared": 4_300 + 19 * at, "undecided": 312, "intended": 17_000 + 48 * at}
        nights.append(Night(first + timedelta(at), None if at == 17 else counts))
    return nights
