"""The rules of rows and notifications that every kind of ledger shares, on values alone."""

from __future__ import annotations

import pytest

from auditor.ledger.base import Notice
from auditor.ledger.key_record import Latest, is_after, is_older, is_same

LATEST = Latest("05", deleted=False, at="2026-01-02", version_id=None)
UNNUMBERED = Latest("", deleted=False, at="2026-01-02", version_id=None)


def notice(sequencer: str, at: str = "2026-01-02", *, deleted: bool = False) -> Notice:
    return Notice(key="key", sequencer=sequencer, deleted=deleted, at=at)


@pytest.mark.parametrize(
    ("one", "other", "after"),
    [
        ("2026-01-01T00:15:00Z", "2026-01-01T00:00:00Z", False),
        ("2026-01-01T00:15:01Z", "2026-01-01T00:00:00Z", True),
        ("yesterday", "2026-01-01T00:00:00Z", False),
        ("2026-01-02", "2026-01-01T00:00:00Z", False),
    ],
    ids=["slack", "later", "no time", "no zone"],
)
def test_time_proves_something_only_when_it_is_later_than_the_slack(one: str, other: str, after: bool) -> None:
    assert is_after(one, other) is after


@pytest.mark.parametrize(
    ("one", "latest", "older"),
    [
        (notice("04", "2026-01-03"), LATEST, True),
        (notice("06", "2026-01-01"), LATEST, False),
        (notice("", "2026-01-01"), LATEST, True),
        (notice("", "2026-01-03"), LATEST, False),
        (notice("06", "2026-01-01"), UNNUMBERED, True),
        (notice("04", "2026-01-03"), UNNUMBERED, False),
        (notice("04"), UNNUMBERED, False),
        (notice("04"), None, False),
    ],
)
def test_sequencers_decide_and_times_where_one_is_missing(one: Notice, latest: Latest | None, older: bool) -> None:
    assert is_older(one, latest) is older


@pytest.mark.parametrize(
    ("one", "latest", "same"),
    [
        (notice("05"), LATEST, True),
        (notice("0500", "2026-01-03"), LATEST, True),
        (notice("06"), LATEST, False),
        (notice("05", deleted=True), LATEST, False),
        (notice(""), LATEST, False),
        (notice("05"), UNNUMBERED, False),
        (notice(""), UNNUMBERED, True),
        (notice("", "2026-01-03"), UNNUMBERED, False),
        (notice("05"), None, False),
    ],
)
def test_notification_is_the_same_by_its_sequencer_or_else_by_its_time(
    one: Notice, latest: Latest | None, same: bool
) -> None:
    assert is_same(one, latest) is same
