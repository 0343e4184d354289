"""Alarms of each bucket and of its verifications, on the metrics that the functions write."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.lambdas.metrics import OF_TARGET, target_value
from auditor.model.target import Target
from deploy.resolving import Stack
from tests.system.deploy.checks.checked import resolved
from tests.system.deploy.checks.packaged import needs_osls, of_level, template
from tests.system.deploy.checks.sources import LEVELS, of_type

pytestmark = needs_osls

ODD = "a b/ü+%25 &=!~*'()-_.\U0001f4f7#?\""


def alarms(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return of_type(Stack(made).resources(), "AWS::CloudWatch::Alarm")


def of_targets(made: dict[str, Any]) -> set[tuple[str, str, int]]:
    """Metric, target and hours of each alarm of a target."""
    found = set()
    for alarm in alarms(made).values():
        values = {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
        if "Target" in values:
            assert values["Service"] == "s3-auditor-prod"
            assert (alarm["TreatMissingData"], alarm["ComparisonOperator"]) == ("breaching", "LessThanThreshold")
            assert (alarm["Period"], alarm["Threshold"], alarm["Statistic"]) == (3600, 1, "Sum")
            found.add((alarm["MetricName"], values["Target"], alarm["EvaluationPeriods"]))
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_the_silence_of_each_target_is_an_alarm(level: str) -> None:
    found = of_targets(of_level(level, "silentHours=30"))
    audits = {("RunsComplete", target, 30) for target in ("photos", "archive/2024/")}
    verifications = {("VerificationsComplete", target, 26) for target in ("photos", "archive/2024/")}
    assert found == (audits | verifications if level == "fixity" else audits)
    assert {metric for metric, _, _ in found} <= set(OF_TARGET)


def test_the_alarms_of_targets_are_left_out_when_asked() -> None:
    made = of_level("fixity", "bucketAlarms=false", "verifySilentHours=0")
    assert of_targets(made) == set()
    assert alarms(made)["NoVerificationAlarm"]["ActionsEnabled"] is False
    never = of_level("fixity", "verifySilentHours=0")
    assert {metric for metric, _, _ in of_targets(never)} == {"RunsComplete"}
    assert alarms(of_level("fixity"))["NoVerificationAlarm"]["ActionsEnabled"] is True


def test_an_alarm_names_its_target_as_the_function_does() -> None:
    for prefix in ("", "2024/", ODD, "ü" * 512):
        (alarm,) = resolved(buckets=f"s3://photos/{prefix}")["auditAlarms"]["Resources"].values()
        (_, value) = alarm["Properties"]["Dimensions"]
        assert value == {"Name": "Target", "Value": target_value(Target("photos", prefix))}
        assert value["Value"].isascii()
        assert len(value["Value"]) <= 1024
        assert len(alarm["Properties"]["AlarmName"]) <= 255


def test_targets_of_one_bucket_have_an_alarm_each() -> None:
    made = template("buckets=photos/a/,photos/b/", "level=exposure")
    assert {target for _, target, _ in of_targets(made)} == {"photos/a/", "photos/b/"}
    names = [alarm["AlarmName"] for alarm in alarms(made).values()]
    assert len(names) == len(set(names))
