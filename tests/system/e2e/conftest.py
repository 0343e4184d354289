"""Fixtures that run the functions: python3.13, the real runtime client from its lock, and the unzipped package."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from deploy import python
from deploy.install import install_requirements, locked
from deploy.options import PYTHON, ROOT
from tests.system.deploy.checks.packaged import SERVERLESS, given
from tests.system.e2e.deployment import AUDITED, Deployment, serving
from tests.system.e2e.environment import Machine
from tests.system.e2e.poller import Poller
from tests.system.e2e.queues import Queues
from tests.system.e2e.runtime import LocalLambda
from tests.system.e2e.system import RENEW, Make, System

GIVEN = ("parquet=true", "renew=true", "renewRate=20", "maxRate=220")
"""The parameters of the deployment: all that adds a resource, and for the audits the ceiling that the stage has."""


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Skips where there is no interpreter of the functions' version."""
    interpreter = python.find()
    if interpreter is None:
        pytest.skip(f"there is no python{PYTHON} on this machine: the functions are not run as Lambda runs them")
    folder = tmp_path_factory.mktemp("awslambdaric")
    install_requirements(ROOT / locked("runtime", ("--only-group", "runtime")), folder, PYTHON)
    return Machine(interpreter, folder)


def server_command() -> str:
    """moto with all that deploying takes has an environment of its own, `make local-aws`'s. Skips where it is not."""
    command = shutil.which(os.environ.get("MOTO_SERVER") or str(ROOT / ".venv-deploy" / "bin" / "moto_server"))
    if command is None:
        pytest.skip("moto's server is not installed: make test-e2e installs it")
    return command


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Deployed once for all tests, and a sample bucket. Skips where osls or moto's server is not installed."""
    command = server_command()
    if not SERVERLESS.exists() or shutil.which("node") is None:
        pytest.skip("osls is not installed: run npm ci")
    folder = tmp_path_factory.mktemp("deployment")
    with serving(command, folder / "server.log", folder / "invoke.url") as url:
        made = Deployment(url, folder)
        made.osls("deploy", *given(*GIVEN))
        made.take_over()
        made.shorten_waits()
        yield made
        outputs = made.outputs()
        kept = {outputs["LedgerTable"], outputs["Reports"].removeprefix("s3://").partition("/")[0]}
        made.osls("remove")
        assert made.left() == kept, "removing takes all but what was found out"


@pytest.fixture
def queues(deployment: Deployment) -> Queues:
    """The queues as deployed."""
    return Queues(deployment.client("sqs"))


@pytest.fixture
def make(deployment: Deployment, machine: Machine, queues: Queues, tmp_path: Path) -> Iterator[Make]:
    """System with the functions as deployed, but for what a test changes: `audit={"timeout": 5.0}`, and variables.

    renews: with the mapping of the queue of renewals at work. Without it, its messages stay there.
    """
    for url in deployment.client("sqs").list_queues()["QueueUrls"]:
        queues.taken(url)
    with ExitStack() as stack:

        def made(*, shared: bool = False, renews: bool = False, **changed: dict[str, Any]) -> System:
            functions = deployment.functions()
            for name, changes in changed.items():
                variables = functions[name].variables | changes.pop("variables", {})
                functions[name] = replace(functions[name], variables=variables, **changes)
            local = LocalLambda(functions.values(), machine, tmp_path, endpoint=deployment.url, shared=shared)
            stack.enter_context(local)
            deployment.invoke_address.write_text(local.url)
            mappings = [one for one in deployment.mappings() if renews or one.function != RENEW]
            return System(deployment, local, Poller(queues.sqs, local, mappings), queues)

        yield made


@pytest.fixture
def bucket(deployment: Deployment) -> str:
    """An empty bucket of the test's own."""
    name = f"own-{uuid4().hex[:12]}"
    deployment.client("s3").create_bucket(Bucket=name)
    return name


@pytest.fixture
def audited(deployment: Deployment) -> str:
    """The configured bucket, empty, and with nothing in the ledger."""
    s3, dynamodb = deployment.client("s3"), deployment.client("dynamodb")
    s3.create_bucket(Bucket=AUDITED)
    for one in s3.list_objects_v2(Bucket=AUDITED).get("Contents", []):
        s3.delete_object(Bucket=AUDITED, Key=one["Key"])
    table = deployment.outputs()["LedgerTable"]
    for one in dynamodb.scan(TableName=table)["Items"]:
        if one["pk"]["S"].startswith((f"{AUDITED}/", f"{AUDITED}#")):
            dynamodb.delete_item(TableName=table, Key={"pk": one["pk"], "sk": one["sk"]})
    return AUDITED


@pytest.fixture
def alerts(deployment: Deployment, bucket: str) -> Iterator[str]:
    """The URL of a queue that hears what the deployed topic is told."""
    sqs, sns = deployment.client("sqs"), deployment.client("sns")
    url = sqs.create_queue(QueueName=f"alerts-{bucket}")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    topic = deployment.outputs()["Topic"]
    subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)["SubscriptionArn"]
    yield url
    sns.unsubscribe(SubscriptionArn=subscription)
    sqs.delete_queue(QueueUrl=url)
