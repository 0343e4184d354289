"""Invoke a deployed function for a bucket, a prefix or an event, and print its answer (`make invoke`).

At stage local the function's own package runs here, on its own Python, with the environment that was deployed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from auditor.errors import MessageError
from auditor.hashing.queue.notification import decode_events
from deploy import python
from deploy.errors import BuildError
from deploy.executions import wait_for
from deploy.options import ROOT
from deploy.outcome import failures, ledger_after, log_lines, without_digest
from deploy.region import region
from tools.local_aws.samples import BUCKET, QUEUE

SERVICE: Final = "s3-auditor"
PACKAGE: Final = ROOT / ".build" / "function-local.zip"
LONGEST: Final = 1800
_LOCAL: Final = re.compile(r"http://127\.0\.0\.1:[0-9]+/?")

_RUN: Final = """
import importlib, json, sys, time
module, _, name = sys.argv[1].rpartition(".")
end = time.monotonic() + float(sys.argv[2])
class Context:
    invoked_function_arn = sys.argv[3]
    def get_remaining_time_in_millis(self):
        return int(1000 * max(0.0, end - time.monotonic()))
answer = getattr(importlib.import_module(module), name)(json.load(sys.stdin), Context())
print()
print(json.dumps(answer))
"""


@dataclass(frozen=True, slots=True)
class Invoked:
    """The answer of a function. log, error: its log and the error that ended it, if it ran on this machine."""

    answer: Any
    log: str = ""
    error: str = ""
    ledger: str = ""
    """URI of the function's ledger; "" if this machine may not read the ledger."""
    hands_on: bool = False
    """True if the function invokes itself again near its deadline."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Return 0 if the function did all that the event asked for, else 1."""
    parser = argparse.ArgumentParser(prog="python -m deploy.invoke", description=__doc__)
    parser.add_argument("--stage", default="prod")
    parser.add_argument(
        "--function", choices=("audit", "hashing", "renew", "verify"), help="left out: what the event is for"
    )
    parser.add_argument("--bucket")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--event", type=Path, help="a file with the whole event instead")
    parser.add_argument("--undeployed", action="store_true", help="run the package here though nothing is deployed")
    options = parser.parse_args(arguments)
    try:
        event = read_event(options.event, options.bucket, options.prefix)
        name = options.function or function_for(event)
        done = invoke(name, event, options.stage, undeployed=options.undeployed)
        for line in log_lines(done.log):
            sys.stderr.write(f"{line}\n")
        if done.error:
            raise BuildError(done.error)
        if executions := done.answer.get("executions"):
            runs = [*done.answer["runs"], *wait_for(executions, local=options.stage == "local")["runs"]]
            done = replace(done, answer={"runs": runs}, hands_on=False)
        ledger = ledger_after(event, done.ledger) if done.ledger and name == "hashing" else []
    except (BuildError, ClientError, BotoCoreError) as error:
        absent = "ResourceNotFoundException" in str(getattr(error, "response", ""))
        sys.stderr.write(f"invoke: {error}{f'; deploy it: make deploy STAGE={options.stage}' if absent else ''}\n")
        return 1
    sys.stdout.write(json.dumps({**done.answer, **({"ledger": ledger} if ledger else {})}, indent=1) + "\n")
    wrong = [] if done.hands_on else [*failures(done.answer, done.log), *without_digest(ledger)]
    for sentence in wrong:
        sys.stderr.write(f"invoke: {sentence}\n")
    return 1 if wrong else 0


def read_event(file: Path | None, bucket: str | None, prefix: str) -> dict[str, Any]:
    """Read the event from a file, or make it from a bucket and prefix. Raises BuildError."""
    if file is not None:
        try:
            event = json.loads(file.read_text())
        except (OSError, ValueError, RecursionError) as error:
            raise BuildError(f"{file} is no event: {error}") from error
        if not isinstance(event, dict):
            raise BuildError(f"{file} is no event: it holds no JSON object")
        return event
    if not bucket:
        raise BuildError("no bucket is named: make invoke BUCKET=my-bucket [PREFIX=..]")
    return {"bucket": bucket, "prefix": prefix}


def function_for(event: Mapping[str, Any]) -> str:
    """Return the function that an event is for: events on ACLs are for renewals, and other messages for hashing."""
    if "Records" not in event:
        return "audit"
    return "renew" if any(_is_on_acl(record) for record in event["Records"]) else "hashing"


def _is_on_acl(record: Any) -> bool:
    try:
        return any(one.kind == "acl" for one in decode_events(record["body"]))
    except (MessageError, KeyError, TypeError):  # the function reports it
        return False


