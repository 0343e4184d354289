"""Completion reports of S3 Batch Operations, written here as its documentation shows them, taken into a ledger."""

from __future__ import annotations

import asyncio
import base64
import csv
import hashlib
import io
import json
import resource
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from msgspec.structs import replace

from auditor.cli.main import main
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from tests.support.fakes.ledger import versions_of
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.verification import entry

COLUMNS = ["Bucket", "Key", "VersionId", "TaskStatus", "ErrorCode", "HTTPStatusCode", "ResultMessage"]
BODIES = {key: f"{name} in bytes".encode() for name, key in ODD_KEYS.items()}


def said(body: bytes, etag: str, /, **changes: Any) -> str:
    """The ResultMessage of a task that succeeded."""
    digest = hashlib.sha256(body).digest()
    told = {
        "checksum_base64": base64.b64encode(digest).decode(),
        "etag": f'"{etag}"',
        "checksumAlgorithm": "SHA256",
        "checksumType": "FULL_OBJECT",
        "checksum_hex": digest.hex().upper(),
        "somethingNew": {"nobody": ["knows"]},
    }
    return json.dumps({name: value for name, value in (told | changes).items() if value is not None})


def succeeded(key: str, message: str, version_id: str = "") -> list[str]:
    return [BUCKET, quote(key), version_id, "succeeded", "", "200", message]


def in_csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def report(*files: bytes, bucket: str = "reports", folder: str = "job-1", **changes: Any) -> dict[str, bytes]:
    """Path to bytes, as S3 writes a whole report below a prefix."""
    results = {f"{folder}/results/{number:040x}.csv": data for number, data in enumerate(files)}
    told = {
        "Format": "Report_CSV_20180820",
        "ReportCreationDate": "2026-01-02T03:04:05.678Z",
        "Results": [
            {
                "TaskExecutionStatus": "succeeded",
                "Bucket": bucket,
                "MD5Checksum": hashlib.md5(data, usedforsecurity=False).hexdigest(),
                "Key": path,
            }
            for path, data in results.items()
        ],
        "ReportSchema": ", ".join(COLUMNS),
    }
    return {f"{folder}/manifest.json": json.dumps(told | changes).encode(), **results}


def good(stub: StubServer, key: str = "k") -> bytes:
    """The report of one object, which is put into the bucket."""
    return in_csv([succeeded(key, said(b"body", stub.put(BUCKET, key, b"body").etag))])


def put_down(root: Path, files: dict[str, bytes]) -> Path:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root / "job-1"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'ledger.db'}"


@pytest.fixture
async def ledger(uri: str) -> AsyncIterator[Ledger]:
    async with open_ledger(uri) as opened:
        yield opened


class Run:
    """`auditor digests import-report` in this process."""

    def __init__(self, stub: StubServer, uri: str, capfd: pytest.CaptureFixture[str]) -> None:
        self._common = ["--ledger", uri, "--endpoint-url", stub.url, "--format", "json"]
        self._capfd = capfd
        self.err = ""

    def __call__(self, *reports: object) -> tuple[int, dict[str, Any]]:
        code = main(["digests", "import-report", *map(str, reports), *self._common])
        out, self.err = self._capfd.readouterr()
        return code, json.loads(out) if out else {}


@pytest.fixture
def run(stub: StubServer, uri: str, capfd: pytest.CaptureFixture[str]) -> Run:
    return Run(stub, uri, capfd)


def counts(told: dict[str, Any]) -> dict[str, int]:
    return {name: number for name, number in told.items() if isinstance(number, int) and number}


