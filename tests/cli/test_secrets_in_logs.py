"""No secret is written on any level: every source of credentials answers with markers, and all that a run writes is
searched for them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.logs import clean, speaks_no_secret
from tests.support.engine_names import OURS_FIRST
from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub_calls import Call, Reply
from tests.support.servers.stub_xml import STS, document, tag
from tests.support.servers.world import World

MARKER: Final = "MARKER"
"""Stands in each secret."""
ACCOUNT: Final = "111122223333"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/auditor"
SECRET: Final = f"{MARKER}/secret+key/"
TOKEN: Final = f"{MARKER}/session+token=="
SOON: Final = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
KEYS: Final = {"AccessKeyId": "ASIAMADEUP", "SecretAccessKey": SECRET, "Expiration": SOON}
DRIVER: Final = """
import json, os, sys
from auditor.cli.main import main
for name, environment, arguments in json.load(sys.stdin):
    for variable in [one for one in os.environ if one.startswith("AWS_")]:
        del os.environ[variable]
    os.environ.update(environment)
    print(name, main(arguments), flush=True)
"""


def _json(value: dict[str, Any]) -> Reply:
    return Reply(200, {"Content-Type": "application/json"}, json.dumps(value).replace("/", "\\/").encode())


def _answer(call: Call) -> Reply | None:
    """Answer as STS, SSO, the server of a container and that of an instance do."""
    action = call.form.get("Action", "")
    if action.startswith("AssumeRole"):
        assert MARKER in "".join((call.form.get("ExternalId", ""), call.form.get("WebIdentityToken", "")))
        credentials = "".join(tag(name, value) for name, value in KEYS.items()) + tag("SessionToken", TOKEN)
        user = tag("Arn", f"arn:aws:sts::{ACCOUNT}:assumed-role/auditor/s") + tag("AssumedRoleId", "A:s")
        result = f"<Credentials>{credentials}</Credentials><AssumedRoleUser>{user}</AssumedRoleUser>"
        body = document(f"{action}Response", f"<{action}Result>{result}</{action}Result>", STS)
        return Reply(200, {"Content-Type": "text/xml"}, body)
    path = f"{call.bucket}/{call.key}"
    if path == "federation/credentials":
        assert MARKER in call.headers["x-amz-sso_bearer_token"]
        expiration = int(datetime.now(UTC).timestamp() + 3600) * 1000
        role = {"accessKeyId": "ASIAMADEUP", "secretAccessKey": SECRET, "sessionToken": TOKEN, "expiration": expiration}
        return _json({"roleCredentials": role})
    if path == "container/creds":
        assert MARKER in call.headers["authorization"]
        return _json({**KEYS, "Token": TOKEN})
    if path == "latest/api/token":
        return Reply(200, {"Content-Type": "text/plain"}, f"{MARKER}-instance".encode())
    if path.startswith("latest/meta-data/iam/security-credentials/"):
        assert MARKER in call.headers["x-aws-ec2-metadata-token"]
        if path.endswith("/"):
            return Reply(200, {"Content-Type": "text/plain"}, b"instance-role")
        return _json({"Code": "Success", "Type": "AWS-HMAC", **KEYS, "Token": TOKEN})
    return None


def _environments(folder: Path, url: str) -> dict[str, dict[str, str]]:
    """Return the environment of each source of credentials, and write its files."""
    home = folder / "home"
    (home / ".aws" / "sso" / "cache").mkdir(parents=True)
    cached = {"startUrl": "https://sso.example", "region": "us-east-1", "expiresAt": SOON}
    name = hashlib.sha1(b"https://sso.example", usedforsecurity=False).hexdigest()
    (home / ".aws" / "sso" / "cache" / f"{name}.json").write_text(
        json.dumps({**cached, "accessToken": f"{MARKER}-bearer"})
    )
    (folder / "web-token").write_text(f"{MARKER}.web.token")
    own = f"aws_access_key_id = AKIAMADEUP\naws_secret_access_key = {MARKER}/own\n"
    (folder / "config").write_text(
        f"[profile own]\n{own}[profile role]\nrole_arn = {ROLE}\nsource_profile = own\n"
        f"external_id = {MARKER}-external\n"
        f"[profile web]\nrole_arn = {ROLE}\nweb_identity_token_file = {folder / 'web-token'}\n"
        f"[profile sso]\nsso_start_url = https://sso.example\nsso_region = us-east-1\nsso_account_id = {ACCOUNT}\n"
        "sso_role_name = auditor\n[default]\n"
    )
    common = {
        "HOME": str(home),
        "AWS_CONFIG_FILE": str(folder / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none"),
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CA_BUNDLE": os.environ["AWS_CA_BUNDLE"],
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with_keys = {"AWS_ACCESS_KEY_ID": "AKIAMADEUP", "AWS_SECRET_ACCESS_KEY": f"{MARKER}/own"}
    container = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/container/creds",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": f"{MARKER}-authorization",
    }
    instance = {"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{url}/"}
    return {
        "role": {**common, "AWS_PROFILE": "role"},
        "web identity": {**common, "AWS_PROFILE": "web"},
        "sso": {**common, "AWS_PROFILE": "sso"},
        "container": {**common, **container},
        "instance": {**common, **instance},
        "estate": {**common, **with_keys},
        "session": {**common, **with_keys, "AWS_SESSION_TOKEN": TOKEN},
    }


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_no_secret_is_written_on_the_highest_level(tmp_path: Path, engine: str) -> None:
    def command(out: Path, name: str) -> list[str]:
        target = ["--estate", str(tmp_path / "estate.toml")] if name == "estate" else ["s3://audited"]
        return ["audit", *target, "-vvv", "--engine", engine, "--out", str(out)]

    world = World(account=ACCOUNT)
    world.add("audited", account=ACCOUNT).put("a.txt", b"x")
    (tmp_path / "estate.toml").write_text(
        f'[[accounts]]\nid = "{ACCOUNT}"\nrole = "{ROLE}"\nexternal_id = "{MARKER}-x"\n'
    )
    work = tmp_path / "work"
    work.mkdir()
    with HookedServer(world, _answer) as server:
        environments = _environments(tmp_path, server.url)
        runs = [
            (name, environment, command(work / name.replace(" ", "-"), name))
            for name, environment in environments.items()
        ]
        done = subprocess.run(
            [sys.executable, "-c", DRIVER], input=json.dumps(runs), capture_output=True, text=True, cwd=work, check=True
        )
    names = [name for name, *_ in runs]
    ended = [line.rpartition(" ") for line in done.stdout.splitlines() if line.rpartition(" ")[0] in names]
    assert [name for name, *_ in ended] == names, done.stderr
    assert {code for *_, code in ended} <= {"0", "3", "4"}, done.stderr
    actions = {call.form.get("Action") for call in server.calls}
    assert {"AssumeRole", "AssumeRoleWithWebIdentity"} <= actions
    assert "DEBUG" in done.stderr
    written = {"stdout": done.stdout, "stderr": done.stderr}
    for path in work.rglob("*"):
        if path.is_file():
            written[str(path)] = path.read_bytes().decode("latin-1")
    leaks = [line for text in written.values() for line in text.splitlines() if MARKER in line]
    assert leaks == []


TEXTS: Final = (
    f"<SecretAccessKey>{SECRET}</SecretAccessKey>",
    f'<SessionToken xmlns="a"><![CDATA[{TOKEN}]]></SessionToken>',
    f"<SecretAccessKey>{SECRET.replace('+', '&#43;')}",
    json.dumps({"SecretAccessKey": SECRET}).replace("/", "\\/"),
    repr(json.dumps({"Token": TOKEN}).replace("/", "\\/").encode()),
    f"ExternalId={MARKER}-x&Action=AssumeRole",
    repr({"x-amz-sso_bearer_token": f"{MARKER}-bearer"}),
    repr({"Authorization": f"Bearer {MARKER}-bearer"}),
    f"x-aws-ec2-metadata-token: {MARKER}-instance",
    f"WebIdentityToken={MARKER}.web.token",
    repr({"aws_secret_access_key": SECRET, "accessToken": TOKEN, "clientSecret": SECRET, "refreshToken": TOKEN}),
)
"""A secret after its name, as a log has it."""


def test_a_secret_that_stands_after_its_name_is_hidden() -> None:
    for text in TEXTS:
        found = clean(f"the answer: {text}")
        assert MARKER not in found
        assert "token" not in found.replace("Token", "").replace("_token", "").replace("-token", ""), text
        assert "***" in found, text


def test_a_logger_of_requests_or_answers_is_silent() -> None:
    quiet = ("botocore.parsers", "aiobotocore.parsers", "botocore.endpoint", "new.sdk", "botocore")
    steps = ("auditor.s3.calls", "botocore.credentials", "urllib3.connectionpool")
    for level in (logging.DEBUG, logging.INFO):
        speaking = [
            name
            for name in (*quiet, *steps)
            if speaks_no_secret(logging.LogRecord(name, level, "", 0, "a body", (), None))
        ]
        assert speaking == [*steps]
