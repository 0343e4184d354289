"""A run that is judged again from its folder, without a network, says the same as before; or what it is told to say."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import auditor
from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.cli.main import main
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.ledger import open_ledger
from auditor.model.target import Target
from auditor.model.version import VERSION
from auditor.runs.parts import KINDS
from auditor.runs.stores import open_store
from tests.support.audit_runs import Result, audit, check, read_back
from tests.support.offline import offline
from tests.support.servers.clients import BUCKET, client
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.world import STRANGER, StubBucket

STATEMENT = {"Sid": "Open", "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
OPEN = json.dumps({"Version": "2012-10-17", "Statement": [{**STATEMENT, "Resource": f"arn:aws:s3:::{BUCKET}/k01*"}]})


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The parts of a run, by their names."""
    parts = (file for kind in KINDS for file in (folder / kind).glob("part-*"))
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in sorted(parts)}


def command(*arguments: str | Path) -> tuple[int, str, str]:
    """Run a command of the auditor. Return its exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(map(str, arguments)))
    return code, out.getvalue(), err.getvalue()


def audited(stub: StubServer, out: Path, **settings: Any) -> Result:
    return asyncio.run(audit(stub, out, **settings))


async def hashed(stub: StubServer, out: Path) -> Result:
    async with open_ledger(f"sqlite:{out / 'ledger.db'}") as opened:
        return await audit(stub, out / "runs", ledger=opened, hash=True)


def judged_again(result: Result, *arguments: str | Path) -> Result:
    """Judge the run again, and check the sums of the new run."""
    code, out, err = command("judge", result.folder, "--format", "json", *arguments)
    assert code in (0, 3, 4), err
    return check(read_back(json.loads(out)))


def check_same(before: Result, again: Result) -> None:
    """The new run says what the run says, byte for byte."""
    assert again.folder != before.folder
    assert bytes_of(again.folder) == bytes_of(before.folder)
    assert again.code == before.code
    same = set(again.summary) - {"run", "out", "engine", "seconds", "calls", "not_looked_at", "resume", "sealed"}
    assert {name: again.summary[name] for name in same} == {name: before.summary[name] for name in same}
    assert set(before.summary["not_looked_at"]) < set(again.summary["not_looked_at"])
    assert sum(again.summary["calls"].values()) == 0
    rollups = [(one.folder / "rollups.json").read_bytes() for one in (before, again)]
    assert rollups[1].replace(again.summary["run"].encode(), before.summary["run"].encode()) == rollups[0]
    plan, old = (json.loads((one.folder / "run.json").read_text()) for one in (again, before))
    assert plan["judged_from"]["run"] == before.summary["run"]
    assert [(one["facts"], one["ask"]) for one in (plan, old)] == [(old["facts"], old["ask"])] * 2
    for folder in (before.folder, again.folder):
        assert auditor.check_run(folder).exit_code == (0 if before.summary["complete"] else 4)


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """Objects of all kinds with all odd keys, and calls that are denied."""
    stub.world.buckets[BUCKET] = bucket = sample_bucket(100)
    return bucket


@pytest.fixture
def plain(bucket: StubBucket) -> StubBucket:
    for number in range(30):
        bucket.put(f"k{number:03}", b"x", owner=STRANGER if number % 5 == 0 else bucket.owner, metadata={"team": "x"})
    return bucket


def test_all_kinds_of_objects_and_denied_calls(stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
    result = audited(stub, tmp_path, part_lines=20)
    assert result.coverage["undecided"]
    stub.forget()
    done = offline("judge", result.folder, "--format", "json")
    check_same(result, check(read_back(json.loads(done.stdout))))
    assert stub.calls == []
    code, out, _ = command("check", result.folder)
    assert (code, ": whole; " in out) == (0, True), out
    answer = json.loads(command("check", result.folder, "--format", "json")[1])
    assert (answer["whole"], answer["faults"]) == (True, [])
    assert answer["lines"] == len(result.objects) + len(result.findings) + len(result.undecided)
    (result.folder / "report.html").unlink()
    code, out, _ = command("check", result.folder)
    assert (code, "fault: report.html is gone" in out) == (1, True), out


def test_versions_and_values_of_metadata(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    plain.versioning = "Enabled"
    for number in range(12):
        plain.put(f"k{number:03}", b"new", acl="public-read", metadata={"team": "x"})
    plain.policy = OPEN
    rules = {"M01": {"required": ["project"]}}
    result = audited(stub, tmp_path, versions=True, part_lines=5, keep_metadata=True, rules=rules)
    assert {line["latest"] for line in result.objects} == {True, False}
    assert result.summary["rules"]["M01"] == 42
    check_same(result, judged_again(result))


def test_a_run_that_has_not_ended(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = audited(stub, tmp_path, max_calls=50)
    again = judged_again(result)
    check_same(result, again)
    assert again.code == 4
    assert again.summary["resume"] == result.summary["resume"]


def test_a_rule_that_the_run_did_not_ask_the_facts_for_is_undecided(
    stub: StubServer, plain: StubBucket, tmp_path: Path
) -> None:
    result = audited(stub, tmp_path, level="exposure")
    again = judged_again(result, "--level", "metadata")
    undecided = {(item["rule"], item["action"], item["code"]) for item in again.summary["rules_undecided"]}
    assert ("E01", "HeadObject", "NotStored") in undecided
    assert again.code == 4


def test_the_ledger_is_not_asked_again(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    """The finding that digests differ stays, because the run folder has no digests."""
    result = asyncio.run(hashed(stub, tmp_path))
    folder = result.folder / "findings" / "part-00000-00000.jsonl.gz"
    finding = {
        **result.findings[-1],
        "rule": "I03",
        "severity": "critical",
        "key": "k001",
        "grantee": None,
        "permission": None,
        "message": "the digests differ",
        "verdict": result.line("k001")["verdict"],
    }
    lines = [line for line in result.findings if line["key"] is None or line["key"] < "k001"]
    after = [line for line in result.findings if line["key"] is not None and line["key"] > "k001"]
    encoded = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in (*lines, finding, *after)]
    folder.write_bytes(gzip.compress(b"".join(encoded)))
    again = judged_again(result)
    assert [line["message"] for line in again.findings if line["rule"] == "I03"] == ["the digests differ"]
    assert again.line("k001")["rules"] == ["I03"]
    assert any("I03 keeps its result on 30 objects" in words for words in again.summary["not_looked_at"])
    assert again.summary["hashing"] == result.summary["hashing"]


def test_a_run_that_hashed(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = asyncio.run(hashed(stub, tmp_path))
    assert result.summary["hashing"]["hashed_now"] == 30
    again = judged_again(result)
    assert bytes_of(again.folder) == bytes_of(result.folder)
    assert (again.summary["hashing"], again.coverage) == (result.summary["hashing"], result.coverage)
    summary = result.folder / "summary.json"
    summary.write_text(summary.read_text().replace('"hashed_now": 30', '"hashed_now": 29'))
    code, _, err = command("judge", result.folder)
    assert (code, "are not those of its objects: audit again" in err) == (1, True), err


def test_in_another_place_by_another_configuration_and_from_python(
    stub: StubServer, plain: StubBucket, tmp_path: Path
) -> None:
    result = audited(stub, tmp_path / "runs")
    assert result.summary["verdicts"]["shared"]
    again = judged_again(result, "--trust", STRANGER, "--ignore", "K01,O09")
    assert (again.summary["verdicts"]["shared"], "O09" in again.summary["rules"]) == (0, False)
    check_same(again, judged_again(again))  # a run that was judged again is a run like others
    config = tmp_path / "other.toml"
    config.write_text(f'trusted = ["{STRANGER}"]\nonly = ["M01"]\n[rules.M01]\nrequired = ["project"]\n')
    assert judged_again(result, "--config", config).summary["rules"] == {"M01": 30}
    run = auditor.judge_run(result.folder, out=str(tmp_path / "other"), trusted={STRANGER})
    assert Path(run.place).is_relative_to(tmp_path / "other")
    assert run.verdicts["shared"] == 0
    assert json.loads((Path(run.place) / "run.json").read_text())["auditor"] == VERSION
    with pytest.raises(UsageError, match="the keyword 'max_rate' does not apply here: use ignore, level, only"):
        auditor.judge_run(result.folder, max_rate=5)  # type: ignore[call-arg]


def test_wrong_settings_and_damaged_files(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = audited(stub, tmp_path, rules={"M01": {"required": ["project"]}})
    file, config = result.folder / "run.json", tmp_path / "other.toml"
    config.write_text('only = ["K01"]\n')
    told: list[tuple[int, str, tuple[str, ...]]] = [
        (2, "there is no rule 'Z99'", ("--only", "Z99")),
        (2, "--trust", ("--trust", "*")),
        (2, "there is no file", ("--config", str(tmp_path / "none.toml"))),
        (2, "compares with a ledger", ("--only", "I03")),
    ]
    for code, words, arguments in told:
        done = command("judge", result.folder, *arguments)
        assert (done[0], words in done[2]) == (code, True), done
    document = json.loads(file.read_text())
    wrong: list[Any] = ["M01", {"M01": {}}, {"M01": "team"}, {"M01": {"required": "team"}}, {}, None]
    for rules in wrong:
        document["configuration"]["rules"] = rules
        file.write_text(json.dumps(document))
        for arguments in ((), ("--config", str(config))):
            done = command("judge", result.folder, *arguments)
            assert (done[0], "run.json is damaged (configuration: " in done[2]) == (1, True), (rules, done)
    file.write_text('{"format": 1}')
    done = command("judge", result.folder)
    assert (done[0], "run.json is damaged" in done[2]) == (1, True), done
    file.unlink()
    done = command("judge", result.folder)
    assert (done[0], "run.json is gone, and the run is judged by it: audit again" in done[2]) == (1, True), done
    assert len(list(auditor.open_run(result.folder).objects())) == 30
    done = command("check", result.folder)
    assert (done[0], "run.json is gone" in done[1]) == (1, True), done


async def test_a_run_folder_in_a_bucket(stub: StubServer, plain: StubBucket, tmp_path: Path, moto_url: str) -> None:
    """The store is asked, the audited bucket is not."""
    name = f"results-{uuid4().hex[:12]}"
    s3 = client("s3", moto_url)
    s3.create_bucket(Bucket=name)
    s3.close()
    settings = Settings(endpoint_url=stub.url, max_rate=None, concurrency=16)
    with open_store(f"s3://{name}/deep", endpoint_url=moto_url) as store:
        summary = await Audit(Target(BUCKET), settings, Resources(store=store), Stop(), part_lines=10).run()
        stub.forget()
        again = await asyncio.to_thread(auditor.judge_run, summary.out, endpoint_url=moto_url)
        assert stub.calls == []
        before, after = (f"bucket={BUCKET}/run={run}" for run in (summary.run, Path(again.place).name[4:]))
        parts = [path.removeprefix(before) for path in store.list(f"{before}/") if "/part-" in path]
        assert len(parts) >= 6
        assert [path.removeprefix(after) for path in store.list(f"{after}/") if "/part-" in path] == parts
        assert all(store.get(before + part) == store.get(after + part) for part in parts)
        for place in (summary.out, again.place):
            found = await asyncio.to_thread(auditor.check_run, place, endpoint_url=moto_url)
            assert (found.faults, found.exit_code) == ((), 0)
        store.put(f"{before}{parts[0]}", store.get(f"{before}{parts[1]}") or b"")
        assert len((await asyncio.to_thread(auditor.check_run, summary.out, endpoint_url=moto_url)).faults) == 1
