"""uv.lock serves each machine: it names the public index alone, and the SDK of each engine."""

from __future__ import annotations

import re
import tomllib

from tests.support.paths import ROOT

LOCK = (ROOT / "uv.lock").read_text(encoding="utf-8")


def test_it_names_no_index_but_the_public_one() -> None:
    assert set(re.findall(r"https?://[^/\"]+", LOCK)) == {"https://pypi.org", "https://files.pythonhosted.org"}


def test_it_has_the_newest_sdk_and_that_which_aioboto3_needs() -> None:
    versions = {
        tuple(map(int, one["version"].split("."))) for one in tomllib.loads(LOCK)["package"] if one["name"] == "boto3"
    }
    old, new = sorted(versions)
    assert old < (1, 44) <= new


def test_requirements_txt_has_the_sdk_that_aioboto3_needs() -> None:
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    assert {"aioboto3", "awscrt", "boto3", "httptools"} <= pinned.keys()
    assert not {"duckdb", "moto", "pytest"} & pinned.keys()
    assert f'name = "boto3"\nversion = "{pinned["boto3"]}"' in LOCK