async def test_what_was_recorded_is_what_hashlib_says_of_the_bytes(
    stub: StubServer, run: Run, ledger: Ledger, tmp_path: Path
) -> None:
    objects = {key: stub.put(BUCKET, key, body, storage_class="DEEP_ARCHIVE") for key, body in BODIES.items()}
    rows = [succeeded(key, said(BODIES[key], item.etag)) for key, item in objects.items()]
    folder = put_down(tmp_path, report(in_csv(rows[:5]), in_csv([COLUMNS, *rows[5:]])))
    code, told = await asyncio.to_thread(run, folder)
    assert (code, counts(told)) == (0, {"recorded": len(BODIES)}), run.err
    _, told = await asyncio.to_thread(run, folder / "manifest.json")
    assert (counts(told), stub.count("GetObject")) == ({"known": len(BODIES)}, 0)
    found = {subject.key: subject async for subject in ledger.subjects(BUCKET)}
    assert found.keys() == BODIES.keys()
    for key, subject in found.items():
        (version,) = subject.versions
        (known,) = version.digests.values()
        assert known.digest == hashlib.sha256(BODIES[key]).hexdigest()
        assert (known.source, known.bytes_read, version.size) == ("s3", 0, len(BODIES[key]))


def test_only_a_digest_of_the_very_object_is_recorded(run: Run, stub: StubServer, tmp_path: Path) -> None:
    path, failures = tmp_path / "results.csv", {}
    cases: dict[str, list[dict[str, Any]]] = {
        "composite": [{"checksumType": "COMPOSITE"}, {"checksumType": None}],
        "unusable": [
            *({"checksumAlgorithm": "CRC32"}, {"checksum_hex": None, "checksum_base64": None}, {"etag": None}),
            *({"checksum_hex": "00" * 32}, {"checksum_hex": "zz"}, {"etag": 7}),
            {"checksum_base64": "AAAA", "checksum_hex": None},
        ],
        "recorded": [{"checksum_hex": None}, {"checksum_base64": None}],
        "superseded": [{"etag": "0" * 32}],
    }
    messages = {"": "unusable", "Successful": "unusable", "[]": "unusable", "{" * 5000: "unusable"}
    etags = {number: stub.put(BUCKET, f"{number}", b"body").etag for number in range(20)}
    wanted = [(expected, change) for expected, changes in cases.items() for change in changes]
    lines = [(expected, said(b"body", etags[nth], **change)) for nth, (expected, change) in enumerate(wanted)]
    for nth, (expected, message) in enumerate([*lines, *((one, text) for text, one in messages.items())]):
        path.write_bytes(in_csv([succeeded(f"{nth}", message)]))
        code, told = run(path)
        if (code, counts(told)) != (0, {expected: 1}):
            failures[message] = expected, told, run.err
    assert not failures, failures


def test_failures_are_named_and_are_a_hole(run: Run, stub: StubServer, tmp_path: Path) -> None:
    item = stub.put(BUCKET, "good", b"body")
    stub.put(BUCKET, "denied", b"body", deny={"head"})
    rows = [
        [BUCKET, "bad%0Akey", "", "failed", "200", "PermanentFailure", "Lambda timed out"],
        [BUCKET, "other", "", "failed", "AccessDenied", "403", "x"],
        succeeded("good", said(b"body", item.etag)),
        succeeded("denied", said(b"body", item.etag)),
        succeeded("gone", said(b"body", item.etag)),
    ]
    path = tmp_path / "results.csv"
    path.write_bytes(in_csv(rows))
    code, told = run(path)
    assert (code, counts(told)) == (4, {"failed": 3, "recorded": 1, "superseded": 1})
    named = [(failure["key"], failure["code"]) for failure in told["failures"]]
    assert named == [("bad\nkey", "PermanentFailure"), ("other", "AccessDenied"), ("denied", "403")]


async def test_other_digest_than_was_recorded_is_a_conflict_and_stays_out(
    run: Run, stub: StubServer, ledger: Ledger, tmp_path: Path
) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(good(stub))
    (item,) = stub.world.buckets[BUCKET].objects.versions("k")
    await ledger.record(replace(entry(item), digests={"sha256": "ab" * 32}))
    code, told = await asyncio.to_thread(run, path)
    assert (code, counts(told)) == (3, {"conflicts": 1})
    assert told["conflicting"] == [{"bucket": BUCKET, "key": "k", "version_id": None, "code": "DigestConflict"}]
    (version,) = await versions_of(ledger, BUCKET, "k")
    assert [known.digest for known in version.digests.values()] == ["ab" * 32]


