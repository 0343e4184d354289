"""Allow or refuse one concrete request to a concrete bucket: the S3 User Guide's user, bucket and object contexts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS
from tests.verdict.oracle.conditions import Values
from tests.verdict.oracle.statements import Identity, Memory, Rule

BY_KEY: Final = ("s3:GetObject", "s3:GetObjectAcl", "s3:PutObjectAcl", "s3:GetObjectTorrent")
BY_VERSION: Final = (
    "s3:GetObjectVersion",
    "s3:GetObjectVersionAcl",
    "s3:PutObjectVersionAcl",
    "s3:GetObjectVersionForReplication",
)
BYTES: Final = frozenset(
    {"s3:GetObject", "s3:GetObjectTorrent", "s3:GetObjectVersion", "s3:GetObjectVersionForReplication"}
)
_OF_PERMISSION: Final = {
    "READ": ("s3:GetObject", "s3:GetObjectVersion"),
    "READ_ACP": ("s3:GetObjectAcl", "s3:GetObjectVersionAcl"),
    "WRITE": (),
    "WRITE_ACP": ("s3:PutObjectAcl", "s3:PutObjectVersionAcl"),
}
OF_PERMISSION: Final[dict[str, tuple[str, ...]]] = {
    **_OF_PERMISSION,
    "FULL_CONTROL": tuple(action for actions in _OF_PERMISSION.values() for action in actions),
}


@dataclass(frozen=True)
class Point:
    """One access point. cut: only its own account gets in by its policy. vpc: None if it takes the internet. listed:
    False for one that the account may have, and that no listing names.
    """

    arn: str
    account: str
    vpc: str | None = None
    rules: tuple[Rule, ...] = ()
    cut: bool = False
    listed: bool = True


@dataclass(frozen=True, eq=False)
class World:
    """A bucket and an object of which everything is known."""

    bucket_owner: str
    account: str
    object_owner: str
    grants: tuple[tuple[str, str], ...]
    acls: bool
    """False if ACLs are disabled."""
    ignores_public_acls: bool
    cut: bool
    """True if RestrictPublicBuckets acts: others get in by the bucket policy only if they are AWS services."""
    only_named: bool
    """True if S3 says that the policy is not public: a condition that a stranger could meet then names somebody."""
    rules: tuple[Rule, ...]
    requester_pays: bool
    encryption: str | None
    """aws:kms, SSE-C, or None if the key keeps nobody out."""
    key_rules: tuple[Rule, ...] | None
    """The policy of the KMS key; None if it was not read."""
    region: str
    resource: str
    points: tuple[Point, ...]
    keys: Mapping[str, Values]
    """The condition keys that do not depend on the requester."""
    truth: Mapping[object, bool]
    bare_reads: bool = False
    """True if a Deny does not see the headers of a conditional read."""

    @property
    def guesses_key(self) -> bool:
        """True if nobody knows who may use the KMS key. A party may use it if something lets that party read the
        object, and does not let in any AWS account as well."""
        return self.encryption == "aws:kms" and self.key_rules is None

    @property
    def unhidden(self) -> World:
        """The same bucket without each setting that only hides: blocks, encryption, payer. The caller drops Denies."""
        return replace(self, ignores_public_acls=False, cut=False, requester_pays=False, encryption=None)


Opening = Rule | tuple[str, str]
"""That by which a request gets in: a statement, or a grant of the ACL as grantee and permission."""


@dataclass(frozen=True, eq=False)
class Request:
    """One request. stranger: nothing in policy or ACL names the requester. point: the access point that it uses.
    public: the statements and grants by which any account's request gets in from the same place and point, by action.
    """

    who: Identity
    stranger: bool
    keys: Mapping[str, Values]
    point: Point | None = None
    public: frozenset[tuple[str, Opening]] = frozenset()


def allowed(world: World, memory: Memory, request: Request, actions: Iterable[str], *, denies: bool = True) -> bool:
    """True if the service allows the request for one of the actions. denies: False to ask what Denies hide."""
    return any(True for _ in openings(world, memory, request, actions, denies=denies))


def openings(
    world: World, memory: Memory, request: Request, actions: Iterable[str], *, denies: bool = True
) -> Iterator[tuple[str, Opening]]:
    """Yield each of the actions for which the service allows the request, with the statement or grant that opens."""
    keys = request.keys
    seen = {**keys, "s3:if-match": None, "s3:if-none-match": None} if world.bare_reads else keys
    named = memory.naming(world.rules, request.who)
    said = [rule for rule in named if memory.met(rule, keys if rule.allows else seen)]
    said = [rule for rule in said if rule.covers(world.resource, keys)]
    grants = memory.granted.get((world, request.who))
    if grants is None:
        grants = memory.granted[world, request.who] = _by_acl(world, request.who)
    for action in actions:
        spoken = [rule for rule in said if rule.covers_action(action)] if said else said
        if not (spoken or action in grants) or (denies and any(not rule.allows for rule in spoken)):
            continue
        if not _user_context(world, memory, request, action, denies=denies):
            continue
        allows = [rule for rule in spoken if rule.allows and (request.who.by_acl or rule.asks_for_a_service)]
        for opening in (*grants.get(action, ()), *_by_policy(world, request.who, action, allows)):
            if not (action in BYTES and world.guesses_key and (action, opening) in request.public):
                yield action, opening


def _user_context(world: World, memory: Memory, request: Request, action: str, *, denies: bool) -> bool:
    """The requester's own side: credentials where they are needed, the access point, and the key."""
    who = request.who
    if world.requester_pays and not who.signed:
        return False
    if action in BYTES and not _has_key(world, memory, request):
        return False
    point = request.point
    if point is None:
        return True
    if not who.signed or (point.vpc is not None and request.keys.get("aws:sourcevpc") != (point.vpc,)):
        return False
    resource = f"{point.arn}/object/{world.resource.partition('/')[2]}"
    said = [rule for rule in memory.naming(point.rules, who) if memory.met(rule, request.keys)]
    said = [rule for rule in said if rule.covers_action(action) and rule.covers(resource, request.keys)]
    if denies and any(not rule.allows for rule in said):
        return False
    return bool(said) and any(rule.allows for rule in said) and not (point.cut and denies)


