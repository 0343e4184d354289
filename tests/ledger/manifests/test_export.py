"""Exported manifests: coreutils checks them, spreadsheets run no cell of them, and import reads them back."""

from __future__ import annotations

import asyncio
import csv
import random
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from auditor.ledger.base import S3, Expectation, KeyRecord
from auditor.ledger.manifests import FORMS
from auditor.ledger.manifests.base import ManifestFile
from auditor.ledger.manifests.export import Exported, export
from auditor.ledger.manifests.load import Spool, import_all, read_all
from auditor.model.target import Target
from tests.support.fakes.manifests import THEN, MemoryLedger, ledger_with, version
from tests.support.odd_keys import ODD_KEYS

ALPHABET = "\n\r\\/ -.*'\"%#=+@,;\t~\x01\x7f\x85\u2028\ufeff\u202eé\u0301\U0001f4e6ab"


def generated_keys(seed: int, number: int) -> list[str]:
    """A name of characters that manifests and spreadsheets trip over."""
    chance = random.Random(seed)
    keys = {"".join(chance.choices(ALPHABET, k=chance.randint(1, 12))) for _ in range(number)}
    return sorted(
        keys
        | set(ODD_KEYS.values())
        | {"-", "--", "./-", "././a", "'", "''=a", "data/a", "SHA256 (a) = b", "%0A", "%25", "%250d"}
    )


def is_file_name(key: str) -> bool:
    """The key can be a file's path below one directory, beside the other keys."""
    parts = key.split("/")
    return all(part not in {"", ".", ".."} and len(part.encode()) <= 255 for part in parts)


async def exported(
    ledger: MemoryLedger, form: str = "sha256sum", *algorithms: str, prefix: str = "", relative: bool = False
) -> tuple[bytes, Exported]:
    pieces: list[bytes] = []
    chosen = algorithms or (FORMS[form].algorithms if form == "csv" else ("sha256",))
    counts = await export(ledger, Target("b", prefix), FORMS[form], chosen, pieces.append, relative=relative)
    return b"".join(pieces), counts


async def imported(path: Path, prefix: str = "") -> dict[tuple[str, str], Expectation]:
    ledger = MemoryLedger()
    sources = [ManifestFile(str(path))]
    with Spool(sources) as spool:
        read_all(sources, spool, prefix)
        await import_all(spool, ledger, Target("b", prefix), THEN, lambda done: True)
    return {(key, algorithm): one for (key, algorithm, _), one in ledger.expected.items()}


