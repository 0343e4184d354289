"""A fix kit applied to a server that enforces it: it closes what it says, opens nothing, and every ACL comes back."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest

from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.rgw import OTHER, OWNER, STRANGER, RgwServer
from tests.system.real.conftest import Command
from tests.system.real.oracle import Truth, ask
from tests.system.real.test_rgw_what_if import EVERYONE, FULL, SIGNED, Predicted, differences, recorded, seen_by
from tests.system.real.test_rgw_what_if import changed as moved
from tests.system.real.world import Place

TO_OTHER: Final = f'id="{OTHER.canonical_id}"'
BOTH: Final = {"GrantRead": f'{TO_OTHER}, id="{STRANGER.canonical_id}"'}
ODD: Final = [
    f"odd/{ODD_KEYS[name]}"
    for name in (
        *("space", "percent escape", "question mark", "semicolon and colon", "emoji", "newline", "double quote"),
    )
]
OWN: Final[Mapping[str, dict[str, str]]] = {
    "docs/a": {**FULL, "GrantRead": TO_OTHER},
    "docs/b": {**FULL, "GrantRead": TO_OTHER, "GrantReadACP": TO_OTHER},
    "docs/public": {**FULL, "GrantRead": f"{EVERYONE}, {TO_OTHER}"},
    "docs2": {},
    "full": {"GrantFullControl": f'id="{OWNER.canonical_id}", {TO_OTHER}'},
    "img/1": {**FULL, **BOTH},
    "img/2": {**FULL, **BOTH},
    "img/private": {},
    "img/signed": {"ACL": "authenticated-read"},
    "open": {"ACL": "public-read"},
    "open-acl": {**FULL, "GrantReadACP": EVERYONE},
    "public-write-acl": {**FULL, "GrantWriteACP": SIGNED, "GrantRead": TO_OTHER},
    "site/index": {"ACL": "public-read"},
    "site/logo": {"ACL": "public-read"},
    **{key: {**FULL, "GrantRead": f"{EVERYONE}, {TO_OTHER}"} for key in ODD},
    **{f"{key}#": {} for key in ODD},
}
"""The owner's objects: key to the arguments of its upload."""
FOREIGN: Final[Mapping[str, dict[str, str]]] = {
    "foreign/private": {"ACL": "bucket-owner-full-control"},
    "foreign/public": {
        "GrantFullControl": f'id="{OWNER.canonical_id}", {TO_OTHER}',
        "GrantRead": EVERYONE,
    },
}
"""The other account's objects. Its owner lets the bucket's owner change the ACL."""
SITE: Final = """
[[exceptions]]
verdict = "exposed"
prefix = "site/"
audience = "anyone"
reason = "the public web site"
owner = "web"
until = 2026-12-31
"""


@dataclass(frozen=True, slots=True)
class Repair:
    """A run, the places of its bucket, and the kit that was written from it."""

    run: str
    places: list[Place]
    kit: Path
    report: Mapping[str, Any]
    recorded: dict[str, Predicted]


@pytest.fixture(scope="module")
def acls(clients: tuple[Any, Any]) -> Mapping[str, Any]:
    """Make the bucket, and return the ACL of each key as the server tells it."""
    owner, other = clients
    owner.create_bucket(Bucket="repair")
    for key, arguments in OWN.items():
        owner.put_object(Bucket="repair", Key=key, Body=b"x", **arguments)
    owner.put_bucket_acl(Bucket="repair", **FULL, GrantWrite=TO_OTHER)
    for key, arguments in FOREIGN.items():
        other.put_object(Bucket="repair", Key=key, Body=b"x", **arguments)
    return read_acls(owner)


def read_acls(owner: Any) -> dict[str, Any]:
    found = {key: owner.get_object_acl(Bucket="repair", Key=key) for key in (*OWN, *FOREIGN)}
    return {key: (acl["Owner"], acl["Grants"]) for key, acl in found.items()}


def make(rgw: RgwServer, auditor: Command, folder: Path) -> Repair:
    (folder / "auditor.toml").write_text(SITE)
    where = ("--endpoint-url", rgw.url, "--config", str(folder / "auditor.toml"))
    summary = json.loads(auditor("audit", "s3://repair", *where, "--out", str(folder / "runs")))
    report = json.loads(auditor("fix-kit", summary["out"], "--out", str(folder / "kit")))
    places = [Place("repair", key) for key in sorted((*OWN, *FOREIGN))]
    return Repair(summary["out"], places, folder / "kit", report, recorded(summary["out"], auditor, places))


def rows(kit: Path, *names: str) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """Yield bucket, key and version of each object of some jobs, as boto3 takes them, with the ACL of its job."""
    for name in names:
        job = json.loads((kit / name).read_text())
        policy = job["Operation"]["S3PutObjectAcl"]["AccessControlPolicy"]
        manifest = Path(job["Manifest"]["Location"]["ObjectArn"]).name
        for bucket, key, *version in csv.reader((kit / manifest).read_text().splitlines()):
            place = {"Bucket": bucket, "Key": unquote(key, errors="surrogatepass")}
            yield place | ({"VersionId": version[0]} if version else {}), policy


def restore(owner: Any, kit: Path, report: Mapping[str, Any]) -> None:
    """Do the jobs that bring the ACLs back."""
    for place, policy in rows(kit, *(job["request"] for job in report["restore"]["jobs"])):
        acl = policy["AccessControlList"]
        restored = {"Owner": acl["Owner"], "Grants": [as_grant(one) for one in acl["Grants"]]}
        owner.put_object_acl(**place, AccessControlPolicy=restored)


