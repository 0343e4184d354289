"""The recipes of two pages work: their commands run against a stub, and end with the codes that the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.object import ALL_USERS, Grant
from tests.architecture.test_schemas import policy
from tests.support.paths import ROOT
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, STRANGER, StubBucket

PAGES: Final = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("cookbook.md", "acl-retirement.md")]
RECIPES: Final = dict(re.findall(r"<!-- recipe: (.*?) -->\n```\w+\n(.*?)```", "".join(PAGES), re.DOTALL))
AWS: Final = """#!/bin/sh
# The aws command of the tests: `s3 cp FILE -`, and `s3api list-buckets`.
case "$1" in s3) cat "$3" ;; *) printf 'my-bucket\\tother\\n' ;; esac
"""
pytestmark = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("bash")), reason="the recipes need bash and jq"
)

Recipe = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def bucket(stub: StubServer) -> StubBucket:
    found = stub.world.add("my-bucket")
    found.put("site/index.html", b"x")
    found.put("private", b"x")
    return found


@pytest.fixture
def run(stub: StubServer, tmp_path: Path) -> Recipe:
    """Run shell code in an empty folder, with `auditor` and a small `aws` on the path, and the stub for AWS."""
    tools = tmp_path / "tools"
    for name, text in {"auditor": f'#!/bin/sh\nexec "{sys.executable}" -m auditor "$@"\n', "aws": AWS}.items():
        tools.mkdir(exist_ok=True)
        (tools / name).write_text(text)
        (tools / name).chmod(stat.S_IRWXU)
    (tmp_path / "work").mkdir()
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "AWS_ENDPOINT_URL": stub.url, "PYTHONPATH": str(ROOT)}

    def call(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        code = code.replace("s3://reports/audits", str(tmp_path / "work" / "auditor-runs"))
        script = ["bash", "-c", code, "recipe", *arguments]
        return subprocess.run(script, cwd=tmp_path / "work", env=environ, capture_output=True, text=True, timeout=120)

    return call


def made(tmp_path: Path, name: str) -> str:
    return (tmp_path / "work" / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_gate_passes_known_findings_and_stops_new_ones_and_holes(
    run: Recipe, bucket: StubBucket, tmp_path: Path
) -> None:
    assert run(RECIPES["gate"], "my-bucket", "runs").returncode == 3  # nothing blocks public access: known from now on
    known = run(RECIPES["gate"], "my-bucket", "runs")
    assert (known.returncode, known.stdout) == (0, "no new finding, nothing unread\n"), known.stderr
    bucket.put("salaries.csv", b"x", acl="public-read")
    found = run(RECIPES["gate"], "my-bucket", "runs")
    assert (found.returncode, found.stdout) == (3, "new findings: see audit.md\n")
    assert "salaries&#46;csv" in made(tmp_path, "audit.md")
    assert run(RECIPES["verdict"]).returncode == 3
    bucket.put("dark", b"x", deny={"acl"})
    dark = run(RECIPES["gate"], "my-bucket", "runs")
    assert dark.returncode == 4
    assert '"code":"AccessDenied"' in dark.stdout


def test_workflow_is_yaml_and_calls_the_script_of_the_page() -> None:
    steps = yaml.safe_load(RECIPES["actions"])["jobs"]["audit"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert "bash audit-gate.sh my-bucket s3://reports/audits" in commands
    assert "# audit-gate.sh BUCKET OUT" in RECIPES["gate"]


@pytest.mark.slow
def test_many_buckets_have_a_row_each(run: Recipe, bucket: StubBucket, stub: StubServer) -> None:
    stub.world.add("other").put("k", b"x", acl="public-read")
    done = run(RECIPES["many"])
    assert sorted(done.stdout.splitlines()) == ["my-bucket\ttrue\t0\t0\t", "other\ttrue\t1\t0\t"]


@pytest.mark.slow
def test_a_large_bucket_is_estimated_and_audited_in_two_processes(run: Recipe, bucket: StubBucket) -> None:
    done = run(RECIPES["large"])
    assert done.returncode == 3, done.stderr  # nothing blocks public access
    assert "this estimate   it listed only" in done.stdout
    assert done.stdout.count("2 objects listed = 2 audited + 0 that could not be checked: complete") == 2


@pytest.mark.slow
def test_one_rule_sends_no_head(run: Recipe, bucket: StubBucket, stub: StubServer) -> None:
    done = run(RECIPES["one rule"])
    assert done.returncode == 0, done.stderr
    assert (stub.count("HeadObject"), stub.count("GetObjectAcl")) == (0, 2)


@pytest.mark.slow
def test_website_is_accepted_and_an_open_object_beside_it_is_not(
    run: Recipe, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.policy, bucket.policy_is_public = json.dumps(policy("site/*", "my-bucket")), True
    (tmp_path / "work" / "auditor.toml").write_text(RECIPES["website"])
    done = run(RECIPES["website run"])
    assert done.returncode == 0, done.stdout
    bucket.put("salaries.csv", b"x", acl="public-read")
    assert run(RECIPES["website run"]).returncode == 3


@pytest.mark.slow
def test_an_object_that_became_exposed_is_listed(run: Recipe, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.put("known.csv", b"x", acl="public-read")
    run("auditor audit s3://my-bucket")
    bucket.put("salaries.csv", b"x", acl="public-read")
    run("auditor audit s3://my-bucket")
    done = run(RECIPES["since"])
    assert (done.returncode, done.stdout) == (0, "salaries.csv\n"), done.stderr
    assert made(tmp_path, "exposed.csv").split() == ["key", "known.csv", "salaries.csv"]


def test_policy_is_judged_before_it_is_put(run: Recipe, bucket: StubBucket, tmp_path: Path) -> None:
    assert run("auditor audit s3://my-bucket").returncode == 3  # nothing blocks public access
    (tmp_path / "work" / "policies").mkdir()
    (tmp_path / "work" / "policies" / "my-bucket.json").write_text(json.dumps(policy("site/*", "my-bucket")))
    assert run(RECIPES["what-if"]).returncode == 3
    sarif: Any = json.loads(made(tmp_path, "what-if.sarif"))
    assert sarif["runs"][0]["results"][0]["level"] == "error"


@pytest.mark.slow
def test_audiences_that_lose_access_without_acls_are_counted(run: Recipe, bucket: StubBucket) -> None:
    for key in ("a", "b"):
        bucket.put(key, b"x", acl="public-read")
    done = run(RECIPES["acls off"])
    assert done.stdout.splitlines()[-1].split() == ["2", "anyone"]


@pytest.mark.slow
def test_acls_are_retired_without_a_loss_for_the_partner(run: Recipe, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.put("partner", b"x", grants=(Grant(OWNER, "FULL_CONTROL"), Grant(STRANGER, "READ")))
    bucket.put("forgotten", b"x", acl="public-read")
    grants = run(RECIPES["grants"]).stdout.splitlines()
    assert {f"{STRANGER},READ,shared,1", f"{ALL_USERS},READ,exposed,1", "read,,4"} < set(grants)
    found = "run=$(jq -r .out before.json)\n"
    losers = run(found + RECIPES["losers"]).stdout.splitlines()[-4:]
    assert [line.split()[0] for line in losers] == ["1", "1", "forgotten", "partner"]
    assert {" ".join(line.split()[1:]) for line in losers[:2]} == {"anyone", f"canonical-id {STRANGER}"}
    kit = run(found + RECIPES["kit"])
    assert kit.returncode == 0, kit.stderr
    assert STRANGER not in kit.stdout.split("Lose access")[1]
    bucket.policy = made(tmp_path, "kit/policy.json")
    bucket.ownership = BUCKET_OWNER_ENFORCED
    after = run(found + RECIPES["after"])
    assert "the object ownership changed: moved 1 object\n" in after.stdout
    assert [line for line in after.stdout.splitlines() if ">" in line] == ["Resolved    exposed > private forgotten"]


@pytest.mark.slow
def test_fixity_is_recorded_verified_checked_and_exported(run: Recipe, bucket: StubBucket, tmp_path: Path) -> None:
    done = run(f"set -e\n{RECIPES['fixity']}")
    assert done.returncode == 0, done.stderr
    assert made(tmp_path, "history.csv").count("\n") == 3
    bucket.objects.remove("private")
    assert "MISSING" in run("auditor verify s3://my-bucket --ledger sqlite:digests.db --grace 0s").stdout


def test_each_recipe_is_tried() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in RECIPES if f'RECIPES["{name}"]' not in source.replace("'", '"')] == []
