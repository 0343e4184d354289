# ruff: noqa
# mypy: ignore-errors
"""Show that two checkouts of s3-auditor behave alike, byte for byte.

    python same_bytes.py snapshot ROOT OUTDIR --servers BEFORE [--only NAME,..] [--keep]
    python same_bytes.py compare OUTDIR_A OUTDIR_B [--lines N]

`snapshot` runs the command line and the three Lambda handlers of ROOT against a stub S3 and a moto server, and writes
what they said, wrote and asked into OUTDIR. `compare` prints the files that differ and exits 1 if any does.

Both servers always run the code of --servers, in a process of their own, so that one and the same world answers every
checkout. Of ROOT only stable surfaces are used: `.venv/bin/auditor`, `handlers.*.handler` and two generated pages.

What differs between any two runs is masked, and nothing else: each digit of a moment of this snapshot becomes N, so that
the form of a date still counts; run IDs, durations, ports, UUIDs and temporary paths become words. Names of loggers and
frames of stacks are masked, too: they name modules, and modules are what the restructuring moves.
"""

from __future__ import annotations

import argparse
import base64
import csv
import difflib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

BEFORE: Final = Path("before")
LANES: Final = (("help", "usage", "policy", "queue"), ("demo", "stub", "holes", "digests", "handlers"))
"""Chapters that follow each other; each lane has servers of its own."""
AT_ONCE: Final = 2
"""Quick commands that run side by side."""
LONGEST_RUN: Final = 120.0
NEXT_SECOND: Final = 1.1
"""Seconds between two verifications: a history holds two equal lines of one second only once."""
SLOW: Final = 4.0
"""Seconds from which a command is named on stderr."""
ENGINES: Final = ("direct", "aioboto3", "boto3")
DEMO: Final = "s3://auditor-demo"
ROLE: Final = "arn:aws:iam::111122223333:role/batch"
KMS_KEY: Final = "arn:aws:kms:us-east-1:111122223333:key/stub"
FINGERPRINT: Final = "of a line of now"

# ---------------------------------------------------------------------------------------------------------------------
# The servers, in a process of their own: BEFORE/.venv/bin/python same_bytes.py serve
# ---------------------------------------------------------------------------------------------------------------------


def serve(files: str) -> None:
    """Serve both worlds; obey one JSON line of stdin after the other, and answer each with one on stdout.

    The first line out names the URLs. The process ends with its stdin. files: a directory that the demo loads.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a server prints must not get between the answers
    sys.path.insert(0, os.getcwd())
    from tests.servers.one_at_a_time import AtomicMotoServer
    from tests.servers.stub import StubServer

    moto = AtomicMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    with StubServer() as stub:
        worlds = Worlds(f"http://{host}:{port}", stub, Path(files))
        worlds.record_calls_of(moto._server)
        answer: Any = {"moto": worlds.moto, "stub": stub.url}
        while True:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
            line = sys.stdin.readline()
            if not line:
                break
            order = json.loads(line)
            try:
                answer = {"value": getattr(worlds, order["do"])(**order["with"])}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
    moto.stop()


class Worlds:
    """What both servers hold, and what was asked of them. Public methods are orders of the other process."""

    def __init__(self, moto: str, stub: Any, files: Path) -> None:
        from tests.servers.clients import client

        self.moto = moto
        self._stub = stub
        self._files = files
        self._asked: list[str] = []
        self._client: Callable[[str], Any] = lambda service: client(service, moto)

    def record_calls_of(self, server: Any) -> None:
        """Note each call of moto: its method, path and query, or its target."""
        inner = server.app

        def noted(environ: dict[str, Any], start_response: Any) -> Any:
            target = environ.get("HTTP_X_AMZ_TARGET") or environ.get("RAW_URI") or environ["PATH_INFO"]
            if "moto-api" not in target:
                self._asked.append(f"{environ['REQUEST_METHOD']} {target}")
            return inner(environ, start_response)

        server.app = noted

    def fresh(self) -> dict[str, str]:
        """Begin both worlds anew; URLs of the queues."""
        self._stub.faults.clear()
        self._stub.world = _stub_world()
        queues = self._fresh_moto()
        self.calls()
        return queues

    def calls(self) -> list[str]:
        """What both servers were asked since the last time, sorted."""
        of_stub = [_stub_call(call) for call in list(self._stub.calls)]
        self._stub.forget()
        of_moto, self._asked = self._asked, []
        # How DynamoDB and SQS are asked in batches depends on the moment: there only the kinds of calls count.
        exact = [f"moto {one}" for one in of_moto if "/" in one]
        kinds = {f"moto {one} (any number)" for one in of_moto if "/" not in one}
        return sorted([f"stub {one}" for one in of_stub] + exact) + sorted(kinds)

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """Every message of a moto queue, in any state, without touching it."""
        from moto.backends import get_backend
        from moto.core import DEFAULT_ACCOUNT_ID

        found = get_backend("sqs")[DEFAULT_ACCOUNT_ID]["us-east-1"].queues[queue.rpartition("/")[2]]._messages
        plain = [
            {
                "body": message.body,
                "attributes": {
                    name: vars(value) if hasattr(value, "__dict__") else value
                    for name, value in sorted(message.message_attributes.items())
                },
            }
            for message in found
        ]
        return sorted(plain, key=lambda one: json.dumps(one, sort_keys=True, default=str))

    def send(self, queue: str, bodies: list[str]) -> None:
        """Put messages on a queue."""
        for body in bodies:
            self._client("sqs").send_message(QueueUrl=queue, MessageBody=body)

    def receive(self, queue: str) -> list[dict[str, Any]]:
        """Receive messages as Lambda's event source mapping hands them on."""
        sqs = self._client("sqs")
        got = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, AttributeNames=["All"]).get("Messages", [])
        return [
            {
                "messageId": one["MessageId"],
                "receiptHandle": one["ReceiptHandle"],
                "body": one["Body"],
                "attributes": one.get("Attributes", {}),
                "messageAttributes": {},
                "eventSource": "aws:sqs",
            }
            for one in got
        ]

    def table(self, name: str) -> list[Any]:
        """Every item of a DynamoDB table."""
        return list(self._client("dynamodb").get_paginator("scan").paginate(TableName=name).search("Items[]"))

    def bucket(self, name: str) -> dict[str, str]:
        """Key to base64 of the bytes of every object of a moto bucket."""
        s3 = self._client("s3")
        keys = [one["Key"] for one in s3.list_objects_v2(Bucket=name).get("Contents", [])]
        return {key: base64.b64encode(s3.get_object(Bucket=name, Key=key)["Body"].read()).decode() for key in keys}

    def damage(self) -> None:
        """Do to the demo's objects what the demo itself does before it verifies."""
        from auditor.demo.damage import DAMAGED

        store = _moto_s3()
        for damage in DAMAGED:
            if damage.change is None:
                self._client("s3").delete_object(Bucket="auditor-demo", Key=damage.key)
            else:
                stored = store.get_object("auditor-demo", damage.key)
                stored.value = damage.change(stored.value)

    def damage_stub(self) -> None:
        """Rot one stub object, remove another, refuse a third, and put a new one."""
        from dataclasses import replace

        bucket = self._stub.world.buckets["hashed"]
        first, second, third = bucket.objects.keys[1:4]
        old = bucket.objects.versions(first)[0]
        bucket.objects.add(replace(old, body=bytes([old.body[0] ^ 1]) + old.body[1:]))
        bucket.objects.remove(second)
        bucket.objects.add(replace(bucket.objects.versions(third)[0], deny={"get"}))
        bucket.put("zz/new.txt", b"new")

    def fault(self, operation: str, keys: list[str], kind: str, status: int = 0, code: str = "") -> None:
        """Let a call of these keys fail every time."""
        from tests.servers.stub_faults import Fault, Kind, on_keys

        self._stub.faults.append(on_keys(keys.__contains__, Fault(Kind(kind), status, code), [operation]))

    def no_faults(self) -> None:
        """Let all calls succeed again."""
        self._stub.faults.clear()

    def account_block(self, ignore: bool) -> None:
        """Set the public access block of the stub's account."""
        from auditor.bucket import PublicAccessBlock

        self._stub.world.public_access_block = PublicAccessBlock(False, ignore, False, False)

    def _fresh_moto(self) -> dict[str, str]:
        import asyncio
        import urllib.request

        from auditor.demo.aws import make_queue
        from auditor.demo.files import choose
        from auditor.demo.world import load
        from auditor.ledgers.dynamodb import create_table

        reset = urllib.request.Request(f"{self.moto}/moto-api/reset", method="POST")
        urllib.request.urlopen(reset).read()
        s3 = self._client("s3")
        load(s3, choose(str(self._files)), lambda done, of: None)
        s3.create_bucket(Bucket="reports")
        for stored in _moto_s3().buckets["auditor-demo"].keys.values():
            stored.last_modified = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).replace(tzinfo=None)
        for table in ("ledger", "functions"):
            asyncio.run(create_table(table, region="us-east-1", endpoint_url=self.moto))
        sqs = self._client("sqs")
        return {name: make_queue(sqs, name) for name in ("hashing", "functions")}


