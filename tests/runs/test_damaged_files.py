"""Damaged files and lines of a run folder, by chance: a reader finds the damage, or reads what the bytes say.

No other exception than one of the auditor's reaches the caller, and no value beyond the limits of size. Equal seeds
make equal damage. AUDITOR_DAMAGED is the number of inputs in all, with those of tests/hashing/queue and tests/ledger,
600 by default. 100,000 take some ten minutes:

    AUDITOR_DAMAGED=100000 .venv/bin/python -m pytest -q -n 2 tests/runs/test_damaged_files.py \
        tests/hashing/queue/test_damaged_messages.py tests/ledger/test_damaged_rows.py
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

import auditor
from auditor.audit.judging_configuration import check_rollups
from auditor.audit.range_progress import range_progress
from auditor.audit.sources.last_run import EarlierObjects
from auditor.errors import AuditorError
from auditor.model.json_codec import decode, plain
from auditor.model.line_records import ObjectRecord
from auditor.model.object import Unread
from auditor.model.run_lines import FindingLine
from auditor.model.target import Target
from auditor.runs.key_file import KeyFile, range_policies
from auditor.runs.reading import RunReader, last_run, latest_runs
from auditor.runs.renewals import read_renewals, write_renewals
from auditor.runs.run_files import PlannedRange, load_plan
from auditor.runs.stores.local import LocalStore
from tests.audit.golden_runs import made_in
from tests.audit.test_changes import night
from tests.support.audit_runs import audit, checkpoint
from tests.support.damage import GIGANTIC, Damager, damaged_inputs, differs, plainly
from tests.support.samples.reports import sample_file
from tests.support.servers.fixtures import stub_of
from tests.support.servers.world import World

BUCKET: Final = "audited"
OTHER: Final = "20260102T030405Z-0a1b2c"
"""ID of a run of two ranges, which was not finished."""
PART: Final = "part-00000-00000.jsonl.gz"
BEGUN: Final = datetime(2027, 3, 2, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """A store of run folders, and the ID of its last run."""

    root: Path
    run: str

    @property
    def folder(self) -> Path:
        return self.root / f"bucket={BUCKET}" / f"run={self.run}"

    @property
    def reader(self) -> RunReader:
        return RunReader(LocalStore(self.root), BUCKET, self.run)

    @contextmanager
    def replaced(self, path: Path, data: bytes) -> Iterator[None]:
        """Replace a file while the `with` block runs."""
        whole = path.read_bytes()
        path.write_bytes(data)
        try:
            yield
        finally:
            path.write_bytes(whole)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two complete runs of a bucket, and beside them every other file that a later run reads."""
    root = tmp_path_factory.mktemp("damaged")
    with stub_of(world := World()) as stub:
        folder = asyncio.run(made_in("second_night", root))
        world.buckets[BUCKET] = night(0)
        asyncio.run(audit(stub, root / "stopped", max_calls=100))
    state = checkpoint(root / "stopped")
    assert state is not None
    assert state["rollups"]
    found, store = Place(root, folder.name.removeprefix("run=")), LocalStore(root)
    other = folder.with_name(f"run={OTHER}")
    (other / "routed").mkdir(parents=True)
    routed = [{"key": key, "version_id": None, "etag": "e" * 32, "size": 5} for key in ("a", "b", "\U0001f512")]
    (other / "routed" / PART).write_bytes(packed([json.dumps(one).encode() + b"\n" for one in routed]))
    (other / "objects").mkdir()
    (other / "objects" / PART).write_bytes(packed([]))
    ranges = (PlannedRange("00000", None, "m", 10), PlannedRange("00001", "m", None, 12))
    (other / "run.json").write_bytes(sample_file(run=OTHER, source="listing", exact=True, ranges=ranges).to_json())
    (other / "checkpoint").mkdir()
    (other / "checkpoint/00000.json").write_text(json.dumps({**state, "run": OTHER}) + "\n")
    policies: dict[str, str | Unread] = {
        "arn:aws:kms:us-east-1:111122223333:key/a": "{}",
        "b": Unread("GetKeyPolicy", "Denied"),
    }
    (other / "checkpoint/keys-00000.json").write_bytes(KeyFile(run=OTHER, policies=policies).to_json())
    lines, findings = unpacked(folder / "objects" / PART), unpacked(folder / "findings" / PART)
    found_last = [decode(FindingLine, line) for line in findings[-1:]]
    renewed = [(decode(ObjectRecord, line), found_last) for line in lines]
    write_renewals(store, BUCKET, BEGUN, b"abc", renewed, sure=True)
    return found


