"""A probe of audits on a real server: the server answers strangers as each verdict says, and a planted lie is found."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.config.settings import Settings
from auditor.offline.folder_place import open_run
from auditor.offline.probe.probe_result import ObjectResult, ProbeResult
from auditor.offline.probe.probe_run import ProbeOrder, ProbeRequest, probe
from auditor.s3.rate import RateLimit
from tests.support.servers.rgw import RgwServer
from tests.system.real.conftest import Command
from tests.system.real.world import BUCKETS, CANNED, GRANTEES, PERMISSIONS, STATEMENTS, World, grant, put_policy

MANY: Final = "probe"
ROUNDS: Final = 7
"""Objects of each ACL under each statement."""
ALL: Final = ProbeOrder(sample=5000, most=5000, address="127.0.0.1", profile="stranger")


@pytest.fixture(autouse=True)
def profiles(rgw: RgwServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The buckets' owner by the environment, the stranger by a profile."""
    path, stranger = tmp_path / "credentials", rgw.stranger
    path.write_text(
        f"[stranger]\naws_access_key_id={stranger.access_key}\naws_secret_access_key={stranger.secret_key}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", rgw.owner.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", rgw.owner.secret_key)


@pytest.fixture(scope="module")
def many(rgw: RgwServer, world: World) -> str:
    """A bucket of 2,000 objects: each ACL under each statement of the policy, and under none."""
    acls: dict[str, dict[str, str]] = {f"canned-{name}": {"ACL": name} for name in CANNED}
    for (name, grantee), permission in product(GRANTEES.items(), PERMISSIONS):
        acls[f"grant-{name}-{permission}"] = grant(permission, grantee)
    with closing(rgw.client(rgw.owner)) as owner:
        owner.create_bucket(Bucket=MANY)
        for prefix, number, (name, acl) in product(("none", *STATEMENTS), range(ROUNDS), acls.items()):
            owner.put_object(Bucket=MANY, Key=f"{prefix}/{number}/{name}", Body=b"", **acl)
        put_policy(owner, MANY, tuple(STATEMENTS))
    return MANY


def audited(auditor: Command, rgw: RgwServer, tmp_path: Path, bucket: str, *flags: str) -> Path:
    """Audit a bucket, and return the run's folder."""
    where = ("--endpoint-url", rgw.url, "--out", str(tmp_path / "runs"))
    return Path(json.loads(auditor("audit", f"s3://{bucket}", *where, *flags))["out"])


async def probed(rgw: RgwServer, folder: Path, order: ProbeOrder = ALL) -> ProbeResult:
    with open_run(folder) as run:
        settings = Settings(endpoint_url=rgw.url, max_rate=None, retry_seconds=1.0)
        return await probe(run, settings, ProbeRequest(order, lambda sentence: None), rate=RateLimit(None))


def lines_of(found: ProbeResult) -> list[str]:
    return [line for line in found.text().splitlines() if line.startswith("DISAGREES")]


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize("bucket", BUCKETS)
async def test_agrees_with_the_server(
    auditor: Command, rgw: RgwServer, world: World, tmp_path: Path, bucket: str, versions: bool
) -> None:
    folder = audited(auditor, rgw, tmp_path, bucket, *(("--versions",) if versions else ()))
    found = await probed(rgw, folder)
    assert lines_of(found) == []
    assert found.compared > found.sampled // 3
    assert found.number(ObjectResult.CHANGED, ObjectResult.DELETED) == 0


async def test_agrees_on_each_of_two_thousand_objects(
    auditor: Command, rgw: RgwServer, many: str, tmp_path: Path
) -> None:
    folder = audited(auditor, rgw, tmp_path, many, "--semantics", "ceph")
    found = await probed(rgw, folder)
    assert found.sampled == 18 * 16 * ROUNDS
    assert (lines_of(found), found.exit_code) == ([], 0)
    assert found.compared >= 1500, found.text()
    assert found.results[ObjectResult.AGREED].keys() == {"exposed", "shared", "masked", "private"}


def test_the_command(auditor: Command, rgw: RgwServer, world: World, tmp_path: Path) -> None:
    folder = audited(auditor, rgw, tmp_path, "acls/canned/")
    found = json.loads(auditor("probe", str(folder), "--endpoint-url", rgw.url))
    assert (found["sampled"], found["compared"], found["disagreed"]) == (len(CANNED), len(CANNED), 0)
    assert found["answers"]["unsigned"].keys() == {"200", "403"}


async def test_without_a_vantage_networks_are_told_apart(
    auditor: Command, rgw: RgwServer, many: str, tmp_path: Path
) -> None:
    folder = audited(auditor, rgw, tmp_path, many)
    found = await probed(rgw, folder, ProbeOrder(sample=5000, most=5000))
    assert lines_of(found) == []
    assert found.left_out["vantage not known"] > 0
    assert found.left_out["any AWS account, without --as"] > 0


async def test_a_planted_wrong_verdict_is_found(auditor: Command, rgw: RgwServer, world: World, tmp_path: Path) -> None:
    folder = audited(auditor, rgw, tmp_path, "acls")
    planted = {"canned/public-read": "private", "canned/private": "exposed"}
    for path in (folder / "objects").glob("*.jsonl.gz"):
        lines: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        for line in lines:
            if line["key"] in planted:
                line |= {"verdict": planted[line["key"]], "audience": [], "reasons": []}
                line["audience"] = ["anyone"] if line["verdict"] == "exposed" else []
        path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    found = await probed(rgw, folder)
    assert found.exit_code == 3
    assert {one.line.key for one in found.disagreements} == planted.keys()
