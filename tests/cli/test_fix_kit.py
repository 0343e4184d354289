"""`auditor fix-kit` over real run folders: its files, what they open, and a sentence for each wrong use."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import shlex
import stat
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest

from auditor.cli.main import main
from auditor.errors import RunStopped
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, Encryption, PublicAccessBlock
from auditor.model.object import ALL_USERS, ANONYMOUS_OWNER, AUTHENTICATED_USERS, LOG_DELIVERY, Acl, Grant
from auditor.offline.fix_kit.acl_jobs import MOST_RESTORED
from auditor.offline.fix_kit.build import FixKit
from auditor.offline.folder_place import open_run
from auditor.rules.bucket.b05_others_control import LOG_WRITER
from auditor.verdict.change import MOST_BYTES
from tests.hashing.batch.test_write_jobs import assert_botocore_takes
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, STRANGER, Odd, StubBucket

FULL: Final = Grant(OWNER, "FULL_CONTROL")
EVERYONE: Final = Grant(ALL_USERS, "READ")
TO_STRANGER: Final = Grant(STRANGER, "READ")
SITE: Final = """
[[exceptions]]
{kind}
prefix = "site/"
reason = "the public ``` site"
owner = "web"
until = 2026-12-31
"""
BY_VERDICT: Final = SITE.format(kind='verdict = "exposed"')
BY_RULE: Final = SITE.format(kind='rule = "O02"')

Write = Callable[..., dict[str, Any]]
Predict = Callable[[dict[str, Any]], list[dict[str, Any]]]
Run = Callable[..., str]


@pytest.fixture
def audited(
    stub: StubServer, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Audit the stub's bucket, and return the path of the run."""
    monkeypatch.chdir(tmp_path)

    def call(*flags: str, config: str = "") -> str:
        Path("auditor.toml").write_text(config)
        target = "s3://audited" if not flags or not flags[0].startswith("s3://") else flags[0]
        main(
            ["audit", target, "--format", "json", "--endpoint-url", stub.url, *(one for one in flags if one != target)]
        )
        return str(json.loads(capfd.readouterr().out)["out"])

    return call


@pytest.fixture
def write(audited: Run, stub: StubServer, capfd: pytest.CaptureFixture[str]) -> Write:
    """Audit, write the kit into ./kit without a request, and return its JSON."""

    def call(*flags: str, code: int = 0, config: str = "") -> dict[str, Any]:
        run = audited(*flags, config=config)
        stub.forget()
        found = main(["fix-kit", run, "--out", "kit", "--format", "json"])
        captured = capfd.readouterr()
        assert (found, captured.err, stub.requests) == (code, "", [])
        return dict(json.loads(captured.out))

    return call


@pytest.fixture
def predict(capfd: pytest.CaptureFixture[str]) -> Predict:
    """Type the commands that a kit names, and return their answers: on its policy if it has one, then on no ACLs."""

    def call(kit: dict[str, Any]) -> list[dict[str, Any]]:
        answers = []
        for command in kit["what_if"]:
            main([*shlex.split(command)[1:], "--format", "json"])
            answers.append(json.loads(capfd.readouterr().out))
        return answers

    return call


def statements() -> list[dict[str, Any]]:
    document = json.loads(Path("kit/policy.json").read_text())
    assert document["Version"] == "2012-10-17"
    return list(document["Statement"])


def rows(name: str) -> list[list[str]]:
    lines = Path("kit", name).read_text().splitlines()
    return [[unquote(cell, errors="surrogatepass") for cell in row] for row in csv.reader(lines)]


def moves(found: dict[str, Any]) -> dict[tuple[str, str], int]:
    return {(one["before"], one["after"]): one["objects"] for one in found["moves"]}


def resource(*keys: str) -> list[str]:
    return [f"arn:aws:s3:::audited/{key}" for key in keys]


