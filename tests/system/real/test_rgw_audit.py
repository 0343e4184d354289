"""Whole audits through the command line, held against what the server lets everybody do.

The run folder is read with gzip and json alone, as a user's script would.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.s3.engines import DEFAULT_ENGINE, ENGINES
from tests.support.audit_runs import without
from tests.support.offline import offline
from tests.support.paths import ROOT
from tests.support.servers.rgw import OTHER, OWNER, RgwServer
from tests.system.real.conftest import run_auditor
from tests.system.real.oracle import Truth
from tests.system.real.world import ACLS, BUCKETS, FOREIGN, IGNORED, POLICY, VERSIONS, Place, World

Truths = Mapping[Place, Truth]
Name = tuple[str, str | None]
"""Key and version_id of a line."""

NETWORKS: Final = {(POLICY, "allow-here/private"): "127.0.0.0/8", (POLICY, "allow-elsewhere/private"): "192.0.2.0/24"}
"""Objects that a statement opens to one network. The server is asked from an address of the first of them alone."""
CLOSED: Final = {(POLICY, "deny-all/private"), (POLICY, "deny-all/public-read")}
"""Objects of which everyone is denied everything: the owner cannot read the ACL, and it does not matter."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one audit left: exit code, summary, and the lines of its folder."""

    code: int
    summary: dict[str, Any]
    objects: dict[Name, dict[str, Any]]
    undecided: dict[Name, dict[str, Any]]
    findings: list[dict[str, Any]]

    def keys_of(self, *rules: str) -> set[str]:
        """The keys in which one of these rules found something."""
        return {finding["key"] for finding in self.findings if finding["rule"] in rules}


Audit = Callable[..., Run]


