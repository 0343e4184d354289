"""The JSON files of a run folder: their form, run.json and seal.json, and one sentence for each file that cannot be
read.

run.json has the run's target, ranges of keys, configuration and the facts of its bucket. It is written once the ranges
are known, and stays as it is once a line is recorded. With it a run can be judged again from its folder, without a
request to the bucket. seal.json has the digests of the run's parts and files, and of the previous run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Self, TypeVar

import msgspec
from msgspec import Struct, StructMeta, field, to_builtins
from msgspec.structs import fields, replace

from auditor.errors import OldRun, RunDamaged, UsageError
from auditor.model.bucket import BucketFacts
from auditor.model.json_codec import (
    FORMAT,
    JsonError,
    OldFormatError,
    Size,
    as_object,
    decode,
    fact_from_json,
    fact_to_json,
    member,
    member_names,
    parse_document,
    typed,
)
from auditor.model.object import Ask, Skipped
from auditor.model.target import Target
from auditor.model.version import VERSION
from auditor.runs.paths import range_name, run_path
from auditor.runs.stores.base import Store

ANEW: Final = "start a new run"
AGAIN: Final = "audit again"

FILES: Final = ("run.json", "keys.json", "report.html", "rollups.json")
"""The files of a run folder, besides the parts, whose digests the seal has. The seal is written before summary.json,
which has the seal's digest."""

PLAN: Final = "run.json"
LISTING: Final = "listing"
"""The source of ranges that come from pages of the listing."""


class JsonFile(Struct, frozen=True, kw_only=True):
    """The content of a JSON file: its format, and exactly the members that the class declares. A class with
    `omit_defaults` leaves out the members that have nothing to say.
    """

    INDENT: ClassVar[int | None] = None
    LINED: ClassVar[str] = ""
    """The member that is written last, a list with a line for each entry; "" for none."""

    def to_json(self) -> bytes:
        """Return the bytes of the file."""
        value = {"format": FORMAT, **self._members()}
        if not self.LINED:
            return json.dumps(value, indent=self.INDENT).encode() + b"\n"
        lines = ",\n".join(map(json.dumps, value.pop(self.LINED)))
        head = json.dumps(value, indent=self.INDENT).removesuffix("}").rstrip("\n")
        return f'{head},{" " if self.INDENT is None else chr(10) + " "}"{self.LINED}": [\n{lines}\n]}}\n'.encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Make the content from the bytes that to_json() wrote. Raises JsonError for any other ones."""
        value = parse_document(data)
        _check_members(cls, value)
        found = cls._of(value)
        found.check()
        return found

    def check(self) -> None:
        """Raise JsonError if members do not fit each other."""

    def _members(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self, enc_hook=dict)
        return found

    @classmethod
    def _of(cls, value: dict[str, Any]) -> Self:
        return typed(cls, value)


class RunFile(JsonFile, frozen=True, kw_only=True):
    """The content of a JSON file of a run."""

    run: str
    """The run's ID."""


class FactFile(RunFile, frozen=True, kw_only=True):
    """The content of a JSON file of a run that has facts of the bucket: a value each, or why there is none."""

    INDENT = 1

    def _members(self) -> dict[str, Any]:
        found: dict[str, Any] = fact_to_json(self)
        return found

    @classmethod
    def _of(cls, value: dict[str, Any]) -> Self:
        return fact_from_json(cls, value)


def _check_members(kind: Any, value: Any) -> None:
    """Raise JsonError unless the value, and each member that is a Struct, has exactly the members of its Struct."""
    given, names = as_object(value).keys(), member_names(kind)
    if given - names or (given != names and not kind.__struct_config__.omit_defaults):
        raise JsonError("has other members")
    for one in fields(kind):
        if isinstance(one.type, StructMeta):
            member(value, one.encode_name, partial(_check_members, one.type), {})


T = TypeVar("T", bound=RunFile)


def load(store: Store, path: str, kind: type[T], run_id: str) -> T | None:
    """Return the content of the file `path`, of the type `kind`; None if there is no such file. Blocks.

    run_id: of the run that the file has to name. Raises RunDamaged, which names the file.
    """
    data = store.get(path)
    return None if data is None else parsed(data, store.uri(path), kind, run_id)


def parsed(data: bytes, uri: str, kind: type[T], run_id: str) -> T:
    """Return the content of a file. uri: of the file, for the error; the other parameters are those of load()."""
    try:
        found = kind.from_json(data)
        if found.run != run_id:
            raise JsonError("is another run's")
    except JsonError as error:
        raise damaged(uri, error) from error
    return found


def damaged(uri: str, error: Exception, fix: str = ANEW) -> RunDamaged:
    """Return the error for a file that cannot be read. error: the reason."""
    if isinstance(error, OldFormatError):
        return OldRun(f"{uri} {error.problem}")
    return RunDamaged(f"{uri} is damaged ({error}): {fix}")


SEAL: Final = "seal.json"


class SealedPart(Struct, frozen=True, kw_only=True):
    """One file of a part, as it was written."""

    path: str
    """The file's path in the run folder."""
    first: str | None
    """Key of its first line; None for a finding on the bucket."""
    last: str | None
    lines: Size
    bytes: Size
    sha256: str
    """Digest of the file's bytes, in hex."""


class Link(Struct, frozen=True):
    """Another run, and the SHA-256 of its summary.json. sha256: None if that run has none."""

    run: str
    sha256: str | None


