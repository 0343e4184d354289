"""The calls of a bucket and of the account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.support.servers import stub_xml
from tests.support.servers.stub_calls import Call, Refused, Reply
from tests.support.servers.stub_xml import document, tag
from tests.support.servers.world import Odd, StubBucket, StubGrants, World

XML: Final = {"Content-Type": "application/xml"}
INVENTORY_PAGE: Final = 100
"""Number of inventory configurations in a page (S3 API reference, ListBucketInventoryConfigurations)."""
ROOTS: Final = {
    "ListBuckets": "ListAllMyBucketsResult",
    "ListObjectsV2": "ListBucketResult",
    "ListObjectVersions": "ListVersionsResult",
    "GetBucketOwnershipControls": "OwnershipControls",
    "GetPublicAccessBlock": "PublicAccessBlockConfiguration",
    "GetAccountPublicAccessBlock": "PublicAccessBlockConfiguration",
    "GetBucketAbac": "AbacStatus",
    "GetBucketTagging": "Tagging",
    "ListAccessGrantsInstances": "ListAccessGrantsInstancesResult",
    "ListAccessGrants": "ListAccessGrantsResult",
    "GetAccessGrantsInstanceResourcePolicy": "GetAccessGrantsInstanceResourcePolicyResult",
    "GetBucketAcl": "AccessControlPolicy",
    "GetObjectAcl": "AccessControlPolicy",
    "GetBucketPolicyStatus": "PolicyStatus",
    "GetBucketVersioning": "VersioningConfiguration",
    "GetBucketEncryption": "ServerSideEncryptionConfiguration",
    "GetBucketRequestPayment": "RequestPaymentConfiguration",
    "ListBucketInventoryConfigurations": "ListInventoryConfigurationsResult",
    "GetCallerIdentityResponse": "GetCallerIdentityResponse",
}


def xml(body: bytes) -> Reply:
    return Reply(200, dict(XML), body)


def hollow(call: Call) -> Reply:
    """200 with the answer's root element and nothing in it."""
    if call.operation == "GetBucketPolicy":
        return Reply(200, {"Content-Type": "application/json"}, b"{")
    return xml(document(ROOTS.get(call.operation, "Result")))


def odd_reply(odd: Odd, call: Call) -> Reply:
    """The odd answer that a test set for the call."""
    if odd is Odd.DENIED:
        raise Refused(403, "AccessDenied", "Access Denied")
    return Reply(200) if odd is Odd.EMPTY else hollow(call)


def list_buckets(world: World, call: Call) -> Reply:
    prefix = call.query.get("prefix")
    shown = [bucket for name, bucket in sorted(world.buckets.items()) if name.startswith(prefix or "")]
    return xml(stub_xml.buckets(world, shown, prefix))


def caller_identity(world: World, call: Call) -> Reply:
    return Reply(200, {"Content-Type": "text/xml"}, stub_xml.caller_identity(world, call.request_id))


def account_block(world: World, call: Call) -> Reply:
    if call.headers.get("x-amz-account-id") != world.account:
        raise Refused(403, "AccessDenied", "Access Denied")
    if world.public_access_block is None:
        raise Refused(404, "NoSuchPublicAccessBlockConfiguration", "No account level configuration was found")
    return xml(stub_xml.public_access_block(world.public_access_block))


def _instance(world: World, call: Call) -> StubGrants:
    """The account's S3 Access Grants instance."""
    if call.headers.get("x-amz-account-id") != world.account:
        raise Refused(403, "AccessDenied", "Access Denied")
    if world.grants is None:
        raise Refused(404, "AccessGrantsInstanceNotExistsError", "Access Grants Instance does not exist")
    return world.grants


