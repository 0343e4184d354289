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
"""Calls that name no bucket. GetCallerIdentity needs no permission."""

LISTING_CALLS: Final = {False: "s3:ListBucket", True: "s3:ListBucketVersions"}
ACL_CALLS: Final = {False: "s3:GetObjectAcl", True: "s3:GetObjectVersionAcl"}
READ_CALLS: Final = {False: "s3:GetObject", True: "s3:GetObjectVersion"}
STORE_WRITES: Final = ("s3:DeleteObject", "s3:PutObject")
STORE_READS: Final = ("s3:GetObject",)
REPORT_CALLS: Final = ("s3:GetObject", "s3:PutObject")
"""On the report of a verification, of which nothing is ever removed."""

STORE_OBJECT_CALLS: Final = (*STORE_WRITES, *STORE_READS)
"""On the run folders. At the level exposure the deployed role writes only: the reports bucket's policy lets it read."""

LEDGER_READS: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query")
LEDGER_WRITES: Final = ("dynamodb:UpdateItem",)
LEDGER_SCANS: Final = ("dynamodb:GetItem", "dynamodb:Query", "dynamodb:Scan")
"""What going through all keys of a bucket takes: verifying does that, and asks for no batch of keys."""

QUEUE_CALLS: Final = {
    "SendMessageBatch": "sqs:SendMessage",
    "ChangeMessageVisibility": "sqs:ChangeMessageVisibility",
}
"""What a function asks of its queues, by API name: a batch needs the permission of the single call."""

ALERT_CALLS: Final = {"Publish": "sns:Publish"}
HAND_OVER_CALLS: Final = {"Invoke": "lambda:InvokeFunction"}
POLLING: Final = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
"""What Lambda does as the function, to bring it its messages (AWS Lambda developer guide, "Using Lambda with SQS")."""

ON_FAILURE: Final = ("sqs:SendMessage",)
"""What Lambda does as the function, to put away an asynchronous event that failed."""

LOGGING: Final = ("logs:CreateLogStream", "logs:PutLogEvents")

NETWORK: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda does as a function in a VPC (AWS Lambda developer guide, "Giving Lambda functions access to a VPC")."""

REPORTS_KEY_WRITES: Final = ("kms:GenerateDataKey",)
REPORTS_KEY_READS: Final = ("kms:Decrypt",)
REPORTS_KEY: Final = (*REPORTS_KEY_WRITES, *REPORTS_KEY_READS)
"""What S3 does for us with the key of the reports bucket, where it has one; at the level exposure as above."""

AUDITED_KEYS: Final = ("kms:Decrypt",)
"""What S3 does for us with the keys of the audited objects, where the worker may read those."""