class Seal(RunFile, frozen=True, kw_only=True):
    """The content of seal.json, or of the seal of one range."""

    LINED = "parts"

    previous: Link | None = None
    """The latest complete run of the same target when this run began."""
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each of FILES that the run wrote."""
    parts: tuple[SealedPart, ...] = ()

    def check(self) -> None:
        if any(name not in FILES for name in self.files):
            raise JsonError("names a file that no run has", "files")


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sorted_parts(parts: Iterable[SealedPart]) -> tuple[SealedPart, ...]:
    """Return the parts in the order of their paths, one for each path: the last one given."""
    found = {part.path: part for part in parts}
    return tuple(found[path] for path in sorted(found))


def key_of(line: bytes) -> str | None:
    """Return the key in a line of a part. Raises JsonError if the line is none."""
    return decode(_Keyed, line).key


class _Keyed(Struct, frozen=True):
    key: str | None = None


class PlannedRange(Struct, frozen=True):
    """One range: the keys after start_after, up to and including stop_at; None: no limit.

    id: five digits from 00000 on, in key order. keys: the planned number of keys, or of versions; None if unknown.
    """

    id: str
    start_after: str | None
    stop_at: str | None
    keys: Size | None = None


class RunPlan(FactFile, frozen=True, kw_only=True):
    """The content of run.json."""

    LINED = "ranges"

    target: Target
    """The target of the whole run."""
    now: str
    """The time at which conditions with a date are judged: the begin of the run that read the facts, in ISO 8601."""
    ledger: bool
    """True if the run compares the objects with a ledger."""
    selected: tuple[str, ...]
    """IDs of the rules that the run selected, in the order in which it judges them."""
    configuration: Mapping[str, Any]
    """The settings that decide on verdicts and findings, in the form of auditor.toml."""
    selection: Mapping[str, Any]
    """The run's questions about each object. A process with another selection may not continue the run: its counts
    would mix two audits."""
    facts: BucketFacts
    """The facts of the bucket by which all objects are judged. The policies of KMS keys are in files of their own."""
    ask: Ask
    """The calls that the run makes for each object, or why it makes none."""
    auditor: str = VERSION
    """The version of the auditor that judges."""
    judged_from: Link | None = None
    """The run whose facts these are; None if this run read them itself."""
    filled: Link | None = None
    """The run that this one fills: its lines are this run's, but for the facts that it could not read; None if this run
    lists the objects itself.
    """
    against: str | None = None
    """ID of the last complete run of the target, with which this run compares; None if there is none."""
    source: str | None = None
    """ID of the run whose parts gave the ranges, or LISTING; None for a run of one range, which needs no planning."""
    exact: bool = False
    """True if the planned numbers of keys were exact when the plan was made."""
    calls: Size = 0
    """Number of calls that listed keys for the plan, retries included."""
    ranges: tuple[PlannedRange, ...]

    @property
    def keys(self) -> int | None:
        """The planned number of keys of all ranges; None if it is unknown."""
        known = [one.keys for one in self.ranges if one.keys is not None]
        return sum(known) if len(known) == len(self.ranges) else None

    @property
    def divided(self) -> bool:
        """True if the run has several ranges."""
        return len(self.ranges) > 1

    @property
    def reads_keys(self) -> bool:
        """True if the run reads the policies of its objects' KMS keys."""
        return not isinstance(self.facts.key_policies, Skipped)

    def range(self, range_id: str) -> PlannedRange:
        """Return the range with this ID. Raises UsageError if there is none."""
        found = next((one for one in self.ranges if one.id == range_id), None)
        if found is None:
            last = self.ranges[-1].id
            raise UsageError(f"run {self.run} has no range {range_id[:100]!r}: give {self.ranges[0].id} to {last}")
        return found

    def target_of(self, one: PlannedRange) -> Target:
        """Return the target of a range: the run's, with the range's own limits."""
        return replace(self.target, start_after=one.start_after, stop_at=one.stop_at)

    def faults(self) -> Iterator[str]:
        """Yield a sentence for each place at which the ranges are not the whole target, each key in one range."""
        before, at = self.target.start_after, "the target's first key"
        for number, one in enumerate(self.ranges):
            if one.id != range_name(number):
                yield f"range {one.id} is in the place of range {range_name(number)}"
            if one.start_after != before:
                yield f"range {one.id} does not begin at the end of {at}"
            if one.start_after is not None and one.stop_at is not None and one.stop_at <= one.start_after:
                yield f"range {one.id} ends before it begins"
            before, at = one.stop_at, f"range {one.id}"
        if not self.ranges or before != self.target.stop_at:
            yield "the last range does not end at the target's end"

    def check(self) -> None:
        # A run of one range takes the target as it is, even one whose limits have no key between them.
        if fault := next(self.faults(), None) if len(self.ranges) != 1 else next(self._other_limits(), None):
            raise JsonError(f"is not whole: {fault}", "ranges")

    def _other_limits(self) -> Iterator[str]:
        one = self.ranges[0]
        if self.target_of(one) != self.target or one.id != range_name(0):
            yield f"range {one.id} is not the target"

    def _members(self) -> dict[str, Any]:
        # A date in auditor.toml becomes text.
        plain = {name: to_builtins(getattr(self, name), enc_hook=dict) for name in ("configuration", "selection")}
        return {**super()._members(), **plain}


def one_range(target: Target) -> tuple[PlannedRange, ...]:
    """Return the ranges of a run that is not divided."""
    return (PlannedRange(range_name(0), target.start_after, target.stop_at),)


def load_plan(store: Store, bucket: str, run_id: str) -> RunPlan | None:
    """Return the plan of a run; None if it has none. Raises RunDamaged if run.json is damaged. Blocks."""
    return load(store, f"{run_path(bucket, run_id)}/{PLAN}", RunPlan, run_id)
