"""Who may send to the queue of S3's notifications, and what the rule of EventBridge passes on to it."""

from __future__ import annotations

import json

from deploy.resolving import Stack
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, of_level

pytestmark = needs_osls


def test_objects_of_the_audited_buckets_alone_are_told_of() -> None:
    stack = Stack(of_level("fixity"))
    resources = stack.resources()
    policy = resources["NotificationQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    conditions = {one["Sid"]: one["Condition"] for one in policy if one["Effect"] == "Allow"}
    assert conditions["TheBuckets"] == {
        "ArnEquals": {"aws:SourceArn": ["arn:aws:s3:::photos", "arn:aws:s3:::archive"]},
        "StringEquals": {"aws:SourceAccount": "123456789012"},
    }
    assert conditions["TheRule"]["ArnEquals"] == {"aws:SourceArn": [stack.arn_of("ObjectEventsRule")]}
    assert "TheTopic" not in conditions
    (target,) = resources["ObjectEventsRule"]["Properties"]["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": stack.arn_of("DeadLetterQueue")}
    letters = resources["DeadLetterQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    (allowed,) = [one for one in letters if one["Effect"] == "Allow"]
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "events.amazonaws.com"}, "sqs:SendMessage")
    assert allowed["Condition"]["ArnEquals"] == {"aws:SourceArn": [stack.arn_of("ObjectEventsRule")]}
    pattern = resources["ObjectEventsRule"]["Properties"]["EventPattern"]
    assert pattern["detail"]["$or"] == [
        {"bucket": {"name": ["photos"]}},
        {"bucket": {"name": ["archive"]}, "object": {"key": [{"prefix": "2024/"}]}},
    ]


def test_the_rule_passes_on_what_the_worker_takes_and_nothing_else() -> None:
    paths = [path for path in (ROOT / "events").glob("s3-eventbridge*.json") if not path.stem.endswith("-acl")]
    samples = [json.loads(path.read_bytes()) for path in paths]
    taken = {json.loads(record["body"])["detail-type"] for sample in samples for record in sample["Records"]}
    pattern = Stack(of_level("fixity")).resources()["ObjectEventsRule"]["Properties"]["EventPattern"]
    assert set(pattern["detail-type"]) == taken
