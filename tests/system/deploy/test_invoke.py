"""`make invoke` waits for the state machine, on this machine too, and shows the end of the runs."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from deploy import python
from deploy.errors import BuildError
from deploy.executions import wait_for, with_ends
from deploy.invoke import main
from deploy.options import PYTHON, ROOT
from tools.local_aws import functions

MOTO = ROOT / ".venv-deploy" / "bin" / "python"
NAME = "s3-auditor-local-audit"
RUN = "20260102T030405Z-a1b2c3"
SERVER = """
import sys
from pathlib import Path
from tools.local_aws import functions
from tools.local_aws.__main__ import free_port, serving
functions.PACKAGE = Path(sys.argv[1])
with serving(free_port()) as url:
    print(url, flush=True)
    sys.stdin.read()
"""
HANDLER = """
import json, os, pathlib, urllib.request
class RunTaken(Exception):
    pass
def handler(event, context):
    if event.get("action") != "conclude":
        return {"runs": [], "executions": [start(event)]}
    taken = pathlib.Path(os.environ["FOLDER"], "taken")
    if not taken.exists():
        taken.touch()
        raise RunTaken("another invocation has it")
    run = {"run": event["event"].get("start", "r"), "complete": event["event"]["bucket"] != "bad"}
    return {"runs": [run | {"target": {"bucket": "b"}, "resume": {"reason": "it is bad"}}], "left": []}
def start(event):
    data = {"stateMachineArn": os.environ["AUDITOR_STATE_MACHINE"], "name": event["bucket"], "input": json.dumps(event)}
    headers = {"X-Amz-Target": "AWSStepFunctions.StartExecution", "Content-Type": "application/x-amz-json-1.0"}
    headers["Authorization"] = "AWS4-HMAC-SHA256 Credential=t/20260101/us-east-1/states/aws4_request"
    request = urllib.request.Request(os.environ["AWS_ENDPOINT_URL"], json.dumps(data).encode(), headers)
    return json.load(urllib.request.urlopen(request))["executionArn"]
"""
"""An audit function that leaves everything to the state machine."""
CONCLUDE = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke",
    "Parameters": {"FunctionName": NAME, "Payload": {"action": "conclude", "event.$": "$"}},
    "Retry": [{"ErrorEquals": ["RunTaken"], "IntervalSeconds": 1, "MaxAttempts": 1}],
    "OutputPath": "$.Payload",
    "End": True,
}


@pytest.fixture
def local_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What `make local-aws` runs, with a function and a state machine deployed, and the shell of `make invoke`."""
    if python.find() is None or not MOTO.exists():
        pytest.skip(f"there is no python{PYTHON}, or no {MOTO.relative_to(ROOT)}: make local-aws sets the latter up")
    package = tmp_path / "function-local.zip"
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("handlers/audit.py", HANDLER)
    monkeypatch.setattr(functions, "PACKAGE", package)
    command, pipe = [str(MOTO), "-c", SERVER, str(package)], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as server:  # ends with its stdin
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        deploy(url, tmp_path)
        yield url


def deploy(url: str, folder: Path) -> None:
    session = boto3.Session("testing", "testing", region_name="us-east-1")
    client = {name: session.client(name, endpoint_url=url) for name in ("iam", "lambda", "logs", "stepfunctions")}
    role = client["iam"].create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    definition = json.dumps({"StartAt": "Conclude", "States": {"Conclude": CONCLUDE}})
    machine = client["stepfunctions"].create_state_machine(name="audit", definition=definition, roleArn=role)
    variables = {"AUDITOR_STATE_MACHINE": machine["stateMachineArn"], "FOLDER": str(folder)}
    client["lambda"].create_function(
        FunctionName=NAME,
        Runtime=f"python{PYTHON}",
        Handler="handlers.audit.handler",
        Role=role,
        Code={"ZipFile": (folder / "function-local.zip").read_bytes()},
        Timeout=30,
        Environment={"Variables": variables},
    )
    client["logs"].create_log_group(logGroupName=f"/aws/lambda/{NAME}")


def test_the_local_machine_invokes_the_package_and_its_end_is_shown(
    local_aws: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--stage", "local", "--bucket", "good"]) == 0
    said = capsys.readouterr()
    assert [run["run"] for run in json.loads(said.out)["runs"]] == ["r"]
    assert "the state machine continues" in said.err
    assert (tmp_path / "taken").exists(), "an error of the function is tried again by its name"
    assert main(["--stage", "local", "--bucket", "bad"]) == 1
    assert "the run of b is not complete: it is bad" in capsys.readouterr().err
    event = tmp_path / "event.json"
    for given, code in (({"start": RUN, "bucket": "b"}, 0), ({"start": RUN, "bucket": "bad"}, 1)):
        event.write_text(json.dumps(given))
        assert main(["--stage", "local", "--event", str(event)]) == code
        assert [run["run"] for run in json.loads(capsys.readouterr().out)["runs"]] == [RUN]
    assert main(["--stage", "local", "--undeployed", "--event", str(event)]) == 1
    assert "the event is for the state machine" in capsys.readouterr().err


class Executions:
    """Answers as Step Functions does, one state of the execution after the other."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = list(states)

    def describe_execution(self, **arguments: Any) -> dict[str, Any]:
        assert arguments.keys() == {"executionArn"}
        return self.states.pop(0)


def test_the_end_of_an_execution_is_waited_for_or_the_cause_of_its_failure() -> None:
    waits: list[float] = []
    run, other = {"run": "r", "complete": True}, {"run": "s", "complete": True}
    end = {"next": "complete", "start": "s", "runs": [run], "left": [], "estate": None}
    running = {"status": "RUNNING"}
    client = Executions(running, running, {"status": "SUCCEEDED", "output": json.dumps(end)})
    found = wait_for(["arn"], client, waits.append)
    assert (found["runs"], len(waits)) == ([run], 2)
    answer = {"runs": [{"run": "r", "complete": False}, other], "left": ["a bucket"], "executions": ["arn"]}
    assert with_ends(answer, found) == {"runs": [run, other], "executions": ["arn"]}
    failed = Executions({"status": "FAILED", "error": "StartIncomplete", "cause": "A range is not complete"})
    with pytest.raises(BuildError, match="ended as FAILED: A range is not complete"):
        wait_for(["arn"], failed)
