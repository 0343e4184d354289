"""A rule is named by its ID or by its name, wherever a user names one: the results are the same bytes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from auditor import audit_bucket
from auditor.cli.commands.rules import rule_ids
from auditor.rules import RULES
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer

NAME = {rule.id: rule.name for rule in RULES}
OF_THE_RUN = frozenset({"run", "out", "seconds", "now", "sealed"})


@pytest.fixture
def bucket(stub: StubServer) -> StubServer:
    stub.put("audited", "open", b"x", acl="public-read")
    stub.put("audited", "refused", b"x", deny={"acl"})
    return stub


def without_the_run(value: Any) -> Any:
    """Return a JSON value without the members that differ from run to run."""
    if isinstance(value, dict):
        return {name: without_the_run(one) for name, one in value.items() if name not in OF_THE_RUN}
    return [without_the_run(one) for one in value] if isinstance(value, list) else value


def folder(out: str) -> dict[str, Any]:
    """Return the lines and the configuration of a run folder, and its exact names of files."""
    parts = {path.name: gzip.decompress(path.read_bytes()) for path in Path(out).glob("*/part-*.jsonl.gz")}
    known = json.loads(Path(out, "run.json").read_text())
    return {**parts, "bucket": without_the_run(known)}


def audited(run: Run, stub: StubServer, *flags: str) -> tuple[int, Any, dict[str, Any]]:
    """Audit into a place of its own, so that no run is compared with another one."""
    where = ("--out", f"out-{len(list(Path().glob('out-*')))}", "--endpoint-url", stub.url)
    code, out, _ = run("audit", "s3://audited", "--format", "json", *where, *flags)
    summary = json.loads(out)
    return code, without_the_run(summary), folder(summary["out"])


def test_an_audit_by_names_is_the_audit_by_ids(run: Run, bucket: StubServer, tmp_path: Path) -> None:
    for flag, ids in (("--only", ("O02", "O01")), ("--ignore", ("O02", "B02"))):
        by_id = audited(run, bucket, flag, ",".join(ids))
        assert audited(run, bucket, flag, ",".join([NAME[ids[0]].upper(), NAME[ids[1]]])) == by_id
        assert audited(run, bucket, flag, ",".join([NAME[ids[0]], ids[1].lower()])) == by_id
        assert by_id[2]["bucket"]["configuration"][flag.removeprefix("--")] == list(ids)
    found = [
        audit_bucket("s3://audited", only=only, out=tmp_path / only[0], endpoint_url=bucket.url)
        for only in (["O02"], [NAME["O02"]])
    ]
    assert folder(str(found[0].place)) == folder(str(found[1].place))
    pages = [run("rules", name)[:2] for name in ("O02", "o02", NAME["O02"])]
    assert pages == [(0, pages[0][1])] * 3


def test_auditor_toml_names_rules_as_it_likes(run: Run, bucket: StubServer) -> None:
    def judged_by(first: str, second: str) -> tuple[int, Any, dict[str, Any]]:
        Path("auditor.toml").write_text(
            f"[rules.{first}]\nrequired = ['team']\n[[exceptions]]\nrule = '{second}'\nprefix = 'open'\n"
            f"owner = 'o'\nreason = 'r'\nuntil = 2027-01-01\nid = 'ours'\n"
        )
        return audited(run, bucket)

    by_id = judged_by("M01", "O02")
    assert judged_by(NAME["M01"], NAME["O02"]) == by_id
    assert by_id[2]["bucket"]["configuration"]["rules"] == {"M01": {"required": ["team"]}}
    assert by_id[2]["bucket"]["configuration"]["exceptions"][0]["rule"] == "O02"
    Path("auditor.toml").write_text(f"[rules.M01]\nrequired = ['a']\n[rules.{NAME['M01']}]\nrequired = ['b']\n")
    code, _, err = run("audit", "s3://audited", "--endpoint-url", bucket.url)
    sentence = f"auditor.toml: [rules.{NAME['M01']}] is a second table of rule M01: write one"
    assert (code, err) == (2, f"auditor: {sentence}\n")


def test_a_shell_completes_names_where_no_id_fits() -> None:
    assert rule_ids("O0") == [rule.id for rule in RULES if rule.id.startswith("O0")]
    assert rule_ids("O02,acl-everyone-r") == ["O02,acl-everyone-read"]
