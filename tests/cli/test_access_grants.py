"""S3 Access Grants in a run: verdict, audience, reasons, finding, and the same again from the folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.object import Acl, Grant
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer
from tests.support.servers.world import ACCOUNT, OWNER, StubBucket, StubGrants

INSTANCE: Final = f"arn:aws:s3:us-east-1:{ACCOUNT}:access-grants/default"
ROLE: Final = "arn:aws:iam::444455556666:role/reader"
USER: Final = "a1b2c3d4-5678-90ab-cdef-EXAMPLE11111"
OF_USER: Final = f"directory-user {USER}"
GRANTS: Final = (
    {
        "AccessGrantId": "a-1",
        "Grantee": {"GranteeType": "IAM", "GranteeIdentifier": ROLE},
        "Permission": "READWRITE",
        "GrantScope": "s3://audited/p*",
    },
    {
        "AccessGrantId": "b-2",
        "Grantee": {"GranteeType": "DIRECTORY_USER", "GranteeIdentifier": USER},
        "Permission": "READ",
        "GrantScope": "s3://audited/one",
    },
)


@pytest.fixture
def granted(stub: StubServer, bucket: StubBucket, monkeypatch: pytest.MonkeyPatch) -> StubServer:
    """A bucket with disabled ACLs, whose account hands out credentials for some keys."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3_CONTROL", stub.url)
    bucket.ownership = BUCKET_OWNER_ENFORCED
    bucket.acl = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),))
    stub.world.grants = StubGrants(instance=INSTANCE, grants=GRANTS)
    for key in ("one", "one-more", "p-other/a", "p/a"):
        bucket.put(key, b"x")
    return stub


def audit(run: Run, stub: StubServer, *flags: str) -> dict[str, Any]:
    target = ("audit", "s3://audited", "--endpoint-url", stub.url, "--engine", "direct", "--only", "B05")
    _, out, err = run(*target, "--format", "json", *flags)
    assert out, err
    return dict(json.loads(out))


def lines_of(summary: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    parts = sorted(Path(summary["out"]).glob(f"{kind}/*.jsonl.gz"))
    return [json.loads(line) for part in parts for line in gzip.decompress(part.read_bytes()).splitlines()]


def objects(summary: dict[str, Any]) -> dict[str, tuple[str, list[str], list[str]]]:
    """Each object's verdict, audience and reasons, by key."""
    lines = lines_of(summary, "objects")
    return {line["key"]: (line["verdict"], line["audience"], line["reasons"]) for line in lines}


FOUND: Final = {
    "one": ("shared", [OF_USER], ["access-grant: b-2", "acls-disabled"]),
    "one-more": ("private", [], ["acls-disabled"]),
    "p-other/a": ("shared", [f"account {ROLE}"], ["access-grant: a-1", "acls-disabled"]),
    "p/a": ("shared", [f"account {ROLE}"], ["access-grant: a-1", "acls-disabled"]),
}


def test_grants_share_the_objects_in_their_scope(run: Run, granted: StubServer) -> None:
    summary = audit(run, granted)
    assert objects(summary) == FOUND
    assert summary["verdicts"]["shared"] == 3
    assert (summary["findings"]["medium"], summary["rules_undecided"]) == (1, [])
    words = [phrase for phrase in summary["not_looked_at"] if "Access Grants" in phrase]
    assert words == ["roles of the locations of S3 Access Grants: a grant reaches as far as its role may read"]
    calls = [logged.operation for logged in granted.requests if "AccessGrants" in logged.operation]
    wanted = ["GetAccessGrantsInstanceResourcePolicy", "ListAccessGrants", "ListAccessGrantsInstances"]
    assert sorted(calls) == wanted
    (finding,) = lines_of(summary, "findings")
    found = (finding["rule"], finding["key"], finding["grantee"], finding["permission"])
    assert found == ("B05", None, f"account {ROLE}", "READWRITE")
    assert "through the S3 Access Grant a-1 on s3://audited/p*" in finding["message"]


def test_the_folder_alone_gives_the_same_again(run: Run, granted: StubServer) -> None:
    summary = audit(run, granted)
    granted.forget()
    code, out, err = run("judge", summary["out"], "--format", "json")
    assert objects(json.loads(out)) == FOUND, (code, err)
    code, out, _ = run("explain", "s3://audited/one", "--run", summary["out"])
    assert f"s3://audited/one is shared with directory user {USER}" in out
    assert "opened by the grant b-2 of S3 Access Grants, as far as the role of its location may read" in out
    code, out, _ = run("who", USER, "--run", summary["out"])
    assert "shared: 1 object" in out
    code, out, _ = run("what-if", summary["out"], "--trust", USER, "--format", "json")
    assert [(move["before"], move["after"], move["objects"]) for move in json.loads(out)["moves"]] == [
        ("shared", "private", 1)
    ]
    assert granted.calls == []
