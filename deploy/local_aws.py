"""An AWS on this machine to deploy to: moto's server with a sample bucket, until Ctrl-C (`make local-aws`)."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final

from deploy.options import ROOT

BUCKET: Final = "auditor-sample"
QUEUE: Final = "auditor-sample-hash"
ADDRESS_FILE: Final = ROOT / ".build" / "local-aws.url"
"""The file in which `make deploy STAGE=local` finds the server's URL."""

_SAMPLES: Final = {"public/index.html": "public-read", "shared/plan.md": "authenticated-read"}
_PRIVATE: Final = 40
OF_EVENTS: Final = {
    "photos/summer 2026/café 100%+.jpg": 204_800,
    "invoices/2026/0001.pdf": 48_213,
    "invoices/2026/Übersicht 100%+.csv": 911,
    "backups/full.tar": 1_048_576,
}
"""The objects that the samples in events/ name, with their sizes in bytes."""


def content(key: str) -> bytes:
    """Return the bytes of an object of OF_EVENTS. The bytes never change, because the samples have their ETags."""
    line, size = f"{key}\n".encode(), OF_EVENTS[key]
    return (line * (size // len(line) + 1))[:size]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.local_aws", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="a free one when left out")
    parser.add_argument("--take-over", action="store_true", help="stop moto's own pollers after a deploy, and end")
    options = parser.parse_args()
    if options.take_over:
        take_over(os.environ["AWS_ENDPOINT_URL"])
        return 0
    port = options.port
    tell("the server starts")
    # moto cannot run the functions without a Docker engine, but would still receive the queues' messages for them.
    os.environ["DOCKER_HOST"] = "unix:///nonexistent.sock"
    os.environ |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
    from deploy.one_at_a_time import AtomicMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = AtomicMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
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
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    ADDRESS_FILE.unlink(missing_ok=True)
    server.stop()
    return 0


def tell(what: str) -> None:
    """Tell the user what is under way, because the import of moto alone takes seconds."""
    sys.stderr.write(f"local AWS: {what} ..\n")


def load(url: str) -> None:
    """Make the sample bucket: a few dozen private objects, one that everyone can read, one that any account can."""
    import boto3

    s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
    s3.create_bucket(Bucket=BUCKET)
    for number in range(_PRIVATE):
        s3.put_object(Bucket=BUCKET, Key=f"files/{number:03}.txt", Body=f"file {number}\n".encode())
    for key, acl in _SAMPLES.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=Path(__file__).read_bytes()[:100], ACL=acl)
    for key in OF_EVENTS:
        s3.put_object(Bucket=BUCKET, Key=key, Body=content(key))
    s3.close()
    sqs = boto3.client("sqs", endpoint_url=url, region_name="us-east-1")
    letters = sqs.create_queue(QueueName=f"{QUEUE}-dead-letters")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=letters, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
    sqs.create_queue(QueueName=QUEUE, Attributes={"RedrivePolicy": redrive})
    sqs.close()


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