def test_the_grants_become_a_policy_and_the_exposed_objects_private(
    write: Write, predict: Predict, stub: StubServer
) -> None:
    for key in ("docs/a", "docs/b"):
        stub.put("audited", key, grants=(FULL, TO_STRANGER))
    stub.put("audited", "mixed", grants=(FULL, EVERYONE, Grant(STRANGER, "FULL_CONTROL")))
    stub.put("audited", "open", acl="public-read")
    stub.put("audited", "private")
    kit = write()
    shared = {"Effect": "Allow", "Principal": {"CanonicalUser": [STRANGER]}}
    assert statements() == [
        {"Sid": "FromAcls1", **shared, "Action": ["s3:GetObject"], "Resource": resource("docs/*", "mixed")},
        {"Sid": "FromAcls2", **shared, "Action": ["s3:GetObjectAcl"], "Resource": resource("mixed")},
    ]
    assert kit["policy"]["grants_left_out"] == {"public": 2, "write-acp": 1}
    assert rows("acl-changes.csv") == [["audited", "mixed"], ["audited", "open"]]
    policy, off = predict(kit)
    assert moves(policy) == {}
    assert moves(off) == {("exposed", "private"): 1, ("exposed", "shared"): 1}
    assert kit["readiness"]["now"]["state"] == "not ready"
    assert kit["readiness"]["after_kit"] == {"state": "ready", "blocks": [], "unknown": []}


def test_the_files_of_a_kit_and_its_jobs_that_wait_for_their_owner(write: Write, stub: StubServer) -> None:
    stub.put("audited", "open", acl="public-read")
    stub.put("audited", "signed", acl="authenticated-read")
    kit = write()
    assert sorted(kit["files"]) == sorted(path.name for path in Path("kit").iterdir())
    assert stat.S_IMODE(Path("kit").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in Path("kit").iterdir()} == {0o600}
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []
    assert json.loads(Path("kit/kit.json").read_text()) == kit
    assert json.loads(Path("kit/readiness.json").read_text()) == kit["readiness"]
    lines = gzip.decompress(Path("kit/acl-snapshot.jsonl.gz").read_bytes()).splitlines()
    snapshot = [(one["key"], one["owner"], len(one["grants"])) for one in map(json.loads, lines)]
    assert snapshot == [("open", OWNER, 2), ("signed", OWNER, 2)]
    jobs = [*kit["jobs"], *kit["restore"]["jobs"]]
    named = [("acl-job.json", 2), ("restore-01.json", 1), ("restore-02.json", 1)]
    assert [(job["request"], job["objects"]) for job in jobs] == named
    tokens = set()
    for one in jobs:
        job = json.loads(Path("kit", one["request"]).read_text())
        assert_botocore_takes(job)
        assert (job["ConfirmationRequired"], job["AccountId"]) == (True, "111122223333")
        data = Path("kit", one["manifest"]).read_bytes()
        assert job["Manifest"]["Location"]["ETag"] == hashlib.md5(data).hexdigest()
        assert job["Manifest"]["Location"]["ObjectArn"].endswith(f"/{one['manifest']}")
        tokens.add(job["ClientRequestToken"])
    assert len(tokens) == 3
    restored = json.loads(Path("kit/restore-02.json").read_text())["Operation"]["S3PutObjectAcl"]
    assert restored["AccessControlPolicy"]["AccessControlList"] == {
        "Owner": {"ID": OWNER},
        "Grants": [
            {"Grantee": {"TypeIdentifier": "id", "Identifier": OWNER}, "Permission": "FULL_CONTROL"},
            {"Grantee": {"TypeIdentifier": "uri", "Identifier": AUTHENTICATED_USERS}, "Permission": "READ"},
        ],
    }


@pytest.mark.parametrize("config", [BY_VERDICT, BY_RULE])
def test_public_on_purpose_stays_public(write: Write, predict: Predict, stub: StubServer, config: str) -> None:
    for key in ("site/a", "site/b"):
        stub.put("audited", key, acl="public-read")
    stub.put("audited", "open", acl="public-read")
    kit = write(config=config)
    (statement,) = statements()
    assert (statement["Sid"], statement["Principal"]) == ("PublicByIntent1", "*")
    assert (statement["Action"], statement["Resource"]) == (["s3:GetObject"], resource("site/*"))
    assert rows("acl-changes.csv") == [["audited", "open"]]
    assert kit["exposed_objects_kept"] == {"intended": 2}
    policy, off = predict(kit)
    assert (moves(policy), moves(off)) == ({}, {("exposed", "private"): 1})
    assert kit["readiness"]["now"]["blocks"] == ["2 objects have grants that the present policy does not carry"]
    assert kit["readiness"]["after_kit"]["state"] == "ready"
    text = Path("kit/README.md").read_text()
    assert "the public ``` site" in text
    assert "\n```" not in text.partition("the public")[2].partition("\n")[0]


