"""Write the Homebrew formula of a release: `python -m tools.formula --home URL dist/s3_auditor-X.Y.Z.tar.gz`.

It installs the command with its extra `cli` from source distributions, those that uv.lock names.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from packaging.markers import Marker

from tools import ROOT

PYTHON: Final = "3.13"
_SDIST: Final = re.compile(r"s3_auditor-([0-9]+\.[0-9]+\.[0-9]+)\.tar\.gz")
_HOME: Final = re.compile(r"https://[A-Za-z0-9._/-]+[A-Za-z0-9]")
_LINE: Final = re.compile(r"([a-z0-9-]+)==([^ \n]+)(?: ; (.+))?")
_EXPORT: Final = ("export", "--quiet", "--frozen", "--no-header", "--no-annotate", "--no-hashes", "--no-emit-project")
_FORMULA: Final = """class S3Auditor < Formula
  include Language::Python::Virtualenv

  desc "Who can read each object of an S3 bucket"
  homepage "{home}"
  url "{home}/releases/download/v{version}/{name}"
  sha256 "{digest}"
  license "Apache-2.0"

  depends_on "python@{python}"

{resources}
  def install
    virtualenv_install_with_resources
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/auditor --version")
  end
end
"""
_RESOURCE: Final = """  resource "{name}" do
    url "{url}"
    sha256 "{digest}"
  end
"""


def formula(sdist: Path, home: str) -> str:
    """Return the formula's text. sdist: the release's own. home: the URL of the project, below which releases lie.

    Raises ValueError if the file's name has no version, or if `home` is no plain https URL.
    """
    found = _SDIST.fullmatch(sdist.name)
    if found is None:
        raise ValueError(f"{sdist.name} is no source distribution of a release: make release writes it")
    if _HOME.fullmatch(home) is None:
        raise ValueError(f"'{home}' is no URL of a project: give https://HOST/OWNER/NAME")
    return _FORMULA.format(
        home=home,
        version=found[1],
        name=sdist.name,
        digest=hashlib.sha256(sdist.read_bytes()).hexdigest(),
        python=PYTHON,
        resources="\n".join(_RESOURCE.format(**one) for one in _resources()),
    )


def _resources() -> Iterator[dict[str, str]]:
    """Yield name, URL and digest of each source distribution that the command needs."""
    locked = {(one["name"], one.get("version")): one for one in _lock()["package"]}
    for name, version in _requirements():
        sdist = locked[name, version]["sdist"]
        yield {"name": name, "url": sdist["url"], "digest": sdist["hash"].removeprefix("sha256:")}


def _requirements() -> Iterator[tuple[str, str]]:
    """Yield name and version of each package that the base and the extra `cli` need on macOS and Linux."""
    command = [str(ROOT / "tools" / "uv"), *_EXPORT, "--extra", "cli"]
    exported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603 - ours
    environment = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.0", "sys_platform": "darwin"}
    for name, version, marker in _LINE.findall(exported):
        if not marker or Marker(marker).evaluate(environment):
            yield name, version


def _lock() -> dict[str, Any]:
    return tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the formula. Return 0, or 2 if it cannot be made."""
    parser = argparse.ArgumentParser(prog="python -m tools.formula", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sdist", type=Path, help="the release's source distribution")
    parser.add_argument("--home", required=True, metavar="URL", help="the project's URL, below which releases lie")
    given = parser.parse_args(arguments)
    try:
        sys.stdout.write(formula(given.sdist, given.home.rstrip("/")))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
