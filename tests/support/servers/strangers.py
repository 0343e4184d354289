"""A stub of S3 that answers strangers as S3 would: by the object's ACL and the bucket's policy, as the oracle says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub_answers import reply_of
from tests.support.servers.stub_calls import Call, Refused, Reply
from tests.support.servers.world import OWNER, StubBucket, StubObject, World
from tests.verdict.oracle import service
from tests.verdict.oracle.statements import Identity, Memory, read

OWN_KEY: Final = "testing"
"""The access key of the bucket's owner in all tests."""
FOREIGN_KEY: Final = "FOREIGNACCESSKEY"
FOREIGN: Final = "999988887777"
"""The account whose access key is FOREIGN_KEY."""
FOREIGN_ARN: Final = f"arn:aws:iam::{FOREIGN}:user/stranger"
FOREIGN_ID: Final = "c2" * 32
ACTIONS: Final = {
    "HeadObject": ("s3:GetObject", "s3:GetObjectVersion"),
    "GetObjectAcl": ("s3:GetObjectAcl", "s3:GetObjectVersionAcl"),
}
"""The actions of each call, without and with a VersionId."""
_SIGNER: Final = re.compile("Credential=([^/]+)/")
_UNSIGNED: Final = {"aws:principaltype": ("Anonymous",), "aws:userid": ("anonymous",)}


def signer_of(call: Call) -> str | None:
    """Return the access key that signed the call; None for an unsigned one."""
    found = _SIGNER.search(call.headers.get("authorization", ""))
    return found[1] if found else None


class StrangersServer(HookedServer):
    """address: the one from which strangers seem to ask. lies: answers a stranger's call by itself where it returns a
    status. asked: the calls of strangers on the bucket.
    """

    def __init__(self, world: World | None = None) -> None:
        super().__init__(world, self._answer_stranger)
        self.address = "198.51.100.7"
        self.lies: Callable[[Call, int], int | None] = lambda call, nth: None
        self.asked: list[Call] = []
        self._foreign = World(owner=FOREIGN_ID, account=FOREIGN, arn=FOREIGN_ARN)

    def __enter__(self) -> StrangersServer:
        super().__enter__()
        return self

    def _answer_stranger(self, call: Call) -> Reply | None:
        signer = signer_of(call)
        if signer == OWN_KEY:
            return None
        if not call.bucket:
            return reply_of(self._foreign, call)
        self.asked.append(call)
        lie = self.lies(call, sum(1 for one in self.asked if one.logged == call.logged))
        if lie is not None:
            return None if lie == 200 else Refused(lie, "AccessDenied").reply(call)
        bucket = self.world.buckets[call.bucket]
        item = next((one for one in bucket.objects.versions(call.key) if _is(one, call.version_id)), None)
        if item is None or not self._allows(bucket, item, call, signed=signer is not None):
            return Refused(403, "AccessDenied").reply(call)
        return None

    def _allows(self, bucket: StubBucket, item: StubObject, call: Call, *, signed: bool) -> bool:
        acl = self.world.effective_acl(bucket, item)
        who = Identity(True, FOREIGN, FOREIGN_ARN, FOREIGN_ID) if signed else Identity()
        principal = {"aws:principalarn": (FOREIGN_ARN,), "aws:principalaccount": (FOREIGN,)} if signed else _UNSIGNED
        keys = {"aws:sourceip": (self.address,), "aws:securetransport": ("false",), **principal}
        block = bucket.public_access_block
        rules = read(bucket.policy or "")
        known = service.World(
            bucket_owner=OWNER,
            account=bucket.account,
            object_owner=acl.owner,
            grants=tuple((grant.grantee, grant.permission) for grant in acl.grants),
            acls=bucket.ownership != BUCKET_OWNER_ENFORCED,
            ignores_public_acls=False,  # effective_acl() has left such grants out
            cut=block is not None and block.restrict_public_buckets and bucket.policy_is_public,
            only_named=False,
            rules=rules,
            requester_pays=bucket.request_payer == "Requester",
            encryption=None,  # a HEAD needs no key
            key_rules=None,
            region=bucket.region,
            resource=f"arn:aws:s3:::{bucket.name}/{item.key}",
            points=(),
            keys={},
            truth={},
        )
        action = ACTIONS[call.operation][call.version_id is not None]
        return service.allowed(known, Memory({}), service.Request(who, True, keys), [action])


def _is(item: StubObject, version_id: str | None) -> bool:
    return not item.delete_marker if version_id is None else (item.version_id or "null") == version_id