def grants_instances(world: World, call: Call) -> Reply:
    if call.headers.get("x-amz-account-id") != world.account:
        raise Refused(403, "AccessDenied", "Access Denied")
    listed = ""
    if world.grants is not None:
        entry = f"{tag('AccessGrantsInstanceId', 'default')}{tag('AccessGrantsInstanceArn', world.grants.instance)}"
        listed = f"<AccessGrantsInstance>{entry}</AccessGrantsInstance>"
    inner = f"<AccessGrantsInstancesList>{listed}</AccessGrantsInstancesList>"
    return xml(document("ListAccessGrantsInstancesResult", inner))


def access_grants(world: World, call: Call) -> Reply:
    found = _instance(world, call)
    begin = int(call.query.get("nextToken", "page 0").removeprefix("page "))
    end = begin + found.page
    following = tag("NextToken", f"page {end}") if end < len(found.grants) else ""
    inner = f"{following}<AccessGrantsList>{''.join(map(_grant, found.grants[begin:end]))}</AccessGrantsList>"
    return xml(document("ListAccessGrantsResult", inner))


def _grant(one: Mapping[str, Any]) -> str:
    """An entry with its elements in the order of the API."""
    grantee = "".join(tag(name, one["Grantee"][name]) for name in ("GranteeType", "GranteeIdentifier"))
    location = f"<AccessGrantsLocationConfiguration>{tag('S3SubPrefix', '*')}</AccessGrantsLocationConfiguration>"
    inner = (
        f"{tag('CreatedAt', '2026-01-02T03:04:05.000Z')}{tag('AccessGrantId', one['AccessGrantId'])}"
        f"<Grantee>{grantee}</Grantee>{tag('Permission', one['Permission'])}{tag('AccessGrantsLocationId', 'default')}"
        f"{location}{tag('GrantScope', one['GrantScope'])}{tag('ApplicationArn', one.get('ApplicationArn'))}"
    )
    return f"<AccessGrant>{inner}</AccessGrant>"


def grants_policy(world: World, call: Call) -> Reply:
    policy = _instance(world, call).policy
    if not policy:
        raise Refused(404, "AccessGrantsInstanceResourcePolicyNotExists", "The resource policy does not exist")
    return xml(document("GetAccessGrantsInstanceResourcePolicyResult", tag("Policy", policy)))


def _head(world: World, bucket: StubBucket, call: Call) -> Reply:
    return Reply(200, {**XML, "x-amz-bucket-region": bucket.region, "x-amz-access-point-alias": "false"})


def _ownership(world: World, bucket: StubBucket, call: Call) -> Reply:
    if bucket.ownership is None:
        raise Refused(404, "OwnershipControlsNotFoundError", "The bucket ownership controls were not found")
    return xml(document("OwnershipControls", f"<Rule>{tag('ObjectOwnership', bucket.ownership)}</Rule>"))


def _block(world: World, bucket: StubBucket, call: Call) -> Reply:
    if bucket.public_access_block is None:
        raise Refused(404, "NoSuchPublicAccessBlockConfiguration", "The public access block was not found")
    return xml(stub_xml.public_access_block(bucket.public_access_block))


def _acl(world: World, bucket: StubBucket, call: Call) -> Reply:
    return xml(stub_xml.access_control_policy(world.effective_bucket_acl(bucket)))


def _policy(world: World, bucket: StubBucket, call: Call) -> Reply:
    if bucket.policy is None:
        raise Refused(404, "NoSuchBucketPolicy", "The bucket policy does not exist", details=_named(bucket))
    return Reply(200, {"Content-Type": "application/json"}, bucket.policy.encode())


def _policy_status(world: World, bucket: StubBucket, call: Call) -> Reply:
    if bucket.policy is None:
        raise Refused(404, "NoSuchBucketPolicy", "The bucket policy does not exist", details=_named(bucket))
    return xml(document("PolicyStatus", tag("IsPublic", bucket.policy_is_public)))


def _versioning(world: World, bucket: StubBucket, call: Call) -> Reply:
    return xml(document("VersioningConfiguration", tag("Status", bucket.versioning)))