def as_grant(grant: dict[str, Any]) -> dict[str, Any]:
    name = grant["Grantee"]["Identifier"]
    group = grant["Grantee"]["TypeIdentifier"] == "uri"
    grantee = {"Type": "Group", "URI": name} if group else {"Type": "CanonicalUser", "ID": name}
    return {"Grantee": grantee, "Permission": grant["Permission"]}


def test_the_kit_closes_what_it_says_and_the_way_back_brings_every_acl_back(
    rgw: RgwServer, clients: tuple[Any, Any], acls: Mapping[str, Any], auditor: Command, tmp_path: Path
) -> None:
    """The steps in their order: policy, jobs, ACLs off, and back."""
    owner, _ = clients
    repair = make(rgw, auditor, tmp_path)
    before = ask(rgw, repair.places)
    assert differences(repair.recorded, before) == {}
    assert repair.recorded["site/index"].verdict == "exposed"

    assert moved(repair.run, auditor, ["--policy", str(repair.kit / "policy.json")], tmp_path) == {}
    owner.put_bucket_policy(Bucket="repair", Policy=(repair.kit / "policy.json").read_text())
    usual = [place for place in repair.places if not place.key.startswith("odd/")]
    assert readers(ask(rgw, usual)) == {place: found for place, found in readers(before).items() if place in usual}

    changed = {job["request"]: job["objects"] for job in repair.report["jobs"]}
    assert changed == {"acl-job.json": 5 + len(ODD), "acl-job-foreign.json": 1}
    for place, policy in rows(repair.kit, *changed):
        owner.put_object_acl(**place, ACL=policy["CannedAccessControlList"])
    after = ask(rgw, repair.places)
    (tmp_path / "again").mkdir()
    assert differences(make(rgw, auditor, tmp_path / "again").recorded, after) == {}
    assert {(one.acl, one.head) for one in after.values()} == {(200, 200)}  # the bucket's owner can still read all
    still_open = {place.key for place, truth in after.items() if truth.anonymous.anything}
    assert still_open == {"site/index", "site/logo"}
    left_out = {key for key in ODD if set("*?$\n") & set(key)}
    carried = {"docs/public", "public-write-acl", "foreign/public", *ODD} - left_out
    changed_keys = {place["Key"] for place, _ in rows(repair.kit, *changed)}
    for one, found in readers(after).items():
        named = {"other"} if one.key in carried else set()
        assert found == (named if one.key in changed_keys else readers(before)[one]), one

    for key in OWN:  # ACLs off: RGW has no ownership controls
        owner.put_object_acl(Bucket="repair", Key=key, ACL="private")
    own = [place for place in repair.places if place.key in OWN and not place.key.endswith("#")]
    flags = ["--acls-off", "--policy", str(repair.kit / "policy.json")]
    off = repair.recorded | moved(repair.run, auditor, flags, tmp_path)
    assert differences({place.key: off[place.key] for place in own}, ask(rgw, own)) == {}

    for key in OWN.keys() - changed_keys:
        of, grants = acls[key]
        owner.put_object_acl(Bucket="repair", Key=key, AccessControlPolicy={"Owner": of, "Grants": grants})
    restore(owner, repair.kit, repair.report)
    owner.delete_bucket_policy(Bucket="repair")
    assert read_acls(owner) == acls


def readers(truth: Mapping[Place, Truth]) -> dict[Place, set[str]]:
    return {place: {name for name in seen_by(one) if getattr(one, name).read} for place, one in truth.items()}


def test_each_version_has_its_own_acl_and_gets_it_back(
    rgw: RgwServer, clients: tuple[Any, Any], auditor: Command, tmp_path: Path
) -> None:
    owner, _ = clients
    owner.create_bucket(Bucket="repair-versions")
    owner.put_bucket_versioning(Bucket="repair-versions", VersioningConfiguration={"Status": "Enabled"})
    shared = {**FULL, "GrantRead": TO_OTHER}
    public = {**FULL, "GrantRead": f"{EVERYONE}, {TO_OTHER}"}
    places = []
    for key, versions in {"old": (public, {}), "both": (shared, public), "new": ({}, shared)}.items():
        for arguments, latest in zip(versions, (False, True), strict=True):
            made = owner.put_object(Bucket="repair-versions", Key=key, Body=b"x", **arguments)
            places.append(Place("repair-versions", key, made["VersionId"], latest))
    acls = [acl_of(owner, place) for place in places]

    where = ("--endpoint-url", rgw.url, "--out", str(tmp_path / "runs"))
    summary = json.loads(auditor("audit", "s3://repair-versions", "--versions", *where))
    kit = tmp_path / "kit"
    report = json.loads(auditor("fix-kit", summary["out"], "--out", str(kit)))
    owner.put_bucket_policy(Bucket="repair-versions", Policy=(kit / "policy.json").read_text())
    for version, policy in rows(kit, *(job["request"] for job in report["jobs"])):
        owner.put_object_acl(**version, ACL=policy["CannedAccessControlList"])
    again = json.loads(auditor("audit", "s3://repair-versions", "--versions", *where))
    assert again["verdicts"] == {"exposed": 0, "unknown": 0, "shared": 3, "masked": 0, "dormant": 0, "private": 3}
    truth = ask(rgw, places)
    assert [seen_by(truth[place]) for place in places] == [set(), set(), {"other"}, {"other"}, set(), {"other"}]

    restore(owner, kit, report)
    assert [acl_of(owner, place) for place in places] == acls


def acl_of(owner: Any, place: Place) -> Any:
    acl = owner.get_object_acl(Bucket=place.bucket, Key=place.key, VersionId=place.version_id)
    return acl["Owner"], acl["Grants"]
