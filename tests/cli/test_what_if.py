"""`auditor what-if` over real run folders: exit codes, formats, and a sentence for each wrong use."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.cli.main import main
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from tests.support.servers.stub import StubServer
from tests.support.servers.world import STRANGER, StubBucket

POLICY = """{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Sid": "Website",
      "Effect": "Allow",
      "Principal": "*",
      "Action": "s3:GetObject",
      "Resource": "arn:aws:s3:::audited/www/*"
    }
  ]
}
"""

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(stub: StubServer, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Audit the stub's bucket, forget its requests, and ask the run: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.json").write_text(POLICY)
    runs: list[str] = []

    def call(*flags: str, audit: tuple[str, ...] = ()) -> tuple[int, str, str]:
        if not runs:
            main(["audit", "s3://audited", "--format", "json", "--endpoint-url", stub.url, *audit])
            runs.append(json.loads(capfd.readouterr().out)["out"])
        stub.forget()
        code = main(["what-if", runs[0], *flags])
        captured = capfd.readouterr()
        assert stub.requests == []
        return code, captured.out, captured.err

    return call


def answer(ask: Ask, code: int, *flags: str) -> dict[str, Any]:
    found, out, err = ask(*flags, "--format", "json")
    assert (found, err) == (code, "")
    return dict(json.loads(out))


def moves(document: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    return {
        (move["before"], move["after"]): [sample["key"] for sample in move["samples"]] for move in document["moves"]
    }


def test_a_policy_that_opens_objects(ask: Ask, stub: StubServer) -> None:
    for key in ("docs/a", "www/a", "www/b"):
        stub.put("audited", key)
    found = answer(ask, 3, "--policy", "policy.json", "--keys", "keys.jsonl")
    assert moves(found) == {("private", "exposed"): ["www/a", "www/b"]}
    assert (found["objects"], found["changed"], found["new_exposure"]) == (3, 2, 2)
    assert (found["complete"], found["change"]) == (True, ["the bucket policy is policy.json"])
    lines = [json.loads(line) for line in Path("keys.jsonl").read_text().splitlines()]
    assert [(line["key"], line["after"]["verdict"], line["new_exposure"]) for line in lines] == [
        ("www/a", "exposed", True),
        ("www/b", "exposed", True),
    ]
    code, out, _ = ask("--policy", "policy.json")
    assert (code, "from private to exposed: 2 objects" in out) == (3, True)
    code, out, _ = ask("--policy", str(Path("policy.json").resolve()), "--format", "sarif")
    ((first, *_),) = [run["results"] for run in json.loads(out)["runs"]]
    location = first["locations"][0]["physicalLocation"]
    assert (code, first["ruleId"], location["artifactLocation"]) == (3, "new-exposure", {"uri": "policy.json"})
    assert location["region"] == {"startLine": 4, "endLine": 10}
    assert first["message"]["text"].startswith("statement Website opens www/a")


def test_each_change_moves_what_it_closes(ask: Ask, stub: StubServer, bucket: StubBucket) -> None:
    """With ACLs off, a foreign object comes under the policy."""
    bucket.policy, bucket.policy_is_public = POLICY, True
    stub.put("audited", "www/a")
    stub.put("audited", "b", acl="public-read")
    stub.put("audited", "foreign", owner=STRANGER)
    assert moves(answer(ask, 0, "--no-policy")) == {("exposed", "private"): ["www/a"]}
    assert moves(answer(ask, 0, "--block-public-access")) == {("exposed", "masked"): ["b", "www/a"]}
    assert moves(answer(ask, 0, "--block-public-access", "--no-policy"))[("exposed", "private")] == ["www/a"]
    assert moves(answer(ask, 0, "--acls-off")) == {("shared", "private"): ["foreign"], ("exposed", "private"): ["b"]}
    found = answer(ask, 0, "--trust", f"{STRANGER},444455556666", "--trust", "o-a1b2c3d4e5")
    assert found["change"] == [f"trusted too: 444455556666, {STRANGER}, o-a1b2c3d4e5"]
    assert found["narrower"] == 1


def test_acls_that_were_never_read(ask: Ask, stub: StubServer, bucket: StubBucket) -> None:
    bucket.ownership = BUCKET_OWNER_ENFORCED
    stub.put("audited", "a")
    stub.put("audited", "b")
    assert answer(ask, 4, "--acls-on")["not_predictable"]["objects"] == 2
    code, out, _ = ask("--acls-on")
    assert (code, "2 objects not predictable" in out) == (4, True)


def said(ask: Ask, code: int, *flags: str) -> str:
    """The one sentence with which a command ends."""
    found, out, err = ask(*flags)
    assert (found, out, err.count("\n")) == (code, "", 1), err
    return err.removeprefix("auditor: ").rstrip("\n")


def test_wrong_usage(ask: Ask) -> None:
    Path("broken.json").write_text('{\n "Statement": [,]}')
    Path("wrong.json").write_text('{"Statement": [\n{"Effect": "Allow"}]}')
    Path("binary.json").write_bytes(b"\xff{}")
    Path("huge.json").write_bytes(b" " * 2_000_000)
    for flags, code, words in (
        ("", 2, "no change is named: give --policy FILE"),
        ("--policy broken.json", 2, "the policy file broken.json is not a bucket policy: line 2, column 16"),
        ("--policy wrong.json", 2, "is not a bucket policy: line 2, statement 1: "),
        ("--policy binary.json", 2, "is not UTF-8"),
        ("--policy huge.json", 2, "is larger than 1,000,000 bytes"),
        ("--acls-off --format sarif", 2, "add --policy FILE"),
        ("--trust *", 2, "--trust has '*'"),
        ("--acls-off --keys none/keys", 1, "the --keys file none/keys cannot be written"),
    ):
        assert words in said(ask, code, *flags.split())


def test_a_policy_of_another_bucket(ask: Ask, stub: StubServer) -> None:
    """Without this, a policy that is judged by the run of the wrong bucket would seem to open nothing."""
    stub.put("audited", "www/a")
    other = POLICY.replace("audited", "another")
    Path("other.json").write_text(other)
    assert "names no resource in the bucket audited" in said(ask, 2, "--policy", "other.json")
    both = json.loads(POLICY)
    both["Statement"].append({**both["Statement"][0], "Sid": "Other", "Resource": "arn:aws:s3:::another/*"})
    Path("both.json").write_text(json.dumps(both))
    assert answer(ask, 3, "--policy", "both.json")["remarks"][0] == (
        "S3 refuses the policy: its statement Other names another bucket"
    )


def test_a_run_that_another_version_judged_and_one_that_lost_its_facts(ask: Ask, stub: StubServer) -> None:
    stub.put("audited", "a", acl="public-read")
    ask("--acls-off")
    (part,) = Path("auditor-runs").rglob("objects/*.jsonl.gz")
    part.write_bytes(gzip.compress(gzip.decompress(part.read_bytes()).replace(b'"exposed"', b'"shared"')))
    found = answer(ask, 0, "--acls-off")
    assert moves(found) == {("exposed", "private"): ["a"]}
    assert found["remarks"][0].startswith("1 object had another verdict in the run")
    (file,) = Path("auditor-runs").rglob("run.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "now": "yesterday"}))
    assert "the time in run.json" in said(ask, 1, "--acls-off")
    file.unlink()
    assert "run.json is gone, and the run is judged by it: audit again" in said(ask, 1, "--acls-off")
