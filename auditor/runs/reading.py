"""Read runs back: the run folder with its lines and its seal, and latest.json, the file that names the latest complete
run of each target of a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from msgspec import Struct

from auditor.aio.tasks import side_by_side
from auditor.errors import OutputError, RunDamaged, UsageError
from auditor.model.json_codec import JsonError, as_object, parse_document, typed
from auditor.model.object import ObjectVersion
from auditor.model.rollup import NAME as ROLLUPS
from auditor.model.rollup import RollUps, TrendNight
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.runs.checkpoint import Checkpoint, load_checkpoint
from auditor.runs.key_file import stored_policies, with_policies
from auditor.runs.parts import KINDS, Part, found_parts, lines_of_key, typed_lines
from auditor.runs.paths import FIRST, RUN_ID, began_later, bucket_path, run_path
from auditor.runs.run_files import AGAIN, PLAN, SEAL, Link, RunPlan, Seal, damaged, sha256_of
from auditor.runs.stores.base import Store

T = TypeVar("T")


_NONE: Final = (None, None)
"""Stands for the first and last key of a file that no seal names."""

LATEST: Final = "latest.json"
_KINDS: Final = ("current", "versions")
"""The members of `runs`: each has the IDs of runs by the prefix of their target."""


class _Nights(Struct, frozen=True):
    """The part of rollups.json that the next run reads: the trend."""

    nights: tuple[TrendNight, ...]


class RunReader:
    """Reads the folder of one run, complete or not. All methods block. store: has the folder. uri: of the folder.

    Lines come in the order of the parts, with one part in memory at a time. Raises UsageError for a wrong bucket name
    or run ID. objects(), findings(), undecided() and routed() raise OutputError for a part that is damaged or gone.
    """

    def __init__(self, store: Store, bucket: str, run_id: str) -> None:
        self.path = run_path(bucket, run_id)
        self.run_id = run_id
        self.uri = store.uri(self.path)
        self.store = store
        self.bucket_name = bucket
        self._prepared = False

    @property
    def exists(self) -> bool:
        """True if the run folder has a file."""
        return bool(self.store.list(f"{self.path}/"))

    @cached_property
    def summary(self) -> Summary | None:
        """The run's summary; None if the run has not written one. Raises OutputError if it is damaged."""
        data = self.store.get(f"{self.path}/summary.json")
        return self._parsed("summary.json", data, Summary.from_json)

    def rollups(self) -> RollUps:
        """Return the content of rollups.json, the run's results in few groups. Raises OutputError if the file is
        damaged, or not there: a run that has ended has one.
        """
        return self._rolled_up(RollUps.from_json)

    def _rolled_up(self, parse: Callable[[bytes], T]) -> T:
        found = self._parsed(ROLLUPS, self.store.get(f"{self.path}/{ROLLUPS}"), parse)
        if found is None:
            raise RunDamaged(f"{self.uri}/{ROLLUPS} is gone: `auditor check` says what the run lacks")
        return found

    @cached_property
    def nights(self) -> tuple[TrendNight, ...]:
        """The trend in rollups.json. Raises OutputError as rollups() does."""
        return self._rolled_up(lambda data: typed(_Nights, parse_document(data))).nights

    @cached_property
    def plan(self) -> RunPlan | None:
        """The target, the ranges, the configuration and the facts of the run, its run.json; None if the run has not
        begun. Raises OutputError if the file is damaged.
        """
        return self._parsed(PLAN, self.plan_data, RunPlan.from_json)

    @cached_property
    def begun_with(self) -> RunPlan:
        """The run.json of a run that has begun, with the policies of KMS keys that the run has read. Raises OutputError
        if a file is damaged, or run.json is not there.
        """
        plan = self.plan
        if plan is None:
            raise RunDamaged(f"{self.uri}/{PLAN} is gone, and the run is judged by it: audit again")
        if not plan.reads_keys:
            return plan
        return with_policies(plan, stored_policies(self.store, self.path, plan, complete=self.complete))

    @cached_property
    def plan_data(self) -> bytes | None:
        """The bytes of run.json; None if the run has none yet."""
        return self.store.get(f"{self.path}/{PLAN}")

    @property
    def complete(self) -> bool:
        """True if the run reached the end of its listing."""
        return self.summary is not None and self.summary.complete

    def checkpoint(self, range_id: str = FIRST) -> Checkpoint | None:
        """Return the checkpoint of a range; None if the range has not begun, and if the run is complete. Raises
        OutputError if it is damaged.
        """
        return load_checkpoint(self.store, self.bucket_name, self.run_id, range_id)

    def checkpoints(self) -> Iterator[tuple[str, Checkpoint]]:
        """Yield the ID and the checkpoint of each range that has begun, in key order. Raises OutputError if a file is
        damaged.
        """
        for one in self.plan.ranges if self.plan else ():
            if (state := self.checkpoint(one.id)) is not None:
                yield one.id, state

    @property
    def last_key(self) -> str | None:
        """The key up to which the lines of the run are there without a gap; None if there are none."""
        if self.complete:
            ends = [one.last for one in self._seal.parts if one.last is not None] if self._seal else []
            return max(ends, default=None)
        reached: str | None = None
        for one in self.plan.ranges if self.plan else ():
            state = self.checkpoint(one.id)
            reached = reached if state is None or state.start_after is None else state.start_after
            if state is None or state.ended is None:
                break
        return reached

    def prepare(self) -> None:
        """Read the files with which the next run of the target compares itself, side by side. A damaged one raises
        OutputError when it is used.
        """
        names = ("summary", "plan", "nights", "_seal", "_files")
        side_by_side([partial(self._try, name) for name in names])
        self._prepared = True

    def _try(self, name: str) -> None:
        with suppress(OutputError):
            getattr(self, name)

    def objects(self) -> Iterator[ObjectLine]:
        return self._typed("objects", ObjectLine)

    def findings(self) -> Iterator[FindingLine]:
        """Yield the findings, those on the bucket itself first."""
        return self._typed("findings", FindingLine)

    def undecided(self) -> Iterator[UndecidedLine]:
        return self._typed("undecided", UndecidedLine)

    def routed(self) -> Iterator[ObjectVersion]:
        """Yield the objects that are left to S3 Batch Operations."""
        return self._typed("routed", ObjectVersion)

    def by_part(self) -> list[tuple[int, dict[str, Part]]]:
        """Return the numbers of the run's parts in order, each with the files of the part by their kind. The parts of a
        run of several ranges are numbered throughout.

        Two sorts of parts are left out: an incomplete part that no checkpoint covers, and a part that the run skipped.
        """
        found: dict[tuple[str, int], dict[str, Part]] = {}
        for part in self._parts(*KINDS):
            found.setdefault((part.range_id, part.number), {})[part.kind] = part
        one = all(range_id == FIRST for range_id, _ in found)
        return [
            (number if one else place, found[range_id, number])
            for place, (range_id, number) in enumerate(sorted(found))
        ]

    def parts_after(
        self, parts: Iterable[tuple[int, dict[str, Part]]], start: str | None
    ) -> Iterator[tuple[int, dict[str, Part]]]:
        """Yield those of the parts, as by_part() returns them, that may have keys after `start`; None: all of them."""
        ends = {} if start is None else self._ends()
        for number, files in parts:
            end = ends.get(files["objects"].path, _NONE)[1] if "objects" in files else None
            if start is None or end is None or end > start:
                yield number, files

    def parts_below(self, prefix: str) -> list[dict[str, Part]]:
        """Return the files of each part that may have keys with this prefix, by their kind, in order."""
        ends, found = self._ends(), []
        for _, files in self.by_part():
            first, last = ends.get(files["objects"].path, _NONE) if "objects" in files else _NONE
            before = last is not None and last < prefix
            behind = first is not None and first > prefix and not first.startswith(prefix)
            if not before and not behind:
                found.append(files)
        return found

    def part(self, kind: type[T], part: Part | None) -> Iterator[T]:
        """Yield the lines of one file as objects of the type `kind`, such as ObjectLine; none if `part` is None."""
        return typed_lines(self.store, self.path, part, kind) if part else iter(())

    def of_key(self, key: str, range_id: str | None = None) -> list[ObjectLine]:
        """Return the lines of the objects with this key: none, one, or one for each version that the run lists. Only
        the lines that begin with the key are parsed, of the parts that may have it by their first and last keys in
        the seal. range_id: look into the parts of this range only; None: into all. Raises OutputError for a part
        that is damaged or gone.
        """
        parts = self.parts_with(key, "objects", range_id)
        return [line for part in parts for line in lines_of_key(self.store, self.path, part, key)]

    def parts_with(self, key: str, kind: str, range_id: str | None = None) -> Iterator[Part]:
        """Yield the files of one kind that may have this key, by their first and last keys in the seal. range_id: as
        for of_key().
        """
        ends = self._ends()
        for part in self._parts(kind):
            first, last = ends.get(part.path, _NONE)
            mine = range_id in (None, part.range_id)
            if mine and (first is None or key >= first) and (last is None or key <= last):
                yield part

    def _ends(self) -> dict[str, tuple[str | None, str | None]]:
        """Return the first and last key of each file that the seal names, by its path."""
        return {} if self._seal is None else {one.path: (one.first, one.last) for one in self._seal.parts}

    def _parts(self, *kinds: str) -> Iterator[Part]:
        """Yield the files of these kinds that belong to the run, sorted by key range, part number and kind.

        To a complete run belong those that its seal names. To another one belongs a part that a checkpoint covers, or
        of which the file of objects is there, which is put in place last; but no part that the run skipped. Raises
        OutputError if a complete run lacks a file that its seal names, or the seal itself: the rest would pass for the
        whole.
        """
        if self.complete:
            yield from self._sealed_parts(kinds)
            return
        parts = found_parts(self.store, self.path)
        committed = {(part.range_id, part.number) for part in parts if part.kind == "objects"}
        checkpoints = {range_id: self.checkpoint(range_id) for range_id in {part.range_id for part in parts}}
        for part in parts:
            checkpoint = checkpoints[part.range_id]
            if part.kind not in kinds or (checkpoint is not None and part.number in checkpoint.skipped_parts):
                continue
            covered = checkpoint is not None and part.number < checkpoint.next_part
            if covered or (part.range_id, part.number) in committed:
                yield part

    def _sealed_parts(self, kinds: tuple[str, ...]) -> Iterator[Part]:
        """Yield the files of these kinds that the seal of a complete run names."""
        if (seal := self._seal) is None:
            raise OutputError(f"{self.uri}/{SEAL} is gone or damaged: `auditor check` says what the run lacks")
        there = {part.path for part in (self._files if self._prepared else found_parts(self.store, self.path))}
        named = [one.path for one in seal.parts if one.lines and one.path.startswith(kinds)]
        if gone := next((path for path in named if path not in there), None):
            raise OutputError(f"{self.uri}/{gone} is gone: `auditor check` says what the run lacks")
        yield from sorted(part for part in map(Part.parse, named) if part is not None)

    @cached_property
    def _files(self) -> list[Part]:
        """The files of all parts, which are final once the run has its summary."""
        return found_parts(self.store, self.path)

    @cached_property
    def _seal(self) -> Seal | None:
        """The seal of the run, which is final once the run has its summary."""
        return read_seal(self.store, self.path)

    def _typed(self, name: str, kind: type[T]) -> Iterator[T]:
        for part in self._parts(name):
            yield from self.part(kind, part)

    def _parsed(self, name: str, data: bytes | None, parse: Callable[[bytes], T]) -> T | None:
        """Return the content of a file of the run; None if there is no such file."""
        try:
            return None if data is None else parse(data)
        except JsonError as error:
            raise damaged(f"{self.uri}/{name}", error, AGAIN) from error


