"""Every condition key of AWS's reference is decided, not in a read, or unknown on purpose.

condition_keys.json has the names: those of S3's service authorization reference, each with the actions on reading and
on ACLs that list it, and the global keys. A new version of the file shows the new keys by a failing test.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.model.access import ObjectAccess, Verdict
from tests.verdict.case_files import Case, bucket_facts
from tests.verdict.test_cases import CASES, access

REFERENCE: Final[Mapping[str, Any]] = json.loads(
    (Path(__file__).parent / "condition_keys.json").read_text(encoding="utf-8")
)
NAMES: Final = tuple(dict.fromkeys((*REFERENCE["global"], *REFERENCE["s3"])))
DECIDED: Final = "decided"
EITHER: Final = "decided in an Allow; in a Deny of a read, both with the key and without it"
NOT_IN_A_READ: Final = "not in a read"
SESSIONS: Final = "unknown: it tells how a session got its credentials, which nothing tells of a stranger's"
TAGS: Final = "unknown: no tag of an object, of an access point or of a request is read"
ORGANIZATION: Final = "unknown: no call tells the organization of the bucket's account"
POINTS: Final = "unknown: another account may make an access point, which no call shows"
UNVERIFIED: Final = "unknown: nobody has verified which requests have it"

MARKS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        [
            *("aws:CalledVia", "aws:CalledViaFirst", "aws:CalledViaLast", "aws:CurrentTime", "aws:EpochTime"),
            *("aws:FederatedProvider", "aws:MultiFactorAuthAge", "aws:MultiFactorAuthPresent", "aws:PrincipalAccount"),
            *("aws:PrincipalArn", "aws:PrincipalIsAWSService", "aws:PrincipalOrgID", "aws:PrincipalOrgPaths"),
            *("aws:PrincipalServiceName", "aws:PrincipalServiceNamesList", "aws:PrincipalTag/tag-key"),
            *("aws:PrincipalType", "aws:RequestedRegion", "aws:ResourceAccount", "aws:ResourceTag/tag-key"),
            *("aws:ResourceTag/${TagKey}", "aws:SecureTransport", "aws:SourceAccount", "aws:SourceArn"),
            *("aws:SourceIdentity", "aws:SourceIp", "aws:SourceOrgID", "aws:SourceOrgPaths", "aws:SourceOwner"),
            *("aws:SourceVpc", "aws:SourceVpcArn", "aws:SourceVpce", "aws:UserAgent", "aws:ViaAWSService"),
            *("aws:VpcSourceIp", "aws:VpceAccount", "aws:VpceOrgID", "aws:VpceOrgPaths", "aws:referer", "aws:userid"),
            *("aws:username", "s3:AccessGrantsInstanceArn", "s3:BucketTag/${TagKey}"),
            *("s3:DataAccessPointAccount", "s3:DataAccessPointArn", "s3:ResourceAccount", "s3:TlsVersion"),
            *("s3:authType", "s3:signatureAge", "s3:signatureversion", "s3:versionid", "s3:x-amz-acl"),
            *("s3:x-amz-grant-full-control", "s3:x-amz-grant-read", "s3:x-amz-grant-read-acp"),
            *("s3:x-amz-grant-write", "s3:x-amz-grant-write-acp"),
        ],
        DECIDED,
    ),
    **dict.fromkeys(["s3:if-match", "s3:if-none-match"], EITHER),
    **dict.fromkeys(
        [
            *("s3:AccessGrantScope", "s3:AccessGrantsLocationScope", "s3:ExistingJobOperation"),
            *("s3:ExistingJobPriority", "s3:InventoryAccessibleOptionalFields", "s3:JobSuspendedCause"),
            *("s3:ObjectCreationOperation", "s3:RequestJobOperation", "s3:RequestJobPriority"),
            *("s3:RequestObjectTag/<key>", "s3:RequestObjectTagKeys", "s3:annotation-prefix", "s3:delimiter"),
            *("s3:deliverySourceArn", "s3:destinationRegion", "s3:isReplicationPauseRequest", "s3:locationconstraint"),
            *("s3:logType", "s3:max-annotation-results", "s3:max-keys", "s3:object-lock-event-hold"),
            *("s3:object-lock-event-hold-duration-days", "s3:object-lock-legal-hold", "s3:object-lock-mode"),
            *("s3:object-lock-remaining-retention-days", "s3:object-lock-retain-until-date", "s3:prefix"),
            *("s3:resourceArnBeingAuthorized", "s3:x-amz-bucket-namespace", "s3:x-amz-copy-source"),
            *("s3:x-amz-metadata-directive", "s3:x-amz-object-annotation-directive", "s3:x-amz-object-if-match"),
            *("s3:x-amz-object-ownership", "s3:x-amz-server-side-encryption"),
            "s3:x-amz-server-side-encryption-aws-kms-key-id",
            *("s3:x-amz-server-side-encryption-customer-algorithm", "s3:x-amz-storage-class"),
            "s3:x-amz-website-redirect-location",
        ],
        NOT_IN_A_READ,
    ),
    **dict.fromkeys(
        [
            *("aws:AssumedRoot", "aws:ChatbotSourceArn", "aws:Ec2InstanceSourcePrivateIPv4"),
            *("aws:Ec2InstanceSourceVpc", "aws:TokenIssueTime", "ec2:RoleDelivery", "ec2:SourceInstanceArn"),
            *("glue:CredentialIssuingService", "glue:RoleAssumedBy", "identitystore:UserId"),
            *("lambda:SourceFunctionArn", "ssm:SourceInstanceArn"),
        ],
        SESSIONS,
    ),
    **dict.fromkeys(
        [
            *("aws:RequestTag/tag-key", "aws:RequestTag/${TagKey}", "aws:TagKeys", "s3:AccessPointTag/${TagKey}"),
            "s3:ExistingObjectTag/<key>",
        ],
        TAGS,
    ),
    "s3:AccessPointNetworkOrigin": POINTS,
    **dict.fromkeys(["aws:ResourceOrgID", "aws:ResourceOrgPaths"], ORGANIZATION),
    **dict.fromkeys(
        ["aws:CalledViaAWSMCP", "aws:IsMcpServiceAction", "aws:ViaAWSMCPService", "s3:x-amz-content-sha256"], UNVERIFIED
    ),
}
TESTS: Final = (("Null", "true"), ("Null", "false"), ("StringLike", "*"), ("StringEqualsIfExists", "x"))
PRIVATE: Final = next(case for case in CASES if case.title == "everybody may list only")
PUBLIC: Final = next(case for case in CASES if case.title == "without the Deny")


def judged(key: str, effect: str, test: tuple[str, str]) -> ObjectAccess:
    """The access to an object by an Allow with the test; or to one with a public ACL, under a Deny with the test."""
    name = key.replace("tag-key", "team").replace("${TagKey}", "team").replace("<key>", "team")
    statement = {"Effect": effect, "Action": "s3:*", "Condition": {test[0]: {name: test[1]}}}
    facts = {"abac": True, "tags": {"team": "red"}, "access_points": [], "statements": [statement], "public": "unread"}
    found = Case(
        key,
        "",
        bucket_facts(facts),
        frozenset(),
        False,
        PRIVATE.ref,
        (PRIVATE if effect == "Allow" else PUBLIC).acl,
        PRIVATE.head,
        frozenset(),
        None,
        (),
    )
    return access(found)


def test_every_key_of_the_reference_has_a_mark() -> None:
    assert set(NAMES) == MARKS.keys()


@pytest.mark.parametrize("key", NAMES)
def test_a_key_is_judged_as_its_mark_says(key: str) -> None:
    mark = MARKS[key]
    allows = [judged(key, "Allow", test) for test in TESTS]
    denies = [judged(key, "Deny", test) for test in TESTS]
    unknown = [one.verdict is Verdict.UNKNOWN for one in (*allows, *denies)]
    if mark == DECIDED:
        assert not any(unknown)
    elif mark == EITHER:
        assert not any(one.verdict is Verdict.UNKNOWN for one in allows)
        assert denies[0].verdict is Verdict.UNKNOWN
    elif mark == NOT_IN_A_READ:
        assert [one.verdict.value for one in allows] == ["exposed", "private", "private", "exposed"]
        assert [one.verdict.value for one in denies] == ["masked", "exposed", "exposed", "masked"]
    else:
        assert mark.startswith("unknown: ")
        undecided = [one for one in (*allows, *denies) if one.verdict is Verdict.UNKNOWN]
        assert undecided
        assert all(one.reasons[0].text.startswith("key-unknown: ") for one in undecided)


def test_a_key_that_no_read_has_is_listed_for_no_read() -> None:
    """By the reference itself. It lists the storage class for writes of ACLs, which cannot change it."""
    listed = {key for key, actions in REFERENCE["s3"].items() if any(action.startswith("Get") for action in actions)}
    assert [key for key in listed if MARKS[key] in (NOT_IN_A_READ, EITHER)] == []
