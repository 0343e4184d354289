"""Renewals after S3's events: an option of the deployment, whose role allows exactly what its function asks for."""

from __future__ import annotations

import json

import pytest

from auditor.config.layers import environment_layer, resolve
from auditor.hashing.queue.notification import decode_events
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.renew import RenewFunction
from tests.support.object_events import event_bridge
from tests.system.deploy.checks.accounts import AUDITED
from tests.system.deploy.checks.packaged import needs_osls, stack_of, statements
from tests.system.deploy.checks.sources import LEVELS, as_list, of_type
from tests.system.deploy.test_exact_roles import NOT_SEEN, Account, account, around

pytestmark = needs_osls
__all__ = ["account"]


@pytest.mark.parametrize("level", LEVELS)
def test_without_the_parameter_it_is_not_there(level: str) -> None:
    assert "renew" not in json.dumps(stack_of(level).resources()).lower()


def test_all_functions_together_keep_the_one_ceiling_of_calls() -> None:
    resources = stack_of("metadata", "renew=true", "maxRate=500", "renewRate=90").resources()

    def rate(name: str) -> float:
        found = resolve([environment_layer(resources[name]["Properties"]["Environment"]["Variables"])]).max_rate
        assert found is not None
        return found

    sources = of_type(resources, "AWS::Lambda::EventSourceMapping").values()
    (source,) = [one for one in sources if "renewals" in one["EventSourceArn"]]
    assert rate("RenewLambdaFunction") * source["ScalingConfig"]["MaximumConcurrency"] == 90
    assert rate("AuditLambdaFunction") + 90 == 500


def test_every_target_has_its_events_and_a_queue_that_takes_them() -> None:
    stack = stack_of("metadata", "renew=true")
    resources = stack.resources()
    (rule,) = [one for name, one in of_type(resources, "AWS::Events::Rule").items() if name.startswith("Renew")]
    assert rule["EventPattern"]["detail-type"] == ["Object ACL Updated", "Object Created", "Object Restore Completed"]
    assert {"bucket": {"name": ["photos"]}} in rule["EventPattern"]["detail"]["$or"]
    (target,) = rule["Targets"]
    assert target["Arn"] == stack.arn_of("RenewQueue")
    assert target["DeadLetterConfig"]["Arn"] == stack.arn_of("RenewDeadLetterQueue")
    for name in ("RenewQueuePolicy", "RenewDeadLetterQueuePolicy"):
        policy = resources[name]["Properties"]["PolicyDocument"]["Statement"]
        (allowed,) = [one for one in policy if one["Sid"] == "TheRule"]
        assert allowed["Condition"]["ArnEquals"]["aws:SourceArn"] == [stack.arn_of("RenewEventsRule1")]
    for kind in rule["EventPattern"]["detail-type"]:
        assert len(decode_events(event_bridge("k", kind=kind))) == 1


@pytest.mark.parametrize("level", LEVELS)
def test_it_writes_renewals_alone_and_reads_no_contents_at_exposure(level: str) -> None:
    found = statements(stack_of(level, "renew=true").resources(), "RenewRole")
    (place,) = {
        resource
        for one in found.values()
        for action in as_list(one["Action"])
        if action.startswith(("s3:Put", "s3:Delete"))
        for resource in as_list(one["Resource"])
    }
    assert place.endswith("/audits/bucket=*/renewals/*")
    assert ("s3:GetObject" in found["Objects"]["Action"]) == (level != "exposure")
    assert ("NoContents" in found) == (level == "exposure")


@pytest.mark.parametrize("account", [f"{level} renew=true" for level in LEVELS], indirect=True)
async def test_the_role_allows_exactly_what_the_function_asks_for(account: Account) -> None:
    audit = AuditFunction(account.variables("AuditLambdaFunction"))
    for versions in (False, True):
        await audit.handle({"bucket": AUDITED, "versions": versions}, around())
    account.recording.forget()
    variables = account.variables("RenewLambdaFunction")
    account.client("s3").put_object_acl(Bucket=AUDITED, Key="a", ACL="public-read")
    bodies = [event_bridge("a", AUDITED), "malformed"]
    records = [
        {"messageId": str(number), "receiptHandle": "r", "body": body, "attributes": {}}
        for number, body in enumerate(bodies)
    ]
    context = around().with_settings(resolve([environment_layer(variables)]))
    assert await RenewFunction(variables).handle({"Records": records}, context) == {"batchItemFailures": []}
    written = account.client("s3").list_objects_v2(Bucket=account.reports, Prefix="audits/")["Contents"]
    assert [one["Key"] for one in written if f"/bucket={AUDITED}/renewals/" in one["Key"]]
    assert account.recording.asked_for == account.allowed("RenewRole") - NOT_SEEN
    assert account.refused("RenewRole") == set()