def invoke(name: str, event: Mapping[str, Any], stage: str, *, undeployed: bool) -> Invoked:
    """Invoke a function: "audit", "hashing", "renew" or "verify". Raises BuildError with the function's own error."""
    function = f"{SERVICE}-{stage}-{name}"
    local = stage == "local"
    endpoint = check_local(os.environ) if local or undeployed else ""
    if undeployed:
        environ = {**undeployed_settings(endpoint), **os.environ}
        return run_here(f"handlers.{name}.handler", event, environ, LONGEST, f"local:{function}")
    client = lambda_client()
    if local:
        deployed = client.get_function_configuration(FunctionName=function)
        variables = {**deployed["Environment"]["Variables"], "AUDITOR_HANDS_ON": "false", "AUDITOR_TOPIC": ""}
        variables |= {"AUDITOR_CHAT_TOPIC": "", "AUDITOR_EVENT_BUS": ""}
        environ = {**os.environ, **variables}
        done = run_here(deployed["Handler"], event, environ, deployed["Timeout"], deployed["FunctionArn"])
        keep_log(function, done.log)
        return done
    answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
    payload = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise BuildError(f"{function} failed: {payload.get('errorMessage', payload)}")
    return Invoked(payload, hands_on=True)


def keep_log(function: str, log: str) -> None:
    """Write the log to CloudWatch Logs on this machine's server, as Lambda would have, so that `make logs` finds it."""
    logs = boto3.Session().client("logs", region_name=region())
    group, stream = f"/aws/lambda/{function}", f"{time.strftime('%Y/%m/%d')}/[$LATEST]{uuid4().hex}"
    now = int(time.time() * 1000)
    logs.create_log_stream(logGroupName=group, logStreamName=stream)
    events = [{"timestamp": now, "message": line} for line in log.splitlines() if line]
    if events:
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)


def check_local(environ: Mapping[str, str]) -> str:
    """Return the server on this machine. Like the deploy, raises BuildError if a service's endpoint is elsewhere."""
    endpoint = environ.get("AWS_ENDPOINT_URL", "")
    if not _LOCAL.fullmatch(endpoint):
        raise BuildError("this needs a server on this machine: run make local-aws in another terminal")
    for name, url in environ.items():
        if name.startswith("AWS_ENDPOINT_URL_") and not _LOCAL.fullmatch(url):
            raise BuildError(f"this needs a server on this machine: unset {name}")
    if environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        raise BuildError("this needs a server on this machine: unset AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
    return endpoint


def lambda_client() -> Any:
    """Make a client in the region of the deployment. It waits as long as a function may take, and does not retry."""
    config = Config(read_timeout=LONGEST + 30, retries={"total_max_attempts": 1})
    return boto3.Session().client("lambda", region_name=region(), config=config)


def undeployed_settings(endpoint: str) -> dict[str, str]:
    """Return the variables of a function that is not deployed: the sample bucket and queue, files in this project."""
    return {
        "AUDITOR_BUCKETS": BUCKET,
        "AUDITOR_OUT": str(ROOT / "auditor-runs"),
        "AUDITOR_LEDGER": f"sqlite:{ROOT / '.build' / 'digests.db'}",
        "AUDITOR_QUEUE": f"{endpoint}/123456789012/{QUEUE}",
    }


def run_here(handler: str, event: Mapping[str, Any], environ: Mapping[str, str], timeout: int, arn: str) -> Invoked:
    """Run the package's handler in a process of its own, on python3.13 with the package alone on its path."""
    interpreter = python.find()
    if interpreter is None:
        raise BuildError("the functions run on python3.13, which is not installed here")
    if not PACKAGE.exists():
        raise BuildError(f"{PACKAGE.relative_to(ROOT)} is not built: make deploy STAGE=local, or make package")
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(PACKAGE) as archive:
            archive.extractall(folder)
        done = subprocess.run(  # noqa: S603 - our own arguments
            [str(interpreter), "-S", "-B", "-c", _RUN, handler, str(timeout), arn],
            cwd=folder,
            env={**environ, "PYTHONPATH": folder},
            input=json.dumps(event),
            capture_output=True,
            text=True,
            timeout=timeout + 10,
            check=False,
        )
    printed = done.stdout.splitlines()
    ledger = environ.get("AUDITOR_LEDGER", "")
    if done.returncode != 0:
        *before, last = done.stderr.strip().splitlines() or ["it ended without a word"]
        if (sentence := last.removeprefix("auditor.errors.")) != last:  # the place of the error says nothing more
            last, before = sentence.partition(": ")[2], [line for line in before if line.startswith("{")]
        return Invoked({}, "\n".join([*printed, *before]), error=f"the function failed: {last}")
    return Invoked(json.loads(printed[-1]), "\n".join([*printed[:-1], done.stderr]), ledger=ledger)


if __name__ == "__main__":
    sys.exit(main())
