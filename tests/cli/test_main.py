"""The command line from end to end, on moto and on the stub: output, streams and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from auditor.cli.main import main
from auditor.ledger.dynamodb.ledger import create_table
from auditor.rules import RULES
from tests.support.odd_keys import MOTO_SERVES, ODD_KEYS
from tests.support.servers.clients import client
from tests.support.servers.stub import StubServer
from tests.support.servers.world import Odd, StubBucket

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command in an empty directory: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as stopped:  # argparse's way out
            code = int(stopped.code or 0)
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


class Cloud:
    """A bucket, a queue with its dead-letter queue, a ledger table and a bucket for reports, on moto."""

    def __init__(self, url: str) -> None:
        name = uuid4().hex[:12]
        self.url = url
        self.bucket, self.reports, self.table = f"audited-{name}", f"reports-{name}", f"digests-{name}"
        self.s3: Any = boto3.client("s3", endpoint_url=url)
        self.sqs: Any = boto3.client("sqs", endpoint_url=url)
        self.s3.create_bucket(Bucket=self.bucket)
        self.s3.create_bucket(Bucket=self.reports)
        self.dead: str = self.sqs.create_queue(QueueName=f"dead-{name}")["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=self.dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
        self.queue: str = self.sqs.create_queue(QueueName=f"hash-{name}", Attributes={"RedrivePolicy": redrive})[
            "QueueUrl"
        ]

    def close(self) -> None:
        self.s3.close()
        self.sqs.close()


@pytest.fixture
async def cloud(moto_url: str) -> Any:
    made = Cloud(moto_url)
    await create_table(made.table, endpoint_url=moto_url)
    return made


@pytest.fixture
def loaded(cloud: Cloud) -> Iterator[Cloud]:
    for name in sorted(MOTO_SERVES):
        cloud.s3.put_object(Bucket=cloud.bucket, Key=ODD_KEYS[name], Body=name.encode())
    cloud.s3.put_object(Bucket=cloud.bucket, Key="public.txt", Body=b"hello", ACL="public-read")
    yield cloud
    cloud.close()


@pytest.mark.slow
def test_audit_queue_work_and_audit_again_with_everything_on_s3_and_dynamodb(run: Run, loaded: Cloud) -> None:
    """Run the steps of the nightly run one by one; the objects have every odd key that moto serves."""
    audit = ["audit", f"s3://{loaded.bucket}", "--endpoint-url", loaded.url, "--out", f"s3://{loaded.reports}/runs"]
    audit += ["--ledger", f"dynamodb:{loaded.table}", "--queue", loaded.queue, "--format", "json", "--fail-on", "never"]
    code, out, err = run(*audit)
    first = json.loads(out)
    total = len(MOTO_SERVES) + 1
    assert (code, first["coverage"]["listed"], first["hashing"]["queued"]) == (0, total, total), err
    work = ["work", "--queue", loaded.queue, "--ledger", f"dynamodb:{loaded.table}", "--idle", "0.2"]
    code, out, err = run(*work, "--endpoint-url", loaded.url, "--format", "json")
    counts = json.loads(out)
    assert (code, counts["hashed"], counts["failed"]) == (0, total, 0), err
    code, out, _ = run(*audit)
    again = json.loads(out)
    assert again["hashing"] == {
        "algorithms": ["sha256"],
        "known": total,
        "hashed_now": 0,
        "queued": 0,
        "unhashable": 0,
        "pending": 0,
        "left_for_cost": {},
        "routed": {"objects": 0, "bytes": 0},
        "failed": {},
    }
    latest = json.loads(
        loaded.s3.get_object(Bucket=loaded.reports, Key=f"runs/bucket={loaded.bucket}/latest.json")["Body"].read()
    )
    assert latest["runs"]["current"] == {"": again["run"]}
    names = [
        entry["Key"]
        for entry in loaded.s3.list_objects_v2(
            Bucket=loaded.reports, Prefix=f"runs/bucket={loaded.bucket}/run={again['run']}/"
        )["Contents"]
    ]
    assert {name.rpartition("/")[2] for name in names} >= {"summary.json", "report.html", "part-00000-00000.jsonl.gz"}


def test_a_malformed_message_goes_to_the_dead_letter_queue_with_its_reason(run: Run, loaded: Cloud) -> None:
    loaded.sqs.send_message(QueueUrl=loaded.queue, MessageBody='{"v": 1, "bucket": 7}')
    code, out, _ = run(
        *("work", "--queue", loaded.queue, "--ledger", "sqlite:digests.db", "--idle", "0.2"),
        *("--endpoint-url", loaded.url, "--format", "json"),
    )
    counts = json.loads(out)
    assert (code, counts["failed"], counts["dead_lettered"]) == (4, 1, 1)
    (letter,) = loaded.sqs.receive_message(QueueUrl=loaded.dead, MessageAttributeNames=["All"])["Messages"]
    assert letter["Body"] == '{"v": 1, "bucket": 7}'
    assert any(value["StringValue"].startswith("bucket is not text") for value in letter["MessageAttributes"].values())


@pytest.mark.parametrize("engine", ["aioboto3", "boto3"])
def test_hash_in_this_process_knows_everything_the_second_time(run: Run, loaded: Cloud, engine: str) -> None:
    command = ["hash", f"s3://{loaded.bucket}", "--ledger", "sqlite:digests.db", "--endpoint-url", loaded.url]
    code, out, err = run(*command, "--format", "json", "--engine", engine, "--algorithm", "sha256,md5")
    assert (code, json.loads(out)["hashing"]["hashed_now"]) == (0, len(MOTO_SERVES) + 1), err
    code, out, _ = run(*command, "--engine", engine)
    assert code == 0
    assert f"0 objects hashed now, {len(MOTO_SERVES) + 1} known before" in out


def test_audit_with_hash_counts_them_as_hashed_now(run: Run, loaded: Cloud) -> None:
    code, out, _ = run(
        *("audit", f"s3://{loaded.bucket}", "--endpoint-url", loaded.url, "--ledger", "sqlite:digests.db", "--hash"),
        *("--format", "json", "--fail-on", "never"),
    )
    assert code == 0
    assert json.loads(out)["hashing"]["hashed_now"] == len(MOTO_SERVES) + 1


def test_several_targets_print_a_document_a_line_and_the_worst_code_wins(
    run: Run, stub: StubServer, bucket: StubBucket
) -> None:
    stub.put("audited", "clean/a", b"x")
    stub.put("audited", "denied/a", b"x", deny={"acl"})
    code, out, err = run(
        *("audit", "s3://audited/clean/", "s3://missing-bucket", "s3://audited/denied/", "--format", "json"),
        *("--endpoint-url", stub.url, "--ignore", "B01,B02"),
    )
    lines = {
        line["target"]["bucket"] + "/" + line["target"]["prefix"]: line for line in map(json.loads, out.splitlines())
    }
    assert lines.keys() == {"audited/clean/", "missing-bucket/", "audited/denied/"}
    missing = lines["missing-bucket/"]
    assert (missing["complete"], missing["exit_code"], missing["failed"] in err) == (False, 1, True)
    assert [lines[f"audited/{name}/"]["coverage"]["listed"] for name in ("clean", "denied")] == [1, 1]
    assert code == 4
    code, _, _ = run("audit", "s3://audited/denied/", "--endpoint-url", stub.url, "--ignore", "B01,B02")
    assert code == 4
    code, _, _ = run("audit", "s3://audited/clean/", "--endpoint-url", stub.url, "--ignore", "B01,B02")
    assert code == 0


def test_one_target_that_failed_is_a_line_too_and_exit_code_1(run: Run, stub: StubServer) -> None:
    code, out, err = run("audit", "s3://missing-bucket", "--format", "json", "--endpoint-url", stub.url)
    line = json.loads(out)
    assert (code, line["target"]["bucket"], line["exit_code"], line["failed"] in err) == (1, "missing-bucket", 1, True)


@pytest.mark.slow
def test_sixty_small_buckets_are_one_table_of_one_line_each(run: Run, stub: StubServer) -> None:
    names = [f"small-{number:02}" for number in range(60)]
    for name in names:
        stub.world.buckets[name] = StubBucket(name=name)
        stub.put(name, "key", b"x")
    stub.put("small-07", "public", b"x", acl="public-read")
    stub.put("small-30", "denied", b"x", deny={"acl"})
    targets = [f"s3://{name}" for name in names]
    code, out, err = run("audit", *targets, "--endpoint-url", stub.url, "--ignore", "B01,B02")
    head, *rows, sums, reports = out.splitlines()
    assert (code, len(rows), head.split()) == (4, 60, ["objects", "exposed", "not", "checked", "target"]), err
    assert [row.split()[-1] for row in rows] == targets
    assert [row.split()[0] for row in rows if not row.startswith("passed")] == ["FINDINGS", "HOLE"]
    assert sums == "60 targets: 58 passed, 1 FINDINGS, 1 HOLE; 62 objects, 1 exposed, 1 that could not be checked"
    assert reports.startswith("reports: ")


def test_several_targets_share_the_number_of_calls(run: Run, stub: StubServer, bucket: StubBucket) -> None:
    for prefix in "abc":
        stub.put("audited", f"{prefix}/key", b"x")
    base = ["audit", *(f"s3://audited/{prefix}/" for prefix in "abc"), "--format", "json", "--endpoint-url", stub.url]
    before = len(stub.calls)
    code, out, _ = run(*base, "--max-calls", "20")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 4
    assert len(stub.calls) - before <= 20
    assert [line["target"]["prefix"] for line in lines] == ["a/", "b/", "c/"]
    assert (lines[0]["complete"], lines[2]["complete"]) == (True, False)


def test_findings_raise_three_and_a_hole_outranks_them(run: Run, stub: StubServer, bucket: StubBucket) -> None:
    stub.put("audited", "public", b"x", acl="public-read")
    base = ["audit", "s3://audited", "--endpoint-url", stub.url, "--ignore", "B01,B02"]
    assert run(*base)[0] == 3
    assert run(*base, "--fail-on", "critical")[0] == 0
    bucket.odd["GetBucketAcl"] = Odd.DENIED
    assert run(*base)[0] == 4


def test_a_hole_that_the_owner_accepts_stays_counted_and_raises_nothing(
    run: Run, stub: StubServer, tmp_path: Path
) -> None:
    stub.put("audited", "vault/a", b"x", deny={"acl"})
    until = datetime.now(UTC).date() + timedelta(days=9)
    (tmp_path / "auditor.toml").write_text(
        'ignore = ["B01", "B02"]\n[[exceptions]]\nprefix = "vault/"\naction = "GetObjectAcl"\n'
        f'reason = "denied to all"\nowner = "security"\nuntil = {until}\n'
    )
    code, out, _ = run("audit", "s3://audited", "--endpoint-url", stub.url, "--format", "json")
    summary = json.loads(out)
    assert (code, summary["coverage"]["undecided"], summary["accepted"]["undecided"]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["audit", "bucket"], "s3://"),
        (["audit", "s3://"], "bucket name"),
        (["audit", "s3://x/../y"], "bucket name"),
        (["audit", "s3://zone--use1-az4--x-s3"], "directory bucket"),
        (["audit", "s3://bucket", "--engine", "warp"], "--engine"),
        (["audit", "s3://bucket", "--only", "Z99"], "Z99"),
        (["audit", "s3://bucket", "--only", "M01"], "M01"),
        (["audit", "s3://bucket", "--only", "O01", "--ignore", "O01"], "no rule"),
        (["audit", "s3://bucket", "--start-after", "b", "--stop-at", "a"], "range"),
        (["audit", "s3://bucket", "--endpoint-url", "nowhere"], "--endpoint-url"),
        (["audit", "s3://bucket", "--queue", "http://127.0.0.1:1/q"], "--ledger"),
        (["audit", "s3://bucket", "--hash"], "--ledger"),
        (["audit", "s3://bucket", "--ledger", "mysql:x"], "--ledger"),
        (["audit", "s3://bucket", "--out", "s3://bucket/reports"], "audited bucket"),
        (["audit", "s3://bucket", "--out", "ftp://x"], "ftp"),
        (["audit", "s3://bucket", "--resume", "yesterday"], "run ID"),
        (["audit", "s3://bucket", "--resume", "20260102T030405Z-0a1b2c"], "there is no run"),
        (["audit", "s3://one-bucket", "s3://two-bucket", "--resume", "20260102T030405Z-0a1b2c"], "one target"),
        (["audit", "s3://bucket", "--config", "nothing.toml"], "--config"),
        (["audit", "s3://bucket", "--profile", "nobody"], "--profile"),
        (["audit", "s3://bucket", "--max-rate", "fast"], "--max-rate"),
        (["hash", "s3://bucket"], "--ledger"),
        (["hash", "s3://bucket", "--ledger", "sqlite:x", "--algorithm", "crc"], "--algorithm"),
        (["work", "--queue", "q", "--ledger", "sqlite:x"], "--queue"),
        (["work", "--queue", "http://127.0.0.1:1/q", "--ledger", "sqlite:x", "--idle", "soon"], "--idle"),
        (["rules", "Z99"], "Z99"),
        (["fly"], "fly"),
    ],
)
def test_wrong_usage_is_two_and_says_what_to_mend(run: Run, arguments: list[str], named: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, ""), err
    assert named in err
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [["audit", "s3://b", "--max-rate", "x"], ["verify", "s3:/b"], ["hash", "b"]])
def test_wrong_usage_imports_no_client(arguments: list[str]) -> None:
    code = (
        "import sys; from auditor.cli.main import main; code = main(sys.argv[1:]); "
        "print(code, *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    found = done.stdout.split()
    assert found[0] == "2"
    assert {"botocore", "boto3", "aiohttp", "aioboto3", "urllib3"}.isdisjoint(found)


def test_out_below_a_regular_file_is_one_sentence(run: Run, stub: StubServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, out, err = run("audit", "s3://audited", "--endpoint-url", stub.url, "--out", str(tmp_path / "file" / "runs"))
    assert (code, out) == (1, "")
    assert str(tmp_path / "file") in err
    assert len(err.strip().splitlines()) == 1


def test_no_credentials_at_all_is_one_sentence(run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    code, _, err = run("audit", "s3://audited", "--endpoint-url", stub.url)
    assert code == 1
    assert "credentials" in err
    assert len(err.strip().splitlines()) == 1


def test_rules_are_listed_explained_and_given_as_json(run: Run) -> None:
    code, table, _ = run("rules")
    assert code == 0
    assert [line.split()[0] for line in table.splitlines()] == [rule.id for rule in RULES]
    assert "\nFix:" in run("rules", "o02")[1]
    assert {entry["id"] for entry in json.loads(run("rules", "--format", "json")[1])} == {rule.id for rule in RULES}


def test_policy_is_a_policy_document(run: Run) -> None:
    code, out, _ = run("policy", "s3://bucket/prefix/", "--only", "O01", "--region", "cn-north-1")
    document = json.loads(out)
    assert code == 0
    resources = [resource for statement in document["Statement"] for resource in statement["Resource"]]
    assert "arn:aws-cn:s3:::bucket/prefix/*" in resources


@pytest.mark.parametrize(("region", "partition"), [("us-gov-west-1", "aws-us-gov"), ("default", "aws")])
def test_policy_is_of_the_environments_partition(
    run: Run, monkeypatch: pytest.MonkeyPatch, region: str, partition: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    code, out, _ = run("policy", "s3://bucket")
    assert code == 0
    assert f'"arn:{partition}:s3:::bucket/*"' in out


def test_nothing_but_results_goes_to_stdout(run: Run, stub: StubServer) -> None:
    stub.put("audited", "a", b"x")
    _, out, err = run("audit", "s3://audited", "--endpoint-url", stub.url, "--format", "json", "-v")
    assert json.loads(out)["complete"]
    assert "1 object, " in err


def test_each_run_tells_its_id_as_it_begins_and_what_goes_on_when_it_ends_early(run: Run, stub: StubServer) -> None:
    for number in range(9):
        stub.put("audited", f"{number}", b"x")
    command = ["audit", "s3://audited", "--endpoint-url", stub.url, "--format", "json", "--ignore", "B01,B02"]
    code, out, err = run(*command, "--max-calls", "25")
    summary = json.loads(out)
    assert (code, summary["complete"]) == (4, False)
    assert f"auditor: s3://audited: run {summary['run']}" in err.splitlines()
    again = err.splitlines()[-1]
    assert again.startswith("auditor: not complete: the limit of --max-calls was reached; ")
    assert "; resume with: auditor audit s3://audited " in again
    assert f" --ignore B01,B02 --max-calls 25 --endpoint-url {stub.url} --format json" in again
    assert again.endswith(f" --resume {summary['run']}")
    code, out, err = run(*command, "--resume", summary["run"])
    assert (code, json.loads(out)["run"]) == (0, summary["run"])


@pytest.mark.parametrize("in_bucket", [False, True])
def test_a_run_goes_on_by_its_folder_below_the_same_out_alone(run: Run, moto_url: str, *, in_bucket: bool) -> None:
    s3, bucket, reports = client("s3", moto_url), f"audited-{uuid4().hex[:8]}", f"reports-{uuid4().hex[:8]}"
    for name in (bucket, reports):
        s3.create_bucket(Bucket=name)
    for number in range(9):
        s3.put_object(Bucket=bucket, Key=f"{number}", Body=b"x")
    out = f"s3://{reports}/runs" if in_bucket else "runs"
    s3.close()
    command = ["audit", f"s3://{bucket}", "--endpoint-url", moto_url, "--format", "json", "--fail-on", "never"]
    code, text, _ = run(*command, "--out", out, "--max-calls", "25")
    stopped = json.loads(text)
    assert (code, stopped["complete"]) == (4, False)
    folder = f"{out}/bucket={bucket}/run={stopped['run']}"
    for place, named in (("elsewhere", folder), (out, folder.replace("bucket=audited", "bucket=another"))):
        code, _, err = run(*command, "--out", place, "--resume", named)
        assert (code, f"'{named}' is not a run ID: it is written like" in err) == (2, True)
    code, text, _ = run(*command, "--out", out, "--resume", f"{folder}/")
    assert (code, json.loads(text)["run"], json.loads(text)["complete"]) == (0, stopped["run"], True)


def test_a_complete_run_resumed_is_summed_up_again_with_its_code(run: Run, stub: StubServer) -> None:
    stub.put("audited", "open", b"x", acl="public-read")
    audit = ("--endpoint-url", stub.url, "--format", "json")
    code, out, _ = run("audit", "s3://audited", *audit)
    stub.calls.clear()
    again, summary, err = run("audit", "s3://audited", *audit, "--resume", json.loads(out)["run"])
    assert (again, json.loads(summary)) == (code, json.loads(out)) == (3, json.loads(out))
    assert "is complete; this is its summary" in err
    assert stub.calls == []
    code, _, err = run("audit", "s3://audited/other", *audit, "--resume", json.loads(out)["run"])
    assert (code, "another target" in err) == (2, True)
    code, _, err = run("audit", "s3://audited", *audit, "--only", "E01", "--resume", json.loads(out)["run"])
    assert (code, "began with other rules" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["s3://audited/tpyo/", "--allow-empty"], "nothing is listed under s3://audited/tpyo/: check the prefix"),
        (["s3://audited", "--start-after", "z"], "check the prefix and the key range"),
        (["s3://audited/typo/", "--start-after", "typo/z"], "check the prefix and the key range"),
        (["s3://empty-one"], "nothing is listed under s3://empty-one: the bucket is empty"),
    ],
)
@pytest.mark.parametrize("output", ["table", "json"])
def test_nothing_listed_is_said_and_fails_nothing(
    run: Run, stub: StubServer, arguments: list[str], hint: str, output: str
) -> None:
    stub.put("audited", "typo/a", b"x")
    stub.world.add("empty-one")
    base = ["--endpoint-url", stub.url, "--ignore", "B01,B02", "--format", output]
    code, out, err = run("audit", *arguments, *base)
    assert code == 0
    assert hint in err
    assert hint not in out


def test_table_names_what_is_exposed_and_the_report(run: Run, stub: StubServer) -> None:
    stub.put("audited", "open.txt", b"x", acl="public-read")
    code, out, err = run("audit", "s3://audited", "--endpoint-url", stub.url, "--ignore", "B01,B02")
    lines = out.splitlines()
    assert code == 3
    assert lines[:2] == [
        "Strangers can get at 1 object.",
        "1 object listed = 1 audited + 0 that could not be checked: complete",
    ]
    assert "exposed  Anyone on the internet can reach 1 object  open.txt" in lines
    assert "high      O02   The ACL lets anyone on the internet read the object: 1 object  open.txt" in lines
    (report,) = (line[16:] for line in lines if line.startswith("Report "))
    assert "Strangers can get at <em>1 object</em>" in Path(report).read_text()
    assert "nothing is listed" not in err
