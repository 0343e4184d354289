"""Dates of S3 are read as the SDK's own parser reads them, and invalid dates are refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from botocore.utils import parse_timestamp
from hypothesis import given
from hypothesis import strategies as st

from auditor.aws.session import parse_date
from auditor.model.dates import any_date, http_date, http_date_in_utc, iso_date, seconds_in_utc

MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS)
def test_both_forms_of_any_moment(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    assert http_date(format_datetime(whole, usegmt=True)) == whole
    assert http_date_in_utc(format_datetime(whole, usegmt=True)) == seconds_in_utc(moment)
    assert iso_date(moment.isoformat().replace("+00:00", "Z")) == moment
    assert seconds_in_utc(moment) == whole.strftime(f"{whole.year:04}-%m-%dT%H:%M:%SZ")


@given(MOMENTS, ZONES)
def test_any_zone_is_the_same_moment(moment: datetime, zone: timezone) -> None:
    there = moment.replace(microsecond=0).astimezone(zone)
    assert iso_date(there.isoformat()) == http_date(format_datetime(there)) == there
    assert http_date_in_utc(format_datetime(there)) == seconds_in_utc(there) == seconds_in_utc(moment)


@given(st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds
def test_as_the_sdk_reads_it(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    for text in (format_datetime(whole, usegmt=True), f"{whole.isoformat()[:19]}.000Z", f"{whole.isoformat()[:19]}Z"):
        assert parse_date(text) == parse_timestamp(text) == whole


def test_forms_that_only_the_sdk_knows_are_left_to_it() -> None:
    assert parse_date(1767323045) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert parse_date("1767323045") == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


NO_DATES = (
    *("", "yesterday", "2026-02-30T00:00:00Z", "9" * 22),
    *("Fri, 30 Feb 2026 03:04:05 GMT", "Fri, 02 Jan 2026 99:04:05 GMT"),
)
ODD_DATES = (
    *("Fri, 02 Jan 2026 24:00:00 GMT", "Fri, 02 Jan 2026 23:59:60 GMT", "Fri, 02 Jan 2026 2\u0663:04:05 GMT"),
    *("Fri, 02 Jan 2026 +3:04:05 GMT", "Fri, 2  Jan 2026 03:04:05 GMT", "Fri, 02 Jan 2026T03:04:05 GMT"),
    *("Fri, 02 jan 2026 03:04:05 GMT", "Fri, 02 jan 2026T03:04:05 GMT", "Jan 02 2026 03:0 18:18:53 GMT"),
)


def test_no_date() -> None:
    for text in NO_DATES:
        with pytest.raises(ValueError):  # noqa: PT011 - whatever it says, it is the server's words
            any_date(text)
        with pytest.raises(ValueError):  # noqa: PT011
            http_date_in_utc(text)


def test_an_odd_date_is_the_same_with_and_without_a_calendar() -> None:
    def read(way: Callable[[str], str], text: str) -> str:
        try:
            return way(text)
        except ValueError:
            return "none"

    for text in ODD_DATES:
        assert read(http_date_in_utc, text) == read(lambda one: seconds_in_utc(http_date(one)), text), text
