"""Run the demo's AWS: moto's server in this process, on 127.0.0.1, and an environment that points only to it.

The demo plants only problems that moto serves correctly. moto has one owner for all objects, so the demo cannot show
foreign owners (O09 to O11). moto returns ACLs, policies and Object Ownership, but does not enforce them.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

from auditor.aws import session as aws
from auditor.aws.connection import Connection
from auditor.cli.demo.bucket import UPLOADS
from auditor.cli.demo.moto_dynamodb import one_at_a_time, undo_quickly
from auditor.errors import UsageError

HOST: Final = "127.0.0.1"
REGION: Final = "us-east-1"
LAST_CALLS_SECONDS: Final = 5.0

_CLEARED: Final = ("AWS_", "AUDITOR_", "MOTO_")
_NO_PROXY: Final = ("NO_PROXY", "no_proxy")


class Clients(Struct, frozen=True):
    """boto3 clients of the demo's AWS."""

    s3: Any
    sqs: Any

    def rot(self, bucket: str, key: str, change: Callable[[bytes], bytes]) -> None:
        """Replace the object's bytes by change(bytes), but leave its date and ETag as they are."""
        account = import_module("moto.core").DEFAULT_ACCOUNT_ID
        stored = import_module("moto.backends").get_backend("s3")[account]["aws"].get_object(bucket, key)
        stored.value = change(stored.value)


@contextmanager
def demo_aws(bucket: str) -> Iterator[Clients]:
    """Run moto's server during the `with` block, and let the environment point to it."""
    with own_environment(), _server() as url:
        os.environ["AWS_ENDPOINT_URL"] = url
        connection = Connection(bucket=bucket, region=REGION, concurrency=UPLOADS)
        s3, sqs = (aws.make_client(service, connection) for service in ("s3", "sqs"))
        try:
            with _last_calls():
                yield Clients(s3, sqs)
        finally:
            s3.close()
            sqs.close()


@contextmanager
def own_environment() -> Iterator[None]:
    """Replace the user's AWS settings by fake credentials during the `with` block, and restore them at its end."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(_CLEARED):
            del os.environ[name]
    os.environ.update(
        AWS_ACCESS_KEY_ID="demo",
        AWS_SECRET_ACCESS_KEY="demo",  # noqa: S106 - fake: the demo never uses a real one
        AWS_REGION=REGION,
        AWS_DEFAULT_REGION=REGION,
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_EC2_METADATA_DISABLED="true",
        # Nothing listens on this port: before the server is up, or when it fails, no call leaves the machine.
        AWS_ENDPOINT_URL=f"http://{HOST}:9",
        **dict.fromkeys(_NO_PROXY, HOST),
    )
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _server() -> Iterator[str]:
    try:
        # moto imports a service with its first call: import all now, so that a missing part shows at once.
        module = import_module("moto.server")
        for service in ("s3", "sqs", "dynamodb", "sts"):
            import_module(f"moto.{service}.models")
    except ImportError as error:
        raise UsageError(
            f"the demo needs moto, an AWS for tests, and {error.name or 'a part of it'} is missing: install it with"
            " pip install '.[demo]' in the project's folder (or pipx install '.[demo]')"
        ) from error
    for name in ("werkzeug", "moto"):  # no line for each call
        logging.getLogger(name).setLevel(logging.CRITICAL)
    server = module.ThreadedMotoServer(ip_address=HOST, port=0, verbose=False)
    undo_quickly()
    server.start()
    server._server.app = one_at_a_time(server._server.app)
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def _last_calls() -> Iterator[None]:
    """Wait, at the end of the `with` block, for the threads that began in the block, five seconds at most.

    After Ctrl-C each of these threads ends when its present call is answered. If the server stopped before, the SDK
    would retry that call for long, and delay the end of the process.
    """
    before = set(threading.enumerate())
    try:
        yield
    finally:
        deadline = time.monotonic() + LAST_CALLS_SECONDS
        for thread in set(threading.enumerate()) - before:
            if not thread.daemon:
                thread.join(max(0.0, deadline - time.monotonic()))


def make_queue(sqs: Any, name: str) -> str:
    """Create an SQS queue with a dead-letter queue, and return its URL."""
    dead = sqs.create_queue(QueueName=f"{name}-dead-letters")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
    return str(sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": redrive})["QueueUrl"])
