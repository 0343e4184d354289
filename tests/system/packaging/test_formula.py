"""The Homebrew formula: it names the release's source distribution, and those of uv.lock, by their digests."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.system.packaging.test_wheel import uv
from tools.formula import main

HOME = "https://example.org/owner/s3-auditor"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.tar.gz")
    return built


@pytest.fixture
def made(sdist: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["--home", f"{HOME}/", str(sdist)]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is not here")
def test_it_is_ruby(made: str) -> None:
    done = subprocess.run(["ruby", "-wc"], input=made, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("Syntax OK\n", "")


def test_it_names_the_release_and_what_the_lock_has_for_the_command_by_their_digests(made: str, sdist: Path) -> None:
    version = sdist.name.removeprefix("s3_auditor-").removesuffix(".tar.gz")
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    assert f'  url "{HOME}/releases/download/v{version}/{sdist.name}"\n  sha256 "{digest}"\n' in made
    pattern = r'  resource "(.*)" do\n    url "(.*)"\n    sha256 "([0-9a-f]{64})"\n  end\n'
    resources = {name: (url, digest) for name, url, digest in re.findall(pattern, made)}
    assert len(resources) == made.count("resource ")
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    sdists = {one["sdist"]["url"]: one["sdist"]["hash"] for one in packages if "sdist" in one}
    assert {f"sha256:{digest}": sdists[url] for url, digest in resources.values()} == {
        sdists[url]: f"sha256:{digest}" for url, digest in resources.values()
    }
    exported = uv("export", "--frozen", "--no-emit-project", "--no-hashes", "--no-annotate", "--extra", "cli")
    named = set(re.findall(r"^([a-z0-9-]+)==", exported, re.MULTILINE))
    assert {"argcomplete", "boto3", "uvloop"} <= resources.keys() <= named
    assert named - resources.keys() <= {"typing-extensions"}, "Pythons before that of the formula alone need it"


def test_a_release_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sdist = "s3_auditor-0.1.0.tar.gz"
    for home, name, word in (
        ('https://example.org/"; system("x")', sdist, "is no URL of a project"),
        (HOME, "s3_auditor-0.1.0-py3-none-any.whl", "is no source distribution of a release"),
        (HOME, sdist, "No such file"),
    ):
        assert main(["--home", home, str(tmp_path / name)]) == 2
        assert word in capsys.readouterr().err
