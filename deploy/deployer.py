"""Print the IAM policy of those who deploy, for the packaged template: `python -m deploy.deployer`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from deploy.template import MADE

SERVICE: Final = "s3-auditor"
_STACK: Final = (
    "CreateStack DeleteStack DescribeStackEvents DescribeStackResource DescribeStackResources DescribeStacks"
    " GetTemplate ListStackResources UpdateStack"
)
_PACKAGES: Final = "DeleteObject DeleteObjectVersion GetObject ListBucket ListBucketVersions PutObject"
_KEY: Final = "CreateGrant Decrypt DescribeKey Encrypt GenerateDataKey"
"""Actions of Lambda and DynamoDB, with the deployer's rights, on the key: a grant for each function and table."""
FILES: Final = "elasticfilesystem:DescribeMountTargets"
"""Action of Lambda, with the deployer's rights, where a function mounts a file system (Lambda developer guide). EFS
knows no resource for it but all."""
ACTIONS: Final = {
    "AWS::CloudFormation::Stack": ("cloudformation", "stack/{name}/*", _STACK),
    "AWS::CloudWatch::Alarm": (
        "cloudwatch",
        "alarm:{name}-*",
        "DeleteAlarms DescribeAlarms ListTagsForResource PutMetricAlarm TagResource UntagResource",
    ),
    "AWS::DynamoDB::Table": (
        "dynamodb",
        "table/{name}-*",
        "CreateTable DescribeContinuousBackups DescribeContributorInsights DescribeKinesisStreamingDestination"
        " DescribeTable DescribeTimeToLive GetResourcePolicy ListTagsOfResource TagResource UntagResource"
        " UpdateContinuousBackups UpdateTable",
    ),
    "AWS::Events::Rule": (
        "events",
        "rule/{name}-*",
        "DeleteRule DescribeRule ListTagsForResource ListTargetsByRule PutRule PutTargets RemoveTargets TagResource"
        " UntagResource",
    ),
    "AWS::IAM::Role": (
        "iam",
        "role/*{name}-*",
        "CreateRole DeleteRole DeleteRolePermissionsBoundary DeleteRolePolicy GetRole GetRolePolicy"
        " ListAttachedRolePolicies ListRolePolicies PassRole PutRolePermissionsBoundary PutRolePolicy TagRole UntagRole"
        " UpdateAssumeRolePolicy UpdateRole UpdateRoleDescription",
    ),
    "AWS::Lambda::EventInvokeConfig": (
        "lambda",
        "function:{name}-*",
        "DeleteFunctionEventInvokeConfig GetFunctionEventInvokeConfig PutFunctionEventInvokeConfig"
        " UpdateFunctionEventInvokeConfig",
    ),
    "AWS::Lambda::EventSourceMapping": (
        "lambda",
        "",  # only Lambda knows a mapping's ARN
        "CreateEventSourceMapping DeleteEventSourceMapping GetEventSourceMapping UpdateEventSourceMapping",
    ),
    "AWS::Lambda::Function": (
        "lambda",
        "function:{name}-*",
        "CreateFunction DeleteFunction GetFunction GetFunctionCodeSigningConfig GetFunctionConfiguration"
        " GetFunctionRecursionConfig GetRuntimeManagementConfig ListTags PutFunctionRecursionConfig TagResource"
        " UntagResource UpdateFunctionCode UpdateFunctionConfiguration",
    ),
    "AWS::Lambda::LayerVersion": (
        "lambda",
        "layer:{name}-*",
        "DeleteLayerVersion GetLayerVersion PublishLayerVersion",
    ),
    "AWS::Logs::LogGroup": (
        "logs",
        "log-group:/aws/lambda/{name}-*",
        "AssociateKmsKey CreateLogGroup DeleteLogGroup DescribeLogGroups DisassociateKmsKey ListTagsForResource"
        " PutRetentionPolicy TagResource UntagResource",
    ),
    "AWS::S3::Bucket": (
        "s3",
        "{name}-*",
        "CreateBucket DeleteBucket GetBucketLocation GetBucketOwnershipControls GetBucketPublicAccessBlock"
        " GetBucketTagging GetBucketVersioning GetEncryptionConfiguration GetLifecycleConfiguration"
        " PutBucketOwnershipControls PutBucketPublicAccessBlock PutBucketTagging PutBucketVersioning"
        f" PutEncryptionConfiguration PutLifecycleConfiguration {_PACKAGES}",
    ),
    "AWS::S3::BucketPolicy": ("s3", "{name}-*", "DeleteBucketPolicy GetBucketPolicy PutBucketPolicy"),
    "AWS::SNS::Subscription": ("sns", "{name}-*", "GetSubscriptionAttributes Subscribe Unsubscribe"),
    "AWS::SNS::Topic": (
        "sns",
        "{name}-*",
        "CreateTopic DeleteTopic GetDataProtectionPolicy GetTopicAttributes ListSubscriptionsByTopic"
        " ListTagsForResource SetTopicAttributes TagResource UntagResource",
    ),
    "AWS::SNS::TopicPolicy": ("sns", "{name}-*", "GetTopicAttributes SetTopicAttributes"),
    "AWS::SQS::Queue": (
        "sqs",
        "{name}-*",
        "CreateQueue DeleteQueue GetQueueAttributes GetQueueUrl ListQueueTags SetQueueAttributes TagQueue UntagQueue",
    ),
    "AWS::SQS::QueuePolicy": ("sqs", "{name}-*", "GetQueueAttributes SetQueueAttributes"),
    "AWS::StepFunctions::StateMachine": (
        "states",
        "stateMachine:{name}-*",
        "CreateStateMachine DeleteStateMachine DescribeStateMachine ListTagsForResource TagResource UntagResource"
        " UpdateStateMachine",
    ),
    "AWS::Scheduler::Schedule": (
        "scheduler",
        "schedule/default/{name}-*",
        "CreateSchedule DeleteSchedule GetSchedule UpdateSchedule",
    ),
}
"""For each type of resource: the service, the ARN from the account on, and the actions that make, change and remove it.

The ledger has no action that deletes it: it is kept when the stack is removed."""


