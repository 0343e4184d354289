"""List the IAM actions that the auditor's API calls need."""

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
    "GetBucketAbac": "s3:GetBucketAbac",
    "GetBucketTagging": "s3:GetBucketTagging",
}
"""By API name: the IAM actions for calls on the bucket itself (Service Authorization Reference, Amazon S3). The auditor
makes the last two calls only if the bucket policy asks for a tag of the bucket."""

INVENTORY_CALLS: Final = {"ListBucketInventoryConfigurations": "s3:GetInventoryConfiguration"}
"""By API name: the IAM action for the call of an audit with `source = "mixed"` and no place of reports."""

ACCOUNT_CALLS: Final = {
    "ListBuckets": "s3:ListAllMyBuckets",
    "GetPublicAccessBlock (account)": "s3:GetAccountPublicAccessBlock",
    "ListAccessPoints": "s3:ListAccessPoints",
    "GetAccessPoint": "s3:GetAccessPoint",
    "GetAccessPointPolicy": "s3:GetAccessPointPolicy",
    "GetAccessPointPolicyStatus": "s3:GetAccessPointPolicyStatus",
    "ListAccessGrantsInstances": "s3:ListAccessGrantsInstances",
    "ListAccessGrants": "s3:ListAccessGrants",
    "GetAccessGrantsInstanceResourcePolicy": "s3:GetAccessGrantsInstanceResourcePolicy",
}
"""By API name: the IAM actions for calls without a bucket. GetCallerIdentity needs none. The auditor makes the four
calls on access points only if the bucket policy delegates to access points, and the last two calls only if the account
has an S3 Access Grants instance in the bucket's Region."""

# False: the action for current objects. True: the action for object versions.
LISTING_CALLS: Final = {False: "s3:ListBucket", True: "s3:ListBucketVersions"}
ACL_CALLS: Final = {False: "s3:GetObjectAcl", True: "s3:GetObjectVersionAcl"}
READ_CALLS: Final = {False: "s3:GetObject", True: "s3:GetObjectVersion"}
STORE_WRITES: Final = ("s3:DeleteObject", "s3:PutObject")
STORE_READS: Final = ("s3:GetObject",)
REPORT_CALLS: Final = ("s3:GetObject", "s3:PutObject")
"""Actions on the reports of verifications."""

RENEWAL_WRITES: Final = ("s3:PutObject",)
"""Actions on the renewals beside the run folders."""

STORE_OBJECT_CALLS: Final = (*STORE_WRITES, *STORE_READS)
"""Actions on the run folders. At level exposure the role may only write; the reports bucket's policy allows reading."""

LEDGER_READS: Final = ("dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query")
LEDGER_WRITES: Final = ("dynamodb:Scan", "dynamodb:UpdateItem")
"""Actions of each writer to the ledger. Whoever opens a table that nobody has written to looks for an item by Scan."""
VERIFY_READS: Final = ("dynamodb:GetItem", "dynamodb:Query")
"""Actions with which `verify` reads a bucket's records in the ledger."""

QUEUE_CALLS: Final = {
    "SendMessageBatch": "sqs:SendMessage",
    "ChangeMessageVisibility": "sqs:ChangeMessageVisibility",
}
"""By API name: the IAM actions for a function's calls on its queues. A batch needs the action of the single call."""

ALERT_CALLS: Final = {"Publish": "sns:Publish"}
ROLE_CALLS: Final = {"AssumeRole": "sts:AssumeRole"}
EVENT_CALLS: Final = {"PutEvents": "events:PutEvents"}
MACHINE_CALLS: Final = {
    "StartExecution": "states:StartExecution",
    "DescribeExecution": "states:DescribeExecution",
}
"""By API name: the IAM actions for a function's calls on the state machine and its executions."""

POLLING: Final = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
"""Actions of Lambda with the function's role, to receive messages (Lambda developer guide, "Using Lambda with SQS")."""

ON_FAILURE: Final = ("sqs:SendMessage",)
"""Actions of Lambda with the function's role, to queue an asynchronous event that failed."""

LOGGING: Final = ("logs:CreateLogStream", "logs:PutLogEvents")

NETWORK: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""Actions of Lambda for a function in a VPC (Lambda developer guide, "Giving Lambda functions access to a VPC")."""

FILES: Final = ("elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite")
"""Actions with which a function uses a shared file system (Service Authorization Reference, Elastic File System)."""

REPORTS_KEY_WRITES: Final = ("kms:GenerateDataKey",)
REPORTS_KEY_READS: Final = ("kms:Decrypt",)
REPORTS_KEY: Final = (*REPORTS_KEY_WRITES, *REPORTS_KEY_READS)
"""Actions on the KMS key that encrypts the reports bucket and everything else that a stack makes. S3, SQS, SNS and
DynamoDB use the key in the name of our role. At level exposure the role may only encrypt."""

INVENTORY_KEY: Final = ("kms:Decrypt",)
"""Actions on the KMS key of the reports of S3 Inventory. S3 uses the key in the name of our role."""

KEY_POLICIES: Final = ("kms:GetKeyPolicy",)
"""Actions on the KMS keys of the audited objects, needed to read the policies of these keys."""

AUDITED_KEYS: Final = ("kms:Decrypt",)
"""Actions on the KMS keys of the audited objects, needed to hash the objects. S3 uses the keys in the name of our role.
"""