def _moto_s3() -> Any:
    from moto.backends import get_backend
    from moto.core import DEFAULT_ACCOUNT_ID

    return get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"]


_UNSTEADY_HEADERS: Final = frozenset(
    {"authorization", "x-amz-date", "amz-sdk-invocation-id", "amz-sdk-request", "host"}
)


def _stub_call(call: Any) -> str:
    """Say what a request asked, all headers included; of those that differ each time only the names."""
    headers = {
        name.lower(): "*" if name.lower() in _UNSTEADY_HEADERS else value for name, value in call.headers.items()
    }
    asked = {"key": call.key, "query": dict(call.query), "headers": dict(sorted(headers.items()))}
    return f"{call.method} {call.operation} {call.bucket} {json.dumps(asked)}"


def _stub_world() -> Any:
    """Make the stub's buckets: odd keys, every kind of ACL, every way of protecting a bucket, versions, large objects."""
    from auditor.bucket import Encryption, PublicAccessBlock
    from auditor.models import ALL_USERS, Acl, Grant
    from tests.odd_keys import ODD_KEYS
    from tests.servers.samples import SAMPLES, sample_bucket
    from tests.servers.world import OWNER, STRANGER, Odd, World, canned

    world = World()
    world.buckets["odd"] = sample_bucket(60, "odd")
    open_policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::policy/kind/p*"},
            {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::999988887777:root"}, "Action": "s3:Get*",
             "Resource": "arn:aws:s3:::policy/kind/s*"},
            {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::policy/kind/k*",
             "Condition": {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}},
            {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::policy/kind/public-*"},
        ],
    }  # fmt: skip
    block = PublicAccessBlock
    kinds: dict[str, dict[str, Any]] = {
        "writer": {},
        "enforced": {"ownership": "BucketOwnerEnforced"},
        "preferred": {"ownership": "BucketOwnerPreferred"},
        "no-ownership": {"ownership": None},
        "ignoring": {"public_access_block": block(True, True, False, False)},
        "blocked": {"public_access_block": block(True, True, True, True), "policy": json.dumps(open_policy),
                    "policy_is_public": True},
        "public-acl": {"acl": Acl(OWNER, canned("public-read-write", OWNER))},
        "policy": {"policy": json.dumps(open_policy), "policy_is_public": True},
        "foreign": {"acl": Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(STRANGER, "WRITE")))},
        "kms": {"encryption": Encryption("aws:kms", "arn:aws:kms:us-east-1:111122223333:key/stub", True)},
        "no-encryption": {"encryption": None},
        "denied": {"odd": {"GetBucketPolicy": Odd.DENIED, "GetBucketAcl": Odd.DENIED, "GetPublicAccessBlock":
                           Odd.DENIED, "GetBucketOwnershipControls": Odd.DENIED}},
        "empty-replies": {"odd": {"GetBucketOwnershipControls": Odd.EMPTY, "GetBucketPolicyStatus": Odd.EMPTY}},
        "malformed": {"odd": {"GetBucketOwnershipControls": Odd.MALFORMED, "GetBucketEncryption": Odd.MALFORMED}},
    }  # fmt: skip
    for name, fields in kinds.items():
        bucket = world.add(name, **fields)
        for kind, arguments in SAMPLES.items():
            bucket.put(f"kind/{kind}", f"object {kind}".encode(), **arguments)
    world.add("requester", request_payer="Requester").put("a", b"a")
    world.add("elsewhere", region="eu-west-1", wrong_region="signature").put("a", b"a", acl="public-read")
    world.add("unlistable", odd={"ListObjectsV2": Odd.DENIED}).put("a", b"a")
    world.add("empty")

    versions = world.add("versions", versioning="Enabled")
    for round_ in range(3):
        for number, (kind, arguments) in enumerate(SAMPLES.items()):
            if number % 3 <= round_:
                versions.put(f"kind/{kind}", f"{kind} {round_}".encode(), **arguments)
    for name in ("space", "percent escape", "newline", "nfd", "control"):
        versions.put(ODD_KEYS[name], name.encode(), grants=(Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
        versions.put(ODD_KEYS[name], b"newer")
    versions.delete(ODD_KEYS["nfd"])
    versions.delete("never/there")

    rich = world.add("rich")
    digest = base64.b64encode(hashlib.sha256(b"checked").digest()).decode()
    rich.put("a/checked", b"checked", checksums={"SHA256": digest}, checksum_type="FULL_OBJECT")
    rich.put("a/composite", b"parts", checksums={"SHA256": digest + "-2"}, checksum_type="COMPOSITE")
    rich.put("a/labelled", b"x", metadata={"owner": "me", "retention": "1y"}, content_type="text/plain")
    rich.put("a/half", b"x", metadata={"owner": "me"})
    rich.put(
        "a/locked",
        b"x",
        headers={
            "x-amz-object-lock-mode": "GOVERNANCE",
            "x-amz-object-lock-retain-until-date": "2030-01-02T03:04:05Z",
            "x-amz-website-redirect-location": "/elsewhere",
            "Cache-Control": "no-store",
            "Expires": "not a date",
        },
    )
    for place in ("STANDARD_IA", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE", "INTELLIGENT_TIERING", "ONEZONE_IA"):
        rich.put(f"class/{place}", place.encode(), storage_class=place)
    rich.put("class/restored", b"restored", storage_class="GLACIER", restored=True)

    hashed = world.add("hashed")
    for name, key in ODD_KEYS.items():
        hashed.put(key, f"bytes of {name}".encode())
    world.add("large").put("of 70 MiB", None, size=70 * 1024 * 1024)
    world.buckets["large"].put("small", b"small")
    return world  # fmt: skip


# ---------------------------------------------------------------------------------------------------------------------
# The handlers, in an interpreter of ROOT: ROOT/.venv/bin/python -c HANDLER NAME EVENTS RESULTS
# ---------------------------------------------------------------------------------------------------------------------

HANDLER: Final = """
import importlib, json, sys

class Context:
    aws_request_id = "00000000-request"
    invoked_function_arn = "arn:aws:lambda:us-east-1:111122223333:function:auditor"
    def get_remaining_time_in_millis(self):
        return 900_000

name, events, results = sys.argv[1:]
sys.path.insert(0, "")
handler = importlib.import_module("handlers." + name).handler
told = []
for title, event in json.load(open(events)):
    print("== " + title, file=sys.stderr, flush=True)
    print("== " + title, flush=True)
    try:
        told.append([title, handler(event, Context())])
    except Exception as error:
        told.append([title, {"raised": type(error).__name__, "said": str(error)}])
json.dump(told, open(results, "w"), indent=1)
"""

# ---------------------------------------------------------------------------------------------------------------------
# Masking
# ---------------------------------------------------------------------------------------------------------------------

_DIGIT: Final = re.compile(r"[0-9]")
_ISO: Final = re.compile(r"\b(20\d\d-\d\d-\d\d)(?:([T ])(\d\d:\d\d)(:\d\d(?:\.\d+)?)?)?")
_COMPACT: Final = re.compile(r"(?<![0-9])(20\d{6})T(\d{6})Z(-[0-9a-f]{6})?")
_SPOKEN: Final = re.compile(r"\b(\d{1,2} [A-Z][a-z]+ 20\d\d) at \d\d:\d\d")
_HTTP_DATE: Final = re.compile(r"\b[A-Z][a-z]{2}, (\d\d [A-Z][a-z]{2} 20\d\d) \d\d:\d\d:\d\d GMT")
_EPOCH: Final = re.compile(r"(?<![\w.])(\d{10})(\d{3}|\d{6})?(\.\d+)?(?![\w])")
_UUID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIMINGS: Final = (
    (re.compile(r'("(?:[a-z_]*seconds[a-z_]*|Duration|[A-Za-z]*Seconds)": )[0-9][0-9.e-]*'), r"\1<SECONDS>"),
    (re.compile(r"\b[0-9][0-9,]*(?:\.[0-9]+)?( (?:s|ms|seconds?|minutes?)\b)"), r"<TIME>\1"),
    (re.compile(r"\b[0-9][0-9,]*(?:\.[0-9]+)?(/s\b)"), r"<RATE>\1"),
    (re.compile(r"\b[0-9][0-9,]*(?:\.[0-9]+)?( (?:calls|objects|MiB|MB|KiB|bytes)(?:/s| a second)\b)"), r"<RATE>\1"),
)
_LOGGERS: Final = (
    (re.compile(r'("logger": ")(?:auditor|handlers)[\w.]*'), r"\1<LOGGER>"),
    (re.compile(r"^((?:DEBUG|INFO|WARNING|ERROR|CRITICAL) )auditor[\w.]*:", re.MULTILINE), r"\1<LOGGER>:"),
    (re.compile(r'"stack": \[(?:"(?:[^"\\]|\\.)*", )*("(?:[^"\\]|\\.)*")\]'), r'"stack": [<FRAMES>, \1]'),
    (re.compile(r'^  File ".*\n(?:    .*\n)*', re.MULTILINE), "  <FRAME>\n"),
)


class Mask:
    """Puts words in the place of what differs between two runs.

    words: what to replace, the longest first, such as a temporary path. Moments count as of this snapshot when their day
    is today, yesterday or tomorrow; the servers' worlds have none of those.
    """

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = sorted(words.items(), key=lambda item: -len(item[0]))
        self._began = datetime.now(UTC)
        self._days = {self._began.date() + timedelta(days=days) for days in (-1, 0, 1)}

    def __call__(self, text: str, *, timings: bool = True) -> str:
        """timings: mask durations and rates, too; off for text that is not of a run."""
        for word, shown in self._words:
            text = text.replace(word, shown)
        text = _COMPACT.sub(self._compact, text)
        text = _ISO.sub(self._iso, text)
        text = _HTTP_DATE.sub(self._http, text)
        text = _SPOKEN.sub(self._spoken, text)
        text = _EPOCH.sub(self._epoch, text)
        text = _UUID.sub("<UUID>", text)
        for pattern, shown in (*_LOGGERS, *(_TIMINGS if timings else ())):
            text = pattern.sub(shown, text)
        return text

    def is_now(self, text: str) -> bool:
        """The text has a moment of this snapshot in it."""
        return any(f"{day:%Y-%m-%d}" in text for day in self._days)

    def _iso(self, found: re.Match[str]) -> str:
        today = found[1] in {f"{day:%Y-%m-%d}" for day in self._days}
        return _DIGIT.sub("N", found[0]) if today else found[0]

    def _compact(self, found: re.Match[str]) -> str:
        if found[1] not in {f"{day:%Y%m%d}" for day in self._days}:
            return found[0]
        return _DIGIT.sub("N", found[0][:16]) + ("-HHHHHH" if found[3] else "")

    def _http(self, found: re.Match[str]) -> str:
        return "<HTTP DATE>" if found[1] in {f"{day:%d %b %Y}" for day in self._days} else found[0]

    def _spoken(self, found: re.Match[str]) -> str:
        today = found[1] in {f"{day.day} {day:%B %Y}" for day in self._days}
        return _DIGIT.sub("N", found[0]).replace("NN", "N") if today else found[0]

    def _epoch(self, found: re.Match[str]) -> str:
        near = abs(int(found[1]) - self._began.timestamp()) < 86_400 * 2
        return _DIGIT.sub("N", re.sub(r"\.\d+", ".N", found[0])) if near else found[0]


# ---------------------------------------------------------------------------------------------------------------------
# One snapshot
# ---------------------------------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """What a process left behind."""

    code: int
    out: str
    err: str


class Servers:
    """The process that serves both worlds; a `with` starts it, and ends it by its own handle."""

    def __init__(self, root: Path, files: Path, environ: Mapping[str, str], log: Path) -> None:
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [str(root / ".venv/bin/python"), str(Path(__file__).resolve()), "serve", str(files)],
            cwd=root,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> Servers:
        urls = self._read()
        self.moto, self.stub = str(urls["moto"]), str(urls["stub"])
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def do(self, order: str, **arguments: Any) -> Any:
        """Give an order, a method of Worlds, and return its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": order, "with": arguments}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if "error" in answer:
            raise RuntimeError(f"the servers could not {order}: {answer['error']}")
        return answer["value"]

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the servers ended: see {self._log.name}")
        return json.loads(line)


class Snapshot:
    """Runs the checkout `root` and writes what it did below `out`. Each chapter is a method with its own scratch."""

    def __init__(self, root: Path, out: Path, scratch: Path, servers: Servers, environ: Mapping[str, str]) -> None:
        self._root = root
        self._out = out
        self._scratch = scratch
        self._servers = servers
        # Nothing is tried again for long; and whatever a command is not told of, it asks the stub.
        self._environ = {
            **environ, "AUDITOR_RETRY_ATTEMPTS": "2", "AUDITOR_RETRY_SECONDS": "2", "AWS_ENDPOINT_URL": servers.stub,
        }  # fmt: skip
        self._folder = scratch
        self._queues: dict[str, str] = {}
        hosts = {urlsplit(servers.moto).netloc: "<MOTO>", urlsplit(servers.stub).netloc: "<STUB>"}
        encoded = {quote(host, safe=""): shown for host, shown in hosts.items()}
        self._mask = Mask({**hosts, **encoded, str(scratch): "<SCRATCH>", str(root): "<ROOT>"})

    def run(self, names: Sequence[str]) -> None:
        """Go through these chapters; tell on stderr how long each took."""
        chapters: dict[str, Callable[[], None]] = {
            "help": self._help,
            "usage": self._usage,
            "policy": self._policy,
            "demo": self._demo,
            "stub": self._stub,
            "holes": self._holes,
            "queue": self._queue,
            "digests": self._digests,
            "handlers": self._handlers,
        }
        for name in names:
            began = time.monotonic()
            self._folder = self._scratch / name
            self._folder.mkdir()
            self._queues = self._servers.do("fresh")
            url = self._servers.moto if name in {"demo", "queue"} else self._servers.stub
            self._environ["AWS_ENDPOINT_URL"] = url
            chapters[name]()
            sys.stderr.write(f"{name}: {time.monotonic() - began:.1f} s\n")

    # -- running and writing

    def _process(self, command: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Ran:
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=cwd, env={**self._environ, **environ}, capture_output=True, timeout=LONGEST_RUN, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if (took := time.monotonic() - began) > SLOW:
            sys.stderr.write(f"  {took:.1f} s: {' '.join(command[1:]).split(chr(10))[0][:120]}\n")
        return Ran(done.returncode, done.stdout.decode("utf-8", "backslashreplace"),
                   done.stderr.decode("utf-8", "backslashreplace"))  # fmt: skip

    def _auditor(self, *arguments: str, cwd: Path | None = None, **environ: str) -> Ran:
        return self._process([str(self._root / ".venv/bin/auditor"), *arguments], environ, cwd or self._folder)

    def _write(self, name: str, text: str, *, timings: bool = True) -> None:
        path = self._out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        masked = self._mask(text, timings=timings)
        path.write_bytes(masked.encode("utf-8", "backslashreplace"))

    def _tell(self, name: str, ran: Ran, *, timings: bool = True, sorted_out: bool = False) -> None:
        """Write code, stdout and stderr of a process."""
        out = "".join(sorted(ran.out.splitlines(keepends=True))) if sorted_out else ran.out
        self._write(f"{name}/exit", f"{ran.code}\n")
        self._write(f"{name}/stdout", out, timings=timings)
        self._write(f"{name}/stderr", ran.err, timings=timings)

    def _shoot(
        self, name: str, *arguments: str, cwd: Path | None = None, sorted_out: bool = False, **environ: str
    ) -> Ran:
        """Run a command; write what it said and what it asked of the servers."""
        self._servers.do("calls")
        ran = self._auditor(*arguments, cwd=cwd, **environ)
        self._tell(name, ran, sorted_out=sorted_out)
        self._write(f"{name}/calls", self._lines(self._servers.do("calls")))
        return ran

    def _audit(self, name: str, *arguments: str, **environ: str) -> Path:
        """Audit in a folder of its own; write its run folder, too."""
        folder = self._folder / name.replace("/", "-")
        folder.mkdir()
        out = folder / "auditor-runs"
        self._shoot(name, *arguments, cwd=folder, **environ)
        self._tree(f"{name}/files", {path.relative_to(out).as_posix(): path.read_bytes()
                                     for path in out.rglob("*") if path.is_file()})  # fmt: skip
        return folder

    def _tree(self, name: str, files: Mapping[str, bytes]) -> None:
        """Write the files of a run folder, and their list; parts are decompressed."""
        listed = []
        for path, data in sorted(files.items()):
            listed.append(f"{path}\n")
            text = gzip.decompress(data) if path.endswith(".gz") else data
            shown = self._mask(path).replace("/", "!")
            self._write(f"{name}/{shown}", text.decode("utf-8", "backslashreplace"))
        self._write(f"{name}/LIST", "".join(sorted(listed)))

    def _side_by_side(self, shots: Iterable[tuple[str, Callable[[], Ran]]], *, timings: bool = False) -> None:
        """Run quick commands that ask nothing of the servers, a few at once."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for name, ran in [(name, pool.submit(shot)) for name, shot in shots]:
                self._tell(name, ran.result(), timings=timings)

    def _lines(self, found: Iterable[Any]) -> str:
        """One line for each, masked before they are sorted; a text as it is."""
        texts = (one if isinstance(one, str) else json.dumps(one, sort_keys=True, default=str) for one in found)
        return "".join(sorted(f"{self._mask(text)}\n" for text in texts))

    def _put(self, name: str, text: str | bytes) -> str:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    # -- chapters

    def _help(self) -> None:
        """Every help page, the rules, the version, and the generated pages as they lie."""
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                pages = list(pool.map(lambda command: self._auditor(*command, "--help"), waiting))
            for command, page in zip(waiting, pages, strict=True):
                self._tell(f"help/{'-'.join(('auditor', *command))}", page, timings=False)
            waiting = [
                (*command, found)
                for command, page in zip(waiting, pages, strict=True)
                for found in _subcommands(page.out)
            ]
        ids = re.findall(r"\b[A-Z][0-9]{2}\b", self._auditor("rules").out)
        commands = [
            ("rules",),
            ("rules", "--format", "json"),
            ("--version",),
            *(("rules", rule) for rule in sorted(set(ids))),
        ]
        commands += [("rules", "O01", "M01", "--format", "json")]
        self._side_by_side((f"help/run-{'-'.join(one)}", lambda one=one: self._auditor(*one)) for one in commands)
        for page in ("docs/rules.md", "docs/cli.md"):
            self._write(f"help/{page.replace('/', '-')}", (self._root / page).read_text(), timings=False)
        module = self._process([str(self._root / ".venv/bin/python"), "-m", "auditor", "--version"], {}, self._folder)
        self._tell("help/python-m-auditor", module, timings=False)

    def _usage(self) -> None:
        """Wrong flags, variables, lines of auditor.toml, ledgers, runs and places: each is one sentence and exit code 2."""
        audit = ("audit", "s3://odd", "--endpoint-url", self._servers.stub)
        flags: list[tuple[str, ...]] = [
            (), ("nonsense",), ("audit",), ("audit", "odd"), ("audit", "s3://"), ("audit", "s3://Bad_Bucket!"), ("audit", "http://odd"),
            *((*audit, *more) for more in (
                ("--engine", "curl"), ("--concurrency", "0"), ("--concurrency", "many"), ("--concurrency", "1001"),
                ("--max-rate", "0"), ("--max-rate", "fast"), ("--max-calls", "-1"), ("--level", "deep"), ("--only", "X99"),
                ("--ignore", "O01,X99"), ("--only", "O01", "--ignore", "O02"), ("--fail-on", "awful"), ("--ledger", "mysql:x"), ("--ledger", "sqlite:"),
                ("--algorithm", "sha3"), ("--queue", "http://127.0.0.1:9/1/q"), ("--hash",), ("--hash", "--queue", "q"),
                ("--streams", "65"), ("--batch-over", "1XB", "--ledger", "sqlite:l.db"), ("--batch-over", "1TB"),
                ("--batch-role", "arn:x"), ("--endpoint-url", "ftp://x"), ("--expected-owner", "12"), ("--config", "none.toml"),
                ("--resume", "yesterday"), ("--resume", "20260102T030405Z-0a1b2c"), ("--format", "xml"),
                ("--start-after", "z", "--stop-at", "a"), ("--profile", "nobody"), ("--only", "M01"), ("--out", "s3://odd/reports"),
                ("--out", "/dev/null/x"), ("--out", ""), ("--queue", "nonsense", "--ledger", "sqlite:l.db"), ("--region", ""), ("--nonsense",),
            )),
            ("hash", "s3://odd"), ("hash", "s3://odd", "--ledger", "sqlite:none/l.db"), ("work",), ("work", "--queue", "http://127.0.0.1:9/1/q"), ("work", "--idle", "x"),
            ("verify", "s3://odd"), ("verify", "s3://odd", "--ledger", "sqlite:none.db"),
            *(("verify", "s3://odd", "--ledger", "sqlite:l.db", *more) for more in (
                ("--max-age", "90"), ("--percent", "0"), ("--percent", "101"), ("--max-age", "90d", "--percent", "5"), ("--every", "1s"), ("--grace", "soon"))),
            ("digests",), ("digests", "export", "s3://odd"), ("digests", "export", "s3://odd", "--ledger", "sqlite:none.db"),
            ("digests", "export", "s3://odd", "--ledger", "sqlite:l.db", "--manifest", "zip"),
            ("digests", "import", "none.txt", "s3://odd", "--ledger", "sqlite:new.db"), ("digests", "import", "s3://odd"),
            ("digests", "import-report", "none", "--ledger", "sqlite:new.db"),
            ("ledger", "s3://odd", "--ledger", "sqlite:l.db"), ("ledger", "s3://odd/a"), ("ledger", "s3://odd/a", "--ledger", "sqlite:none.db"),
            ("rules", "X99"), ("policy",), ("policy", "s3://odd", "--role", "cook"), ("policy", "s3://odd", "--topic", "x", "--role", "audit"),
            ("demo", "--from", "/nonexistent"), ("demo", "--out", "s3://x"), ("demo", "--engine", "curl"),
        ]  # fmt: skip
        variables: list[dict[str, str]] = [
            {"AUDITOR_ENGINE": "curl"}, {"AUDITOR_MAXRATE": "1"}, {"AUDITOR_BUCKET": "x"}, {"AUDITOR_CONCURRENCY": "1.5"},
            {"AUDITOR_VERSIONS": "maybe"}, {"AUDITOR_FAIL_ON": "x"}, {"AUDITOR_RETRY_ATTEMPTS": "0"}, {"AUDITOR_RETRY_SECONDS": "-1"},
            {"AUDITOR_CHUNK_MIB": "2000"}, {"AUDITOR_MAX_HOPS": "0"}, {"AUDITOR_CONFIG": "none.toml"}, {"AUDITOR_ALGORITHMS": ","},
            {"AUDITOR_QUEUE": "q"}, {"AUDITOR_EXPECTED_OWNER": "x"}, {"AWS_ENDPOINT_URL": "nonsense"}, {"AWS_CA_BUNDLE": "/none"},
            {"AWS_PROFILE": "nobody"}, {"AUDITOR_BATCH_ROLE": "x"}, {"AUDITOR_PERCENT": "x"}, {"AUDITOR_KEEP_METADATA": "perhaps"},
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""},
        ]  # fmt: skip
        files = [
            "nonsense = 1", "engine = 'curl'", "engine = 3", "max_rate = true", "concurrency = 1.5", "this is no TOML", "rules = 1",
            "[rules.X99]\na = 1", "[rules.M01]\nnonsense = 1", "[rules.M01]", "[rules.M01]\nrequired = 'owner'", "[rules.M01]\nrequired = []",
            "rules.M01 = 3", "[rules.O01]\na = 1", "accept_undecided = 3", "accept_undecided = [3]", "[[accept_undecided]]\nreason = 'x'",
            "[[accept_undecided]]\nprefix = 'x'", "[[accept_undecided]]\nreason = ''\nrule = 'B01'", "[[accept_undecided]]\nwhy = 'x'",
            "[[accept_undecided]]\nreason = 3\ncode = 'x'", "trusted = 3", "algorithms = ['sha3']", "algorithms = []", "fail_on = 3",
            "buckets = [1]", "batch_over = 1.5", "out = ''", "hash = 'maybe'", "versions = 3", "part_lines = 0", "streams = 0", "\udcff",
        ]  # fmt: skip
        self._put("usage.db", "no database at all, but long enough to be looked at" * 20)
        shots: list[tuple[str, Callable[[], Ran]]] = []
        for number, one in enumerate(flags):
            shots.append((f"usage/flag-{number:02}", lambda one=one: self._auditor(*one)))
            self._write(f"usage/flag-{number:02}/command", " ".join(one))
        shots.append(("usage/no-database", lambda: self._auditor(*audit, "--ledger", "sqlite:usage.db")))
        for number, given in enumerate(variables):
            command = audit if "AWS_ENDPOINT_URL" not in given else audit[:2]
            shots.append(
                (f"usage/variable-{number:02}", lambda given=given, command=command: self._auditor(*command, **given))
            )
            self._write(f"usage/variable-{number:02}/command", json.dumps(given))
        for number, lines in enumerate(files):
            name = self._put(f"wrong-{number:02}/auditor.toml", lines.encode("utf-8", "surrogateescape"))
            here = Path(name).parent
            shots.append((f"usage/file-{number:02}", lambda here=here: self._auditor(*audit, cwd=here)))
            self._write(f"usage/file-{number:02}/command", lines)
        self._side_by_side(shots, timings=True)

    def _policy(self) -> None:
        """IAM policies for what may be selected."""
        variants: list[tuple[str, ...]] = [
            (), ("--versions",), ("--only", "O01"), ("--level", "exposure"), ("--level", "fixity"), ("--ignore", "B01,B02,B03,B04"),
            ("--ledger", "dynamodb:table", "--hash"), ("--ledger", "dynamodb:table", "--queue", "https://sqs.eu-west-1.amazonaws.com/111122223333/q"),
            ("--ledger", "sqlite:x.db", "--hash", "--audited-keys", KMS_KEY), ("--out", "s3://reports/audits", "--reports-key", KMS_KEY),
            ("--role", "audit", "--ledger", "dynamodb:table", "--out", "s3://reports/audits"),
            ("--role", "audit", "--level", "exposure", "--out", "s3://reports", "--vpc", "--topic", "arn:aws:sns:us-east-1:111122223333:t"),
            ("--role", "hashing", "--ledger", "dynamodb:table", "--queue", "https://sqs.eu-west-1.amazonaws.com/111122223333/q", "--audited-keys", KMS_KEY),
            ("--role", "verify", "--ledger", "dynamodb:table", "--out", "s3://reports/v", "--stage", "test"), ("--requester-pays",),
            ("--batch-over", "1TiB", "--batch-manifest", "s3://m/x", "--ledger", "dynamodb:table", "--batch-role", ROLE),
            ("--region", "cn-north-1"), ("--format", "json"),
        ]  # fmt: skip
        shots = []
        for number, more in enumerate(variants):
            command = ("policy", "s3://my-bucket/a b/*?$", "s3://other", *more)
            shots.append((f"policy/{number:02}", lambda command=command: self._auditor(*command)))
            self._write(f"policy/{number:02}/command", " ".join(command))
        self._side_by_side(shots)

    def _demo(self) -> None:
        """The demo's bucket with its planted problems, by every engine; a run folder in a bucket."""
        moto = ("--endpoint-url", self._servers.moto, "--region", "us-east-1")
        config = self._put("m01.toml", '[rules.M01]\nrequired = ["origin"]\n')
        for engine in ENGINES:
            self._audit(
                f"demo/{engine}", "audit", DEMO, *moto, "--engine", engine, "--config", config, "--format", "json"
            )
        self._audit("demo/table", "audit", DEMO, *moto, "--config", config)
        self._audit(
            "demo/versions", "audit", DEMO, *moto, "--versions", "--only", "O01,O02,E01,K01", "--format", "json"
        )
        self._shoot("demo/to-a-bucket", "audit", f"{DEMO}/p", *moto, "--out", "s3://reports/audits")
        self._tree(
            "demo/to-a-bucket/files",
            {k: base64.b64decode(v) for k, v in self._servers.do("bucket", name="reports").items()},
        )

    def _stub(self) -> None:
        """Odd keys, every world of ACLs, and versions, by every engine; then what flags and files select."""
        stub = ("--endpoint-url", self._servers.stub, "--region", "us-east-1")
        for engine in ENGINES:
            self._audit(f"stub/odd-{engine}", "audit", "s3://odd", *stub, "--engine", engine, "--format", "json")
            self._audit(f"stub/versions-{engine}", "audit", "s3://versions", *stub, "--versions", "--engine", engine)
        worlds = ("writer", "enforced", "preferred", "no-ownership", "ignoring", "blocked", "public-acl", "policy", "foreign",
                  "kms", "no-encryption", "denied", "empty-replies", "malformed", "empty")  # fmt: skip
        for engine in ENGINES:
            self._audit(f"stub/worlds-{engine}", "audit", *(f"s3://{world}" for world in worlds), *stub, "--engine", engine,
                        "--format", "json")  # fmt: skip
        self._audit(
            "stub/worlds-table", "audit", *(f"s3://{world}" for world in worlds), *stub, "--only", "O01,O02,B01,B03,B04"
        )
        self._audit("stub/odd-table", "audit", "s3://odd", *stub, "-v")
        self._audit(
            "stub/rich",
            "audit",
            "s3://rich",
            *stub,
            "--ledger",
            "sqlite:l.db",
            "--batch-over",
            "6",
            "--batch-role",
            ROLE,
        )
        settings = self._put("settings.toml", (
            'keep_metadata = true\ntrusted = ["' + "b1" * 32 + '"]\nfail_on = "critical"\npart_lines = 7\n'
            '[rules.M01]\nrequired = ["owner", "retention"]\n'
            '[[accept_undecided]]\nprefix = "kind/"\ncode = "AccessDenied"\nreason = "known"\n'
            '[[accept_undecided]]\nrule = "B01"\nreason = "known, too"\n'))  # fmt: skip
        self._audit(
            "stub/settings",
            "audit",
            "s3://rich",
            "s3://writer",
            "s3://denied",
            "s3://odd",
            *stub,
            "--config",
            settings,
            "--format",
            "json",
        )
        self._audit("stub/exposure", "audit", "s3://writer", *stub, "--level", "exposure", "--format", "json")
        self._audit("stub/range", "audit", "s3://odd/plain/", *stub, "--start-after", "plain/0000045.txt", "--stop-at",
                    "plain/0000055.txt", "--ignore", "K01", "--fail-on", "never", "--format", "json")  # fmt: skip
        self._audit("stub/requester", "audit", "s3://requester", *stub, "--format", "json")
        self._audit(
            "stub/requester-pays",
            "audit",
            "s3://requester",
            *stub,
            "--requester-pays",
            "--expected-owner",
            "111122223333",
        )
        self._audit("stub/other-owner", "audit", "s3://writer", *stub, "--expected-owner", "999999999999")
        self._audit(
            "stub/elsewhere", "audit", "s3://elsewhere", "--endpoint-url", self._servers.stub, "--format", "json"
        )
        self._audit(
            "stub/unlistable", "audit", "s3://unlistable", "s3://none", "s3://writer", *stub, "--format", "json"
        )
        self._servers.do("account_block", ignore=True)
        for engine in ENGINES:
            self._audit(f"stub/account-{engine}", "audit", "s3://writer", *stub, "--engine", engine, "--format", "json",
                        AWS_ENDPOINT_URL_S3_CONTROL=self._servers.stub)  # fmt: skip

    def _holes(self) -> None:
        """Objects that vanish or cannot be read; a run that stops, and goes on."""
        stub = ("--endpoint-url", self._servers.stub, "--region", "us-east-1", "--concurrency", "1")
        for engine in ENGINES:
            self._servers.do("fresh")
            self._servers.do("fault", operation="HeadObject", keys=["plain/0000050.txt"], kind="vanish")
            self._servers.do("fault", operation="GetObjectAcl", keys=["plain/0000051.txt"], kind="incomplete")
            self._servers.do(
                "fault", operation="GetObjectAcl", keys=["plain/0000053.txt"], kind="error", status=400, code="Odd"
            )
            self._servers.do("fault", operation="HeadObject", keys=["plain/0000055.txt"], kind="error", status=403)
            self._audit(f"holes/{engine}", "audit", "s3://odd/plain/", *stub, "--engine", engine, "--format", "json")
        self._servers.do("fresh")
        folder = self._audit("holes/stopped", "audit", "s3://odd", *stub, "--max-calls", "60", "--format", "json")
        (run,) = [path.name.removeprefix("run=") for path in (folder / "auditor-runs/bucket=odd").glob("run=*")]
        self._shoot("holes/resumed", "audit", "s3://odd", *stub, "--resume", run, "--format", "json", cwd=folder)
        self._tree("holes/resumed/files", {path.relative_to(folder).as_posix(): path.read_bytes()
                                           for path in (folder / "auditor-runs").rglob("*") if path.is_file()})  # fmt: skip
        self._shoot("holes/resumed-otherwise", "audit", "s3://odd", *stub, "--resume", run, "--only", "O01", cwd=folder)

    def _queue(self) -> None:
        """An audit that queues, the worker that drains the queue, both ledgers, and a verification of what was damaged."""
        moto = ("--endpoint-url", self._servers.moto, "--region", "us-east-1")
        for kind, ledger in (("dynamodb", "dynamodb:ledger"), ("sqlite", "sqlite:l.db")):
            self._queues = self._servers.do("fresh")
            queue = self._queues["hashing"]
            config = self._put(
                f"{kind}.toml", f'queue = "{queue}"\nledger = "{ledger}"\nalgorithms = ["sha256", "md5"]\n'
            )
            here = self._audit(f"queue/{kind}/audit", "audit", DEMO, *moto, "--config", config, "--format", "json")
            sent = self._servers.do("messages", queue=queue)
            self._write(f"queue/{kind}/messages", self._lines(one["body"] for one in sent))
            odd = [
                '{"v": 1, "bucket": 7}',
                "no JSON",
                '{"v": 2, "run": "x"}',
                _message_of(json.loads((BEFORE_EVENTS / "s3-test-event.json").read_text())),
            ]
            self._servers.do("send", queue=queue, bodies=odd)
            both = ("--queue", queue, "--ledger", ledger, *moto, "--algorithm", "sha256,md5")
            self._shoot(f"queue/{kind}/work", "work", *both, "--idle", "1", "--format", "json", cwd=here)
            self._write(f"queue/{kind}/left", self._lines(self._servers.do("messages", queue=queue)))
            letters = self._servers.do("messages", queue=f"{queue}-dead-letters")
            self._write(f"queue/{kind}/letters", self._lines(letters))
            self._ledger(f"queue/{kind}/after-work", here / "l.db" if kind == "sqlite" else None)
            self._shoot(f"queue/{kind}/work-again", "work", *both, "--idle", "1", cwd=here)
            self._audit(
                f"queue/{kind}/audit-again",
                "audit",
                DEMO,
                *moto,
                "--ledger",
                ledger.replace("sqlite:", f"sqlite:{here}/"),
                "--queue",
                queue,
            )
            self._servers.do("damage")
            named = ("--ledger", ledger, *moto)
            for title, more in {
                "verify": ("--format", "json", "--grace", "0s", "--out", "checks", "--combined", "all.txt"),
                "verify-table": ("--grace", "15m", "--percent", "100", "--out", "checks-2", "--combined", "-"),
                "verify-record": ("--record", "--grace", "0s", "--out", "checks-3"),
            }.items():
                time.sleep(NEXT_SECOND)
                self._shoot(f"queue/{kind}/{title}", "verify", DEMO, *named, *more, cwd=here, sorted_out="-" in more)
                for folder in ("checks", "checks-2", "checks-3"):
                    if (here / folder).exists():
                        self._tree(f"queue/{kind}/{title}/{folder}", {
                            path.relative_to(here / folder).as_posix(): path.read_bytes()
                            for path in (here / folder).rglob("*") if path.is_file()})  # fmt: skip
                        shutil.rmtree(here / folder)
            self._write(
                f"queue/{kind}/combined", "".join(sorted((here / "all.txt").read_text().splitlines(keepends=True)))
            )
            for title, key in {
                "planted": "backups/customers.sql",
                "gone": "deploy/settings.yml",
                "odd": "decoys/100%+%41 ?#&.txt",
                "none": "nowhere",
            }.items():
                for form in ("table", "json"):
                    self._shoot(
                        f"queue/{kind}/ledger-{title}-{form}",
                        "ledger",
                        f"{DEMO}/{key}",
                        *named,
                        "--format",
                        form,
                        cwd=here,
                    )
            for form in ("sha256sum", "bagit", "csv"):
                self._shoot(
                    f"queue/{kind}/export-{form}", "digests", "export", DEMO, *named, "--manifest", form, cwd=here
                )
            self._ledger(f"queue/{kind}/after-verify", here / "l.db" if kind == "sqlite" else None)

    def _digests(self) -> None:
        """Hashing in this process, by every engine; verifying, exporting and importing what came of it."""
        stub = ("--endpoint-url", self._servers.stub, "--region", "us-east-1")
        odd_export = self._folder
        for engine in ENGINES:
            self._servers.do("fresh")
            here = self._folder / engine
            here.mkdir()
            named = (*stub, "--ledger", "sqlite:l.db", "--engine", engine)
            self._shoot(f"digests/{engine}/hash", "hash", "s3://hashed", "s3://versions", "s3://rich", "s3://odd", *named, "--versions",
                        "--algorithm", "sha256,sha1,md5,crc64nvme", "--format", "json", cwd=here)  # fmt: skip
            self._shoot(
                f"digests/{engine}/large",
                "hash",
                "s3://large",
                *named,
                "--streams",
                "4",
                "--algorithm",
                "md5",
                cwd=here,
            )
            self._shoot(f"digests/{engine}/again", "hash", "s3://hashed", *named, cwd=here)
            self._ledger(f"digests/{engine}/ledger", here / "l.db")
            self._servers.do("damage_stub")
            verify = ("verify", "s3://hashed", *named, "--grace", "0s", "--out", "checks", "--combined", "all.txt")
            self._shoot(f"digests/{engine}/verify", *verify, "--format", "json", cwd=here)
            self._write(
                f"digests/{engine}/combined", "".join(sorted((here / "all.txt").read_text().splitlines(keepends=True)))
            )
            self._tree(f"digests/{engine}/checks", {path.relative_to(here / "checks").as_posix(): path.read_bytes()
                                                   for path in (here / "checks").rglob("*") if path.is_file()})  # fmt: skip
            odd_export = here
        here, named = odd_export, ("--ledger", "sqlite:l.db", *stub)
        for form in ("sha256sum", "bagit", "csv"):
            for algorithm in ("sha256", "md5") if form != "csv" else ("sha256",):
                self._shoot(
                    f"digests/export-{form}-{algorithm}",
                    "digests",
                    "export",
                    "s3://hashed",
                    *named,
                    "--manifest",
                    form,
                    "--algorithm",
                    algorithm,
                    cwd=here,
                )
            self._shoot(f"digests/to-{form}", "digests", "export", "s3://odd/plain/", *named, "--manifest", form, "--relative",
                        "--out", f"manifest.{form}", cwd=here)  # fmt: skip
            written = here / f"manifest.{form}"
            self._write(f"digests/to-{form}/file", written.read_text() if written.exists() else "no file")
            fresh = ("--ledger", f"sqlite:import-{form}.db", *stub)
            self._shoot(f"digests/import-{form}", "digests", "import", written.name, "s3://odd/plain/", *fresh, "--manifest",
                        form, "--format", "json", cwd=here)  # fmt: skip
            self._shoot(f"digests/import-{form}-verify", "verify", "s3://odd/plain/", *fresh, "--grace", "0s", cwd=here)
            self._ledger(f"digests/import-{form}-ledger", here / f"import-{form}.db")
        (here / "wrong.txt").write_text(f"{'0' * 64}  0000045.txt\nno digest  at all\n{'1' * 64}  nowhere.txt\n")
        self._shoot(
            "digests/import-wrong",
            "digests",
            "import",
            "wrong.txt",
            "s3://odd/plain/",
            "--ledger",
            "sqlite:wrong.db",
            *stub,
            cwd=here,
        )
        (here / "wrong.txt").write_text(f"{'0' * 64}  0000045.txt\n{'1' * 64}  nowhere.txt\n")
        self._shoot(
            "digests/import-other",
            "digests",
            "import",
            "wrong.txt",
            "s3://odd/plain/",
            "--ledger",
            "sqlite:wrong.db",
            *stub,
            cwd=here,
        )
        self._shoot(
            "digests/verify-other",
            "verify",
            "s3://odd/plain/",
            "--ledger",
            "sqlite:wrong.db",
            *stub,
            "--format",
            "json",
            cwd=here,
        )
        for form in ("table", "json"):
            self._shoot(
                f"digests/imported-{form}",
                "ledger",
                "s3://odd/plain/0000045.txt",
                "--ledger",
                "sqlite:wrong.db",
                "--format",
                form,
                cwd=here,
            )
        (here / "report.csv").write_bytes(_batch_report())
        self._shoot(
            "digests/import-report",
            "digests",
            "import-report",
            "report.csv",
            "--ledger",
            "sqlite:report.db",
            *stub,
            "--format",
            "json",
            cwd=here,
        )
        self._shoot(
            "digests/import-report-table",
            "digests",
            "import-report",
            "report.csv",
            "--ledger",
            "sqlite:report.db",
            *stub,
            cwd=here,
        )
        self._ledger("digests/import-report-ledger", here / "report.db")
        self._audit(
            "digests/audit-hash",
            "audit",
            "s3://hashed",
            *stub,
            "--hash",
            "--ledger",
            "sqlite:audit.db",
            "--format",
            "json",
        )

    def _handlers(self) -> None:
        """The three functions: their answers, logs and metrics, for events of people, schedules and queues."""
        queue, out = self._queues["functions"], self._folder / "runs"
        environ = {
            "AUDITOR_BUCKETS": "auditor-demo",
            "AUDITOR_OUT": str(out),
            "AUDITOR_LEDGER": "dynamodb:functions",
            "AUDITOR_QUEUE": queue,
            "AUDITOR_SERVICE": "auditor",
            "AWS_ENDPOINT_URL": self._servers.moto,
            "AWS_LAMBDA_FUNCTION_NAME": "auditor",
        }
        schedule = json.loads((BEFORE_EVENTS / "schedule.json").read_text())
        people: list[tuple[str, Any]] = [
            ("manual", {"bucket": "auditor-demo", "prefix": "plans/", "engine": "direct"}),
            ("empty", {}),
            ("schedule", schedule),
            ("rule", json.loads((BEFORE_EVENTS / "rule-schedule.json").read_text())),
            ("range", {"bucket": "auditor-demo", "start_after": "files/", "stop_at": "legacy/orders.csv"}),
            ("unknown field", {"bucket": "auditor-demo", "nonsense": 1}),
            ("no text", {"bucket": 3}),
            ("no bucket of that name", {"bucket": "there-is-none"}),
            ("no event", [1]),
            ("wrong engine", {"bucket": "auditor-demo", "engine": "curl"}),
            ("prefix alone", {"prefix": "a"}),
            ("hop", {"bucket": "auditor-demo", "hop": "x"}),
            ("run alone", {"run": "20260102T030405Z-0a1b2c"}),
        ]
        told = self._handler("audit", people, environ)
        self._files("handlers/audit/files", out, told)
        self._write("handlers/sent", self._lines(one["body"] for one in self._servers.do("messages", queue=queue)))

        # Messages of known content, handed on one by one in a fixed order.
        self._queues = self._servers.do("fresh")
        keys = {"finance/salaries.csv": "anyone on the internet can read it\n", "nowhere": "x"}
        objects = [
            {
                "key": key,
                "version_id": None,
                "etag": hashlib.md5(body.encode()).hexdigest(),
                "size": len(body),
                "attempts": 0,
            }
            for key, body in keys.items()
        ]
        ours = json.dumps(
            {
                "v": 1,
                "run": "20260102T030405Z-0a1b2c",
                "bucket": "auditor-demo",
                "algorithms": ["sha256"],
                "objects": objects,
            }
        )
        other = ours.replace("auditor-demo", "there-is-none")
        bodies = {"ours": ours, "malformed": '{"v": 1, "bucket": 7}', "no JSON": "{", "no bucket": other}
        for name in ("s3-notification", "s3-notification-deleted", "s3-notification-restored", "s3-notification-sns", "s3-eventbridge",
                     "s3-eventbridge-deleted", "s3-eventbridge-restored", "s3-test-event"):  # fmt: skip
            bodies[name] = _message_of(json.loads((BEFORE_EVENTS / f"{name}.json").read_text()))
        batches: list[tuple[str, Any]] = []
        for name, body in bodies.items():
            self._servers.do("send", queue=queue, bodies=[body])
            batches.append((name, {"Records": self._servers.do("receive", queue=queue)}))
        self._servers.do("send", queue=queue, bodies=[ours, '{"v": 1, "bucket": 7}'])
        batches.append(("both", {"Records": self._servers.do("receive", queue=queue)}))
        batches += [("empty", {}), ("no batch", [1]), ("nothing", {"Records": []}), ("no id", {"Records": [{}]}),
                    ("no body", {"Records": [{"messageId": "m", "receiptHandle": "r"}]})]  # fmt: skip
        self._handler("hashing", batches, environ)
        letters = self._servers.do("messages", queue=f"{queue}-dead-letters")
        self._write("handlers/letters", self._lines(letters))
        self._write("handlers/left", self._lines(self._servers.do("messages", queue=queue)))
        self._ledger("handlers/after-hashing", None, "functions")

        checks = {**environ, "AUDITOR_OUT": str(self._folder / "checks")}
        asked = [event for event in people if event[0] != "wrong engine"]
        told = self._handler(
            "verify", [*asked, ("fresh", {"bucket": "auditor-demo", "prefix": "finance/", "grace": "0s"})], checks
        )
        self._files("handlers/verify/files", self._folder / "checks", told)
        for name in ("audit", "hashing", "verify"):
            self._handler(
                name,
                [("unset", {"Records": []} if name == "hashing" else {})],
                {"AWS_ENDPOINT_URL": self._servers.moto},
                "-unset",
            )
            self._handler(
                name,
                [("wrong", {"Records": []})],
                {**environ, "AUDITOR_MAX_RATE": "x", "AUDITOR_LOG_LEVEL": "LOUD"},
                "-wrong",
            )

    def _handler(
        self, name: str, events: Sequence[tuple[str, Any]], environ: Mapping[str, str], which: str = ""
    ) -> str:
        """Hand events to a function, one after the other in one process; write and return what it answered."""
        given, told = self._put(f"{name}{which}.events", json.dumps(events)), self._folder / f"{name}{which}.told"
        self._servers.do("calls")
        ran = self._process(
            [str(self._root / ".venv/bin/python"), "-c", HANDLER, name, given, str(told)], environ, self._root
        )
        self._tell(f"handlers/{name}{which}", ran)
        answers = told.read_text() if told.exists() else "nothing"
        self._write(f"handlers/{name}{which}/told", answers)
        self._write(f"handlers/{name}{which}/calls", self._lines(self._servers.do("calls")))
        return answers

    def _files(self, name: str, folder: Path, told: str) -> None:
        """Write the run folders of several runs, in the order in which `told` names them; the others as one folder."""
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        runs = list(dict.fromkeys(re.findall(r"\d{8}T\d{6}Z-[0-9a-f]{6}", told)))
        for number, run in enumerate(runs):
            self._tree(f"{name}-{number}", {path: data for path, data in files.items() if run in path})
        self._tree(name, {path: data for path, data in files.items() if not any(run in path for run in runs)})

    def _ledger(self, name: str, file: Path | None, table: str = "ledger") -> None:
        """Write all rows of a SQLite ledger, or all items of a DynamoDB table."""
        if file is None:
            items = [self._steady(item) for item in self._servers.do("table", name=table)]
            self._write(f"{name}/items", "".join(f"{item}\n" for item in sorted(map(self._mask, items))))
            return
        if not file.exists():
            self._write(f"{name}/schema", "no file\n")
            return
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as ledger:
            schema = ledger.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
            version = ledger.execute("PRAGMA user_version").fetchone()
            self._write(f"{name}/schema", f"{version}\n" + "".join(f"{row}\n" for row in schema))
            for table in (row[1] for row in schema if row[0] == "table"):
                cursor = ledger.execute(f'SELECT * FROM "{table}"')
                columns = [column[0] for column in cursor.description]
                rows = [self._steady(dict(zip(columns, row, strict=True))) for row in cursor]
                self._write(f"{name}/{table}", "".join(f"{row}\n" for row in sorted(map(self._mask, rows))))
        ledger.close()

    def _steady(self, row: Mapping[str, Any]) -> str:
        """One row as text. Its place depends on which object came first, its fingerprint on the moment it speaks of."""
        told = repr(sorted(row.items()))
        plain = {name: value for name, value in row.items()}
        for name in ("place", "recorded_place", "told_place"):
            if plain.get(name) is not None:
                plain[name] = "<PLACE>"
        if self._mask.is_now(told):
            if "line" in plain:
                plain["line"] = FINGERPRINT
            if "sk" in plain and plain["sk"]["S"].startswith(" history#"):
                plain["sk"] = {"S": re.sub(r"#[0-9a-f]{16,}$", f"#<{FINGERPRINT}>", plain["sk"]["S"])}
        return repr(sorted(plain.items()))


BEFORE_EVENTS: Path = BEFORE / "events"


def _subcommands(page: str) -> list[str]:
    """Names that a help page lists under "commands:" or "actions:"."""
    section = re.search(r"^(?:commands|actions):\n(.*?)(?:\n\n|\Z)", page, re.MULTILINE | re.DOTALL)
    return re.findall(r"^    ([a-z][a-z-]*)(?: |$)", section[1], re.MULTILINE) if section else []


def _message_of(event: Any) -> str:
    """The first body of a sample event, which is a batch of SQS or what lies within one."""
    records = event.get("Records", []) if isinstance(event, dict) else []
    return str(records[0]["body"]) if records and "body" in records[0] else json.dumps(event)


def _batch_report() -> bytes:
    """A completion report of S3 Batch Operations on the stub's bucket "writer": good rows and each kind of bad one."""
    body = b"object private"
    digest = hashlib.sha256(body)
    told = {
        "checksum_base64": base64.b64encode(digest.digest()).decode(),
        "etag": f'"{hashlib.md5(body).hexdigest()}"',
        "checksumAlgorithm": "SHA256",
        "checksumType": "FULL_OBJECT",
        "checksum_hex": digest.hexdigest().upper(),
    }
    rows = [
        ["writer", "kind/private", "", "succeeded", "", "200", json.dumps(told)],
        ["writer", "kind/kms", "", "succeeded", "", "200", json.dumps(told)],
        ["writer", "kind/none", "", "succeeded", "", "200", json.dumps(told)],
        ["writer", "kind/public-read", "", "succeeded", "", "200", json.dumps({**told, "checksumType": "COMPOSITE"})],
        ["writer", "kind/archived", "", "failed", "AccessDenied", "403", "Access denied"],
        ["writer", "kind/sse-c", "", "succeeded", "", "200", "no JSON"],
    ]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def snapshot(root: Path, out: Path, servers: Path, only: Sequence[str], keep: bool) -> None:
    """Write all that `root` does into `out`, which is made anew."""
    global BEFORE_EVENTS
    BEFORE_EVENTS = servers / "events"
    for needed in (root / ".venv/bin/auditor", servers / ".venv/bin/python", BEFORE_EVENTS):
        if not needed.exists():
            raise SystemExit(f"{needed} is missing: run make install there")
    if out.exists() and any(out.iterdir()) and not (out / "SNAPSHOT").exists():
        raise SystemExit(f"{out} is no snapshot: give another OUTDIR")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "SNAPSHOT").write_text("made by same_bytes.py\n")
    began = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="same_bytes_"))
    try:
        _write_files(files := scratch / "files")
        (scratch / "home").mkdir()
        environ = _environment(scratch)

        def drive(lane: Sequence[str]) -> None:
            chapters = [name for name in lane if not only or name in only]
            if chapters:
                with Servers(servers, files, environ, scratch / f"{chapters[0]}-servers.log") as running:
                    Snapshot(root, out, scratch, running, environ).run(chapters)

        with ThreadPoolExecutor(len(LANES)) as pool:
            list(pool.map(drive, LANES))
    finally:
        if keep:
            sys.stderr.write(f"kept: {scratch}\n")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    count = sum(1 for path in out.rglob("*") if path.is_file())
    sys.stderr.write(f"{count} files in {out}, {time.monotonic() - began:.0f} s\n")


