"""Read how far each range of a divided run is, and prove that its lines are those that it counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from auditor.runs.checkpoint import Checkpoint, damaged, parse_checkpoint
from auditor.runs.parts import Part, found_parts, sealed_from_store
from auditor.runs.paths import checkpoint_name, run_path, seal_name
from auditor.runs.plan_file import PlanFile, PlannedRange
from auditor.runs.reading import read_seal
from auditor.runs.seal import SealedPart, sorted_parts
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally
from auditor.text import counted, visible


@dataclass(frozen=True, slots=True)
class RangeProgress:
    """How far a range is. start_after: the last key that it saved, None if it saved none; it goes on after it. listed:
    the number of objects up to there.
    """

    id: str
    complete: bool
    start_after: str | None
    listed: int


@dataclass(frozen=True, slots=True)
class RangeState:
    """A range as its files have it.

    tally: None if the range has no checkpoint. parts: the entries of its parts for the seal of the run. files: the
    bytes of its files besides the parts, by name. fault: why the range is not complete, in words; None if it is
    complete, and if its parts are those that it counted.
    """

    range: PlannedRange
    checkpoint: Checkpoint | None
    tally: Tally | None
    parts: tuple[SealedPart, ...]
    files: Mapping[str, bytes]
    fault: str | None

    @property
    def reached(self) -> str | None:
        """The last key of the range that was saved; if there is none, the key after which the range begins."""
        state = self.checkpoint
        return self.range.start_after if state is None or state.start_after is None else state.start_after


def range_progress(store: Store, plan: PlanFile) -> Iterator[RangeProgress]:
    """Yield how far each range is, by its checkpoint alone. Raises RunDamaged. Blocks."""
    folder = run_path(plan.target.bucket, plan.run)
    for one in plan.ranges:
        _, state = _checkpoint(store, folder, plan, one)
        if state is None:
            yield RangeProgress(one.id, False, None, 0)
            continue
        try:
            listed = Tally.from_dict(state.tally).coverage["listed"]
        except ValueError as error:
            raise damaged(store.uri(f"{folder}/{checkpoint_name(one.id)}"), error) from error
        yield RangeProgress(one.id, state.ended is not None, state.start_after, listed)


def range_states(store: Store, plan: PlanFile) -> Iterator[RangeState]:
    """Yield each range with its parts, in key order, with the files of one range in memory at a time. Blocks.

    Raises RunDamaged for a checkpoint that cannot be read, and OutputError for a part that is gone or damaged. Parts
    are only read if the process that wrote them was killed before it sealed them.
    """
    folder = run_path(plan.target.bucket, plan.run)
    found: dict[str, list[Part]] = {}
    for part in found_parts(store, folder):
        found.setdefault(part.range_id, []).append(part)
    for one in plan.ranges:
        yield _state(store, folder, plan, one, found.get(one.id, ()))


def _state(store: Store, folder: str, plan: PlanFile, one: PlannedRange, found: Sequence[Part]) -> RangeState:
    data, state = _checkpoint(store, folder, plan, one)
    if data is None or state is None:
        return RangeState(one, None, None, (), {}, "it has not begun")
    place = store.uri(f"{folder}/{checkpoint_name(one.id)}")
    try:
        tally = Tally.from_dict(state.tally)
        tally.check()
    except ValueError as error:
        raise damaged(place, error) from error
    files = {checkpoint_name(one.id): data}
    sealed = store.get(f"{folder}/{seal_name(one.id)}")
    if sealed is not None:
        files[seal_name(one.id)] = sealed
    parts = _parts(store, folder, state, one, found)
    fault = _fault(plan, one, state, tally, parts, {part.path for part in found})
    return RangeState(one, state, tally, parts, files, fault)


def _checkpoint(store: Store, folder: str, plan: PlanFile, one: PlannedRange) -> tuple[bytes | None, Checkpoint | None]:
    path = f"{folder}/{checkpoint_name(one.id)}"
    data = store.get(path)
    return data, None if data is None else parse_checkpoint(data, plan.run, store.uri(path))


def _parts(
    store: Store, folder: str, state: Checkpoint, one: PlannedRange, found: Sequence[Part]
) -> tuple[SealedPart, ...]:
    """Return the entries of the parts that the checkpoint covers: those of the range's seal, and, read from the store,
    those that a killed process did not seal.
    """
    seal = read_seal(store, folder, one.id)
    known = {}
    for entry in seal.parts if seal else ():
        part = Part.parse(entry.path)
        if part is not None and part.range_id == one.id and _covered(part, state):
            known[entry.path] = entry
    unsealed = [part for part in found if part.path not in known and _covered(part, state)]
    return sorted_parts([*known.values(), *(sealed_from_store(store, folder, part) for part in unsealed)])


def _covered(part: Part, state: Checkpoint) -> bool:
    return part.number < state.next_part and part.number not in state.skipped_parts


def _fault(
    plan: PlanFile,
    one: PlannedRange,
    state: Checkpoint,
    tally: Tally,
    parts: Sequence[SealedPart],
    there: set[str],
) -> str | None:
    """Return why the range does not count as complete, in words that are safe to print; None if it does."""
    if state.target != plan.target_of(one):
        return f"{checkpoint_name(one.id)} is of other keys than plan.json gives the range"
    gone = next((part.path for part in parts if part.path not in there), None)
    if gone is not None:
        return f"{gone} is gone"
    lines: Counter[str] = Counter()
    for part in parts:
        lines[part.path.partition("/")[0]] += part.lines
        low, high = one.start_after, one.stop_at
        if part.first is not None and low is not None and part.first <= low:
            return f"{part.path} has keys before the range"
        if part.last is not None and high is not None and part.last > high:
            return f"{part.path} has keys behind the range"
    counts = {
        "objects": tally.coverage["listed"],
        "findings": sum(tally.findings.values()),
        "undecided": tally.coverage["undecided"],
        "routed": tally.routed["objects"],
    }
    for kind, number in counts.items():
        if lines[kind] != number:
            return f"its parts have {counted(lines[kind], 'line')} of {kind}, and its checkpoint counts {number:,}"
    if state.ended is None:
        return "it has come to " + ("no key" if state.start_after is None else visible(state.start_after))
    return None
