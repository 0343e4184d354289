"""Create the demo's bucket and fill it with files and planted problems, in an order that moto serves correctly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from auditor.cli.demo.files import Choice, DemoFile
from auditor.cli.demo.plants import DECOYS, METADATA, PLANTED, PUBLIC_PREFIX, STRANGER, Planted
from auditor.cli.demo.server import UPLOADS
from auditor.errors import UsageError
from auditor.text import visible

BUCKET: Final = "auditor-demo"

POLICY: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Sid": "Website",
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{BUCKET}/{PUBLIC_PREFIX}*",
        },
        {
            "Sid": "Offices",
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{BUCKET}/intranet/*",
            "Condition": {"IpAddress": {"aws:SourceIp": "198.48.0.0/12"}},
        },
        {
            "Sid": "Partner",
            "Effect": "Allow",
            "Principal": {"CanonicalUser": STRANGER},
            "Action": "s3:PutBucketPolicy",
            "Resource": f"arn:aws:s3:::{BUCKET}",
        },
    ],
}

Report = Callable[[int, int], None]
"""A function that is called after each upload, with the number of uploads done and the number of all uploads."""


class Loaded(Struct, frozen=True):
    """The number of objects that the demo put into its bucket, and the sum of their sizes in bytes."""

    objects: int
    size: int


class Upload(Struct, frozen=True):
    """The arguments of one PutObject. body: the bytes, or the path of the file that has them."""

    key: str
    body: bytes | Path
    arguments: Mapping[str, Any]


def keys_of(choice: Choice) -> list[str]:
    """Return the keys of all objects that load() puts into the bucket."""
    return [plant.key for plant in (*PLANTED, *DECOYS) if plant.key is not None] + [one.key for one in choice.sources]


def load(s3: Any, choice: Choice, report: Report) -> Loaded:
    """Create the bucket and put all objects into it.

    The problems that are `old` are uploaded first, before the bucket's encryption is turned on, and so are not
    encrypted. The bucket's public ACL is set at the end, because moto gives it to every later object. report: called
    after each upload but the old ones.
    """
    plants = [plant for plant in (*PLANTED, *DECOYS) if plant.key is not None]
    old = [_of_plant(plant) for plant in plants if plant.old]
    new = [_of_plant(plant) for plant in plants if not plant.old]
    files = [_of_file(source) for source in choice.sources]
    s3.create_bucket(Bucket=BUCKET)
    size = _put_all(s3, old, None)
    default = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration={"Rules": [default]})
    size += _put_all(s3, [*new, *files], report)
    s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(POLICY))
    s3.put_bucket_acl(Bucket=BUCKET, ACL="public-read")
    return Loaded(len(plants) + len(files), size)


def _of_plant(plant: Planted) -> Upload:
    metadata = {METADATA: "demo"} if plant.labelled else {}
    return Upload(
        plant.key or "",
        f"{plant.description}\n".encode(),
        {"ContentType": "text/plain", "Metadata": metadata, **plant.put},
    )


def _of_file(source: DemoFile) -> Upload:
    return Upload(source.key, source.path, {"Metadata": {METADATA: "this machine"}})


def _put_all(s3: Any, uploads: Sequence[Upload], report: Report | None) -> int:
    """Upload all objects, and return the sum of their sizes. After Ctrl-C, only the running uploads are finished."""
    pool = ThreadPoolExecutor(UPLOADS, thread_name_prefix="demo-upload")
    size = 0
    try:
        started = [pool.submit(_put, s3, upload) for upload in uploads]
        for done, future in enumerate(as_completed(started), 1):
            size += future.result()
            if report is not None:
                report(done, len(uploads))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return size


def _put(s3: Any, upload: Upload) -> int:
    try:
        body = upload.body if isinstance(upload.body, bytes) else upload.body.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{visible(str(upload.body))} cannot be read ({error.strerror}): choose other files"
        ) from error
    s3.put_object(Bucket=BUCKET, Key=upload.key, Body=body, **upload.arguments)
    return len(body)
