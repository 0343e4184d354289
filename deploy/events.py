"""Make an event of any kind in events/ for a bucket and object of one's own (`make event`)."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote_plus

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from deploy.errors import BuildError
from deploy.options import ROOT
from deploy.region import region

FOLDER: Final = ROOT / "events"
_NO_OBJECT: Final = ("deleted", "test-event")
"""Ends of the kinds whose events name no object that exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of an event. etag, size, version_id: of the object `key`. run: ID of the run to resume."""

    bucket: str
    key: str = ""
    prefix: str = ""
    run: str = ""
    etag: str = ""
    size: int = 0
    version_id: str | None = None
    moment: datetime

    def sequencer(self, index: int) -> str:
        """Return a sequencer like those of S3: 00, then the seconds since 1970, then their fraction."""
        return f"00{int(self.moment.timestamp()):08X}{self.moment.microsecond * 4096 + index:08X}"


def kinds() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def sample(kind: str) -> dict[str, Any]:
    """Return the event of this kind in events/. Raises BuildError for an unknown kind."""
    if kind not in kinds():
        raise BuildError(f"KIND is {kind!r}: give {', '.join(kinds())}")
    found: dict[str, Any] = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    return found


def about(event: Mapping[str, Any], subject: Subject) -> dict[str, Any]:
    """Return the event with this subject in place of its own."""
    if "Records" not in event:
        own = {"bucket": subject.bucket, "prefix": subject.prefix, "run": subject.run}
        return {name: own.get(name, value) for name, value in event.items()}
    records = event["Records"]
    if '"v":1' in records[0]["body"]:
        records = records[:1]  # a message of ours has the object once
    return {"Records": [_record(one, subject, index) for index, one in enumerate(records)]}


def _record(record: Mapping[str, Any], subject: Subject, index: int) -> dict[str, Any]:
    body = _body(record["body"], subject, index)
    return {**record, "body": body, "md5OfBody": hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()}


def _body(text: str, subject: Subject, index: int) -> str:
    document = json.loads(text)
    if "Message" in document:
        document["Message"] = _body(document["Message"], subject, index)
        return json.dumps(document, indent=2, ensure_ascii=False)
    if "v" in document:
        one = {"key": subject.key, "version_id": subject.version_id, "etag": subject.etag, "size": subject.size}
        document |= {"bucket": subject.bucket, "objects": [{**one, "attempts": 0}]}
        return json.dumps(document, separators=(",", ":"))
    if "Records" in document:
        (record,) = document["Records"]
        record["eventTime"] = f"{subject.moment:%Y-%m-%dT%H:%M:%S}.000Z"
        record["s3"]["bucket"] |= {"name": subject.bucket, "arn": f"arn:aws:s3:::{subject.bucket}"}
        _change(record["s3"]["object"], subject, index, quote_plus(subject.key, safe="/"), "eTag", "versionId")
    elif "detail" in document:
        document |= {"time": f"{subject.moment:%Y-%m-%dT%H:%M:%SZ}", "resources": [f"arn:aws:s3:::{subject.bucket}"]}
        document["detail"]["bucket"]["name"] = subject.bucket
        _change(document["detail"]["object"], subject, index, subject.key, "etag", "version-id")
    else:
        document["Bucket"] = subject.bucket
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _change(found: dict[str, Any], subject: Subject, index: int, key: str, etag: str, version: str) -> None:
    """Change the object of an event. etag, version: names of members. Events without a size report a deletion or, if
    they have no sequencer either, another ACL.
    """
    found["key"] = key
    is_acl = "size" not in found and "sequencer" not in found
    if "sequencer" in found:
        found["sequencer"] = subject.sequencer(index)
    if "size" in found:
        found["size"] = subject.size
    if "size" in found or is_acl:
        found[etag] = subject.etag
        found.pop(version, None)
        if subject.version_id is not None:
            found[version] = subject.version_id


def _head(bucket: str, key: str) -> dict[str, Any]:
    """Ask S3 for the object. Raises BuildError with its answer."""
    try:
        found = boto3.Session().client("s3", region_name=region()).head_object(Bucket=bucket, Key=key)
    except (ClientError, BotoCoreError) as error:
        raise BuildError(f"s3://{bucket}/{key} cannot be asked for its ETag and size: {error}") from error
    return {"etag": found["ETag"].strip('"'), "size": found["ContentLength"], "version_id": found.get("VersionId")}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.events", description=__doc__)
    for name in ("kind", "bucket", "key", "prefix", "run"):
        parser.add_argument(f"--{name}", default="")
    given = parser.parse_args(arguments)
    try:
        event = sample(given.kind)
        if not given.bucket:
            raise BuildError("no bucket is named: make event KIND=.. BUCKET=my-bucket KEY=..")
        found = {}
        if "Records" in event and not given.kind.endswith("test-event"):
            if not given.key:
                raise BuildError(f"no key is named: make event KIND={given.kind} BUCKET={given.bucket} KEY=..")
            found = {} if given.kind.endswith(_NO_OBJECT) else _head(given.bucket, given.key)
        subject = Subject(
            bucket=given.bucket,
            key=given.key,
            prefix=given.prefix,
            run=given.run,
            moment=datetime.now(UTC),
            **found,
        )
    except BuildError as error:
        sys.stderr.write(f"event: {error}\n")
        return 1
    sys.stdout.write(written(about(event, subject)))
    return 0


def written(event: Mapping[str, Any]) -> str:
    """Return the event as the text of a file."""
    return json.dumps(event, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
