"""rollups.json is read back as it was written, and a damaged one is refused with the member's name."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.json_codec import JsonError
from auditor.model.rollup import FirstStep, Group, GroupKind, RollUps, Sample, Totals, TrendNight
from auditor.model.target import Target

FINDINGS = Group(
    id="0123456789ab",
    kind=GroupKind.FINDING,
    rule="O02",
    verdict=None,
    severity=Severity.HIGH,
    audience="anyone",
    prefix="logs/",
    rest=True,
    count=3,
    bytes=1 << 40,
    new=None,
    excepted=1,
    since="2026-01-02T03:04:05Z",
    samples=(Sample("logs/\udcff</script>", "v1", "AllUsers", "READ", "2026-01-02T03:04:05Z", "f" * 32),),
)
OBJECTS = replace(
    FINDINGS, kind=GroupKind.VERDICT, rule=None, severity=None, verdict=Verdict.EXPOSED, rest=False, new=2, samples=()
)
ROLLUPS = RollUps(
    run="20260102T030405Z-0a1b2c",
    target=Target("audited", prefix="logs/"),
    complete=False,
    totals=Totals(verdicts={"exposed": 3}, findings={"high": 3}, rules={"O02": 3}, undecided=0, new=2, excepted=2),
    groups=(FINDINGS, OBJECTS),
    first=(FirstStep(change="delete the policy", closes=2, of=3, breaks=("account 1",), how="--policy ''"),),
    nights=(
        TrendNight("2026-01-01"),
        TrendNight("2026-01-02", "20260102T030405Z-0a1b2c", {"exposed": 3}, {}, 0, 3, {}),
    ),
)


def test_the_file_is_read_back_as_it_was_written() -> None:
    for rollups in (ROLLUPS, replace(ROLLUPS, groups=(), first=(), nights=())):
        data = rollups.to_json()
        assert RollUps.from_json(data) == rollups
        assert data.isascii()
        assert json.loads(data)["format"] == 1


def test_each_group_has_a_line() -> None:
    lines = ROLLUPS.to_json().decode().splitlines()
    assert [json.loads(line.rstrip(","))["kind"] for line in lines[1:3]] == ["finding", "verdict"]
    assert [json.loads(line.rstrip(","))["day"] for line in lines[4:-1]] == ["2026-01-01", "2026-01-02"]


def test_a_damaged_file_is_refused() -> None:
    data = ROLLUPS.to_json()
    for old, new, words in (
        (b'"format": 1', b'"format": 2', "format is not 1"),
        (b'"format": 1', b'"v": 1', "was written by a development version"),
        (b'"count": 3', b'"count": -3', r"groups.\[0\].count"),
        (b'"kind": "finding"', b'"kind": "other"', r"groups.\[0\].kind"),
        (b'"totals"', b'"total"', "totals is missing"),
    ):
        assert old in data
        with pytest.raises(JsonError, match=words.replace("groups.", "groups")):
            RollUps.from_json(data.replace(old, new, 1))
