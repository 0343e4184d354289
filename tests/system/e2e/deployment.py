"""Deployed with osls to a server on 127.0.0.1; from then on all is read from what lies there, not from the sources."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import boto3

from deploy.options import ROOT
from tests.system.e2e.environment import REGION, Function

SERVICE: Final = "s3-auditor-local"
AUDITED: Final = "auditor-sample"
_SOURCES: Final = (
    "auditor",
    "handlers",
    "deploy",
    "serverless.yml",
    "package.json",
    "pyproject.toml",
    "requirements.txt",
    "uv.lock",
    "tools",
    "LICENSE",
)
_UP_SECONDS: Final = 60.0
SECONDS_OF_WAIT: Final = 2


@dataclass(frozen=True, slots=True)
class Source:
    """An event source mapping. function: its name. partial: whether batchItemFailures are asked for."""

    queue_url: str
    queue_arn: str
    function: str
    batch_size: int
    concurrency: int
    partial: bool


class Deployment:
    """url: the server's. folder: a copy of the sources, for others may be at work on the tree."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.invoke_address = folder / "invoke.url"
        self._nights = 0
        self._shared_machine: str | None = None
        self._root = folder / "root"
        self._packages = folder / "packages"
        for name in _SOURCES:
            source, target = ROOT / name, self._root / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        (self._root / "node_modules").symlink_to(ROOT / "node_modules")
        # The builder's interpreter is looked for here; it is whichever runs these tests.
        (self._root / ".venv").symlink_to(sys.prefix)

    def osls(self, command: str, *more: str) -> str:
        """`serverless COMMAND --stage local`; what it said. more: further arguments."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environ |= {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}
        environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "NODE_NO_WARNINGS": "1"}
        done = subprocess.run(
            ["node", "node_modules/.bin/serverless", command, "--stage", "local", *more],
            cwd=self._root,
            env=environ,
            capture_output=True,
            text=True,
            timeout=900,  # a busy machine takes minutes
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        return said

    def client(self, service: str) -> Any:
        return boto3.Session("testing", "testing", region_name=REGION).client(service, endpoint_url=self.url)

    def outputs(self) -> dict[str, str]:
        (stack,) = self.client("cloudformation").describe_stacks(StackName=SERVICE)["Stacks"]
        return {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}

    def left(self) -> set[str]:
        """Names of the deployment's functions, tables, buckets, queues and roles that there are."""
        buckets = [one["Name"] for one in self.client("s3").list_buckets()["Buckets"]]
        queues = [url.rpartition("/")[2] for url in self.client("sqs").list_queues().get("QueueUrls", [])]
        functions = [one["FunctionName"] for one in self.client("lambda").list_functions()["Functions"]]
        roles = [one["RoleName"] for one in self.client("iam").list_roles()["Roles"]]
        tables = self.client("dynamodb").list_tables()["TableNames"]
        return {name for name in (*buckets, *queues, *functions, *roles, *tables) if name.startswith(SERVICE)}

    def schedules_input(self, name: str = "NightlySchedule") -> Any:
        """The event that a schedule sends: from the template, for the server here knows no schedules. Each call is
        another night's.
        """
        self._nights += 1
        night = datetime.now(UTC) + timedelta(seconds=self._nights)
        text: str = self._template()[name]["Properties"]["Target"]["Input"]
        text = text.replace("<aws.scheduler.scheduled-time>", night.strftime("%Y-%m-%dT%H:%M:%SZ"))
        return json.loads(text.replace("<aws.scheduler.schedule-arn>", f"arn:aws:scheduler:::schedule/{name}"))

    def failure_queue(self) -> str:
        """The URL of the queue that the audit's failures go to."""
        return self._queue("AuditFailureQueue")

    def _template(self) -> dict[str, Any]:
        """The resources of the template that was deployed, by their names in it."""
        path = self._root / ".serverless" / "cloudformation-template-update-stack.json"
        found: dict[str, Any] = json.loads(path.read_text())["Resources"]
        return found

    def _queue(self, name: str) -> str:
        """The URL of a queue, by its name in the template."""
        found = self.client("sqs").get_queue_url(QueueName=self._template()[name]["Properties"]["QueueName"])
        url: str = found["QueueUrl"]
        return url

    def _asynchronous(self, function: str) -> dict[str, Any]:
        """What befalls an asynchronous invocation: from the template, for the server here leaves that out."""
        template = self._template()
        for one in template.values():
            if one["Type"] != "AWS::Lambda::EventInvokeConfig":
                continue
            properties = one["Properties"]
            if template[properties["FunctionName"]["Ref"]]["Properties"]["FunctionName"] == function:
                queue, _ = properties["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"]
                return {"retries": properties["MaximumRetryAttempts"], "on_failure": self._queue(queue)}
        return {}

    def _log_format(self, function: str) -> str:
        """From the template too; without one Lambda writes text."""
        return str(self._of_function(function).get("LoggingConfig", {}).get("LogFormat", "Text"))

    def _of_function(self, function: str) -> dict[str, Any]:
        """A function's properties in the template."""
        (found,) = [
            one["Properties"]
            for one in self._template().values()
            if one["Type"] == "AWS::Lambda::Function" and one["Properties"]["FunctionName"] == function
        ]
        return dict(found)

    def functions(self) -> dict[str, Function]:
        """ "audit", "hashing", "renew" and "verify", each with its package downloaded and unzipped."""
        found = self.client("lambda").list_functions()["Functions"]
        return {one["FunctionName"].removeprefix(f"{SERVICE}-"): self._function(one) for one in found}

    def uploaded(self, function: str) -> BytesIO:
        """A function's package as it lies with the functions."""
        found = self.client("lambda").get_function(FunctionName=function)
        key = found["Code"]["Location"].partition(".com/")[2]
        bucket = self.outputs()["ServerlessDeploymentBucketName"]
        body = self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        assert base64.b64encode(hashlib.sha256(body).digest()).decode() == found["Configuration"]["CodeSha256"]
        return BytesIO(body)

    def _function(self, found: dict[str, Any]) -> Function:
        name = found["FunctionName"]
        package = self._packages / name
        if not package.exists():
            with zipfile.ZipFile(self.uploaded(name)) as archive:
                archive.extractall(package)
        return Function(
            name,
            found["Handler"],
            package,
            found["Timeout"],
            found["MemorySize"],
            found["Environment"]["Variables"],
            found["Runtime"],
            log_format=self._log_format(name),
            layers=self._layers(name),
            **self._asynchronous(name),
        )

    def _layers(self, function: str) -> tuple[Path, ...]:
        """A function's layers, unzipped; which it has is from the template, for the server here leaves that out."""
        template = self._template()
        return tuple(
            self._layer(one["Ref"], template[one["Ref"]]["Properties"]["Content"]["S3Key"])
            for one in self._of_function(function).get("Layers", [])
        )

    def _layer(self, name: str, key: str) -> Path:
        folder = self._packages / name
        if not folder.exists():
            bucket = self.outputs()["ServerlessDeploymentBucketName"]
            body = self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
            with zipfile.ZipFile(BytesIO(body)) as archive:
                archive.extractall(folder)
        return folder

    def take_over(self) -> None:
        """Turn the server's own pollers off: at each send they receive what lies there, and each receipt counts."""
        lambdas = self.client("lambda")
        for one in lambdas.list_event_source_mappings()["EventSourceMappings"]:
            lambdas.update_event_source_mapping(UUID=one["UUID"], Enabled=False)

    def machine(self, *, shared: bool = False) -> str:
        """The ARN of the state machine. shared: of one that gets the ranges in an answer, as with run folders on a
        shared file system.
        """
        if not shared:
            return self.outputs()["StateMachine"]
        if self._shared_machine is None:
            client = self.client("stepfunctions")
            found = client.describe_state_machine(stateMachineArn=self.machine())
            definition = json.loads(found["definition"])
            del definition["States"]["Ranges"]["ItemReader"]
            definition["States"]["Ranges"]["ItemsPath"] = "$.pairs"
            text, name = json.dumps(definition), f"{SERVICE}-shared"
            made = client.create_state_machine(name=name, definition=text, roleArn=found["roleArn"])
            self._shared_machine = made["stateMachineArn"]
        return self._shared_machine

    def shorten_waits(self) -> None:
        """Let the state machine wait seconds for a bucket or a range that another invocation has, and not minutes."""
        client, machine = self.client("stepfunctions"), self.machine()
        definition = json.loads(client.describe_state_machine(stateMachineArn=machine)["definition"])
        for one in _states(definition):
            if one["Type"] == "Wait":
                one["Seconds"] = SECONDS_OF_WAIT
            for again in one.get("Retry", []):
                if again["ErrorEquals"] == ["RunTaken"]:
                    again["MaxAttempts"] *= again["IntervalSeconds"] // SECONDS_OF_WAIT
                    again["IntervalSeconds"] = SECONDS_OF_WAIT
        client.update_state_machine(stateMachineArn=machine, definition=json.dumps(definition))

    def start(self, event: Mapping[str, Any], *, shared: bool = False) -> str:
        """Start an execution of the state machine. Its ARN."""
        client, machine = self.client("stepfunctions"), self.machine(shared=shared)
        begun = client.start_execution(stateMachineArn=machine, name=uuid4().hex, input=json.dumps(event))
        return str(begun["executionArn"])

    def execute(self, event: Mapping[str, Any], seconds: float = 300.0, *, shared: bool = False) -> dict[str, Any]:
        """An execution of the state machine, when it has ended. Raises TimeoutError."""
        return self.ended(self.start(event, shared=shared), seconds)

    def stop(self, execution: str) -> None:
        self.client("stepfunctions").stop_execution(executionArn=execution)

    def redrive(self, execution: str, seconds: float = 300.0) -> dict[str, Any]:
        """The same execution, given by its ARN, when it has ended again. Raises TimeoutError."""
        self.client("stepfunctions").redrive_execution(executionArn=execution)
        return self.ended(execution, seconds)

    def ended(self, execution: str, seconds: float = 300.0) -> dict[str, Any]:
        """An execution, given by its ARN, when it has ended. Raises TimeoutError."""
        client, until = self.client("stepfunctions"), time.monotonic() + seconds
        while time.monotonic() < until:
            found: dict[str, Any] = client.describe_execution(executionArn=execution)
            if found["status"] != "RUNNING":
                return found
            time.sleep(0.2)
        raise TimeoutError(f"the execution has not ended after {seconds} seconds")

    def executions(self) -> list[str]:
        """The ARNs of all executions of the state machine, the newest first."""
        found = self.client("stepfunctions").list_executions(stateMachineArn=self.machine())["executions"]
        return [one["executionArn"] for one in found]

    def mappings(self) -> list[Source]:
        found = self.client("lambda").list_event_source_mappings()["EventSourceMappings"]
        return [
            Source(
                self.client("sqs").get_queue_url(QueueName=one["EventSourceArn"].rpartition(":")[2])["QueueUrl"],
                one["EventSourceArn"],
                one["FunctionArn"].rpartition(":")[2],
                one["BatchSize"],
                one["ScalingConfig"]["MaximumConcurrency"],
                one["FunctionResponseTypes"] == ["ReportBatchItemFailures"],
            )
            for one in found
        ]


def _states(definition: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All states of a definition, those of the children of maps included."""
    for one in definition["States"].values():
        yield one
        if one["Type"] == "Map":
            yield from _states(one["ItemProcessor"])


@contextmanager
def serving(command: str, log: Path, invoke_address: Path | None = None) -> Iterator[str]:
    """moto's server in a process of its own, which keeps its hands off the queues and starts no containers.

    command: path of moto's own server; the Python beside it has what moto needs. invoke_address: the file with the URL
    of the Invoke API at which its state machines invoke functions; None if none does.
    """
    address = invoke_address or log.with_name("no-invoke.url")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    environ = os.environ | {"DOCKER_HOST": "unix:///nonexistent"}
    with log.open("wb") as output:
        child = subprocess.Popen(
            [Path(command).resolve().with_name("python"), "-m", "tools.local_aws.machine", str(port), str(address)],
            cwd=ROOT,
            env=environ,
            stdout=output,
            stderr=output,
        )
        try:
            _wait_for(url, child)
            yield url
        finally:
            child.kill()
            child.wait()


def _wait_for(url: str, child: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _UP_SECONDS
    while time.monotonic() < until and child.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/moto-api/data.json", timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("moto's server did not start")
