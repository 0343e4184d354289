"""An estate of 20 buckets in three accounts on moto's server, which keeps accounts apart by their access keys."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import boto3
import pytest

from auditor.cli.main import main
from tests.support.servers.forwarding import Forwarding

ACCOUNTS: Final = {"111122223333": 10, "222233334444": 6, "333344445555": 4}
"""The number of buckets of each account."""
LOST: Final = "333344445555"
_DENIED: Final = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"
_KEY: Final = re.compile(r"Credential=([^/]+)/")


def role(account: str) -> str:
    return f"arn:aws:iam::{account}:role/auditor"


class Denying(Forwarding):
    """It refuses a role and a bucket. asked_by: the paths asked for, by the access key that signed."""

    def __init__(self, behind: str) -> None:
        super().__init__(behind)
        self.role = self.bucket = ""
        self.asked_by: dict[str, set[str]] = {}

    def asked(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        found = _KEY.search(headers.get("authorization", ""))
        self.asked_by.setdefault(found[1] if found else "", set()).add(target.partition("?")[0])

    def refused(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes] | None:
        if self.role and parse_qs(body.decode(errors="replace")).get("RoleArn") == [self.role]:
            return 403, b"<ErrorResponse>" + _DENIED + b"</ErrorResponse>"
        if self.bucket and re.match(rf"/{self.bucket}([/?]|$)", target):
            return 403, _DENIED
        return None


def fill(url: str) -> None:
    """Make the buckets of each account, by a session of its role."""
    sts = boto3.client("sts", endpoint_url=url)
    for account, number in ACCOUNTS.items():
        found = sts.assume_role(RoleArn=role(account), RoleSessionName="fill")["Credentials"]
        s3 = boto3.client(
            "s3",
            endpoint_url=url,
            aws_access_key_id=found["AccessKeyId"],
            aws_secret_access_key=found["SecretAccessKey"],
            aws_session_token=found["SessionToken"],
        )
        for index in range(number):
            s3.create_bucket(Bucket=f"b{account}-{index:02}")
        s3.put_object(Bucket=f"b{account}-00", Key="open", Body=b"x", ACL="public-read")


@pytest.mark.slow
def test_estate_adds_up_and_names_its_holes(
    moto_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(moto_url)
    first, second, _ = ACCOUNTS
    Path("estate.toml").write_text(
        "".join(f'[[accounts]]\nrole = "{role(account)}"\n' for account in ACCOUNTS)
        + f'[[exclude]]\npattern = "b{first}-03"\nreason = "scratch"\nowner = "a"\nuntil = "2027-01-31"\n'
        + f'[[exclude]]\npattern = "b{second}-04"\nreason = "old"\nowner = "b"\nuntil = "2026-01-31"\n'
    )
    with Denying(moto_url) as server:
        arguments = ("audit", "--estate", "estate.toml", "--only", "O02", "--endpoint-url", server.url)
        assert main(arguments) == 3
        assert "20 buckets in 3 accounts = 19 audited + 1 excluded + 0 holes\n" in capfd.readouterr().out
        server.role, server.bucket = role(LOST), f"b{first}-07"
        server.asked_by.clear()
        assert main(arguments) == 4
        out = capfd.readouterr().out
    assert "20 buckets in 3 accounts = 14 audited + 1 excluded + 5 holes; 1 of the accounts is a hole" in out
    assert f"the pattern b{second}-04 of b ended on 2026-01-31: 1 bucket is no longer excluded" in out
    found: dict[str, Any] = json.loads(Path("auditor-runs/estate=estate/estate.json").read_text())
    holes = {one["bucket"] for one in found["buckets"] if one["outcome"] == "hole"}
    assert holes == {f"b{first}-07", *(f"b{LOST}-{index:02}" for index in range(4))}
    assert all(f"hole: {name}: " in out for name in holes)
    assert f"hole: account {LOST}: " in out
    by_name = {one["bucket"]: one for one in found["buckets"]}
    assert by_name[f"b{first}-03"]["outcome"] == "excluded"
    assert by_name[f"b{second}-04"]["outcome"] == "audited"
    assert found["verdicts"]["exposed"] == 2
    assert server.asked_by.pop("testing") == {"/"}, "the own credentials only call STS"
    assert not any(path.startswith(f"/b{LOST}") for paths in server.asked_by.values() for path in paths)
