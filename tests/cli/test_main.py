"""The command line from end to end, on moto and on the stub: output, streams and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer
from tests.support.servers.world import Odd, StubBucket


def test_several_targets_print_a_document_a_line_and_the_worst_code_wins(
    run: Run, stub: StubServer, bucket: StubBucket
) -> None:
    stub.put("audited", "clean/a", b"x")
    stub.put("audited", "denied/a", b"x", deny={"acl"})
    flags = ("--endpoint-url", stub.url, "--ignore", "B01,B02")
    targets = ("s3://audited/clean/", "s3://missing-bucket", "s3://audited/denied/")
    code, out, err = run("audit", *targets, "--format", "json", *flags)
    lines = {
        line["target"]["bucket"] + "/" + line["target"]["prefix"]: line for line in map(json.loads, out.splitlines())
    }
    assert lines.keys() == {"audited/clean/", "missing-bucket/", "audited/denied/"}
    missing = lines["missing-bucket/"]
    assert (missing["complete"], missing["exit_code"], missing["failed"] in err) == (False, 1, True)
    assert [lines[f"audited/{name}/"]["coverage"]["listed"] for name in ("clean", "denied")] == [1, 1]
    assert [code, *(run("audit", target, *flags)[0] for target in targets)] == [4, 0, 1, 4]
    code, out, _ = run("audit", *targets, *flags)
    head, *rows, sums, reports = out.splitlines()
    assert (code, head.split()) == (4, ["objects", "exposed", "not", "checked", "target"])
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [
        *zip(("passed", "FAILED", "HOLE"), targets, strict=True)
    ]
    assert sums == "3 targets: 1 passed, 1 FAILED, 1 HOLE; 2 objects, 0 exposed, 1 that could not be checked"
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


def test_wrong_usage_imports_no_client() -> None:
    code = (
        "import sys; from auditor.cli.main import main; "
        "main(['audit', 's3://b', '--max-rate', 'x']), main(['verify', 's3:/b']), main(['hash', 'b']); "
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"botocore", "boto3", "aiohttp", "aioboto3", "urllib3", "duckdb"}.isdisjoint(done.stdout.split())