@pytest.fixture(scope="session")
def audit(rgw: RgwServer, truth: Truths, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """Audits a target with some flags as the buckets' owner; the same call is run once only."""
    done: dict[tuple[str, ...], Run] = {}

    def run(target: str, *flags: str) -> Run:
        if (target, *flags) not in done:
            done[target, *flags] = _run(rgw, tmp_path_factory.mktemp("runs"), target, *flags)
        return done[target, *flags]

    return run


def _run(rgw: RgwServer, out: Path, target: str, *flags: str) -> Run:
    where = ("--endpoint-url", rgw.url, "--out", str(out))
    code, text = run_auditor(rgw, ROOT, "audit", f"s3://{target}", *where, *flags, AUDITOR_RETRY_SECONDS="1")
    summary = json.loads(text)
    folder = out / f"bucket={summary['target']['bucket']}" / f"run={summary['run']}"
    return Run(code, summary, _by_name(folder, "objects"), _by_name(folder, "undecided"), _lines(folder, "findings"))


def _lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    parts = sorted((folder / kind).glob("*.jsonl.gz"))
    return [json.loads(line) for part in parts for line in gzip.decompress(part.read_bytes()).splitlines()]


def _by_name(folder: Path, kind: str) -> dict[Name, dict[str, Any]]:
    lines = _lines(folder, kind)
    named = {(line["key"], line["version_id"]): line for line in lines}
    assert len(named) == len(lines), "an object has two lines"
    return named


def expected_verdicts(place: Place, seen: Truth) -> set[str]:
    """By what the server did alone, but for the two named exceptions."""
    where = (place.bucket, place.key)
    if where in CLOSED:
        return {"masked"}
    if seen.acl != 200:
        return {"unknown"}
    if where in NETWORKS:
        return {"shared"}
    if seen.public:
        return {"exposed"}
    return {"shared"} if seen.other.anything else {"masked", "private"}


def current(world: World, bucket: str) -> dict[Name, Place]:
    """What an audit without versions must list."""
    return {(place.key, None): place for place in world.of(bucket) if place.latest}


def assert_agrees(run: Run, places: Mapping[Name, Place], truth: Truths) -> None:
    assert run.objects.keys() == places.keys()
    differences = {
        name: (line["verdict"], expected_verdicts(places[name], truth[places[name]]))
        for name, line in run.objects.items()
        if line["verdict"] not in expected_verdicts(places[name], truth[places[name]])
    }
    assert not differences


@pytest.mark.parametrize("bucket", BUCKETS)
def test_verdict_agrees_with_the_server_and_engines_leave_equal_runs(
    audit: Audit, world: World, truth: Truths, bucket: str
) -> None:
    runs = [audit(bucket, "--engine", engine) for engine in ENGINES]
    for run in runs:
        assert_agrees(run, current(world, bucket), truth)
        assert without(list(run.objects.values()), "since") == without(list(runs[0].objects.values()), "since")
        assert without(run.findings, "since") == without(runs[0].findings, "since")
        assert run.undecided == runs[0].undecided


@pytest.mark.parametrize("bucket", BUCKETS)
def test_audience_is_whom_the_server_lets_in(audit: Audit, world: World, truth: Truths, bucket: str) -> None:
    run, places = audit(bucket, "--engine", DEFAULT_ENGINE), current(world, bucket)
    for name, line in run.objects.items():
        seen = truth[places[name]]
        if network := NETWORKS.get((bucket, name[0])):
            assert line["audience"] == [f"network {network}"]
        elif line["verdict"] == "exposed":
            assert line["audience"] == ["anyone" if seen.anonymous.anything else "any-account"]
        elif line["verdict"] == "shared":
            assert line["audience"] in ([f"account {OTHER.arn}"], [f"canonical-id {OTHER.canonical_id}"])
        else:
            assert line["audience"] == []
        assert line["reasons"] or line["verdict"] == "private"


def test_the_semantics_are_found_out_and_every_rule_on_the_bucket_is_decided(audit: Audit) -> None:
    for engine in ENGINES:
        run = audit(POLICY, "--engine", engine)
        assert any("--semantics ceph" in words for words in run.summary["not_looked_at"]), engine
        assert any("the server lacks GetBucketOwnershipControls" in words for words in run.summary["not_looked_at"])
        assert run.summary["rules_undecided"] == []
        assert run.summary["rules"]["B01"] == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bucket", [VERSIONS, POLICY])
def test_verdict_of_each_version_agrees_with_the_server(
    audit: Audit, world: World, truth: Truths, bucket: str, engine: str
) -> None:
    run = audit(bucket, "--engine", engine, "--versions")
    versions: dict[Name, Place] = {(one.key, one.version_id or "null"): one for one in world.of(bucket)}
    assert_agrees(run, versions, truth)
    assert run.summary["coverage"]["delete_markers"] == len([m for m in world.markers if m.bucket == bucket])


def test_a_policy_that_names_users_is_not_called_public_though_the_server_says_so(owner: Any, audit: Audit) -> None:
    principal = {"AWS": [OTHER.arn, OWNER.arn]}
    statement = {
        "Effect": "Allow",
        "Principal": principal,
        "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::named/*",
    }
    owner.create_bucket(Bucket="named")
    owner.put_object(Bucket="named", Key="k", Body=b"k")
    owner.put_bucket_policy(Bucket="named", Policy=json.dumps({"Statement": [statement]}))
    assert owner.get_bucket_policy_status(Bucket="named")["PolicyStatus"]["IsPublic"]
    run = audit("named")
    assert "B04" not in run.summary["rules"]
    (line,) = run.objects.values()
    assert (line["verdict"], line["audience"]) == ("shared", [f"account {OTHER.arn}"])


@pytest.mark.parametrize("bucket", BUCKETS)
def test_undecided_is_what_the_owner_could_not_read(audit: Audit, world: World, truth: Truths, bucket: str) -> None:
    run = audit(bucket, "--engine", DEFAULT_ENGINE)
    expected = {}
    for name, place in current(world, bucket).items():
        denied = [
            {"action": action, "code": code}
            for action, code, status in (
                ("GetObjectAcl", "AccessDenied", truth[place].acl),
                ("HeadObject", "403", truth[place].head),
            )
            if status == 403
        ]
        if denied:
            expected[name] = denied
    assert {name: line["unread"] for name, line in run.undecided.items()} == expected
    assert {name for name, line in run.objects.items() if line["outcome"] == "undecided"} == expected.keys()


def test_ignore_public_acls_masks_every_public_grant(audit: Audit) -> None:
    run = audit(IGNORED, "--engine", DEFAULT_ENGINE)
    masked = {key for (key, _), line in run.objects.items() if line["verdict"] == "masked"}
    groups = {f"grant/{group}/" for group in ("everyone", "authenticated")}
    assert {key for key in masked if key.startswith("canned/")} == {
        "canned/public-read",
        "canned/public-read-write",
        "canned/authenticated-read",
    }
    assert {key for key in run.keys_of("O01", "O02", "O03", "O04", "O05") if key.startswith(tuple(groups))} <= masked
    assert len([key for key in masked if key.startswith(tuple(groups))]) == 8


def test_policy_that_denies_every_read_masks_a_public_acl(audit: Audit, truth: Truths, world: World) -> None:
    """With ACL rules alone no HEAD is sent, and the object that the owner may not read is audited all the same."""
    run = audit(f"{POLICY}/deny-get-any-version/", "--only", "O02")
    verdicts = {key: (line["outcome"], line["verdict"]) for (key, _), line in run.objects.items()}
    assert verdicts == {
        "deny-get-any-version/private": ("audited", "private"),
        "deny-get-any-version/public-read": ("audited", "masked"),
    }
    assert run.summary["calls"]["head"] == 0
    assert not truth[world.at(POLICY, "deny-get-any-version/public-read")].public


def test_findings_on_acls_are_what_others_can_do(audit: Audit, world: World, truth: Truths) -> None:
    foreign = audit(FOREIGN, "--engine", DEFAULT_ENGINE)
    assert foreign.code == 4, "it has holes"
    assert foreign.keys_of("O09") == {place.key for place in world.of(FOREIGN)} - {"own/private"}
    run = audit(ACLS, "--engine", DEFAULT_ENGINE)
    places = world.of(ACLS)
    assert run.keys_of("O01", "O02", "O03", "O04", "O05") == {place.key for place in places if truth[place].public}
    named = {place.key for place in places if truth[place].other.anything and not truth[place].public}
    assert run.keys_of("O07", "O08") == named | {"grant/other-and-everyone/READ"}


@pytest.mark.parametrize("flags", [(), ("--versions",)], ids=["current", "versions"])
@pytest.mark.parametrize("bucket", BUCKETS)
def test_judged_again_without_the_server_every_line_is_the_same(
    audit: Audit, bucket: str, flags: tuple[str, ...]
) -> None:
    before = Path(audit(bucket, *flags).summary["out"])
    done = offline("judge", before, "--format", "json")
    assert done.returncode in (0, 3, 4), done.stderr
    after = Path(json.loads(done.stdout)["out"])
    parts = sorted(file.relative_to(before) for file in before.glob("*/part-*"))
    assert parts
    assert sorted(file.relative_to(after) for file in after.glob("*/part-*")) == parts
    for part in parts:
        assert (after / part).read_bytes() == (before / part).read_bytes(), part
    for folder in (before, after):
        assert offline("check", folder).returncode == 0
