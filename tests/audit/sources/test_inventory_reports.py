"""The newest report that can be used is found; a damaged, incomplete or useless one is refused by a sentence."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.audit.sources.inventory_reports import SortedRows, load_newest, manifests_at
from auditor.errors import InventoryError, RunStopped, UsageError
from auditor.model.object import ObjectRef
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from auditor.s3.inventory.fields import CSV, PARQUET
from auditor.s3.inventory.lookup import Match
from auditor.s3.inventory.place import InventoryPlace
from tests.support.inventory_reports import (
    CURRENT,
    FORMS,
    WrittenReport,
    into,
    plain_rows,
    write_report,
)
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.world import StubObject

BUCKET: Final = "audited"
TARGET: Final = Target(BUCKET)
PLACE: Final = InventoryPlace("reports", "inventory")
KEYS: Final = sorted(ODD_KEYS.values())
OLDER: Final = datetime(2026, 3, 3, 1, 2, tzinfo=UTC)

Change = Callable[[Path, WrittenReport], object]


def load(folder: Path, target: Target = TARGET, place: InventoryPlace = PLACE, **options: Any) -> SortedRows:
    return load_newest(LocalStore(folder), place, target, **options)


def ref(key: str) -> ObjectRef:
    item = StubObject(key=key)
    return ObjectRef(key, item.etag, item.size, "2026-01-02T03:04:05Z")


def found_in(loaded: SortedRows) -> int:
    with loaded:
        loaded.lookup.facts_of_page([ref(key) for key in KEYS])
    return loaded.lookup.matches[Match.FOUND]


def write(folder: Path, **options: Any) -> WrittenReport:
    return write_report(into(folder), plain_rows(BUCKET, KEYS), bucket=BUCKET, **options)


def test_every_row_of_a_report_is_found_wherever_its_place_is_named(tmp_path: Path) -> None:
    for form in FORMS:
        for files in (1, 3):
            report = write(tmp_path / form / f"{files}", form=form, files=files)
            loaded = load(tmp_path / form / f"{files}")
            assert loaded.origin.created == "2026-03-04T01:02:00Z"
            assert found_in(loaded) == len(KEYS), (form, files)
    folder = "inventory/audited/auditor/2026-03-04T01-02Z"
    for place in (folder, *(str(above) for above in Path(folder).parents)):
        found = manifests_at(LocalStore(tmp_path / "CSV" / "1"), InventoryPlace("reports", place.strip(".")), BUCKET)
        assert found == [report.manifest], place


def test_newest_report_is_taken_of_any_configuration(tmp_path: Path) -> None:
    write(tmp_path, created=OLDER, name="weekly")
    newest = write(tmp_path, name="a-daily-one")
    write(tmp_path, created=OLDER, name="auditor")
    with load(tmp_path) as loaded:
        assert loaded.origin.uri.endswith(newest.manifest)
        assert loaded.origin.refused == ()


def cut(folder: Path, key: str, keep: int) -> None:
    (folder / key).write_bytes((folder / key).read_bytes()[:keep])


def rewrite(folder: Path, report: WrittenReport, **members: Any) -> None:
    """Change the manifest, with the checksum that belongs to it."""
    document = {**json.loads((folder / report.manifest).read_bytes()), **members}
    data = json.dumps(document).encode()
    (folder / report.manifest).write_bytes(data)
    (folder / report.checksum).write_text(hashlib.md5(data).hexdigest())


def replace_data(folder: Path, report: WrittenReport, data: bytes) -> None:
    """Change the first data file, with the MD5 that belongs to it: damage from before S3 wrote the manifest."""
    entries = json.loads((folder / report.manifest).read_bytes())["files"]
    (folder / report.files[0]).write_bytes(data)
    entries[0] = {**entries[0], "size": len(data), "MD5checksum": hashlib.md5(data).hexdigest()}
    rewrite(folder, report, files=entries)


DAMAGES: Final[dict[str, tuple[Change, str]]] = {
    "no checksum": (lambda at, it: (at / it.checksum).unlink(), r"has no manifest.checksum .* is incomplete"),
    "wrong checksum": (
        lambda at, it: (at / it.checksum).write_text("0" * 32),
        "does not have the MD5 of its manifest.check",
    ),
    "cut manifest": (lambda at, it: cut(at, it.manifest, 90), "does not have the MD5 of its manifest.checksum"),
    "no data": (lambda at, it: (at / it.files[1]).unlink(), "does not exist, so the report is incomplete"),
    "cut data": (lambda at, it: cut(at, it.files[0], 200), "so the report is damaged"),
    "cut and declared": (
        lambda at, it: replace_data(at, it, (at / it.files[0]).read_bytes()[:200]),
        "so the report is damaged",
    ),
    "other data": (
        lambda at, it: (at / it.files[0]).write_bytes((at / it.files[1]).read_bytes()),
        "does not match the MD5",
    ),
    "no files": (lambda at, it: rewrite(at, it, files=None), "is not the manifest of an inventory report"),
    "no md5": (lambda at, it: rewrite(at, it, files=[{"key": "k", "size": 1}]), "is not the manifest"),
    "no time": (lambda at, it: rewrite(at, it, creationTimestamp="tonight"), "is not the manifest"),
    "huge time": (lambda at, it: rewrite(at, it, creationTimestamp="9" * 40), "is not the manifest"),
    "no columns": (lambda at, it: rewrite(at, it, fileSchema="Key, Key"), "is not the manifest"),
    "foreign file": (
        lambda at, it: rewrite(at, it, files=[{"key": "other/x.csv.gz", "size": 1, "MD5checksum": "0" * 32}]),
        "names a file outside its folder",
    ),
    "another bucket": (lambda at, it: rewrite(at, it, sourceBucket="other"), "is a report of the bucket other, not of"),
    "ORC": (
        lambda at, it: rewrite(at, it, fileFormat="ORC"),
        "in ORC, which is not supported: set the format to CSV or Parq",
    ),
    "a new format": (lambda at, it: rewrite(at, it, fileFormat="Lance"), "a format other than CSV and Parquet"),
}


OF_DATA: Final = ("no data", "cut data", "cut and declared", "other data")


def test_report_that_names_its_bucket_by_an_arn_is_read_in_every_partition(tmp_path: Path) -> None:
    written = write(tmp_path)
    for partition in ("aws", "aws-cn", "aws-us-gov"):
        rewrite(tmp_path, written, sourceBucket=f"arn:{partition}:s3:::{BUCKET}")
        loaded = load(tmp_path)
        assert loaded.origin.refused == ()
        assert found_in(loaded) == len(KEYS)


def test_damaged_report_is_refused_and_the_older_one_is_used(tmp_path: Path) -> None:
    for form, name in (*(("CSV", name) for name in DAMAGES), *(("Parquet", name) for name in OF_DATA)):
        change, sentence = DAMAGES[name]
        folder = tmp_path / f"{form} {name}"
        write(folder, created=OLDER, form=form)
        change(folder, write(folder, form=form))
        with load(folder) as loaded:
            assert loaded.origin.created == "2026-03-03T01:02:00Z", (form, name)
            (refused,) = loaded.origin.refused
            assert re.search(sentence, refused), (form, name)
            loaded.lookup.facts_of_page([ref(key) for key in KEYS])
            assert loaded.lookup.matches[Match.FOUND] == len(KEYS), (form, name)


def test_without_an_older_report_the_audit_does_not_begin(tmp_path: Path) -> None:
    change, sentence = DAMAGES["cut data"]
    change(tmp_path, write(tmp_path))
    with pytest.raises(InventoryError, match=sentence) as caught:
        load(tmp_path)
    assert str(caught.value).startswith("s3://reports/inventory has no inventory report of the bucket audited that can")
    assert str(caught.value).endswith("wait for the next report, or audit with --source live")


def test_no_report_at_all_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="name the destination of one with --inventory"):
        load(tmp_path)


def test_report_that_lacks_columns_is_refused(tmp_path: Path) -> None:
    versions = Target(BUCKET, versions=True)
    columns: Any
    for columns, target, sentence in (
        ([one for one in CURRENT if one != "ETag"], TARGET, "to a report without ETag: add this field"),
        (("Bucket", "Key", "Size", "LastModifiedDate", "ETag"), TARGET, "to a report without facts"),
        (CURRENT, versions, "on current versions only: set IncludedObjectVersions to All"),
    ):
        for form in FORMS:
            write(tmp_path, columns=columns, form=form)
            with pytest.raises(InventoryError, match=sentence):
                load(tmp_path, target)


def test_time_of_the_facts_is_the_earlier_of_the_two(tmp_path: Path) -> None:
    rewrite(tmp_path, write(tmp_path), creationTimestamp=str(int(datetime(2027, 1, 1, tzinfo=UTC).timestamp() * 1000)))
    with load(tmp_path) as loaded:
        assert loaded.origin.created == "2026-03-04T01:02:00Z"


def test_row_of_another_bucket_condemns_the_report(tmp_path: Path) -> None:
    rows = [*plain_rows(BUCKET, KEYS), *plain_rows("other", ["k"])]
    for form in FORMS:
        write_report(into(tmp_path / form), rows, bucket=BUCKET, form=form)
        with pytest.raises(InventoryError, match="belongs to another bucket, so the report is damaged"):
            load(tmp_path / form)


def test_rows_outside_the_prefix_are_left_out(tmp_path: Path) -> None:
    write_report(into(tmp_path), plain_rows(BUCKET, ["a/1", "b/1", "a"]), bucket=BUCKET)
    with load(tmp_path, Target(BUCKET, "a/")) as loaded:
        loaded.lookup.facts_of_page([ref("a"), ref("a/1"), ref("b/1")])
        assert loaded.lookup.matches == {Match.FOUND: 1, Match.MISSING: 2}


def test_empty_report_is_complete(tmp_path: Path) -> None:
    for form, created in ((CSV, OLDER), (PARQUET, datetime(2026, 3, 5, tzinfo=UTC))):
        write_report(into(tmp_path), [], bucket=BUCKET, form=form, created=created)
        with load(tmp_path) as loaded:
            assert loaded.origin.created == created.strftime("%Y-%m-%dT%H:%M:%SZ")
            assert loaded.lookup.facts_of_page([ref(key) for key in KEYS]) == [None] * len(KEYS)


def test_two_gzip_members_are_one_file(tmp_path: Path) -> None:
    report = write(tmp_path, files=1)
    lines = gzip.decompress((tmp_path / report.files[0]).read_bytes()).splitlines(keepends=True)
    replace_data(tmp_path, report, gzip.compress(b"".join(lines[:9])) + gzip.compress(b"".join(lines[9:])))
    assert found_in(load(tmp_path)) == len(KEYS)


def test_stopped_audit_reads_no_further(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(RunStopped, match="nothing was audited; run again"):
        load(tmp_path, stopped=lambda: True)


def test_parquet_without_duckdb_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, form=PARQUET)
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(
        UsageError, match=r"pip install '\.\[sql\]'; in a deployment --param parquet=true; or set its format"
    ):
        load(tmp_path)
