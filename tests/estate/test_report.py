"""The sum of an estate, for any mixture of listings, exclusions and ends."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from auditor.estate.accounts import OpenedAccount
from auditor.estate.report import BucketEnd, Estate, report_of
from auditor.estate.select_buckets import choose
from auditor.model.estate import (
    BucketCounts,
    BucketOutcome,
    BucketResult,
    EarlierEstate,
    EstateAccount,
    Exclusion,
    Restriction,
)
from auditor.s3.bucket_list import ListedBucket
from tests.support.samples.index_pages import run_of

DAY = "2026-11-25"
WHY = {"reason": "r", "owner": "o"}
NAMES = [f"bucket-{number}" for number in range(8)]
names = st.lists(st.sampled_from(NAMES), unique=True, max_size=8)
patterns = st.sampled_from(["*", "bucket-?", "bucket-1", "none"])
days = st.sampled_from(["2026-11-24", DAY, "2027-01-01"])
exclusions = st.builds(lambda pattern, until: Exclusion(pattern=pattern, until=until, **WHY), patterns, days)
restrictions = st.none() | st.builds(
    lambda include, regions, until: Restriction(include=include, regions=regions, until=until, **WHY),
    st.lists(patterns, max_size=2).map(tuple),
    st.sampled_from([(), ("eu-west-1",)]),
    days,
)
ended = st.sampled_from([None, 0, 3, 4, "incomplete", "failed"])


@st.composite
def accounts(draw: st.DrawFn, number: int) -> OpenedAccount:
    account = EstateAccount(
        id=f"{number:012}",
        restriction=draw(restrictions),
        exclusions=tuple(draw(st.lists(exclusions, max_size=3))),
    )
    region = st.sampled_from([None, "eu-west-1", "us-east-1"])
    return OpenedAccount(
        account=account,
        buckets=tuple(ListedBucket(name, draw(region)) for name in draw(names)),
        hole=draw(st.none() | st.just("denied")),
    )


def an_end(kind: Any, name: str) -> BucketEnd:
    if kind == "failed":
        return BucketEnd(run=None, code=4, failed="refused")
    summary = replace(run_of(name), complete=kind != "incomplete")
    return BucketEnd(run=summary.run, summary=summary, code=4 if kind == "incomplete" else kind)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_listed_bucket_has_one_outcome(data: st.DataObject) -> None:
    opened = [data.draw(accounts(number)) for number in range(3)]
    kept = data.draw(st.lists(st.sampled_from(NAMES), max_size=3))
    before = EarlierEstate(
        estate="20261124T000000Z-000000",
        line="",
        notes=(),
        accounts=(),
        not_looked_at=(),
        folder="estate=e",
        since=None,
        buckets=tuple(
            BucketResult(bucket=name, account=f"{number:012}", outcome=BucketOutcome.AUDITED, sentence="")
            for number, name in enumerate(kept)
        ),
    )
    estate = Estate(
        estate="20261125T000000Z-000000",
        folder="estate=e",
        out="out",
        opened=opened,
        choice=choose(opened, DAY, {"bucket-7": "it has the run folders"}),
        earlier=data.draw(st.none() | st.just(before)),
    )
    kinds = {one.name: data.draw(ended) for one in estate.audited}
    ends = {name: an_end(kind, name) for name, kind in kinds.items() if kind is not None}
    report = report_of(estate, ends, stopped=None)

    listed = [(one.account.id, bucket.name) for one in opened for bucket in one.buckets]
    found = [(one.account, one.bucket) for one in report.buckets]
    assert len(found) == len(set(found))
    assert set(listed) <= set(found)
    counts = report.counts
    assert counts.buckets == len(found) == counts.audited + counts.excluded + counts.holes
    assert sum(one.counts.buckets for one in report.accounts) == counts.buckets
    holes = [one for one in report.buckets if one.outcome is BucketOutcome.HOLE]
    lost = [one for one in opened if one.hole is not None]
    assert report.complete is not bool(holes or lost or not found)
    if holes or lost:
        assert report.exit_code == 4
    for one in report.buckets:
        assert one.sentence
        if one.outcome is BucketOutcome.AUDITED:
            assert kinds[one.bucket] in (0, 3, 4)
        if (one.account, one.bucket) in listed and kinds.get(one.bucket, 0) in (None, "failed", "incomplete"):
            assert one.outcome is BucketOutcome.HOLE


def test_unreached_bucket_of_an_interrupted_start_is_a_named_hole() -> None:
    opened = [OpenedAccount(account=EstateAccount(id="1" * 12), buckets=tuple(map(ListedBucket, ("first", "second"))))]
    estate = Estate(
        estate="20261125T000000Z-000000", folder="estate=e", out="out", opened=opened, choice=choose(opened, DAY, {})
    )
    report = report_of(estate, {"first": an_end(0, "first")}, stopped="stopped by SIGINT")
    assert [one.outcome for one in report.buckets] == [BucketOutcome.AUDITED, BucketOutcome.HOLE]
    assert report.buckets[1].sentence == "the start ended before it was reached: stopped by SIGINT"
    assert report.line == "2 buckets in 1 account = 1 audited + 0 excluded + 1 hole"
    assert [one.counts for one in report.accounts] == [BucketCounts(buckets=2, audited=1, excluded=0, holes=1)]