def policy(types: Iterable[str], stack: str, key: str = "", *, mounts: bool = False) -> dict[str, Any]:
    """Return the policy for a stack of these types of resources. The partition is `aws`.

    key: the ARN of the stack's KMS key; empty if it has none. mounts: True if functions mount a file system. Raises
    KeyError for a type that has no actions.
    """
    by_resource: dict[str, set[str]] = {"*": {"cloudformation:ValidateTemplate", *([FILES] if mounts else [])}}
    for kind in sorted({*types, "AWS::CloudFormation::Stack"}):
        service, place, names = ACTIONS[kind]
        resource = _arn(service, place.format(name=stack))
        by_resource.setdefault(resource, set()).update(f"{service}:{name}" for name in names.split())
    statements = [
        {"Effect": "Allow", "Action": sorted(actions), "Resource": resource}
        for resource, actions in sorted(by_resource.items())
    ]
    if key:
        statements.append({"Effect": "Allow", "Action": [f"kms:{name}" for name in _KEY.split()], "Resource": key})
    return {"Version": "2012-10-17", "Statement": statements}


def _arn(service: str, place: str) -> str:
    if not place:
        return "*"
    if service == "s3":
        return f"arn:aws:s3:::{place}"  # the objects too: * matches slashes
    return f"arn:aws:{service}:{'' if service == 'iam' else '*'}:*:{place}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Return 0 if the policy is printed."""
    parser = argparse.ArgumentParser(prog="python -m deploy.deployer", description=__doc__)
    parser.add_argument("--stage", default="prod")
    parser.add_argument("--made", type=Path, default=MADE, help="osls' template (default: %(default)s)")
    given = parser.parse_args(arguments)
    template = json.loads(given.made.read_text(encoding="utf-8"))
    types = {one["Type"] for one in template["Resources"].values()}
    values = {name: one.get("Default", "") for name, one in template["Parameters"].items()}
    mounts = bool(values["FileSystemArn"])
    made = policy(types, f"{SERVICE}-{given.stage}", values["KmsKeyArn"], mounts=mounts)
    sys.stdout.write(json.dumps(made, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
