"""The world of the tests on a real server: objects under every kind of ACL and policy, in the buckets of one account.

A key's name says its situation. What the server does with it is never written down here: the oracle asks the server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.rgw import OTHER, OWNER, RgwServer

ACLS: Final = "acls"
FOREIGN: Final = "foreign"
ODD: Final = "odd-keys"
VERSIONS: Final = "versions"
IGNORED: Final = "ignore-public-acls"
RESTRICTED: Final = "restrict-public-buckets"
POLICY: Final = "policy"
BUCKETS: Final = (ACLS, FOREIGN, ODD, VERSIONS, IGNORED, RESTRICTED, POLICY)

CANNED: Final = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
)
PERMISSIONS: Final = {
    "READ": "GrantRead",
    "READ_ACP": "GrantReadACP",
    "WRITE_ACP": "GrantWriteACP",
    "FULL_CONTROL": "GrantFullControl",
}
GROUPS: Final = {"everyone": f'uri="{ALL_USERS}"', "authenticated": f'uri="{AUTHENTICATED_USERS}"'}
TO_OWNER: Final = f'id="{OWNER.canonical_id}"'
TO_OTHER: Final = f'id="{OTHER.canonical_id}"'
GRANTEES: Final = {**GROUPS, "other": TO_OTHER}

OPEN: Final = dict.fromkeys(
    ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), False
)
BLOCKS: Final = {IGNORED: {**OPEN, "IgnorePublicAcls": True}, RESTRICTED: {**OPEN, "RestrictPublicBuckets": True}}

OTHER_ONLY: Final = {"AWS": OTHER.arn}
HERE: Final = {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}
ELSEWHERE: Final = {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}
STATEMENTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "allow-everyone": ("Allow", "GetObject"),
    "allow-everyone-acl": ("Allow", "GetObjectAcl"),
    "allow-everyone-put-acl": ("Allow", "PutObjectAcl"),
    "allow-everyone-version": ("Allow", "GetObjectVersion"),
    "allow-everyone-tagging": ("Allow", "GetObjectTagging"),
    "allow-other": ("Allow", "GetObject", OTHER_ONLY),
    "allow-here": ("Allow", "GetObject", "*", HERE),
    "allow-elsewhere": ("Allow", "GetObject", "*", ELSEWHERE),
    "deny-get": ("Deny", "GetObject"),
    "deny-get-any-version": ("Deny", ("GetObject", "GetObjectVersion")),
    "deny-get-star": ("Deny", "GetObject*"),
    "deny-all": ("Deny", "*"),
    "deny-other": ("Deny", "GetObject", OTHER_ONLY),
    "deny-here": ("Deny", "GetObject", "*", HERE),
    "deny-elsewhere": ("Deny", "GetObject", "*", ELSEWHERE),
}
"""Prefix of a key in bucket POLICY to its statement: effect, actions, principal, condition."""
VERSION_STATEMENTS: Final = ("allow-everyone", "allow-everyone-version", "deny-get")
"""Those of the prefixes that bucket VERSIONS has too."""


@dataclass(frozen=True, slots=True)
class Place:
    """One object, or one version of it. version_id: None in a bucket without versions."""

    bucket: str
    key: str
    version_id: str | None = None
    latest: bool = True


@dataclass(slots=True)
class World:
    """All that was made. markers: the delete markers, which no audit reads."""

    places: list[Place] = field(default_factory=list)
    markers: list[Place] = field(default_factory=list)

    def of(self, bucket: str, prefix: str = "") -> list[Place]:
        return [place for place in self.places if place.bucket == bucket and place.key.startswith(prefix)]

    def at(self, bucket: str, key: str) -> Place:
        """The latest version of the object; it must be there."""
        return next(place for place in self.of(bucket) if place.key == key and place.latest)


def build(rgw: RgwServer) -> World:
    """Make every bucket and object; takes a second or two."""
    owner, other = rgw.client(rgw.owner), rgw.client(rgw.other)
    try:
        world = World()
        for bucket in BUCKETS:
            owner.create_bucket(Bucket=bucket)
        _fill_acls(world, owner)
        _fill_foreign(world, owner, other)
        for number, key in enumerate(ODD_KEYS.values()):
            _put(world, owner, ODD, key, ACL="public-read" if number % 2 else "private")
        _fill_versions(world, owner)
        _fill_blocked(world, owner)
        _fill_policy(world, owner)
        return world
    finally:
        owner.close()
        other.close()


def _put(world: World, client: Any, bucket: str, key: str, **more: str) -> Place:
    answer = client.put_object(Bucket=bucket, Key=key, Body=f"body of {key}".encode(), **more)
    place = Place(bucket, key, answer.get("VersionId"))
    world.places.append(place)
    return place


def grant(permission: str, *grantees: str, owner: bool = True) -> dict[str, str]:
    """The headers that grant it, and full control to the bucket's owner, which a grant by header otherwise takes."""
    headers = {PERMISSIONS[permission]: ", ".join(grantees)}
    if owner:
        full = headers.get("GrantFullControl")
        headers["GrantFullControl"] = f"{full}, {TO_OWNER}" if full else TO_OWNER
    return headers


