"""Invoke a deployed function for a bucket, a prefix or an event, wait for the state machine if it continues there, and
print the end (`make invoke`).

At stage local the function's own package runs here, on its own Python, with the environment that was deployed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from auditor.errors import MessageError
from auditor.hashing.queue.notification import decode_events
from deploy.errors import BuildError
from deploy.executions import start, wait_for, with_ends
from deploy.options import PYTHON, ROOT
from deploy.outcome import failures, ledger_after, log_lines, without_digest
from deploy.region import region
from tools.local_aws.functions import Deployed, Functions, NotRunError, keep_log
from tools.local_aws.samples import BUCKET, QUEUE

SERVICE: Final = "s3-auditor"
LONGEST: Final = 1800
_LOCAL: Final = re.compile(r"http://127\.0\.0\.1:[0-9]+/?")

FUNCTIONS: Final = ("audit", "hashing", "renew", "verify")
MACHINE: Final = "machine"
"""In place of a function: an event that continues work which a function has begun."""


@dataclass(frozen=True, slots=True)
class Invoked:
    """The answer of a function. log, error: its log and the error that ended it, if it ran on this machine."""

    answer: Any
    log: str = ""
    error: str = ""
    ledger: str = ""
    """URI of the function's ledger; "" if this machine may not read the ledger."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Return 0 if the function did all that the event asked for, else 1."""
    parser = argparse.ArgumentParser(prog="python -m deploy.invoke", description=__doc__)
    parser.add_argument("--stage", default="prod")
    parser.add_argument("--function", choices=FUNCTIONS, help="left out: what the event is for")
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
            ended = wait_for(executions, local=options.stage == "local")
            done = replace(done, answer=with_ends(done.answer, ended))
        ledger = ledger_after(event, done.ledger) if done.ledger and name == "hashing" else []
    except (BuildError, ClientError, BotoCoreError) as error:
        absent = "ResourceNotFoundException" in str(getattr(error, "response", ""))
        sys.stderr.write(f"invoke: {error}{f'; deploy it: make deploy STAGE={options.stage}' if absent else ''}\n")
        return 1
    sys.stdout.write(json.dumps({**done.answer, **({"ledger": ledger} if ledger else {})}, indent=1) + "\n")
    wrong = [*failures(done.answer, done.log), *without_digest(ledger)]
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
    """Return the function that an event is for: events on ACLs are for renewals, and other messages for hashing. An
    event that names a start or a verification is for the state machine, which continues it.
    """
    if "Records" not in event:
        return MACHINE if event.keys() & {"start", "verification"} else "audit"
    return "renew" if any(_is_on_acl(record) for record in event["Records"]) else "hashing"


def _is_on_acl(record: Any) -> bool:
    try:
        return any(one.kind == "acl" for one in decode_events(record["body"]))
    except (MessageError, KeyError, TypeError):  # the function reports it
        return False


def invoke(name: str, event: Mapping[str, Any], stage: str, *, undeployed: bool) -> Invoked:
    """Invoke a function, or start the state machine. Raises BuildError with the function's own error.

    name: of FUNCTIONS, or MACHINE.
    """
    function = f"{SERVICE}-{stage}-{'audit' if name == MACHINE else name}"
    local = stage == "local"
    endpoint = check_local(os.environ) if local or undeployed else ""
    if undeployed:
        return run_undeployed(name, event, endpoint, f"local:{function}")
    client = lambda_client()
    if name == MACHINE:
        return Invoked({"executions": [start(machine_of(client, function), event)]})
    if local:
        return run_here(Deployed.of(client, function), event)
    answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
    payload = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise BuildError(f"{function} failed: {payload.get('errorMessage', payload)}")
    return Invoked(payload)


def machine_of(client: Any, function: str) -> str:
    """Return the ARN of the deployment's state machine. client: of Lambda. function: name of the audit function."""
    found = client.get_function_configuration(FunctionName=function)
    return str(found["Environment"]["Variables"]["AUDITOR_STATE_MACHINE"])


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


def run_undeployed(name: str, event: Mapping[str, Any], endpoint: str, arn: str) -> Invoked:
    """Run the package's handler with the variables of this shell."""
    if name == MACHINE:
        raise BuildError("the event is for the state machine: make deploy STAGE=local, then make invoke STAGE=local")
    variables = {**undeployed_settings(endpoint), **os.environ}
    handler = f"handlers.{name}.handler"
    return _run(Deployed(name="", arn=arn, handler=handler, timeout=LONGEST, python=PYTHON, variables=variables), event)


def run_here(function: Deployed, event: Mapping[str, Any]) -> Invoked:
    """Run the package's handler with the variables of the deployed function, and keep its log on the server."""
    done = _run(function, event)
    keep_log(boto3.Session().client("logs", region_name=region()), function.name, done.log)
    return done


def _run(function: Deployed, event: Mapping[str, Any]) -> Invoked:
    with Functions() as functions:
        try:
            done = functions.run(function, event, os.environ)
        except NotRunError as error:
            raise BuildError(str(error)) from error
    if done.failed:
        return Invoked({}, done.log, error=f"the function failed: {done.words}")
    return Invoked(done.answer, done.log, ledger=function.variables.get("AUDITOR_LEDGER", ""))


if __name__ == "__main__":
    sys.exit(main())
