"""A run that is judged again from its folder, without a network, says the same as before; or what it is told to say."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from uuid import uuid4

import pytest

import auditor
from auditor.aio.stop import Stop
from auditor.audit.run import Audit
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.ledger import open_ledger
from auditor.model.target import Target
from auditor.model.version import VERSION
from auditor.runs.parts import KINDS
from auditor.runs.stores import open_store
from tests.audit.test_run_ends import wait_for
from tests.support.audit_runs import Result, audit, check, checkpoint, finish, read_back, start
from tests.support.offline import offline
from tests.support.servers.clients import BUCKET, client
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import latency
from tests.support.servers.world import STRANGER, Odd, StubBucket

OPEN = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Open",
                "Effect": "Allow",
                "Principal": "*",
                "Action": "s3:GetObject",
                "Resource": f"arn:aws:s3:::{BUCKET}/k01*",
            }
        ],
    }
)


def bytes_of(folder: Path) -> dict[str, bytes]:
    """The parts of a run, by their names."""
    parts = (file for kind in KINDS for file in (folder / kind).glob("part-*"))
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in sorted(parts)}


def judged_again(result: Result, *arguments: str) -> Result:
    """Judge the run again by the command line, without a network, and check the sums of the new run."""
    done = offline("judge", result.folder, "--format", "json", *arguments)
    assert done.returncode in (0, 3, 4), done.stderr
    return check(read_back(json.loads(done.stdout)))


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
    file = json.loads((again.folder / "bucket.json").read_text())
    assert file["judged_from"]["run"] == before.summary["run"]
    assert file["read"] == json.loads((before.folder / "bucket.json").read_text())["read"]
    for folder in (before.folder, again.folder):
        assert auditor.check_run(folder).exit_code == (0 if before.summary["complete"] else 4)


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """Objects of all kinds with all odd keys, and calls that are denied."""
    stub.world.buckets[BUCKET] = bucket = sample_bucket(120)
    return bucket


@pytest.fixture
def plain(bucket: StubBucket) -> StubBucket:
    for number in range(40):
        bucket.put(f"k{number:03}", b"x", owner=STRANGER if number % 5 == 0 else bucket.owner, metadata={"team": "x"})
    return bucket


async def test_all_kinds_of_objects_and_denied_calls(stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path, part_lines=20)
    assert result.coverage["undecided"]
    stub.forget()
    check_same(result, judged_again(result))
    assert stub.calls == []
    done = offline("check", result.folder)
    assert (done.returncode, ": whole; " in done.stdout) == (0, True), done
    answer = json.loads(offline("check", result.folder, "--format", "json").stdout)
    assert (answer["whole"], answer["faults"]) == (True, [])
    assert answer["lines"] == len(result.objects) + len(result.findings) + len(result.undecided)
    (result.folder / "report.html").unlink()
    done = offline("check", result.folder)
    assert (done.returncode, "fault: report.html is gone" in done.stdout) == (1, True), done


async def test_values_of_metadata_that_are_kept(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path, keep_metadata=True, rules={"M01": {"required": ["project"]}})
    assert result.summary["rules"]["M01"] == 40
    check_same(result, judged_again(result))


async def test_versions(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.versioning = "Enabled"
    for number in range(12):
        for acl in ("private", "public-read"):
            bucket.put(f"k{number:03}", acl.encode(), acl=acl)
    bucket.policy = OPEN
    result = await audit(stub, tmp_path, versions=True, part_lines=5)
    assert {line["latest"] for line in result.objects} == {True, False}
    check_same(result, judged_again(result))


async def test_facts_of_the_bucket_that_were_not_read(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    for operation in ("GetBucketPolicy", "GetBucketAcl", "GetPublicAccessBlock"):
        plain.odd[operation] = Odd.DENIED
    result = await audit(stub, tmp_path)
    assert result.summary["verdicts"]["unknown"] == 32
    check_same(result, judged_again(result))


async def test_an_empty_bucket(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path)
    assert result.coverage["listed"] == 0
    check_same(result, judged_again(result))


async def test_each_part_is_judged_by_the_facts_of_its_process(
    stub: StubServer, plain: StubBucket, tmp_path: Path
) -> None:
    """The policy is opened while the run is interrupted."""
    first = await audit(stub, tmp_path, max_calls=60)
    plain.policy = OPEN
    result = await audit(stub, tmp_path, resume=first.summary["run"])
    assert result.summary["complete"]
    read = json.loads((result.folder / "bucket.json").read_text())["read"]
    assert [one["facts"]["policy"] for one in read] == ["", OPEN]
    assert read[1]["first_part"] > 0
    again = judged_again(result)
    check_same(result, again)
    assert any("policy" in words and "changed while" in words for words in again.summary["not_looked_at"])


async def test_a_run_that_has_not_ended(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path, max_calls=60)
    again = judged_again(result)
    check_same(result, again)
    assert again.code == 4
    assert again.summary["resume"] == result.summary["resume"]


@pytest.mark.slow
async def test_another_configuration(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    plain.policy = OPEN
    result = await audit(stub, tmp_path)
    shared = result.summary["verdicts"]["shared"]
    assert shared
    again = judged_again(result, "--trust", STRANGER, "--ignore", "K01,O09")
    assert again.summary["verdicts"]["shared"] == 0
    assert "O09" not in again.summary["rules"]
    config = tmp_path / "other.toml"
    config.write_text(f'trusted = ["{STRANGER}"]\nonly = ["M01"]\n[rules.M01]\nrequired = ["project"]\n')
    other = judged_again(result, "--config", str(config))
    assert other.summary["rules"] == {"M01": 40}
    check_same(again, judged_again(again))  # a run that was judged again is a run like others


async def test_a_rule_that_the_run_did_not_ask_the_facts_for_is_undecided(
    stub: StubServer, plain: StubBucket, tmp_path: Path
) -> None:
    result = await audit(stub, tmp_path, level="exposure")
    again = judged_again(result, "--level", "metadata")
    undecided = {(item["rule"], item["action"], item["code"]) for item in again.summary["rules_undecided"]}
    assert ("E01", "HeadObject", "NotStored") in undecided
    assert again.code == 4


async def test_the_ledger_is_not_asked_again(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    """The finding that digests differ stays, because the run folder has no digests."""
    ledger = f"sqlite:{tmp_path / 'ledger.db'}"
    async with open_ledger(ledger) as opened:
        result = await audit(stub, tmp_path / "runs", ledger=opened, hash=True)
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
    assert any("I03 keeps its result on 40 objects" in words for words in again.summary["not_looked_at"])
    assert again.summary["hashing"] == result.summary["hashing"]


async def test_a_run_that_hashed_and_lost_its_checkpoint(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    ledger = f"sqlite:{tmp_path / 'ledger.db'}"
    async with open_ledger(ledger) as opened:
        result = await audit(stub, tmp_path / "runs", ledger=opened, hash=True)
    assert result.summary["hashing"]["hashed_now"] == 40
    (result.folder / "state.json").unlink()
    again = judged_again(result)
    assert bytes_of(again.folder) == bytes_of(result.folder)
    assert (again.summary["hashing"], again.coverage) == (result.summary["hashing"], result.coverage)
    summary = result.folder / "summary.json"
    summary.write_text(summary.read_text().replace('"hashed_now": 40', '"hashed_now": 39'))
    done = offline("judge", result.folder)
    assert (done.returncode, "are not those of its objects: audit again" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize("rules", ["M01", {"M01": {}}, {"M01": "team"}, {"M01": {"required": "team"}}, {}, None])
async def test_options_of_rules_that_are_damaged(
    stub: StubServer, plain: StubBucket, tmp_path: Path, rules: object
) -> None:
    result = await audit(stub, tmp_path, rules={"M01": {"required": ["project"]}})
    file = result.folder / "bucket.json"
    document = json.loads(file.read_text())
    document["configuration"]["rules"] = rules
    file.write_text(json.dumps(document))
    config = tmp_path / "other.toml"
    config.write_text('only = ["K01"]\n')
    for arguments in ((), ("--config", str(config))):
        done = offline("judge", result.folder, *arguments)
        assert (done.returncode, "bucket.json is damaged (configuration: " in done.stderr) == (1, True), done.stderr


async def test_in_another_place_and_from_python(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path / "runs")
    run = auditor.judge_run(result.folder, out=str(tmp_path / "other"), trusted={STRANGER})
    assert Path(run.place).is_relative_to(tmp_path / "other")
    assert run.verdicts["shared"] == 0
    assert json.loads((Path(run.place) / "bucket.json").read_text())["auditor"] == VERSION
    with pytest.raises(UsageError, match="the keyword 'max_rate' does not apply here: use ignore, level, only"):
        auditor.judge_run(result.folder, max_rate=5)  # type: ignore[call-arg]


async def test_a_run_that_lost_its_facts(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path)
    (result.folder / "bucket.json").unlink()
    done = offline("judge", result.folder)
    assert done.returncode == 1
    assert "bucket.json is gone, and the run is judged by it: audit again" in done.stderr
    assert len(list(auditor.open_run(result.folder).objects())) == 40
    done = offline("check", result.folder)
    assert done.returncode == 1
    assert "bucket.json is gone" in done.stdout


async def test_wrong_settings(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path)
    for arguments, words in (
        (("--only", "Z99"), "there is no rule 'Z99'"),
        (("--trust", "*"), "--trust"),
        (("--config", str(tmp_path / "none.toml")), "there is no file"),
        (("--only", "I03"), "compares with a ledger"),
    ):
        done = offline("judge", result.folder, *arguments)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    file = result.folder / "bucket.json"
    file.write_text('{"format": 1}')
    done = offline("judge", result.folder)
    assert (done.returncode, "bucket.json is damaged" in done.stderr) == (1, True)


async def test_a_part_with_lines_without_an_object(stub: StubServer, plain: StubBucket, tmp_path: Path) -> None:
    result = await audit(stub, tmp_path)
    file = result.folder / "objects" / "part-00000-00000.jsonl.gz"
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines[1:])))
    done = offline("judge", result.folder)
    assert (done.returncode, "lines without an object" in done.stderr) == (1, True)


async def test_a_run_folder_in_a_bucket(stub: StubServer, plain: StubBucket, tmp_path: Path, moto_url: str) -> None:
    """The store is asked, the audited bucket is not."""
    name = f"results-{uuid4().hex[:12]}"
    s3 = client("s3", moto_url)
    s3.create_bucket(Bucket=name)
    s3.close()
    settings = Settings(endpoint_url=stub.url, max_rate=None, concurrency=16)
    with open_store(f"s3://{name}/deep", endpoint_url=moto_url) as store:
        summary = await Audit(Target(BUCKET), settings, Resources(store=store), Stop(), part_lines=15).run()
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


@pytest.mark.slow
async def test_a_run_that_was_killed(stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
    stub.faults = [latency(0.01)]
    child = start(stub, tmp_path, "--concurrency", "4", small_parts=True)
    wait_for(lambda: (state := checkpoint(tmp_path)) is not None and state["next_part"] > 1, child)
    child.kill()
    child.communicate(timeout=30)
    stub.faults = []
    (folder,) = (tmp_path / f"bucket={BUCKET}").glob("run=*")
    again = json.loads(offline("judge", folder, "--format", "json").stdout)
    assert (again["complete"], again["resume"]["run"]) == (False, folder.name[4:])
    assert again["coverage"]["listed"] >= 20
    assert auditor.check_run(folder).exit_code == 4
    _, (result,), _ = finish(start(stub, tmp_path, "--resume", folder.name[4:]))
    check_same(result, judged_again(result))