def test_coreutils_checks_restored_files_with_odd_names(tmp_path: Path) -> None:
    tool = shutil.which("sha256sum")
    if tool is None:
        pytest.skip("sha256sum is not installed")
    folder = tmp_path / "restored"
    folder.mkdir()
    contents = {}
    for key in generated_keys(5, 300):
        if not is_file_name(key):
            continue
        try:
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(f"{key} of itself".encode())
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            continue
        contents[key] = f"{key} of itself".encode()
    assert len(contents) > 200
    manifest, counts = asyncio.run(exported(ledger_with(contents)))
    assert counts.keys == len(contents)
    (tmp_path / "sums").write_bytes(manifest)
    checked = subprocess.run([tool, "--check", "--strict", "../sums"], cwd=folder, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")
    assert checked.stdout.count(b": OK\n") == len(contents)
    (folder / next(iter(contents))).write_bytes(b"other")
    checked = subprocess.run([tool, "--check", "--strict", "../sums"], cwd=folder, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout.count(b": FAILED\n")) == (1, 1)


async def test_round_trip_gives_equal_expectations(tmp_path: Path) -> None:
    for form, prefix in product(FORMS, ("", "p./")):
        keys = [prefix + key for key in generated_keys(7, 600)]
        contents = {key: key.encode() for key in keys if len(key.encode()) <= 1024}
        ledger = ledger_with(contents)
        manifest, counts = await exported(ledger, form, prefix=prefix, relative=bool(prefix))
        path = tmp_path / {"bagit": "manifest-sha256.txt", "csv": "digests.csv"}.get(form, "sums")
        path.write_bytes(manifest)
        found = await imported(path, prefix)
        named = {key for key in contents if form != "bagit" or ".." not in key.split("/")}
        assert found == {
            (key, "sha256"): Expectation(
                key=key,
                algorithm="sha256",
                digest=ledger.held[key].versions[0].digests["sha256"].digest,
                origin=path.name,
                imported_at=THEN,
                size=len(contents[key]) if form == "csv" else None,
            )
            for key in named
        }, (form, prefix)
        assert (counts.keys, counts.unnameable) == (len(named), len(contents) - len(named)), (form, prefix)


async def test_left_out_keys_are_counted() -> None:
    old, latest = version(b"old", "md5", version_id="v1"), version(b"new", "sha256", version_id="v2")
    versions = MemoryLedger({"k": KeyRecord(key="k", versions=(old, latest))})
    manifest, counts = await exported(versions, "sha256sum", "md5")
    assert (manifest, counts.keys, counts.without) == (b"", 0, 1), "an older version does not stand for the key"
    ledger = ledger_with({"a": b"a", "nul\0": b"b", "p/": b"c", "gone": b"d", "expected": b""})
    ledger.held["gone"] = replace(ledger.held["gone"], deleted_at=THEN)
    ledger.held["expected"] = KeyRecord(key="expected", versions=())
    manifest, counts = await exported(ledger)
    assert manifest.count(b"\n") == 2
    assert counts == Exported(keys=2, deleted=1, without=1, unnameable=1, complete=True)
    manifest, counts = await exported(ledger, prefix="p/", relative=True)
    assert (manifest, counts) == (b"", Exported(unnameable=1, complete=True))
    manifest, counts = await exported(ledger, "csv")
    assert counts == Exported(keys=3, deleted=1, without=1, complete=True)


async def test_stopped_export_is_not_called_complete_and_releases_the_ledger() -> None:
    written: list[bytes] = []
    ledger = ledger_with({"a": b"", "b": b"", "c": b""})
    counts = await export(
        ledger, Target("b"), FORMS["sha256sum"], ("sha256",), written.append, go_on=lambda keys: keys < 2
    )
    assert (len(written), counts.keys, counts.complete) == (2, 2, False)
    assert ledger.reading == 0


async def test_table_holds_all_evidence_of_every_version(tmp_path: Path) -> None:
    first, second = version(b"old", "sha256", "md5", version_id="v1"), version(b"new", version_id="v2")
    theirs = replace(second.digests["sha256"], source=S3, bytes_read=0, verified_at="2026-02-02T00:00:00Z")
    second = replace(second, digests={"sha256": theirs})
    manifest, _ = await exported(MemoryLedger({"a,b": KeyRecord(key="a,b", versions=(first, second))}), "csv")
    (tmp_path / "all.csv").write_bytes(manifest)
    with (tmp_path / "all.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    ours = {"key": "a,b", "source": "auditor", "recorded_at": THEN, "verified_at": "", "size": "3", "bytes_read": "3"}
    assert {(row["version_id"], row["algorithm"]): row for row in rows} == {
        ("v1", name): ours | {"version_id": "v1", "etag": first.etag, "algorithm": name, "digest": known.digest}
        for name, known in first.digests.items()
    } | {
        ("v2", "sha256"): ours
        | {"version_id": "v2", "etag": second.etag, "algorithm": "sha256", "digest": theirs.digest}
        | {"source": "s3", "bytes_read": "0", "verified_at": "2026-02-02T00:00:00Z"}
    }


async def test_no_cell_of_the_table_begins_like_a_formula(tmp_path: Path) -> None:
    keys = [start + "cmd()" for start in "=+-@\t\r\n'"] + generated_keys(11, 200)
    manifest, _ = await exported(ledger_with(dict.fromkeys(keys, b"")), "csv")
    (tmp_path / "all.csv").write_bytes(manifest)
    with (tmp_path / "all.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert len(cells) == 10 * (len(set(keys)) + 1)
    assert not [cell for cell in cells if re.match(r"[=+\-@\t\r\n]", cell)]