def _encryption(world: World, bucket: StubBucket, call: Call) -> Reply:
    if bucket.encryption is None:
        message = "The server side encryption configuration was not found"
        raise Refused(404, "ServerSideEncryptionConfigurationNotFoundError", message, details=_named(bucket))
    return xml(stub_xml.encryption(bucket.encryption, bucket.blocked_encryption))


def _request_payment(world: World, bucket: StubBucket, call: Call) -> Reply:
    return xml(document("RequestPaymentConfiguration", tag("Payer", bucket.request_payer)))


def _abac(world: World, bucket: StubBucket, call: Call) -> Reply:
    return xml(document("AbacStatus", tag("Status", bucket.abac)))


def _tagging(world: World, bucket: StubBucket, call: Call) -> Reply:
    if not bucket.tags:
        raise Refused(404, "NoSuchTagSet", "The TagSet does not exist", details=_named(bucket))
    tags = (f"<Tag>{tag('Key', key)}{tag('Value', value)}</Tag>" for key, value in bucket.tags.items())
    return xml(document("Tagging", f"<TagSet>{''.join(tags)}</TagSet>"))


def _inventories(world: World, bucket: StubBucket, call: Call) -> Reply:
    """A page of the configurations in the elements of the API, as `auditor inventory` has them in botocore's form."""
    begin = int(call.query.get("continuation-token", "page 0").removeprefix("page "))
    end = begin + INVENTORY_PAGE
    shown, cut = bucket.inventories[begin:end], end < len(bucket.inventories)
    following = f"<NextContinuationToken>page {end}</NextContinuationToken>" if cut else ""
    inner = f"{''.join(map(_inventory, shown))}{tag('IsTruncated', cut)}{following}"
    return xml(document("ListInventoryConfigurationsResult", inner))


def _inventory(one: Mapping[str, Any]) -> str:
    place = one["Destination"]["S3BucketDestination"]
    prefix = tag("Prefix", place["Prefix"]) if "Prefix" in place else ""
    inner = (
        f"{tag('Format', place['Format'])}{tag('Bucket', place['Bucket'])}{prefix}<Encryption><SSE-S3/></Encryption>"
    )
    fields = "".join(tag("Field", name) for name in one["OptionalFields"])
    filtered = f"<Filter>{tag('Prefix', one['Filter']['Prefix'])}</Filter>" if "Filter" in one else ""
    return (
        f"<InventoryConfiguration><Destination><S3BucketDestination>{inner}</S3BucketDestination></Destination>"
        f"{tag('IsEnabled', 'true' if one['IsEnabled'] else 'false')}{filtered}{tag('Id', one['Id'])}"
        f"{tag('IncludedObjectVersions', one['IncludedObjectVersions'])}<OptionalFields>{fields}</OptionalFields>"
        f"<Schedule>{tag('Frequency', one['Schedule']['Frequency'])}</Schedule></InventoryConfiguration>"
    )


def _named(bucket: StubBucket) -> tuple[tuple[str, str], ...]:
    return (("BucketName", bucket.name),)


BUCKET_CALLS: Final[dict[str, Callable[[World, StubBucket, Call], Reply]]] = {
    "HeadBucket": _head,
    "GetBucketOwnershipControls": _ownership,
    "GetPublicAccessBlock": _block,
    "GetBucketAcl": _acl,
    "GetBucketPolicy": _policy,
    "GetBucketPolicyStatus": _policy_status,
    "GetBucketVersioning": _versioning,
    "GetBucketEncryption": _encryption,
    "GetBucketRequestPayment": _request_payment,
    "GetBucketAbac": _abac,
    "GetBucketTagging": _tagging,
    "ListBucketInventoryConfigurations": _inventories,
}
ACCOUNT_CALLS: Final[dict[str, Callable[[World, Call], Reply]]] = {
    "ListBuckets": list_buckets,
    "GetCallerIdentity": caller_identity,
    "GetAccountPublicAccessBlock": account_block,
    "ListAccessGrantsInstances": grants_instances,
    "ListAccessGrants": access_grants,
    "GetAccessGrantsInstanceResourcePolicy": grants_policy,
}
