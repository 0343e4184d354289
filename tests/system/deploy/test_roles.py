"""The packaged roles at each level: nothing is written where it is audited, and none reads more than its level does."""

from __future__ import annotations

import re

import pytest

from tests.system.deploy.checks.packaged import needs_osls, of_level, stack_of, statements
from tests.system.deploy.checks.sources import LEVELS, as_list, of_type

pytestmark = needs_osls
WRITES = re.compile(r":(Put|Delete|Create|Update|Restore|Replicate|Bypass|Abort)")
CONTENTS = {"s3:GetObject", "s3:GetObjectVersion", "kms:Decrypt"}
KEY = "arn:aws:kms:us-east-1:123456789012:key/1"


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_in_the_audited_buckets_can_be_written_and_no_action_is_a_pattern(level: str) -> None:
    resources = stack_of(level, "renew=true").resources()
    for role in of_type(resources, "AWS::IAM::Role"):
        for sid, one in statements(resources, role).items():
            names = as_list(one["Action"])
            places = as_list(one.get("Resource", []))
            assert not [action for action in names if "*" in action], (role, sid)
            assert "*" not in places or one["Effect"] == "Deny" or sid in {"Account", "Network"}, (role, sid)
            audited = [place for place in places if re.search(r":::(photos|archive)\b", place)]
            if one["Effect"] == "Allow" and (audited or "*" in places):
                written = [action for action in names if WRITES.search(action) and not action.startswith("ec2:")]
                assert written == [], (role, sid)


@pytest.mark.parametrize("level", LEVELS)
def test_at_exposure_alone_the_audits_role_neither_reads_an_object_nor_decrypts(level: str) -> None:
    assert "ManagedPolicyArns" not in of_level(level)["Resources"]["AuditRole"]["Properties"]
    found = {"Allow": set[str](), "Deny": set[str]()}
    for sid, one in statements(stack_of(level, KmsKeyArn=KEY).resources(), "AuditRole").items():
        if sid != "Reports":
            found[one["Effect"]] |= CONTENTS.intersection(as_list(one["Action"]))
    assert found == ({"Allow": set(), "Deny": CONTENTS} if level == "exposure" else {"Allow": CONTENTS, "Deny": set()})


def test_each_schedule_starts_its_own_function_alone_and_puts_away_the_event_that_did_not_start() -> None:
    stack = stack_of("fixity")
    for name, function in (("ScheduleRole", "Audit"), ("VerifyScheduleRole", "Verify")):
        found = statements(stack.resources(), name)
        started = {one["Resource"] for one in found.values() if one["Action"] == "lambda:InvokeFunction"}
        assert started == {stack.arn_of(f"{function}LambdaFunction")}
        names = {action for one in found.values() for action in as_list(one["Action"])}
        assert names == {"lambda:InvokeFunction", "sqs:SendMessage"}