def packed(lines: list[bytes]) -> bytes:
    return gzip.compress(b"".join(lines), 1, mtime=0)


def unpacked(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def check_lines(found: list[dict[str, Any]], given: bytes) -> None:
    """Assert that lines that were read are those of the bytes of a part's file, and within their limit."""
    written = gzip.decompress(given).splitlines(keepends=True)
    assert all(len(one) <= 2**20 for one in written), "a line beyond its limit was read"
    parsed = [plainly(one) for one in written]
    assert None not in parsed, "a line that is no JSON object was read"
    assert differs(found, parsed[: len(found)]) is None
    numbers = [one[name] for one in found for name in ("size",) if name in one]
    assert all(abs(number) <= 2**63 for number in numbers), "a number beyond its limit was read"


# The doors: each reads a place, in which one file is damaged, and checks what it gets. data: the file's bytes.


def objects(place: Place, data: bytes) -> None:
    read = [plain(one) for one in auditor.open_run(place.folder).objects()]
    check_lines(read[: len(gzip.decompress(data).splitlines())], data)


def results(place: Place, data: bytes) -> None:
    run = auditor.open_run(place.folder)
    found = [{"key": one.key, "version_id": one.version_id, **plain(one.seen)} for one in run.results()]
    parsed = [plainly(one) for one in gzip.decompress(data).splitlines(keepends=True)]
    if None not in parsed:
        assert differs(found[: len(parsed)], parsed) is None


def findings(place: Place, data: bytes) -> None:
    read = [plain(one) for one in auditor.open_run(place.folder).findings()]
    check_lines(read[: len(gzip.decompress(data).splitlines())], data)


def bucket_findings(place: Place, data: bytes) -> None:
    run = auditor.open_run(place.folder)
    for past in run.results():
        assert all((one.key, one.version_id) == (past.key, past.version_id) for one in past.findings)
    assert all(one.key is None for one in run.bucket_findings())


def undecided(place: Place, data: bytes) -> None:
    read = [plain(one) for one in auditor.open_run(place.folder).undecided()]
    check_lines(read[: len(gzip.decompress(data).splitlines())], data)


def of_key(place: Place, data: bytes) -> None:
    for key in ("new/a", "a\u2028b"):
        assert all(one.key for one in place.reader.of_key(key))


def reused(place: Place, data: bytes) -> None:
    """Read the objects as the next run does that keeps facts: only of parts that are as they were sealed."""
    seal = json.loads((place.folder / "seal.json").read_bytes())
    for one in seal["parts"]:
        if one["path"] == f"objects/{PART}":
            one |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    with place.replaced(place.folder / "seal.json", json.dumps(seal).encode()):
        found = EarlierObjects(place.reader).of(["a\u2028b", "improved/a", "new/a", "worsened/a"])
        assert all(line.key == key for (key, _), line in found.items())
        assert auditor.check_run(place.folder).exit_code in (0, 1)


def routed(place: Place, data: bytes) -> None:
    run = RunReader(LocalStore(place.root), BUCKET, OTHER)
    check_lines([plain(one) for one in run.routed()], data)


def checked(place: Place, data: bytes) -> None:
    """Check the run: damage is a fault that is told, and no error."""
    found = auditor.check_run(place.folder)
    assert found.exit_code in (0, 1, 4)
    assert all(one.isprintable() for one in (*found.faults, *found.lacks))


def document(found: Any, data: bytes) -> None:
    """Assert that the JSON value of a document that was read is that of the bytes of its file."""
    given = plainly(data)
    assert given is not None, "a file that is no JSON object was read"
    assert not any(one.encode() in data for one in GIGANTIC[1:]), "a file beyond its limit was read"
    assert differs(found, given) is None


def summary(place: Place, data: bytes) -> None:
    found = auditor.open_run(place.folder).summary
    assert found is not None
    document(found.to_dict(), data)


def run_plan(place: Place, data: bytes) -> None:
    document(json.loads(auditor.open_run(place.folder).plan.to_json()), data)


def resumed(place: Place, data: bytes) -> None:
    """Load the checkpoint as the process does that goes on with its range."""
    run = RunReader(LocalStore(place.root), BUCKET, OTHER)
    found = run.checkpoint("00000")
    assert found is not None
    check_rollups(run, "00000", found)
    document(json.loads(found.to_json()), data)


def rollups(place: Place, data: bytes) -> None:
    document(json.loads(place.reader.rollups().to_json()), data)


def latest(place: Place, data: bytes) -> None:
    found = last_run(LocalStore(place.root), Target(BUCKET))
    given = plainly(data)
    assert found is None or (given is not None and given["runs"]["current"][""] == found.run_id)
    assert all(isinstance(one.run_id, str) for one in latest_runs(LocalStore(place.root), BUCKET))


def plan(place: Place, data: bytes) -> None:
    found = load_plan(LocalStore(place.root), BUCKET, OTHER)
    assert found is not None
    document(json.loads(found.to_json()), data)


def ranges(place: Place, data: bytes) -> None:
    found = load_plan(LocalStore(place.root), BUCKET, OTHER)
    assert found is not None
    given = plainly(data)
    for one in range_progress(LocalStore(place.root), found):
        assert one.id != "00000" or (given is not None and one.listed == given["tally"]["coverage"]["listed"])


def keys(place: Place, data: bytes) -> None:
    found = range_policies(LocalStore(place.root), f"bucket={BUCKET}/run={OTHER}", OTHER, "00000")
    given = plainly(data)
    assert given is not None, "a file that is no JSON object was read"
    texts = {name: value for name, value in found.items() if isinstance(value, str)}
    assert texts == {name: value for name, value in dict(given["policies"]).items() if isinstance(value, str)}


def renewals(place: Place, data: bytes) -> None:
    found = read_renewals(LocalStore(place.root), BUCKET, "2026")
    assert found is not None
    given = [plainly(one) for one in gzip.decompress(data).splitlines(keepends=True)]
    read = {json.dumps([one["object"]["key"], one["object"]["version_id"]]) for one in given if one is not None}
    names = {json.dumps(name) for name in found}
    assert read <= names if None in given else read == names


Read = Callable[[Place, bytes], None]
RUN: Final = "bucket=audited/run={}"
DOORS: Final[Mapping[str, tuple[str, tuple[Read, ...]]]] = {
    "objects": (f"{RUN}/objects/{PART}", (objects, results, of_key, reused, checked)),
    "findings": (f"{RUN}/findings/{PART}", (findings, bucket_findings, checked)),
    "undecided": (f"{RUN}/undecided/part-00000-00001.jsonl.gz", (undecided, checked)),
    "routed": (f"{RUN.format(OTHER)}/routed/{PART}", (routed,)),
    "renewals": (f"bucket={BUCKET}/renewals/20270302T120000Z-616263.jsonl.gz", (renewals,)),
    "packed": (f"{RUN}/objects/{PART}", (results, checked)),
    "summary.json": (f"{RUN}/summary.json", (summary, checked)),
    "run.json": (f"{RUN}/run.json", (run_plan, checked)),
    "seal.json": (f"{RUN}/seal.json", (of_key, checked)),
    "rollups.json": (f"{RUN}/rollups.json", (rollups,)),
    "latest.json": (f"bucket={BUCKET}/latest.json", (latest, checked)),
    "run.json of ranges": (f"{RUN.format(OTHER)}/run.json", (plan,)),
    "checkpoint": (f"{RUN.format(OTHER)}/checkpoint/00000.json", (resumed, ranges)),
    "keys of a range": (f"{RUN.format(OTHER)}/checkpoint/keys-00000.json", (keys,)),
}
"""By name: the file that is damaged, and the doors that read it."""


def damaged_file(damager: Damager, name: str, whole: bytes) -> tuple[str, bytes]:
    """Return the bytes of a damaged file, and the kind of the damage."""
    if name == "packed":
        return "packed", damager.flipped(whole)
    if not whole.startswith(b"\x1f\x8b"):
        return damager.damaged(whole)
    lines = gzip.decompress(whole).splitlines(keepends=True)
    number = damager.chance.randrange(len(lines))
    kind, lines[number] = damager.damaged(lines[number])
    return f"line {number + 1}, {kind}", packed(lines)


@pytest.mark.parametrize("name", DOORS)
def test_damage_is_found_or_read_as_the_bytes_say(place: Place, name: str) -> None:
    path, doors = DOORS[name]
    file = place.root / path.format(place.run)
    whole, damager, refused = file.read_bytes(), Damager(zlib.crc32(name.encode())), 0
    for door in doors:
        door(place, whole)
    for number in range(damaged_inputs(85)):
        kind, data = damaged_file(damager, name, whole)
        with place.replaced(file, data):
            for door in doors:
                try:
                    door(place, data)
                except AuditorError:
                    refused += 1
                except Exception as error:
                    shown = gzip.decompress(data) if data.startswith(b"\x1f\x8b") and name != "packed" else data
                    error.add_note(f"{door.__name__}() of input {number} of {name}, {kind}: {shown[:3000]!r}")
                    raise
    assert refused > 0 or doors == (checked,)