def read_seal(store: Store, folder: str) -> Seal | None:
    """Return the seal of the run in this folder; None if it has none, or if it is damaged."""
    return parse_seal(store.get(f"{folder}/{SEAL}"))


def parse_seal(data: bytes | None) -> Seal | None:
    """Return the seal from the bytes of its file; None if there is no file, or if it is damaged."""
    try:
        return None if data is None else Seal.from_json(data)
    except JsonError:
        return None


def link_to(store: Store, bucket: str, run_id: str) -> Link:
    """Return the link to another run of the bucket, with the digest of its summary as the store has it."""
    data = store.get(f"{run_path(bucket, run_id)}/summary.json")
    return Link(run_id, None if data is None else sha256_of(data))


def compared_with(store: Store, plan: RunPlan) -> RunReader | None:
    """Return a reader of the run with which a run compares; None if there is none. plan: its run.json."""
    return None if plan.against is None else RunReader(store, plan.target.bucket, plan.against)


def last_run(store: Store, target: Target) -> RunReader | None:
    """Return a reader of the latest complete run of a target; None if latest.json names none.

    A latest.json that is damaged, or of a development version, names none: a run then compares with nothing and keeps
    nothing. The end of the run says what to do with a damaged file. Raises OutputError if latest.json may not be read:
    the present run then could not update it either.
    """
    found = store.get(f"{bucket_path(target.bucket)}/{LATEST}")
    try:
        runs = parse_document(found or b"")["runs"]
        return RunReader(store, target.bucket, runs[_KINDS[target.versions]][target.prefix])
    except (JsonError, KeyError, TypeError, UsageError):
        return None