def _fill_acls(world: World, owner: Any) -> None:
    """`grant/` leaves the owner full control; under `grant-alone/` it has lost it."""
    for canned in CANNED:
        _put(world, owner, ACLS, f"canned/{canned}", ACL=canned)
    for name, grantee in GRANTEES.items():
        for permission in PERMISSIONS:
            _put(world, owner, ACLS, f"grant/{name}/{permission}", **grant(permission, grantee))
            _put(world, owner, ACLS, f"grant-alone/{name}/{permission}", **grant(permission, grantee, owner=False))
    _put(world, owner, ACLS, "grant/other-and-everyone/READ", **grant("READ", TO_OTHER, GROUPS["everyone"]))


def _fill_foreign(world: World, owner: Any, other: Any) -> None:
    """Objects that the other account uploaded, some of which the bucket's owner cannot read."""
    owner.put_bucket_acl(Bucket=FOREIGN, GrantFullControl=TO_OWNER, GrantWrite=TO_OTHER)
    for canned in CANNED:
        _put(world, other, FOREIGN, f"canned/{canned}", ACL=canned)
    for permission in PERMISSIONS:
        _put(world, other, FOREIGN, f"grant/owner/{permission}", **grant(permission, TO_OWNER, TO_OTHER, owner=False))
    for name, grantee in GROUPS.items():
        _put(world, other, FOREIGN, f"grant/owner-and-{name}", **grant("READ", grantee))
    _put(world, owner, FOREIGN, "own/private")


def _fill_versions(world: World, owner: Any) -> None:
    """Versions that differ in their ACL, a null version from before versioning, and delete markers."""
    made = World()
    null = _put(made, owner, VERSIONS, "null-public-then-private", ACL="public-read")
    made.places[-1] = replace(null, version_id="null")
    owner.put_bucket_versioning(Bucket=VERSIONS, VersioningConfiguration={"Status": "Enabled"})
    _put(made, owner, VERSIONS, "null-public-then-private")
    _put(made, owner, VERSIONS, "public-then-private", ACL="public-read")
    _put(made, owner, VERSIONS, "public-then-private")
    _put(made, owner, VERSIONS, "private-then-public")
    _put(made, owner, VERSIONS, "private-then-public", ACL="public-read")
    _put(made, owner, VERSIONS, "public-then-deleted", ACL="public-read")
    _put(made, owner, VERSIONS, "private-then-deleted")
    for key in ("public-then-deleted", "private-then-deleted", "deleted-then-public"):
        marker = owner.delete_object(Bucket=VERSIONS, Key=key)["VersionId"]
        world.markers.append(Place(VERSIONS, key, marker, latest=False))
    _put(made, owner, VERSIONS, "deleted-then-public", ACL="public-read")
    old = _put(made, owner, VERSIONS, "acl-set-on-the-old-version")
    _put(made, owner, VERSIONS, "acl-set-on-the-old-version")
    owner.put_object_acl(Bucket=VERSIONS, Key=old.key, VersionId=old.version_id, ACL="public-read")
    for prefix in VERSION_STATEMENTS:
        for canned in ("private", "public-read"):
            _put(made, owner, VERSIONS, f"{prefix}/{canned}", ACL=canned)
            _put(made, owner, VERSIONS, f"{prefix}/{canned}", ACL=canned)
    put_policy(owner, VERSIONS, VERSION_STATEMENTS)
    listed = owner.list_object_versions(Bucket=VERSIONS)["Versions"]
    latest = {(entry["Key"], entry["VersionId"]) for entry in listed if entry["IsLatest"]}
    world.places += [replace(place, latest=(place.key, place.version_id) in latest) for place in made.places]


def _fill_blocked(world: World, owner: Any) -> None:
    for bucket, block in BLOCKS.items():
        for canned in CANNED:
            _put(world, owner, bucket, f"canned/{canned}", ACL=canned)
        for name, grantee in GRANTEES.items():
            for permission in PERMISSIONS:
                _put(world, owner, bucket, f"grant/{name}/{permission}", **grant(permission, grantee))
        for prefix in ("allow-everyone", "allow-other"):
            _put(world, owner, bucket, f"{prefix}/private")
        put_policy(owner, bucket, ("allow-everyone", "allow-other"))
        owner.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=block)


def _fill_policy(world: World, owner: Any) -> None:
    """One prefix for each statement, a private and a public-read object under each."""
    for prefix in ("no-statement", *STATEMENTS):
        for canned in ("private", "public-read"):
            _put(world, owner, POLICY, f"{prefix}/{canned}", ACL=canned)
    put_policy(owner, POLICY, tuple(STATEMENTS))


def put_policy(client: Any, bucket: str, prefixes: Sequence[str]) -> None:
    statements = [_statement(f"{bucket}/{prefix}/*", *STATEMENTS[prefix]) for prefix in prefixes]
    client.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": statements}))


def _statement(
    resource: str,
    effect: str,
    actions: str | tuple[str, ...],
    principal: Any = "*",
    condition: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    names = (actions,) if isinstance(actions, str) else actions
    fixed = {
        "Effect": effect,
        "Principal": principal,
        "Action": [f"s3:{name}" for name in names],
        "Resource": f"arn:aws:s3:::{resource}",
    }
    return {**fixed, "Condition": condition} if condition else fixed
