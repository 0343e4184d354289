"""`auditor explain`, live on the stub and from run folders: one clear sentence for each key without an answer."""

from __future__ import annotations

import json

import pytest

from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from tests.cli.conftest import Run
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.stub import StubServer
from tests.support.servers.world import STRANGER, Odd


@pytest.fixture
def run(run: Run, stub: StubServer) -> Run:
    """Run one command on the stub's bucket."""
    return lambda *arguments: run(*arguments, "--endpoint-url", stub.url)


def audited(run: Run, *flags: str) -> str:
    """Audit the bucket, and return the run's ID."""
    _, out, err = run("audit", "s3://audited", "--format", "json", *flags)
    assert out, err
    return str(json.loads(out)["run"])


def test_live(run: Run, stub: StubServer) -> None:
    stub.put("audited", "a", acl="public-read")
    stub.put("audited", "ab", acl="private")
    stub.put("audited", "denied", deny={"acl"})
    stub.forget()
    code, out, _ = run("explain", "s3://audited/a", "s3://audited/ab")
    assert code == 0
    assert "s3://audited/a is exposed" in out
    assert "s3://audited/ab is private: " in out
    assert out.count("not looked at:") == 1
    assert max(map(len, out.partition("not looked at:")[2].splitlines())) <= 100
    counts = [stub.count(name) for name in ("ListObjectsV2", "GetObjectAcl", "HeadObject", "GetBucketPolicy")]
    assert counts == [2, 2, 2, 1]
    code, out, _ = run("explain", "s3://audited/denied")
    assert (code, "s3://audited/denied is unknown" in out) == (4, True)
    code, out, err = run("explain", "s3://audited/none", "s3://audited/ab")
    assert (code, "s3://audited/ab is private" in out, "s3://audited/none does not exist" in err) == (2, True, True)
    stub.world.buckets["audited"].ownership = BUCKET_OWNER_ENFORCED
    stub.put("audited", "foreign", acl="public-read", owner=STRANGER)
    stub.forget()
    code, out, _ = run("explain", "s3://audited/foreign")
    assert (code, "s3://audited/foreign is private: " in out, stub.count("GetObjectAcl")) == (0, True, 0)
    stub.world.buckets["audited"].odd["ListObjectsV2"] = Odd.DENIED
    assert "grant s3:ListBucket" in said(run, 1, "s3://audited/a")


def test_from_a_run_without_a_request(run: Run, stub: StubServer) -> None:
    stub.put("audited", "a", acl="public-read")
    run_id = audited(run)
    stub.forget()
    by_id = run("explain", "s3://audited/a", "--run", run_id, "--out", "auditor-runs")
    by_path = run("explain", "s3://audited/a", "--run", f"auditor-runs/bucket=audited/run={run_id}/")
    assert by_id == by_path
    assert by_id[0] == 0
    assert "s3://audited/a is exposed" in by_id[1]
    assert stub.requests == []


def test_odd_keys(run: Run, stub: StubServer) -> None:
    keys = [*ODD_KEYS.values()]
    for key in keys:
        stub.put("audited", key, acl="authenticated-read")
        if f"{key}0" not in keys and len(key.encode()) < 1024:
            stub.put("audited", f"{key}0")
    targets = [f"s3://audited/{key}" for key in keys]
    for flags in ((), ("--run", audited(run))):
        code, out, err = run("explain", *targets, "--format", "json", *flags)
        assert (code, err) == (0, "")
        found = [(one["key"], one["verdict"]) for one in map(json.loads, out.splitlines())]
        assert found == [(key, "exposed") for key in keys]
        _, out, _ = run("explain", *targets, *flags)
        assert all(line.isprintable() for line in out.split("\n"))


def test_versions(run: Run, stub: StubServer) -> None:
    stub.world.buckets["audited"].versioning = "Enabled"
    old = stub.put("audited", "a", b"old", acl="public-read").version_id
    new = stub.put("audited", "a", b"new").version_id
    assert old
    assert new
    run_id = audited(run, "--versions")

    def verdicts(*flags: str) -> dict[str | None, str]:
        code, out, err = run("explain", "s3://audited/a", "--format", "json", *flags)
        assert (code, err) == (0, "")
        found = [json.loads(line) for line in out.splitlines()]
        return {one["version_id"]: one["verdict"] for one in found}

    assert verdicts() == {None: "private"}
    assert verdicts("--version-id", old) == {old: "exposed"}
    assert verdicts("--version-id", new) == {new: "private"}
    assert verdicts("--run", run_id) == {new: "private", old: "exposed"}
    assert verdicts("--run", run_id, "--version-id", old) == {old: "exposed"}
    code, _, err = run("explain", "s3://audited/a", "--run", run_id, "--version-id", "none")
    assert code == 2
    assert "which has 2 other versions of the key" in err


def said(run: Run, code: int, *arguments: str) -> str:
    """The one sentence with which a command ends."""
    found, _, err = run("explain", *arguments)
    assert (found, err.count("\n")) == (code, 1), err
    assert err.isprintable() or err[:-1].isprintable()
    return err.removeprefix("auditor: ").rstrip("\n")


def test_a_key_that_is_not_there(run: Run, stub: StubServer) -> None:
    stub.put("audited", "ab")
    absent = "s3://audited/a does not exist: give the whole key, exactly as it is spelled"
    assert said(run, 2, "s3://audited/a") == absent
    assert "s3://audited/\\x1b[2J does not exist" in said(run, 2, "s3://audited/\x1b[2J")
    stub.world.buckets["audited"].odd["ListObjectVersions"] = Odd.DENIED
    assert said(run, 2, "s3://audited/a") == absent
    assert "is not a run folder" in said(run, 2, "s3://audited/a", "--run", "nowhere")
    assert "there is no run" in said(run, 2, "s3://audited/a", "--run", "20260102T030405Z-0a1b2c")


def test_a_delete_marker(run: Run, stub: StubServer) -> None:
    bucket = stub.world.buckets["audited"]
    bucket.versioning = "Enabled"
    version = stub.put("audited", "a").version_id
    marker = bucket.delete("a")
    assert version
    assert marker
    assert marker.version_id
    assert said(run, 2, "s3://audited/a") == (
        "s3://audited/a is deleted: its current version is a delete marker: name one of its 1 version with --version-id"
    )
    assert "may be one of its 1 delete marker" in said(run, 2, "s3://audited/a", "--version-id", marker.version_id)
    run_id = audited(run)
    assert "is not in the run" in said(run, 2, "s3://audited/a", "--run", run_id)
    code, out, _ = run("explain", "s3://audited/a", "--version-id", version)
    assert (code, "is private" in out) == (0, True)


def test_a_run_that_lacks_the_key(run: Run, stub: StubServer) -> None:
    stub.put("audited", "b/1")
    whole = audited(run)
    assert "the key did not exist then" in said(run, 2, "s3://audited/a", "--run", whole)
    assert "lists no versions" in said(run, 2, "s3://audited/b/1", "--run", whole, "--version-id", "v1")
    _, out, _ = run("audit", "s3://audited/b/", "--stop-at", "b/5", "--format", "json")
    part = json.loads(out)["run"]
    for key in ("a", "b/6"):
        assert said(run, 2, f"s3://audited/{key}", "--run", part).endswith("which covers s3://audited/b/ up to b/5")
    place = f"auditor-runs/bucket=audited/run={whole}"
    assert "covers the bucket audited" in said(run, 2, "s3://another/a", "--run", place)