def test_rows_in_any_spelling_and_order_of_columns(run: Run, stub: StubServer, tmp_path: Path) -> None:
    key = "a b+c%20/ü"
    for encode in (quote, quote_plus):
        message = said(b"body", stub.put(BUCKET, key, b"body").etag)
        columns = ["TaskStatus", "Novelty", "ResultMessage", "Key", "Bucket"]
        data = in_csv([["succeeded", "?", message, encode(key), BUCKET]])
        folder = put_down(tmp_path / encode.__name__, report(data, ReportSchema=", ".join(columns)))
        assert counts(run(folder)[1]) == {"recorded" if encode is quote else "known": 1}


@pytest.mark.parametrize("given", ["job-1", "job-1/", "job-1/results", "job-1/manifest.json"])
def test_report_in_a_bucket_however_it_is_named(run: Run, stub: StubServer, given: str) -> None:
    reports = stub.world.add("reports")
    for path, data in report(good(stub)).items():
        reports.put(path, data)
    code, told = run(f"s3://reports/{given}")
    assert (code, counts(told)) == (0, {"recorded": 1}), run.err


def test_file_that_is_not_what_its_manifest_tells_is_refused_before_a_row_of_it_is_read(
    run: Run, stub: StubServer, tmp_path: Path
) -> None:
    folder = put_down(tmp_path, report(good(stub)))
    (path,) = (folder / "results").iterdir()
    path.write_bytes(path.read_bytes() + b"\n")
    code, _ = run(folder)
    assert code == 1
    assert "does not have the MD5 that its manifest gives" in run.err
    assert stub.count("HeadObject") == 0


def test_manifest_leads_nowhere_else(run: Run, stub: StubServer, tmp_path: Path) -> None:
    reports = stub.world.add("reports")
    for name in ("secrets/x.csv", "job-10/x.csv"):
        reports.put(name, b"")
    for bucket, key in (("another", "job-1/results/x.csv"), ("reports", "secrets/x.csv"), ("reports", "job-10/x.csv")):
        for path, data in report(Results=[{"Bucket": bucket, "Key": key}]).items():
            reports.put(path, data)
        assert (run("s3://reports/job-1")[0], "outside its folder" in run.err) == (1, True), key
    (tmp_path / "passwd").write_bytes(b"")
    for key in ("../../../etc/passwd", "", "job-1/results/.."):
        folder = put_down(tmp_path, report(Results=[{"Bucket": "reports", "Key": key}]))
        assert (run(folder)[0], "is not beside it" in run.err) == (1, True), key


def test_file_that_is_no_report_is_refused_with_its_reason(run: Run, tmp_path: Path) -> None:
    no_manifest = "is not the manifest of a completion report"
    cases = [
        ("results.csv", b"a,b,c\n", "line 1: 3 columns instead of 7"),
        ("results.csv", b"../..,key,,succeeded,,200,{}\n", "line 1: '../..' is not a bucket"),
        ("results.csv", b'"' + b"x" * 200_000, "it is not CSV"),
        ("results.csv", b"\xff\xfe,b,c,d,e,f,g\n", "is not UTF-8"),
        *(("manifest.json", data, no_manifest) for data in (b"{", b"[]", b'{"Results": 7}', b'{"Results": [7]}')),
    ]
    for name, data, words in cases:
        (tmp_path / name).write_bytes(data)
        code, _ = run(tmp_path / name)
        assert (code, words in run.err, "Traceback" in run.err) == (2 if words != no_manifest else 1, True, False), data
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty")[0] == 2
    assert "has no completion report" in run.err


def test_disk_too_full_for_the_report_is_one_sentence(run: Run, tmp_path: Path) -> None:
    place = put_down(tmp_path, report(b" " * 3_000_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    try:
        code, _ = run(place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 1
    assert run.err.startswith("auditor: the temporary file of a report cannot be written"), run.err
