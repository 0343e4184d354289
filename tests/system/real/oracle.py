"""What the server itself answers: who can read an object, read its ACL, and write its ACL.

Nothing here knows what an ACL or a policy says; every word is the status of a request that was really sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from botocore import UNSIGNED
from botocore.exceptions import ClientError

from tests.support.servers.rgw import RgwServer
from tests.system.real.world import Place


@dataclass(frozen=True, slots=True)
class Reach:
    """What one identity got. read: a GET went through, with or without the version's id."""

    read: bool
    read_acl: bool
    write_acl: bool

    @property
    def anything(self) -> bool:
        return self.read or self.read_acl or self.write_acl


@dataclass(frozen=True, slots=True)
class Truth:
    """What everyone got of one place.

    acl, head: statuses of the owner's own GetObjectAcl and HeadObject; the latest version is asked without its id.
    """

    anonymous: Reach
    stranger: Reach
    other: Reach
    acl: int
    head: int

    @property
    def public(self) -> bool:
        """Someone whom nobody named gets at it: the internet, or any account."""
        return self.anonymous.anything or self.stranger.anything


def ask(rgw: RgwServer, places: Iterable[Place]) -> Mapping[Place, Truth]:
    """Try every place as everybody; nothing is different afterwards."""
    with (
        closing(rgw.client(rgw.owner)) as owner,
        closing(rgw.client(rgw.other)) as other,
        closing(rgw.client(rgw.stranger)) as stranger,
        closing(rgw.client(rgw.owner, signature_version=UNSIGNED)) as nobody,
    ):
        return {place: _ask_one(rgw, place, owner, other, stranger, nobody) for place in places}


def status(operation: Any, **parameters: Any) -> int:
    """The HTTP status of one call, whatever it is."""
    return answer(operation, **parameters)[0]


def answer(operation: Any, **parameters: Any) -> tuple[int, str, dict[str, Any]]:
    """HTTP status, error code ("" when it went well), and the parsed answer."""
    try:
        parsed = operation(**{name: value for name, value in parameters.items() if value is not None})
    except ClientError as error:
        metadata = error.response["ResponseMetadata"]
        return metadata["HTTPStatusCode"], error.response.get("Error", {}).get("Code", ""), {}
    if body := parsed.get("Body"):
        with closing(body):
            parsed["Body"] = body.read()
    return parsed.pop("ResponseMetadata")["HTTPStatusCode"], "", parsed


def _ask_one(rgw: RgwServer, place: Place, owner: Any, other: Any, stranger: Any, nobody: Any) -> Truth:
    here = {"Bucket": place.bucket, "Key": place.key, "VersionId": None if place.latest else place.version_id}
    acl_status, _, acl = answer(owner.get_object_acl, **here)
    head = status(owner.head_object, **here)
    same = {"Owner": acl["Owner"], "Grants": acl["Grants"]} if acl else None
    anonymous = [rgw.anonymous_get(place.bucket, place.key, version_id) for version_id in _version_ids(place)]
    return Truth(
        Reach(
            200 in anonymous,
            rgw.anonymous_get_acl(place.bucket, place.key, place.version_id) == 200,
            _can_write_acl(nobody, place, same),
        ),
        _reach(stranger, place, same),
        _reach(other, place, same),
        acl_status,
        head,
    )


def _version_ids(place: Place) -> list[str | None]:
    """The ways to name it: s3:GetObject rules the first, s3:GetObjectVersion those with an id."""
    named = place.version_id or "null"
    return [None, named] if place.latest else [named]


def _reach(client: Any, place: Place, same: Mapping[str, Any] | None) -> Reach:
    here = {"Bucket": place.bucket, "Key": place.key}
    got = [status(client.get_object, **here, VersionId=version_id) for version_id in _version_ids(place)]
    read_acl = status(client.get_object_acl, **here, VersionId=place.version_id) == 200
    return Reach(200 in got, read_acl, _can_write_acl(client, place, same))


def _can_write_acl(client: Any, place: Place, same: Mapping[str, Any] | None) -> bool:
    """Put the very ACL that stands there; False also where the bucket's owner cannot read it."""
    if same is None:
        return False
    here = {"Bucket": place.bucket, "Key": place.key, "VersionId": place.version_id}
    return status(client.put_object_acl, **here, AccessControlPolicy=same) == 200