def test_objects_that_something_else_opens_stay_open(
    write: Write, predict: Predict, stub: StubServer, bucket: StubBucket
) -> None:
    """A grant that no policy carries, a policy over an ACL that was not read, and signed requests on purpose."""
    bucket.public_access_block = PublicAccessBlock(block_public_policy=True)
    stub.put("audited", "site/a", acl="authenticated-read")
    stub.put("audited", "b")
    kit = write(config=BY_VERDICT)
    (statement,) = statements()
    assert statement["Condition"] == {"StringNotEquals": {"aws:PrincipalType": "Anonymous"}}
    assert "BlockPublicPolicy is on" in kit["remarks"][0]
    assert [moves(one) for one in predict(kit)] == [{}, {}]
    Path("kit").rename("first")
    stub.put("audited", "site/a", grants=(FULL, Grant(ALL_USERS, "WRITE_ACP")))
    kit = write(config=SITE.format(kind='rule = "O01"'))
    assert (kit["exposed_objects_kept"], kit["policy"]["written"]) == ({"intended": 1}, False)
    assert kit["readiness"]["after_kit"]["blocks"] == [
        "1 object is public on purpose by a grant that is not carried: without ACLs they are closed"
    ]
    Path("kit").rename("second")
    allow = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": resource("*")}
    bucket.public_access_block = PublicAccessBlock()
    bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    stub.put("audited", "site/a", acl="public-read", deny={"acl"})
    kit = write(code=4)
    assert (kit["exposed_objects_kept"], kit["jobs"]) == ({"unread": 1, "by-policy": 1}, [])
    assert kit["readiness"]["after_kit"]["unknown"] == ["the ACL of 1 object was not read (AccessDenied)"]


