"""Changes that `auditor what-if` predicts are applied to a server that enforces them, and every object is asked again.

Each change has a bucket of its own. ACLs that are off are made by private ACLs, because RGW has no ownership controls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.model.access import Audience, AudienceKind
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS
from tests.support.servers.rgw import OTHER, OWNER, STRANGER, RgwServer
from tests.system.real.conftest import Command
from tests.system.real.oracle import Truth, ask
from tests.system.real.world import OPEN, Place

EVERYONE: Final = f'uri="{ALL_USERS}"'
SIGNED: Final = f'uri="{AUTHENTICATED_USERS}"'
FULL: Final = {"GrantFullControl": f'id="{OWNER.canonical_id}"'}
OBJECTS: Final[Mapping[str, dict[str, str]]] = {
    "docs/private": {},
    "docs/public": {"ACL": "public-read"},
    "docs/signed": {"ACL": "authenticated-read"},
    "docs/other": {**FULL, "GrantRead": f'id="{OTHER.canonical_id}"'},
    "www/private": {},
    "www/public": {"ACL": "public-read"},
    "www/public-acl": {**FULL, "GrantReadACP": EVERYONE},
    "www/writable-acl": {**FULL, "GrantWriteACP": SIGNED},
    "private": {},
    "public": {"ACL": "public-read"},
}
"""The owner's objects: key to the arguments of its upload."""
FOREIGN: Final[Mapping[str, dict[str, str]]] = {
    "docs/foreign": {"ACL": "bucket-owner-full-control"},
    "www/foreign-public": {
        "GrantFullControl": f'id="{OWNER.canonical_id}", id="{OTHER.canonical_id}"',
        "GrantRead": EVERYONE,
    },
}
"""The other account's objects."""
READ: Final = ("s3:GetObject", "s3:GetObjectVersion")
TO_OTHER: Final = {"AWS": OTHER.arn}
HERE: Final = {"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}
ELSEWHERE: Final = {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}

Statement = dict[str, Any]


def statement(effect: str, action: Any, resource: str = "*", principal: Any = "*", **more: Any) -> Statement:
    """A statement on the keys that match `resource`, in the bucket BUCKET."""
    members = {
        "Effect": effect,
        "Action": action,
        "Principal": principal,
        "Resource": f"arn:aws:s3:::BUCKET/{resource}",
    }
    return {name: value for name, value in {**members, **more}.items() if value is not None}


ALLOW_WWW: Final = statement("Allow", READ, "www/*")
ALLOW_ALL: Final = statement("Allow", READ)
ALLOW_OTHER: Final = statement("Allow", READ, "docs/*", TO_OTHER)
DENY_ALL: Final = statement("Deny", "s3:*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A bucket and a change of it. before, policy: the statements of the bucket policy before and after the change; ()
    for none, None if it stays. blocked: IgnorePublicAcls is on before. block: the four switches after. acls_off: ACLs
    are turned off. foreign: True if the bucket also has the other account's objects. differs: False if the identities
    of the test can do the same after the change.
    """

    before: tuple[Statement, ...] = ()
    policy: tuple[Statement, ...] | None = None
    blocked: bool = False
    block: bool | None = None
    acls_off: bool = False
    foreign: bool = True
    differs: bool = True


CASES: Final[Mapping[str, Case]] = {
    "allow everyone some keys": Case(policy=(ALLOW_WWW,)),
    "allow everyone all keys": Case(policy=(ALLOW_ALL,)),
    "allow another account": Case(policy=(ALLOW_OTHER,)),
    "allow everyone to read ACLs": Case(policy=(statement("Allow", "s3:GetObjectAcl", "docs/*"),)),
    "allow everyone to write ACLs": Case(policy=(statement("Allow", "s3:PutObjectAcl", "docs/*"),)),
    "allow by a wildcard of actions": Case(policy=(statement("Allow", "s3:Get*", "p*"),)),
    "allow to read tags alone": Case(policy=(statement("Allow", "s3:GetObjectTagging"),), differs=False),
    "allow from this network": Case(policy=(statement("Allow", READ, "*private", Condition=HERE),)),
    "allow from another network": Case(policy=(statement("Allow", READ, Condition=ELSEWHERE),), differs=False),
    "allow all other keys": Case(
        policy=(statement("Allow", READ, Resource=None, NotResource="arn:aws:s3:::BUCKET/docs/*"),)
    ),
    "deny everything": Case(policy=(DENY_ALL,)),
    "deny reading, not its ACL": Case(policy=(statement("Deny", READ),)),
    "deny one of two ways to read": Case(policy=(statement("Deny", "s3:GetObject", "docs/*"),), differs=False),
    "deny another account": Case(policy=(statement("Deny", "s3:*", "docs/*", TO_OTHER),)),
    "deny what is allowed": Case(policy=(ALLOW_ALL, statement("Deny", "s3:*", "www/*"))),
    "deny another network": Case(policy=(ALLOW_WWW, statement("Deny", "s3:*", Condition=ELSEWHERE))),
    "delete a public policy": Case(before=(ALLOW_ALL,), policy=()),
    "delete a policy that denies": Case(before=(statement("Deny", "s3:*", "docs/*", TO_OTHER),), policy=()),
    "name an account in place of everyone": Case(before=(ALLOW_ALL,), policy=(ALLOW_OTHER,)),
    "name everyone in place of an account": Case(before=(ALLOW_OTHER,), policy=(ALLOW_WWW,)),
    "block public access": Case(block=True),
    "block public access, which closes no policy": Case(before=(ALLOW_WWW,), block=True),
    "block public access, keep an account": Case(before=(ALLOW_OTHER,), block=True),
    "block public access, name an account": Case(policy=(ALLOW_OTHER,), block=True),
    "no block any more": Case(blocked=True, block=False),
    "ACLs off": Case(acls_off=True, foreign=False),
    "ACLs off, and a policy": Case(policy=(ALLOW_WWW, ALLOW_OTHER), acls_off=True, foreign=False),
}


@dataclass(frozen=True, slots=True)
class Predicted:
    """The prediction for one object: its verdict, and the texts of its audiences."""

    verdict: str
    audience: tuple[str, ...]

    @property
    def identities(self) -> set[str]:
        """The identities of the oracle that get in. All of them send from 127.0.0.1."""
        found = {name for text in self.audience for name in _members(Audience.parse(text))}
        return found - {"other"} if self.verdict == "exposed" else found


def _members(audience: Audience) -> set[str]:
    everyone = {"anonymous", "stranger", "other"}
    if audience.through is not None and not _is_here(audience.through.removeprefix("network ")):
        return set()
    match audience.kind:
        case AudienceKind.ANYONE:
            return everyone
        case AudienceKind.ANY_ACCOUNT:
            return everyone - {"anonymous"}
        case AudienceKind.NETWORK:
            return everyone if _is_here(audience.name or "") else set()
        case _:
            (name,) = [one.name for one in (OTHER, STRANGER) if audience.name in (one.arn, one.canonical_id)]
            return {name}


def _is_here(network: str) -> bool:
    return ip_address("127.0.0.1") in ip_network(network)


def fill(case: Case, bucket: str, owner: Any, other: Any) -> list[Place]:
    """Make the bucket as it is before the change, and return its objects."""
    owner.create_bucket(Bucket=bucket)
    for key, arguments in OBJECTS.items():
        owner.put_object(Bucket=bucket, Key=key, Body=b"x", **arguments)
    keys = list(OBJECTS)
    if case.foreign:
        owner.put_bucket_acl(Bucket=bucket, **FULL, GrantWrite=f'id="{OTHER.canonical_id}"')
        for key, arguments in FOREIGN.items():
            other.put_object(Bucket=bucket, Key=key, Body=b"x", **arguments)
        keys += FOREIGN
    if case.before:
        owner.put_bucket_policy(Bucket=bucket, Policy=policy_text(case.before, bucket))
    if case.blocked:
        block = {**OPEN, "IgnorePublicAcls": True}
        owner.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=block)
    return [Place(bucket, key) for key in sorted(keys)]


def policy_text(statements: tuple[Statement, ...], bucket: str) -> str:
    document = {"Version": "2012-10-17", "Statement": [{"Sid": f"s{n}", **one} for n, one in enumerate(statements)]}
    return json.dumps(document, indent=1).replace("BUCKET", bucket)


def apply(case: Case, bucket: str, owner: Any) -> None:
    """Make the change for real."""
    if case.acls_off:
        for key in OBJECTS:
            owner.put_object_acl(Bucket=bucket, Key=key, ACL="private")
    if case.policy == ():
        owner.delete_bucket_policy(Bucket=bucket)
    elif case.policy is not None:  # before the block: RGW calls a policy public that names a user
        owner.put_bucket_policy(Bucket=bucket, Policy=policy_text(case.policy, bucket))
    if case.block is not None:
        block = dict.fromkeys(OPEN, case.block)
        owner.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=block)


def flags_of(case: Case, bucket: str, folder: Path) -> list[str]:
    """The flags of `auditor what-if` for the change."""
    flags = ["--acls-off"] if case.acls_off else []
    if case.block is not None:
        flags.append("--block-public-access" if case.block else "--no-block-public-access")
    if case.policy == ():
        flags.append("--no-policy")
    elif case.policy is not None:
        (folder / "policy.json").write_text(policy_text(case.policy, bucket))
        flags += ["--policy", str(folder / "policy.json")]
    return flags


def recorded(run: str, auditor: Command, places: list[Place]) -> dict[str, Predicted]:
    """The access to each object as the run has it."""
    lines = auditor("explain", *(f"s3://{place.bucket}/{place.key}" for place in places), "--run", run).splitlines()
    return {one["key"]: Predicted(one["verdict"], tuple(one["audience"])) for one in map(json.loads, lines)}


def changed(run: str, auditor: Command, flags: list[str], folder: Path) -> dict[str, Predicted]:
    """The access that is predicted for each object that the change moves."""
    auditor("what-if", run, *flags, "--keys", str(folder / "keys.jsonl"))
    lines = [json.loads(line) for line in (folder / "keys.jsonl").read_bytes().splitlines()]
    return {one["key"]: Predicted(one["after"]["verdict"], tuple(one["after"]["audience"])) for one in lines}


def agrees(predicted: Predicted, truth: Truth) -> bool:
    """True if those get in that should. The account `other` counts only where strangers stay out: an exposed object is
    open to strangers, and a statement may deny it to an account by its name all the same.
    """
    found = seen_by(truth)
    return predicted.identities == (found - {"other"} if predicted.verdict == "exposed" else found)


def seen_by(truth: Truth) -> set[str]:
    return {name for name in ("anonymous", "stranger", "other") if getattr(truth, name).anything}


@pytest.mark.parametrize("name", CASES)
def test_the_server_does_what_was_predicted(
    name: str, rgw: RgwServer, clients: tuple[Any, Any], auditor: Command, tmp_path: Path
) -> None:
    owner, other = clients
    case, bucket = CASES[name], f"what-if-{list(CASES).index(name)}"
    places = fill(case, bucket, owner, other)
    where = ("--endpoint-url", rgw.url)
    summary = json.loads(auditor("audit", f"s3://{bucket}", *where, "--out", str(tmp_path / "runs")))
    assert summary["coverage"]["listed"] == len(places)
    predicted = recorded(summary["out"], auditor, places)
    before = ask(rgw, places)
    assert differences(predicted, before) == {}

    moved = changed(summary["out"], auditor, flags_of(case, bucket, tmp_path), tmp_path)
    predicted |= moved
    apply(case, bucket, owner)
    after = ask(rgw, places)
    assert differences(predicted, after) == {}
    assert "unknown" not in {one.verdict for one in predicted.values()}
    differing = {place.key for place in places if seen_by(before[place]) != seen_by(after[place])}
    assert bool(differing) == case.differs


def differences(
    predicted: Mapping[str, Predicted], truth: Mapping[Place, Truth]
) -> dict[str, tuple[Predicted, set[str]]]:
    """The objects whose prediction is wrong: what was predicted, and the identities that get in."""
    assert predicted.keys() == {place.key for place in truth}
    return {
        place.key: (predicted[place.key], seen_by(seen))
        for place, seen in truth.items()
        if not agrees(predicted[place.key], seen)
    }
