"""Entries of an index page, of runs that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from msgspec.structs import replace

from auditor.model.estate import AccountResult, BucketCounts, EarlierEstate
from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.model.finding import RuleUndecided
from auditor.model.rollup import TrendNight
from auditor.model.summary import Changes, Coverage, ExceptedCounts, Resume, Summary
from auditor.model.target import Target
from auditor.reports.summary import IndexEntry
from tests.support.samples.reports import sample_summary

RUN: Final = "20261122T030004Z-5f20c1"
LAST: Final = "20261121T030004Z-5f20c1"
GONE: Final = "there is no bucket named 'acme-archive' (NoSuchBucket): check the name and the endpoint"
EXCLUDED: Final = "by the pattern *-logs: access logs, kept 30 days (platform team, until 2027-03-31)"
ESTATE: Final = EarlierEstate(
    estate=RUN,
    folder="estate=shop",
    line="71 buckets in 3 accounts = 67 audited + 3 excluded + 1 hole; 1 of the accounts is a hole: there may be more"
    " buckets",
    notes=("the pattern typo* of team a matches no bucket: remove or correct it",),
    accounts=(
        AccountResult(
            account="111122223333",
            name="production",
            role="arn:aws:iam::111122223333:role/s3-auditor",
            hole=None,
            counts=BucketCounts(buckets=24, audited=23, excluded=1, holes=0),
        ),
        AccountResult(
            account="222233334444",
            name="",
            role=None,
            hole=None,
            counts=BucketCounts(buckets=47, audited=44, excluded=2, holes=1),
        ),
        AccountResult(
            account="333344445555",
            name="sandbox",
            role="arn:aws:iam::333344445555:role/s3-auditor",
            hole="account 333344445555 (sandbox): the role arn:aws:iam::333344445555:role/s3-auditor cannot be assumed"
            " (AccessDenied): allow sts:AssumeRole on it",
            counts=BucketCounts(buckets=0, audited=0, excluded=0, holes=0),
        ),
    ),
    buckets=(),
    since=None,
    not_looked_at=("directory buckets (S3 Express One Zone) and others: ListBuckets does not name them",),
)
USED: Final = ExceptionUse("WEB-1", None, None, "site/", "web", "r", "2999-01-01", ExceptionState.ACTIVE, 1)


def run_of(name: str, *, new: int | None = 0, run: str = RUN, prefix: str = "", **verdicts: int) -> Summary:
    """A summary with these numbers of objects by verdict. intended: exposed objects that an exception covers."""
    intended = verdicts.pop("intended", 0)
    undecided = verdicts.get("unknown", 0)
    numbers = {"exposed": intended, "unknown": 0, "shared": 0, "masked": 0, "dormant": 0, "private": 0}
    for verdict, number in verdicts.items():
        numbers[verdict] += number
    listed = sum(numbers.values())
    made = sample_summary(target=Target(name, prefix))
    return replace(
        made,
        run=run,
        coverage=Coverage(listed=listed, audited=listed - undecided, vanished=0, undecided=undecided, delete_markers=0),
        verdicts=numbers,
        findings={**made.findings, "high": numbers["exposed"]},
        excepted=ExceptedCounts({"exposed": intended}, {"high": intended}),
        exceptions=(USED,) if intended else (),
        changes=Changes() if new is None else Changes(against=LAST, verdicts={"exposed": {"new": new}}),
    )


def nights(*numbers: int | None) -> tuple[TrendNight, ...]:
    """A trend up to the day of RUN: numbers of exposed objects; None for a night without a run."""
    first = date(2026, 11, 22) - timedelta(len(numbers) - 1)
    days = ((first + timedelta(at)).isoformat() for at in range(len(numbers)))
    return tuple(
        TrendNight(day, verdicts=None if number is None else {"exposed": number, "shared": at}, undecided=1)
        for at, (day, number) in enumerate(zip(days, numbers, strict=True))
    )


def entry(summary: Summary, *trend: int | None, failed: str | None = None) -> IndexEntry:
    link = f"bucket={summary.target.bucket}/run={summary.run}/report.html"
    return IndexEntry(target=summary.target, summary=summary, link=link, nights=nights(*trend), failed=failed)


def rich_entries() -> Sequence[IndexEntry]:
    holes = replace(
        run_of("acme-contracts", unknown=312, private=84_210),
        rules_undecided=(RuleUndecided("B02", "GetPublicAccessBlock", "AccessDenied"),),
    )
    cut = replace(run_of("acme-logs", private=1_200_000), complete=False, resume=Resume(RUN, "k", "a signal"))
    return (
        entry(run_of("acme-media", private=612_004), *([0] * 14)),
        entry(run_of("acme-data-prod", exposed=1_204, shared=4_870, masked=22_140, private=1_000_722, intended=18_402,
                     new=37), *(1_260 - 11 * at for at in range(9)), None, 1_160, 1_167, 1_167, 1_204),
        entry(run_of("acme-partners", shared=4_610, private=20_118, prefix="exports/2026/"), *([0] * 14)),
        entry(holes, *([0] * 14)),
        IndexEntry(target=Target("acme-archive"), failed=GONE),
        entry(cut),
        entry(run_of("acme-site", intended=2_310, private=12), *([0] * 14)),
        entry(run_of("acme-backups", exposed=96, private=41_007, new=None, run="20261119T030004Z-5f20c1")),
    )  # fmt: skip


def estate_entries(buckets: int = 60) -> Sequence[IndexEntry]:
    """Buckets of ESTATE: the rich ones, more that are closed, some that are excluded, and an account that is a hole."""
    first, second, lost = (one.words for one in ESTATE.accounts)
    more = [entry(run_of(f"team-{at:04}", private=100 + at, dormant=at % 2), *([0] * 14)) for at in range(buckets)]
    out = [IndexEntry(target=Target(f"web-{at}-logs"), excluded=EXCLUDED) for at in range(3)]
    owned = [replace(one, account=second if at % 3 else first) for at, one in enumerate((*rich_entries(), *more, *out))]
    return (*owned, IndexEntry(target=Target("account"), label=lost, failed=ESTATE.accounts[2].hole))


def many_entries(each: int = 40) -> Sequence[IndexEntry]:
    """Targets with exposed objects, targets that failed, and closed ones, the same number of each."""
    return (
        *(entry(run_of(f"open-{at:03}", exposed=at + 1)) for at in range(each)),
        *(IndexEntry(target=Target(f"gone-{at:03}"), failed=f"reason {at}") for at in range(each)),
        *(entry(run_of(f"shut-{at:03}", private=1)) for at in range(each)),
    )


def hostile_estate() -> EarlierEstate:
    """An estate whose names, roles and notes are markup."""
    bad = '"><script>alert(1)</script>{{ 7 * 7 }}\u202e'
    accounts = tuple(replace(one, name=bad, role=bad, hole=bad) for one in ESTATE.accounts)
    return replace(ESTATE, line=bad, notes=(bad,), not_looked_at=(bad,), folder=bad, accounts=accounts)


def hostile_entries() -> Sequence[IndexEntry]:
    """Targets whose prefixes and failures are markup."""
    prefixes = ('"><script>alert(1)</script>', "{{ 7 * 7 }}/", "javascript:alert(1)", "\u202e\x1b[2J\n", "a" * 900)
    found = [entry(run_of(f"bucket-{at}", exposed=at, prefix=prefix)) for at, prefix in enumerate(prefixes)]
    failed = [
        IndexEntry(target=Target("gone", prefix), failed=f"<img src=x onerror=alert(1)> {prefix}")
        for prefix in prefixes
    ]
    return (*found, *failed)