def latest_runs(store: Store, bucket: str) -> list[RunReader]:
    """Return readers of the latest complete runs of all targets in a bucket, those of the widest targets first.

    Raises OutputError if latest.json may not be read, is damaged, or is of a development version.
    """
    path = f"{bucket_path(bucket)}/{LATEST}"
    data = store.get(path)
    if data is None:
        return []
    try:
        runs = as_object(parse_document(data)["runs"])
        named = sorted((len(prefix), prefix, kind) for kind in _KINDS for prefix in as_object(runs.get(kind, {})))
        return [RunReader(store, bucket, str(runs[kind][prefix])) for _, prefix, kind in named]
    except (JsonError, KeyError, UsageError) as error:
        raise damaged(store.uri(path), error, AGAIN) from error


def name_latest(run: RunReader) -> None:
    """Write a complete run into latest.json, for a process that died before it did so. A run that was judged again is
    left out, and so is one that fills a run which is not the latest one, as at the end of a run.
    """
    summary, file = run.summary, run.plan
    if summary is None or not summary.target.whole or file is None or file.judged_from is not None:
        return
    latest = last_run(run.store, summary.target)
    if file.filled is None or latest is None or latest.run_id <= file.filled.run:
        update_latest_json(run.store, summary.target, run.run_id)


def update_latest_json(store: Store, target: Target, run_id: str) -> None:
    """Write into latest.json that this run is the target's latest one, unless the file names a run that began later."""
    kind = _KINDS[target.versions]

    def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
        named = (value or {}).get("runs")
        runs: dict[str, Any] = {one: {} for one in _KINDS} | (named if isinstance(named, dict) else {})
        same = runs[kind] if isinstance(runs[kind], dict) else {}
        there = same.get(target.prefix)
        known = isinstance(there, str) and RUN_ID.fullmatch(there)
        if known and (there == run_id or began_later(str(there), run_id)):
            return None
        return {"runs": {**runs, kind: {**same, target.prefix: run_id}}}

    store.update_json(f"{bucket_path(target.bucket)}/{LATEST}", change)