def test_a_hidden_grant_is_not_on_purpose(write: Write, stub: StubServer, bucket: StubBucket) -> None:
    """An exception accepts the finding of a grant that something hides. A policy could open the object."""
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": resource("site/*")}
    bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": [deny]})
    stub.put("audited", "site/a", acl="public-read")
    kit = write(config=BY_RULE + SITE.format(kind='verdict = "masked"'))
    assert (kit["policy"]["grants_left_out"], Path("kit/policy.json").exists()) == ({"public": 1}, False)


def test_the_present_policy_stays_in_force(
    write: Write, predict: Predict, stub: StubServer, bucket: StubBucket
) -> None:
    present = {"Sid": "FromAcls1", "Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": resource("x/*")}
    bucket.policy = json.dumps({"Version": "2008-10-17", "Id": "old", "Statement": present})
    stub.put("audited", "a*b", grants=(FULL, TO_STRANGER))
    stub.put("audited", "aXb")
    kit = write()
    assert json.loads(Path("kit/policy-before.json").read_text()) == json.loads(bucket.policy)
    assert json.loads(Path("kit/policy.json").read_text())["Id"] == "old"
    first, second = statements()
    assert first == present
    assert (second["Sid"], second["Resource"]) == ("FromAcls2", resource("a${*}b"))
    assert predict(kit)[0]["new_exposure"] == 0


def test_an_old_policy_with_variables_keeps_its_version(write: Write, stub: StubServer, bucket: StubBucket) -> None:
    """In the old Version `${` has no meaning, and the new one would give it one."""
    present = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": resource("${x}/*")}
    bucket.policy = json.dumps({"Version": "2008-10-17", "Statement": [present]})
    for key in ("a?b", "c"):
        stub.put("audited", key, grants=(FULL, TO_STRANGER))
    stub.put("audited", "b")
    kit = write()
    document = json.loads(Path("kit/policy.json").read_text())
    assert (document["Version"], document["Statement"][1]["Resource"]) == ("2008-10-17", resource("c"))
    assert "has no escapes" in kit["policy"]["keys_left_out"][0]
    assert kit["readiness"]["after_kit"]["state"] == "not ready"


def test_names_that_no_policy_holds(write: Write, stub: StubServer) -> None:
    """A wildcard in a user's name would stand for other users."""
    stub.put("audited", "a", grants=(FULL, Grant("team*", "READ"), Grant(LOG_DELIVERY, "READ")))
    kit = write()
    assert kit["policy"]["grants_left_out"] == {"group": 1}
    assert not Path("kit/policy.json").exists()


def test_odd_keys(write: Write, predict: Predict, stub: StubServer) -> None:
    """Each key is named exactly, or left out; neither the policy nor a manifest may stand for another key."""
    for key in ODD_KEYS.values():
        stub.put("audited", key, grants=(FULL, TO_STRANGER, EVERYONE))
    for key in {f"{key[:250]}#" for key in ODD_KEYS.values()} - set(ODD_KEYS.values()):
        stub.put("audited", key)
    controls = sum(any(unicodedata.category(one) == "Cc" for one in key) for key in ODD_KEYS.values())
    kit = write()
    assert sorted(rows("acl-changes.csv")) == sorted(["audited", key] for key in ODD_KEYS.values())
    assert kit["policy"]["keys_left_out"] == [f"{controls} keys or prefixes with control characters: not in the policy"]
    policy, off = predict(kit)
    named = len(ODD_KEYS) - controls
    assert moves(policy) == {}
    assert moves(off) == {("exposed", "shared"): named, ("exposed", "private"): controls}
    assert all(line.isprintable() for line in Path("kit/README.md").read_text().split("\n"))


def test_grants_that_are_too_scattered(write: Write, stub: StubServer) -> None:
    for number in range(80):
        stub.put("audited", f"docs/{number:04}-{'x' * 600}", grants=(FULL, TO_STRANGER) if number % 2 else (FULL,))
    kit = write("--only", "O08")
    policy = kit["policy"]
    assert (policy["written"], policy["bytes"] > MOST_BYTES, Path("kit/policy.json").exists()) == (False, True, False)
    assert policy["reasons"] == [
        f"the policy would need {policy['bytes']:,} bytes, and S3 takes 20,480: the grants are on 40 keys or prefixes",
        "docs/: 40 of them",
    ]
    assert kit["readiness"]["after_kit"]["state"] == "not ready"


def test_a_prefix_and_a_range_of_keys(write: Write, stub: StubServer) -> None:
    """No pattern reaches keys that the run did not list."""
    for key in ("a/1", "a/2", "a/3", "b"):
        stub.put("audited", key, grants=(FULL, TO_STRANGER))
    kit = write("s3://audited/a", code=4)
    assert statements()[0]["Resource"] == resource("a/*")
    assert "the run covered only a part of the bucket: audit the whole bucket" in kit["readiness"]["now"]["unknown"]
    Path("kit").rename("first")
    write("--start-after", "a/1", "--stop-at", "a/3", code=4)
    assert statements()[0]["Resource"] == resource("a/2", "a/3")


def test_versions(write: Write, stub: StubServer, bucket: StubBucket) -> None:
    bucket.versioning = "Enabled"
    stub.put("audited", "both", grants=(FULL, TO_STRANGER))
    stub.put("audited", "both", grants=(FULL, TO_STRANGER))
    stub.put("audited", "new", grants=(FULL,))
    stub.put("audited", "new", grants=(FULL, TO_STRANGER))
    stub.put("audited", "old", grants=(FULL, EVERYONE, TO_STRANGER))
    stub.put("audited", "old", grants=(FULL,))
    kit = write("--versions")
    assert [(one["Action"], one["Resource"]) for one in statements()] == [
        (["s3:GetObject"], resource("both", "new")),
        (["s3:GetObjectVersion"], resource("both")),
    ]
    ((_, key, version),) = rows("acl-changes.csv")
    assert (key, version) == ("old", "v0000005.stub")
    assert kit["policy"]["grants_left_out"]["version"] == 2
    assert kit["readiness"]["after_kit"]["blocks"] == [
        "2 objects are versions with a grant that not every version of the key has: by version ID it is not carried"
    ]
    Path("kit").rename("first")
    (sentence,) = write(code=4)["readiness"]["now"]["unknown"]
    assert sentence == "the bucket keeps older versions, and the run did not look at them: audit with --versions"


def test_objects_of_others(write: Write, predict: Predict, stub: StubServer, bucket: StubBucket) -> None:
    """A policy reaches them once ACLs are off, so that turning ACLs off may open them."""
    site = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": resource("site/*")}
    bucket.policy, bucket.policy_is_public = json.dumps({"Version": "2012-10-17", "Statement": [site]}), True
    theirs = Grant(STRANGER, "FULL_CONTROL")
    stub.put("audited", "site/foreign", owner=STRANGER, grants=(theirs,))
    stub.put("audited", "writable", owner=STRANGER, grants=(theirs, FULL, EVERYONE))
    stub.put("audited", "closed", owner=STRANGER, grants=(theirs, EVERYONE))
    stub.put("audited", "nobody", owner=ANONYMOUS_OWNER, grants=(Grant(ANONYMOUS_OWNER, "FULL_CONTROL"),))
    kit = write(code=0)
    assert rows("acl-changes-foreign.csv") == [["audited", "writable"]]
    job = json.loads(Path("kit/acl-job-foreign.json").read_text())
    assert job["Operation"]["S3PutObjectAcl"]["AccessControlPolicy"] == {
        "CannedAccessControlList": "bucket-owner-full-control"
    }
    assert not Path("kit/acl-changes.csv").exists()
    assert kit["exposed_objects_kept"] == {"foreign": 1, "anonymous": 1}
    reached = "would belong to the bucket's owner, so that an Allow of the bucket policy reaches them"
    owners = [
        f"3 objects of the owner {STRANGER} {reached}",
        f"1 object of the owner nobody (the anonymous user) {reached}",
    ]
    assert kit["readiness"]["now"]["blocks"] == [
        *owners,
        "3 objects have grants that the present policy does not carry",
    ]
    assert kit["readiness"]["after_kit"]["blocks"] == owners
    assert [one["new_exposure"] for one in predict(kit)] == [0, 1]


def test_what_the_bucket_acl_grants_blocks(write: Write, stub: StubServer, bucket: StubBucket) -> None:
    stub.put("audited", "a")
    grants = (FULL, Grant(LOG_DELIVERY, "WRITE"), Grant(LOG_DELIVERY, "READ_ACP"), Grant(LOG_WRITER, "FULL_CONTROL"))
    bucket.acl = Acl(OWNER, (*grants, Grant(STRANGER, "WRITE")))
    blocks = write()["readiness"]["after_kit"]["blocks"]
    assert [one.partition("grants ")[2][:40] for one in blocks] == [
        "WRITE, READ_ACP to S3's log delivery, wh",
        "FULL_CONTROL to awslogsdelivery, which w",
        f"WRITE to the other account {STRANGER[:13]}",
    ]
    before = json.loads(Path("kit/bucket-acl-before.json").read_text())
    assert (before["Bucket"], len(before["AccessControlPolicy"]["Grants"])) == ("audited", 5)
    assert "put-bucket-acl --cli-input-json file://bucket-acl-before.json" in Path("kit/README.md").read_text()


def test_never_ready_without_a_fact(write: Write, stub: StubServer, bucket: StubBucket) -> None:
    stub.put("audited", "a")
    for call, words in (
        ("GetBucketAcl", "the bucket's ACL was not read (AccessDenied)"),
        ("GetBucketOwnershipControls", "Object Ownership was not read (AccessDenied)"),
        ("GetBucketPolicy", "the bucket policy was not read (AccessDenied)"),
        ("GetPublicAccessBlock", "the bucket's public access block was not read (AccessDenied)"),
        ("GetBucketVersioning", "it is not known whether the bucket keeps older versions (AccessDenied)"),
    ):
        bucket.odd = {call: Odd.DENIED}
        kit = write(code=4)
        assert words in kit["readiness"]["now"]["unknown"]
        assert kit["readiness"]["now"]["state"] == "not known"
        assert kit["readiness"]["after_kit"]["state"] in ("not known", "not ready")
        Path("kit").rename(call)


def test_more_acls_than_jobs(write: Write, stub: StubServer) -> None:
    """The most frequent ACLs get a job each; the parameters of a call stand for each other object."""
    for number in range(MOST_RESTORED + 2):
        grants = (FULL, EVERYONE, Grant(f"{number:064x}", "READ"))
        stub.put("audited", f"{number:02}", grants=grants)
        if number > 1:
            stub.put("audited", f"{number:02}b", grants=grants)
    kit = write("--only", "O02")
    assert (len(kit["restore"]["jobs"]), kit["restore"]["others"]) == (MOST_RESTORED, 2)
    lines = [json.loads(line) for line in Path("kit/restore-others.jsonl").read_text().splitlines()]
    assert [line["Key"] for line in lines] == ["00", "01"]
    assert lines[0]["AccessControlPolicy"]["Grants"][1:] == [
        {"Grantee": {"Type": "Group", "URI": ALL_USERS}, "Permission": "READ"},
        {"Grantee": {"Type": "CanonicalUser", "ID": "0" * 64}, "Permission": "READ"},
    ]
    assert "restore-others.jsonl" in Path("kit/README.md").read_text()


def test_the_table_names_a_whole_command(audited: Run, stub: StubServer, capfd: pytest.CaptureFixture[str]) -> None:
    stub.put("audited", "open", acl="public-read")
    run = Path(audited("--out", "a'b\\c \x1b[31m" + "long" * 30)).absolute()
    assert main(["fix-kit", str(run), "--out", "kit"]) == 0
    out = capfd.readouterr().out
    assert "acl-job.json with acl-changes.csv: 1 object" in out
    assert "ACLs off, now     ready" in out
    assert max(len(line) for line in out.splitlines() if "auditor what-if" not in line) <= 100
    (command,) = re.findall(r"^Effect +(auditor .+)$", out, re.MULTILINE)
    typed = subprocess.run(
        ["/bin/bash", "-c", f"auditor() {{ printf '%s\\0' \"$@\"; }}; {command}"], capture_output=True, check=True
    )
    assert typed.stdout.decode().split("\0")[:-1] == ["what-if", str(run), "--acls-off"]


def said(capfd: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    """The one sentence with which a command ends."""
    found = main(["fix-kit", *arguments])
    captured = capfd.readouterr()
    assert (found, captured.out, captured.err.count("\n")) == (code, "", 1), captured.err
    return captured.err.removeprefix("auditor: ").rstrip("\n")


def test_wrong_places(audited: Run, stub: StubServer, capfd: pytest.CaptureFixture[str]) -> None:
    stub.put("audited", "a")
    run = audited()
    Path("full").mkdir()
    Path("full/x").write_text("")
    Path("file").write_text("")
    Path("empty").mkdir()
    for place in ("full", "file"):
        assert f"{place} exists and is not an empty directory" in said(capfd, 2, run, "--out", place)
    for place in ("s3://b/kit", "/"):
        assert f"{place} cannot be a new directory" in said(capfd, 2, run, "--out", place)
    assert "file in the way" in said(capfd, 1, run, "--out", "file/kit").replace("a file is", "file")
    assert main(["fix-kit", run, "--out", "empty"]) == 0
    assert Path("empty/README.md").exists()


def test_runs_without_the_facts(
    audited: Run, stub: StubServer, bucket: StubBucket, capfd: pytest.CaptureFixture[str]
) -> None:
    for number in range(200):
        stub.put("audited", f"{number:04}")
    assert "is not complete: a kit would lack" in said(
        capfd, 2, audited("--max-calls", "100", "--only", "O02"), "--out", "kit"
    )
    assert "read no ACLs (no selected rule needs it)" in said(capfd, 2, audited("--only", "E01"), "--out", "kit")
    bucket.ownership = BUCKET_OWNER_ENFORCED
    run = audited("--only", "O02")
    assert "ACLs are off on audited already" in said(capfd, 2, run, "--out", "kit")
    (Path(run) / "run.json").unlink()
    assert "run.json is gone" in said(capfd, 1, run, "--out", "kit")
    assert not Path("kit").exists()


def test_a_stop_leaves_nothing(audited: Run, stub: StubServer) -> None:
    for number in range(1100):
        stub.put("audited", f"{number:04}")
    with (
        open_run(audited("--only", "O02")) as run,
        pytest.raises(RunStopped, match="nothing is written"),
    ):
        FixKit(run, "kit", stopped=lambda: True).write()
    assert [path.name for path in Path().iterdir() if "kit" in path.name] == []


KEY: Final = "arn:aws:kms:us-east-1:111122223333:key/11111111-2222-3333-4444-555555555555"
WRONG_KEY: Final = "arn:aws:kms:us-east-1:111122223333:key/99999999-2222-3333-4444-555555555555"
E03: Final = """
[rules.E03]
keys = ["arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555", "{key}"]
"""


class TestKeys:
    """Objects under a KMS key that E03 does not allow."""

    def job(self, name: str = "key-job.json") -> dict[str, Any]:
        return dict(json.loads(Path("kit", name).read_text()))

    def test_with_acls_off_the_kit_has_the_job_on_keys_alone(
        self, write: Write, stub: StubServer, capfd: pytest.CaptureFixture[str]
    ) -> None:
        stub.world.buckets["audited"].ownership = BUCKET_OWNER_ENFORCED
        stub.world.buckets["audited"].encryption = Encryption("aws:kms", KEY, True)
        stub.put("audited", "a, b", sse="aws:kms", kms_key=WRONG_KEY, bucket_key=True)
        stub.put("audited", "right", sse="aws:kms", kms_key=KEY)
        stub.put("audited", "site/accepted", sse="aws:kms", kms_key=WRONG_KEY)
        stub.put("audited", "plain")
        stub.put("audited", "two layers", sse="aws:kms:dsse", kms_key=WRONG_KEY)
        for hold in ("event-hold", "legal-hold"):
            stub.put("audited", hold, sse="aws:kms", kms_key=WRONG_KEY, headers={f"x-amz-object-lock-{hold}": "ON"})
        for until in ("2020", "2099"):
            lock = {"mode": "GOVERNANCE", "retain-until-date": f"{until}-01-02T03:04:05Z"}
            headers = {f"x-amz-object-lock-{name}": value for name, value in lock.items()}
            stub.put("audited", until, sse="aws:kms", kms_key=WRONG_KEY, headers=headers)
        accepted = SITE.format(kind='rule = "E03"')
        kit = write("--semantics", "aws", config=E03.format(key=KEY) + accepted)
        assert kit["keys"] == {
            "jobs": [{"request": "key-job.json", "manifest": "key-changes.csv", "objects": 2}],
            "kept": {"two-layers": 1, "locked": 3},
        }
        assert rows("key-changes.csv") == [["audited", "2020"], ["audited", "a, b"]]
        assert self.job()["Operation"] == {
            "S3UpdateObjectEncryption": {"ObjectEncryption": {"SSEKMS": {"KMSKeyArn": KEY, "BucketKeyEnabled": True}}}
        }
        statements = {one["Sid"]: one for one in self.job("key-job-role.json")["Statement"]}
        assert statements["ChangeKeys"]["Action"] == ["s3:UpdateObjectEncryption"]
        assert statements["UseKeys"]["Resource"] == [KEY, WRONG_KEY]
        lines = gzip.decompress(Path("kit/key-snapshot.jsonl.gz").read_bytes()).splitlines()
        assert json.loads(lines[1]) == {
            "key": "a, b",
            "version_id": None,
            "sse_kms_key_id": WRONG_KEY,
            "bucket_key_enabled": True,
        }
        assert (kit["jobs"], kit["what_if"], kit["readiness"]["now"]["state"]) == ([], [], "ready")
        readme = Path("kit/README.md").read_text()
        assert "put-bucket-policy" not in readme
        assert "put-bucket-ownership-controls" not in readme
        assert "3 objects are protected by Object Lock" in readme