def _has_key(world: World, memory: Memory, request: Request) -> bool:
    """True if the requester can use the key that encrypts the object's bytes."""
    who = request.who
    if world.encryption is None:
        return True
    if world.encryption == "SSE-C" or not who.signed:
        return False
    if world.key_rules is None:
        return not request.stranger
    keys = {
        **request.keys,
        "kms:calleraccount": request.keys.get("aws:principalaccount"),
        "kms:viaservice": (f"s3.{world.region}.amazonaws.com",),
    }
    said = [rule for rule in memory.naming(world.key_rules, who) if rule.covers_action("kms:Decrypt")]
    effects = {rule.allows for rule in said if memory.met(rule, keys)}
    return effects == {True}


def _by_policy(world: World, who: Identity, action: str, allows: list[Rule]) -> list[Rule]:
    """Return the Allows that count: those of the bucket policy if the owner of the bucket owns the object."""
    if not world.acls and action in ("s3:PutObjectAcl", "s3:PutObjectVersionAcl"):
        return []
    owned = not world.acls or world.object_owner == world.bucket_owner
    return allows if owned and not (world.cut and who.service is None) else []


def _by_acl(world: World, who: Identity) -> dict[str, list[tuple[str, str]]]:
    """Return the grants of the object's owner to the requester, by action. Its own control is one of them."""
    found: dict[str, list[tuple[str, str]]] = {}
    if world.acls:
        for grantee, permission in (*world.grants, (world.object_owner, "FULL_CONTROL")):
            if _in(world, who, grantee):
                for action in OF_PERMISSION[permission]:
                    found.setdefault(action, []).append((grantee, permission))
    return found


def _in(world: World, who: Identity, grantee: str) -> bool:
    """True if the requester belongs to the grantee of an ACL."""
    if not who.by_acl:
        return False
    if grantee == ALL_USERS:
        return not world.ignores_public_acls
    if grantee == AUTHENTICATED_USERS:
        return who.signed and not world.ignores_public_acls
    return grantee == ANONYMOUS_OWNER or grantee == who.canonical or grantee in who.groups
