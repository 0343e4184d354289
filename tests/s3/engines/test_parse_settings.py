"""Answers to questions about a bucket become replies of botocore's form."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.errors import CallFailed
from auditor.s3.engines.xml_answers import setting

DEFAULT = (
    "<ApplyServerSideEncryptionByDefault><SSEAlgorithm>aws:kms</SSEAlgorithm></ApplyServerSideEncryptionByDefault>"
)
ENCRYPTED = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}, "BucketKeyEnabled": True}
BLOCKING = {
    "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"},
    "BlockedEncryptionTypes": {"EncryptionType": ["NONE"]},
}
CALLER = "<GetCallerIdentityResult><Account>1</Account></GetCallerIdentityResult>"


@pytest.mark.parametrize(
    ("action", "body", "reply"),
    [
        ("GetBucketVersioning", "<Status>Enabled</Status>", {"Status": "Enabled"}),
        ("GetBucketVersioning", "<Status/>", {"Status": ""}),
        ("GetBucketPolicyStatus", "<IsPublic>true</IsPublic>", {"PolicyStatus": {"IsPublic": True}}),
        ("GetBucketPolicyStatus", "<IsPublic>false</IsPublic>", {"PolicyStatus": {"IsPublic": False}}),
        (
            "GetPublicAccessBlock",
            "<BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>false</IgnorePublicAcls>",
            {"PublicAccessBlockConfiguration": {"BlockPublicAcls": True, "IgnorePublicAcls": False}},
        ),
        (
            "GetBucketOwnershipControls",
            "<Rule><ObjectOwnership>x</ObjectOwnership></Rule>" * 2,
            {"OwnershipControls": {"Rules": [{"ObjectOwnership": "x"}] * 2}},
        ),
        (
            "GetBucketEncryption",
            f"<Rule>{DEFAULT}<BucketKeyEnabled>true</BucketKeyEnabled></Rule>",
            {"ServerSideEncryptionConfiguration": {"Rules": [ENCRYPTED]}},
        ),
        (
            "GetBucketEncryption",
            f"<Rule>{DEFAULT}<BlockedEncryptionTypes><EncryptionType>NONE</EncryptionType><New/></BlockedEncryptionTypes></Rule>",
            {"ServerSideEncryptionConfiguration": {"Rules": [BLOCKING]}},
        ),
        (
            "ListBuckets",
            "<Owner><ID>o</ID></Owner><Buckets><Bucket><Name>a</Name></Bucket><Bucket><Name>b</Name></Bucket></Buckets>",
            {"Owner": {"ID": "o"}, "Buckets": [{"Name": "a"}, {"Name": "b"}]},
        ),
        ("GetCallerIdentity", f"{CALLER}<ResponseMetadata/>", {"Account": "1"}),
        (
            "ListBucketInventoryConfigurations",
            "<InventoryConfiguration><Id>a</Id><IsEnabled>true</IsEnabled><OptionalFields><Field>Size</Field>"
            "<Field>ETag</Field></OptionalFields><Destination><S3BucketDestination><Bucket>b</Bucket>"
            "</S3BucketDestination></Destination></InventoryConfiguration>"
            "<InventoryConfiguration><Id>b</Id></InventoryConfiguration><IsTruncated>false</IsTruncated>",
            {
                "InventoryConfigurationList": [
                    {
                        "Id": "a",
                        "IsEnabled": True,
                        "OptionalFields": ["Size", "ETag"],
                        "Destination": {"S3BucketDestination": {"Bucket": "b"}},
                    },
                    {"Id": "b"},
                ],
                "IsTruncated": False,
            },
        ),
        ("GetBucketAcl", "<Owner><ID>o</ID></Owner><AccessControlList/>", {"Owner": {"ID": "o"}, "Grants": []}),
    ],
)
def test_answer(action: str, body: str, reply: Any) -> None:
    assert setting(action, f"<r xmlns='http://s3'>{body}</r>".encode()) == reply


def test_policy_is_taken_as_it_is() -> None:
    assert setting("GetBucketPolicy", "{ caf\u00e9 }".encode()) == {"Policy": "{ caf\u00e9 }"}


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("GetBucketVersioning", b"<r><Status>Enabled</Status><Status>Suspended</Status></r>"),
        ("GetPublicAccessBlock", b"<r><IgnorePublicAcls>true</IgnorePublicAcls><IgnorePublicAcls/></r>"),
        ("GetBucketOwnershipControls", b"<r><Rule><a/><a/></Rule></r>"),
        ("GetBucketAcl", b"<r><Owner/><Owner/></r>"),
        ("GetBucketPolicy", b"\xff"),
        ("GetBucketVersioning", b""),
    ],
)
def test_answer_that_is_malformed(action: str, body: bytes) -> None:
    with pytest.raises(CallFailed) as caught:
        setting(action, body)
    assert (caught.value.code, caught.value.action) == ("Malformed", action)
