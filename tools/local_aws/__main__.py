"""An AWS on this machine to deploy to: moto's server with a sample bucket, until Ctrl-C (`make local-aws`).

It runs the state machine of a deployment, which invokes the functions of the built package here.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tools import ROOT
from tools.local_aws.invoke_api import InvokeApi
from tools.local_aws.samples import BUCKET, load

ADDRESS_FILE: Final = ROOT / ".build" / "local-aws.url"
"""The file in which `make deploy STAGE=local` finds the server's URL."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.local_aws", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="a free one when left out")
    parser.add_argument("--take-over", action="store_true", help="stop moto's own pollers after a deploy, and end")
    options = parser.parse_args()
    if options.take_over:
        take_over(os.environ["AWS_ENDPOINT_URL"])
        return 0
    tell("the server starts")
    # moto cannot run the functions without a Docker engine, but would still receive the queues' messages for them.
    os.environ["DOCKER_HOST"] = "unix:///nonexistent.sock"
    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with serving(options.port or free_port()) as url:
        tell(f"the bucket {BUCKET} is filled")
        load(url)
        ADDRESS_FILE.parent.mkdir(exist_ok=True)
        ADDRESS_FILE.write_text(f"{url}\n")
        sys.stdout.write(
            f"local AWS at {url}, with the bucket {BUCKET}; Ctrl-C ends it. In another terminal:\n"
            f"  make deploy STAGE=local\n  make invoke STAGE=local BUCKET={BUCKET} PREFIX=public/\n"
            "or, with nothing deployed: make invoke-local EVENT=events/schedule.json\n"
        )
        sys.stdout.flush()
        ended.wait()
        ADDRESS_FILE.unlink(missing_ok=True)
    return 0


@contextmanager
def serving(port: int) -> Iterator[str]:
    """moto's server, and the Invoke API for its state machines. Yields the server's URL."""
    from tools.local_aws.functions import Functions, LocalFunctions
    from tools.local_aws.machine import run_machines
    from tools.local_aws.server import AtomicMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    url = f"http://127.0.0.1:{port}"
    with Functions() as functions, InvokeApi(LocalFunctions(functions, url).invoke) as api:
        run_machines(port, lambda: api.url)
        server = AtomicMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
        server.start()
        try:
            yield url
        finally:
            server.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tell(what: str) -> None:
    """Tell the user what is under way, because the import of moto alone takes seconds."""
    sys.stderr.write(f"local AWS: {what} ..\n")


def take_over(url: str) -> None:
    """Turn the event source mappings off: moto cannot run the functions, but its tries count as receipts, so waiting
    messages would become dead letters unseen. `auditor work` drains the queue instead.
    """
    import boto3

    client = boto3.client("lambda", endpoint_url=url)
    for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
        client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    client.close()


if __name__ == "__main__":
    sys.exit(main())
