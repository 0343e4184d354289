"""The values of a bucket's settings; a reply that does not say its value is malformed, never a default."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.errors import CallFailed
from auditor.model.bucket import Encryption, PublicAccessBlock
from auditor.model.object import Acl
from auditor.s3.bucket_settings import SETTINGS

PARSERS = {setting.fact: setting for setting in SETTINGS}
NO_DEFAULT = {"BucketKeyEnabled": True}
AES256 = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
BLOCKED = {"BlockedEncryptionTypes": {"EncryptionType": ["SSE-C"]}}
NO_SSE_C = Encryption("AES256", None, False, ("SSE-C",))
KMS = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "k"}}


def block(**switches: bool) -> dict[str, Any]:
    return {"PublicAccessBlockConfiguration": switches}


def encryption(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


@pytest.mark.parametrize(
    ("fact", "reply", "value"),
    [
        ("acl", {"Owner": {"ID": "o"}, "Grants": []}, Acl("o", ())),
        ("ownership", {"OwnershipControls": {"Rules": [{"ObjectOwnership": "x"}, {}]}}, "x"),
        ("public_access_block", block(BlockPublicAcls=True), PublicAccessBlock(block_public_acls=True)),
        ("public_access_block", block(IgnorePublicAcls=True), PublicAccessBlock(ignore_public_acls=True)),
        ("public_access_block", block(BlockPublicPolicy=True), PublicAccessBlock(block_public_policy=True)),
        ("public_access_block", block(RestrictPublicBuckets=True), PublicAccessBlock(restrict_public_buckets=True)),
        ("public_access_block", block(RestrictPublicBuckets=False), PublicAccessBlock()),
        ("policy_is_public", {"PolicyStatus": {"IsPublic": True}}, True),
        ("policy_is_public", {"PolicyStatus": {"IsPublic": False}}, False),
        ("policy", {"Policy": ' {"Statement": []}'}, ' {"Statement": []}'),
        ("versioning", {"Status": "Suspended"}, "Suspended"),
        ("versioning", {}, "Never"),
        ("versioning", {"Status": ""}, "Never"),
        ("versioning", {"ResponseMetadata": {"HTTPHeaders": {"content-length": "9"}}}, "Never"),
        ("encryption", encryption(KMS), Encryption("aws:kms", "k")),
        ("encryption", encryption({}, KMS | NO_DEFAULT, {}), Encryption("aws:kms", "k", True)),
        ("encryption", encryption(AES256), Encryption("AES256", None, False)),
        (
            "encryption",
            encryption(AES256 | BLOCKED),
            NO_SSE_C,
        ),
        ("encryption", encryption(AES256 | {"BlockedEncryptionTypes": {}}), Encryption("AES256", None, False)),
        ("request_payer", {"Payer": "Requester"}, "Requester"),
    ],
)
def test_reply_says_the_value(fact: str, reply: dict[str, Any], value: object) -> None:
    found = PARSERS[fact].parse(reply)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("fact", "reply", "message"),
    [
        ("ownership", {}, "OwnershipControls is missing"),
        ("ownership", {"OwnershipControls": {}}, "Rules is missing"),
        ("ownership", {"OwnershipControls": {"Rules": []}}, "no rule"),
        ("ownership", {"OwnershipControls": {"Rules": [{}]}}, "ObjectOwnership is missing"),
        ("public_access_block", {}, "PublicAccessBlockConfiguration is missing"),
        ("public_access_block", block(), "no switch"),
        ("policy_is_public", {}, "PolicyStatus is missing"),
        ("policy_is_public", {"PolicyStatus": {}}, "IsPublic is missing"),
        ("policy", {}, "Policy is missing"),
        ("policy", {"Policy": " \n"}, "no document"),
        ("policy", {"Policy": "{}"}, "the policy's Statement is neither a list nor an object"),
        ("versioning", {"ResponseMetadata": {"HTTPHeaders": {"content-length": "0"}}}, "no document"),
        ("encryption", {}, "ServerSideEncryptionConfiguration is missing"),
        ("encryption", {"ServerSideEncryptionConfiguration": {}}, "Rules is missing"),
        (
            "encryption",
            encryption(KMS | {"BlockedEncryptionTypes": {"EncryptionType": [""]}}),
            "a blocked encryption type has no name",
        ),
        ("encryption", encryption(), "no rule"),
        ("encryption", encryption(NO_DEFAULT), "no rule"),
        ("encryption", encryption({"ApplyServerSideEncryptionByDefault": {"x": 1}}), "SSEAlgorithm is missing"),
        ("request_payer", {}, "Payer is missing"),
    ],
)
def test_reply_does_not_say_the_value(fact: str, reply: dict[str, Any], message: str) -> None:
    setting = PARSERS[fact]
    with pytest.raises(CallFailed) as caught:
        setting.parse(reply)
    failure = caught.value
    assert (failure.action, failure.code, failure.status, failure.message) == (
        setting.action,
        "Malformed",
        200,
        message,
    )