def _write_files(folder: Path) -> None:
    """Make the files that the demo loads beside its planted ones."""
    for number in range(40):
        path = folder / f"part {number // 10}" / f"file-{number:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"file {number}\n".encode() * (number * number + 1))
    (folder / "empty").write_bytes(b"")


def _environment(scratch: Path) -> dict[str, str]:
    """An environment without the user's settings, in which nothing but 127.0.0.1 can be meant."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(scratch / "home"),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "100",
        "PYTHONHASHSEED": "0",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


# ---------------------------------------------------------------------------------------------------------------------
# Comparing
# ---------------------------------------------------------------------------------------------------------------------


def compare(one: Path, other: Path, most: int) -> int:
    """Print each file that differs, with the first lines of its difference; 1 if any does."""
    files = [
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (one, other)
    ]
    if not all("SNAPSHOT" in found for found in files):
        raise SystemExit("both folders must be snapshots")
    different = 0
    for name in sorted(files[0].keys() | files[1].keys()):
        before, after = files[0].get(name), files[1].get(name)
        if before == after:
            continue
        different += 1
        if before is None or after is None:
            print(f"=== {name}: only in {one if after is None else other}")
            continue
        print(f"=== {name}")
        texts = [data.decode("utf-8", "backslashreplace").splitlines() for data in (before, after)]
        lines = list(difflib.unified_diff(*texts, "before", "after", lineterm="", n=0))[2:]
        for line in lines[:most]:
            print(_cut(line))
        if len(lines) > most:
            print(f"    and {len(lines) - most} lines more")
    print(f"{different} of {len(files[0].keys() | files[1].keys())} files differ")
    return 1 if different else 0


def _cut(line: str, most: int = 400) -> str:
    return line if len(line) <= most else f"{line[:most]} .. ({len(line)} characters)"


def main() -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    shoot = commands.add_parser("snapshot", help="write what a checkout does into a folder")
    shoot.add_argument("root", type=Path)
    shoot.add_argument("outdir", type=Path)
    shoot.add_argument("--servers", type=Path, default=BEFORE, help="whose stub and moto serve (%(default)s)")
    shoot.add_argument("--only", default="", help="chapters, with commas between them")
    shoot.add_argument("--keep", action="store_true", help="keep the scratch folder")
    match = commands.add_parser("compare", help="print the differing files of two snapshots")
    match.add_argument("one", type=Path)
    match.add_argument("other", type=Path)
    match.add_argument("--lines", type=int, default=12, help="of each difference (%(default)s)")
    commands.add_parser("serve").add_argument("files")
    options = parser.parse_args()
    if options.command == "serve":
        serve(options.files)
        return 0
    if options.command == "compare":
        return compare(options.one, options.other, options.lines)
    os.nice(5)
    only = [name for name in options.only.split(",") if name]
    snapshot(options.root.resolve(), options.outdir.resolve(), options.servers.resolve(), only, options.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
