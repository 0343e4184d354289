"""The IAM actions that each API call of the auditor needs."""

from __future__ import annotations

from typing import Final

BUCKET_CALLS: Final = {
    "HeadBucket": "s3:ListBucket",
    "GetBucketAcl": "s3:GetBucketAcl",
    "GetBucketOwnershipControls": "s3:GetBucketOwnershipControls",
    "GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "GetBucketPolicyStatus": "s3:GetBucketPolicyStatus",
    "GetBucketPolicy": "s3:GetBucketPolicy",
    "GetBucketVersioning": "s3:GetBucketVersioning",
    "GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "GetBucketRequestPayment": "s3:GetBucketRequestPayment",
}
"""Calls on the bucket itself, by API name (Service Authorization Reference, Amazon S3)."""

ACCOUNT_CALLS: Final = {
    "ListBuckets": "s3:ListAllMyBuckets",
    "GetPublicAccessBlock (account)": "s3:GetAccountPublicAccessBlock",
}
"""Calls without a bucket. GetCallerIdentity needs no permission."""

LISTING_CALLS: Final = {False: "s3:ListBucket", True: "s3:ListBucketVersions"}
ACL_CALLS: Final = {False: "s3:GetObjectAcl", True: "s3:GetObjectVersionAcl"}
READ_CALLS: Final = {False: "s3:GetObject", True: "s3:GetObjectVersion"}
STORE_WRITES: Final = ("s3:DeleteObject", "s3:PutObject")
STORE_READS: Final = ("s3:GetObject",)
REPORT_CALLS: Final = ("s3:GetObject", "s3:PutObject")
"""Calls on the report of a verification, which is never deleted."""

STORE_OBJECT_CALLS: Final = (*STORE_WRITES, *STORE_READS)
"""Calls on the run folders. At level exposure the role may only write; the reports bucket's policy lets it read."""

LEDGER_READS: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query")
LEDGER_WRITES: Final = ("dynamodb:UpdateItem",)
LEDGER_SCANS: Final = ("dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan")
"""Calls to read all keys of a bucket. `verify` makes them, and needs no BatchGetItem."""

QUEUE_CALLS: Final = {
    "SendMessageBatch": "sqs:SendMessage",
    "ChangeMessageVisibility": "sqs:ChangeMessageVisibility",
}
"""Calls of a function on its queues, by API name. A batch needs the permission of the single call."""

ALERT_CALLS: Final = {"Publish": "sns:Publish"}
HAND_OVER_CALLS: Final = {"Invoke": "lambda:InvokeFunction"}
POLLING: Final = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
"""Calls of Lambda with the function's role, to receive messages (Lambda developer guide, "Using Lambda with SQS")."""

ON_FAILURE: Final = ("sqs:SendMessage",)
"""Calls of Lambda with the function's role, to store an asynchronous event that failed."""

LOGGING: Final = ("logs:CreateLogStream", "logs:PutLogEvents")

NETWORK: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""Calls of Lambda for a function in a VPC (Lambda developer guide, "Giving Lambda functions access to a VPC")."""

REPORTS_KEY_WRITES: Final = ("kms:GenerateDataKey",)
REPORTS_KEY_READS: Final = ("kms:Decrypt",)
REPORTS_KEY: Final = (*REPORTS_KEY_WRITES, *REPORTS_KEY_READS)
"""Calls of S3 for us on the KMS key of the reports bucket; at level exposure see STORE_OBJECT_CALLS."""

AUDITED_KEYS: Final = ("kms:Decrypt",)
"""Calls of S3 for us on the KMS keys of the audited objects, if the worker may read them."""
