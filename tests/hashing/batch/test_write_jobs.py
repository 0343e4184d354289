"""Manifests and jobs for S3 Batch Operations, read back as S3 and its own SDK would."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

import botocore.session
import pytest
from botocore.validate import ParamValidator

from auditor.aio.stop import Stop
from auditor.aws.connection import Connection
from auditor.aws.session import make_client
from auditor.config.resources import open_resources
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.hashing.batch.job import NO_BUCKET, NO_ROLE, S3_NAMES, JobOwner, row, write_batch
from auditor.ledger import open_ledger
from auditor.model.object import ObjectVersion
from auditor.model.target import Target
from auditor.runs.stores import open_store
from auditor.runs.stores.local import LocalStore
from tests.support.audit_runs import audit
from tests.support.fakes.ledger import Hooked
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

RUN = "20260102T030405Z-0a1b2c"
FOLDER = f"bucket=audited/run={RUN}"
ROLE = "arn:aws:iam::111122223333:role/batch"


def lines(*keys: str, version_id: str | None = None) -> list[ObjectVersion]:
    return [ObjectVersion(key, version_id, "e", 1) for key in keys]


def write(store: Any, objects: Iterable[ObjectVersion], **changes: Any) -> list[str]:
    told: dict[str, Any] = {
        "bucket": "audited",
        "run_id": RUN,
        "versions": False,
        "algorithms": ("sha256",),
        "owner": JobOwner(account="111122223333", role=ROLE),
    }
    return write_batch(store, FOLDER, objects, **(told | changes))


def assert_botocore_takes(job: dict[str, Any]) -> None:
    """As `aws s3control create-job --cli-input-json` checks it before it is sent; values of enumerations too."""
    model = botocore.session.get_session().get_service_model("s3control")
    shape = model.operation_model("CreateJob").input_shape
    report = ParamValidator().validate(job, shape)
    assert not report.has_errors(), report.generate_report()
    assert_enumerations(job, shape)


def assert_enumerations(value: Any, shape: Any) -> None:
    if shape.type_name == "structure":
        for name, member in value.items():
            assert_enumerations(member, shape.members[name])
    elif shape.type_name == "list":
        for member in value:
            assert_enumerations(member, shape.member)
    elif getattr(shape, "enum", None):
        assert value in shape.enum


def test_odd_key_comes_back_however_it_is_decoded() -> None:
    for key in [*ODD_KEYS.values(), 'quote"comma,', "a+b c%20d", "\ud800"]:
        ((bucket, cell),) = csv.reader([line := row("audited", key, None)])
        for decode in (unquote, unquote_plus):
            assert (bucket, decode(cell, errors="surrogatepass")) == ("audited", key), decode
        assert (line.isascii(), line.count("\n")) == (True, 1), ascii(key)


def test_manifest_and_job_in_a_directory(tmp_path: Path) -> None:
    (job_path,) = write(LocalStore(tmp_path), lines("a b", "ü/x"))
    folder = tmp_path / FOLDER / "batch"
    assert sorted(path.name for path in folder.iterdir()) == ["job.json", "manifest.csv"]
    manifest = (folder / "manifest.csv").read_bytes()
    assert manifest == b"audited,a%20b\naudited,%C3%BC/x\n"
    assert job_path == str(folder / "job.json")
    job = json.loads((folder / "job.json").read_text())
    assert job["Operation"] == {
        "S3ComputeObjectChecksum": {"ChecksumAlgorithm": "SHA256", "ChecksumType": "FULL_OBJECT"}
    }
    assert job["Manifest"] == {
        "Spec": {"Format": "S3BatchOperations_CSV_20180820", "Fields": ["Bucket", "Key"]},
        "Location": {
            "ObjectArn": f"arn:aws:s3:::{NO_BUCKET}/{FOLDER}/batch/manifest.csv",
            "ETag": hashlib.md5(manifest, usedforsecurity=False).hexdigest(),
        },
    }
    assert (job["AccountId"], job["RoleArn"], job["ClientRequestToken"]) == ("111122223333", ROLE, f"{RUN}-1")


def test_manifest_in_a_bucket_is_named_with_the_etag_that_it_has_there(moto_url: str) -> None:
    client = make_client("s3", Connection(bucket="results", endpoint_url=moto_url), endpoint_url=moto_url)
    client.create_bucket(Bucket="results")
    with open_store("s3://results/runs", endpoint_url=moto_url) as store:
        (uri,) = write(store, lines("a", version_id="v/1") + lines("b"), versions=True)
        assert store.get(f"{FOLDER}/batch/manifest.csv") == b"audited,a,v%2F1\naudited,b,null\n"
        again = write(store, lines("c", version_id="null"), versions=True)
    job = json.loads(client.get_object(Bucket="results", Key=uri.removeprefix("s3://results/"))["Body"].read())
    assert_botocore_takes(job)
    assert again == [uri]
    location = job["Manifest"]["Location"]
    key = f"runs/{FOLDER}/batch/manifest.csv"
    assert location["ObjectArn"] == f"arn:aws:s3:::results/{key}"
    stored = client.get_object(Bucket="results", Key=key)
    assert (location["ETag"], stored["Body"].read()) == (stored["ETag"].strip('"'), b"audited,c,null\n")
    assert job["Manifest"]["Spec"]["Fields"] == ["Bucket", "Key", "VersionId"]
    assert job["Report"]["Bucket"] == "arn:aws:s3:::results"
    assert job["Report"]["Prefix"] == f"runs/{FOLDER}/batch/report"


def test_each_algorithm_and_each_manifest_is_a_job_of_its_own(tmp_path: Path) -> None:
    names = tuple(S3_NAMES)
    jobs = write(
        LocalStore(tmp_path), lines(*"abcde"), algorithms=names, most_rows=2, owner=JobOwner(partition="aws-cn")
    )
    folder = tmp_path / FOLDER / "batch"
    rows = [(folder / name).read_text().split() for name in ("manifest.csv", "manifest-2.csv", "manifest-3.csv")]
    assert rows == [["audited,a", "audited,b"], ["audited,c", "audited,d"], ["audited,e"]]
    made = [json.loads(Path(path).read_text()) for path in jobs]
    assert [Path(path).name for path in jobs][:3] == ["job.json", "job-2.json", "job-3.json"]
    assert len({job["ClientRequestToken"] for job in made}) == len(made) == 3 * len(names)
    asked = [job["Operation"]["S3ComputeObjectChecksum"]["ChecksumAlgorithm"] for job in made]
    assert asked == 3 * [S3_NAMES[name] for name in names]
    for job, algorithm in zip(made, asked, strict=True):
        if algorithm != "SHA512":  # newer than the SDK: S3ComputeObjectChecksumOperation, S3 Control API reference
            assert_botocore_takes(job)
        assert job["RoleArn"].endswith(NO_ROLE)
        assert job["Manifest"]["Location"]["ObjectArn"].startswith("arn:aws-cn:s3:::")


def test_memory_does_not_grow_with_the_objects(tmp_path: Path) -> None:
    tracemalloc.start()
    try:
        write(LocalStore(tmp_path), (ObjectVersion(f"{number:0100}", None, "e", 1) for number in range(20_000)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / FOLDER / "batch" / "manifest.csv").stat().st_size > 2_000_000
    assert peak < 1_000_000


async def test_audit_leaves_large_and_archived_objects_to_the_manifest_and_queues_none_of_them(
    stub: StubServer, tmp_path: Path
) -> None:
    for key, size in (("a", 10), ("b ü", 11), ("c", 5), ("d", 0)):
        stub.put(BUCKET, key, b"x" * size, storage_class="DEEP_ARCHIVE" if key == "c" else "STANDARD")
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        result = await audit(stub, tmp_path, ledger=ledger, hash=True, batch_over=10, batch_role=ROLE, part_lines=1)
        plain = await audit(stub, tmp_path, ledger=ledger, hash=True)
    hashing = result.summary["hashing"]
    assert (hashing["hashed_now"], hashing["unhashable"], hashing["routed"]) == (2, 2, {"objects": 2, "bytes": 16})
    folder = result.folder / "batch"
    rows = csv.reader((folder / "manifest.csv").read_text().splitlines())
    assert [(bucket, unquote(key)) for bucket, key in rows] == [(BUCKET, "b ü"), (BUCKET, "c")]
    assert_botocore_takes(json.loads((folder / "job.json").read_text()))
    parts = sorted((result.folder / "routed").glob("*.gz"))
    told = [json.loads(line) for part in parts for line in gzip.decompress(part.read_bytes()).splitlines()]
    assert [(line["key"], line["size"]) for line in told] == [("b ü", 11), ("c", 5)]
    assert plain.summary["hashing"]["routed"] == {"objects": 0, "bytes": 0}
    assert plain.summary["hashing"]["hashed_now"] == 1
    assert not (plain.folder / "batch").exists()


async def test_run_that_goes_on_writes_one_manifest_of_all_its_objects(stub: StubServer, tmp_path: Path) -> None:
    keys = [f"{number:04}" for number in range(2500)]  # more than are read before the first is recorded
    for key in keys:
        stub.put(BUCKET, key, b"xx")
    stop = Stop()
    settings: dict[str, Any] = {"batch_over": 1, "only": ("K01",), "part_lines": 100}
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        stopping = Hooked(ledger, lambda name: stop.set("the test has seen enough"))
        first = await audit(stub, tmp_path, ledger=stopping, stop=stop, **settings)
        second = await audit(stub, tmp_path, ledger=ledger, resume=first.summary["run"], **settings)
    assert first.summary["complete"] is False
    assert 0 < first.summary["hashing"]["routed"]["objects"] < len(keys)
    assert second.summary["hashing"]["routed"] == {"objects": len(keys), "bytes": 2 * len(keys)}
    written = (second.folder / "batch" / "manifest.csv").read_text().splitlines()
    assert written == [f"{BUCKET},{key}" for key in keys]
    assert sorted(path.name for path in (second.folder / "batch").iterdir()) == ["job.json", "manifest.csv"]


async def test_manifests_go_elsewhere_where_that_is_said_but_never_into_the_audited_bucket(tmp_path: Path) -> None:
    settings = Settings(out=str(tmp_path / "runs"), batch_manifest=str(tmp_path / "manifests"))
    async with open_resources(settings, [Target("audited")]) as places:
        assert places.manifests is not None
        assert places.manifests.uri() == str(tmp_path / "manifests")
    settings = Settings(out=str(tmp_path / "runs"), batch_manifest="s3://audited/manifests")
    with pytest.raises(UsageError, match="--batch-manifest s3://audited/manifests is in the audited bucket"):
        async with open_resources(settings, [Target("audited")]):
            pytest.fail("it was opened")
