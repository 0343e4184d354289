"""Read how far each range of a run is, and prove that its lines are those that it counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.tasks import in_order
from auditor.runs.checkpoint import Checkpoint, load_checkpoint
from auditor.runs.parts import Part, found_parts, named_parts, sealed_from_store
from auditor.runs.paths import range_seal_name, run_path
from auditor.runs.reading import parse_seal
from auditor.runs.run_files import PlannedRange, RunPlan, Seal, SealedPart, sorted_parts
from auditor.runs.segment import empty_parts
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally
from auditor.text import counted, visible

_AHEAD: Final = 16
"""Number of ranges whose files are read at the same time: each read of a bucket is a wait of some 30 ms."""


class RangeProgress(Struct, frozen=True):
    """How far a range is. start_after: the last key that it saved, after which it continues; None if none. listed:
    the number of objects up to there. begun: True if a line of the range is saved.
    """

    id: str
    complete: bool = False
    start_after: str | None = None
    listed: int = 0
    begun: bool = False


class RangeState(Struct, frozen=True):
    """A range as its files have it.

    checkpoint: None if the range has none. parts: the entries of its parts for the seal of the run. fault: why the
    range is not complete, in words; None if it is complete, and if its parts are those that it counted. damaged: True
    if its files contradict each other.
    """

    range: PlannedRange
    checkpoint: Checkpoint | None
    parts: tuple[SealedPart, ...]
    fault: str | None
    damaged: bool = False

    @property
    def reached(self) -> str | None:
        """The last key of the range that was saved; if there is none, the key after which the range begins."""
        state = self.checkpoint
        return self.range.start_after if state is None or state.start_after is None else state.start_after

    @property
    def hole(self) -> str:
        """A phrase on a range that is not complete: its keys, and the reason."""
        ends = (("after", self.range.start_after), ("up to", self.range.stop_at))
        keys = " ".join(f"{word} {visible(key)}" for word, key in ends if key is not None)
        return f"the rest of range {self.range.id}, keys {keys or 'of the whole target'}: {self.fault}"


def range_progress(store: Store, plan: RunPlan) -> Iterator[RangeProgress]:
    """Yield how far each range is, by its checkpoint alone. Raises RunDamaged. Blocks."""
    reads = (partial(load_checkpoint, store, plan.target.bucket, plan.run, one.id) for one in plan.ranges)
    for one, state in zip(plan.ranges, in_order(reads, _AHEAD), strict=True):
        if state is None:
            yield RangeProgress(one.id)
        else:
            listed = state.tally.coverage["listed"]
            yield RangeProgress(one.id, state.ended is not None, state.start_after, listed, state.begun)


def active_ranges(store: Store, plan: RunPlan, at_once: int) -> int:
    """Return how many ranges may be audited at once from now on: those that are not complete, at most at_once. Blocks.

    This number only falls. So if each range that is begun or continues gets the ceiling divided by it, the shares never
    exceed the ceiling together. The last ranges are begun last, so the search begins with them.
    """
    active = 0
    for one in range_progress(store, replace(plan, ranges=plan.ranges[::-1])):
        active += not one.complete
        if active >= at_once:
            return at_once
    return active


def range_states(store: Store, plan: RunPlan) -> Iterator[RangeState]:
    """Yield each range with its parts, in key order, with the files of few ranges in memory at a time. Blocks.

    Raises RunDamaged for a checkpoint that cannot be read, and OutputError for a part that is gone or damaged. Lines
    are only read of parts that a killed process did not seal: a range that has ended has sealed all of its parts, so
    the time does not grow with the lines.
    """
    folder = run_path(plan.target.bucket, plan.run)
    found: dict[str, list[Part]] = {}
    for part in found_parts(store, folder):
        found.setdefault(part.range_id, []).append(part)
    reads = (partial(_files, store, plan, one.id) for one in plan.ranges)
    for one, files in zip(plan.ranges, in_order(reads, _AHEAD), strict=True):
        state = _state(store, folder, one, *files, found.get(one.id, ()))
        if state.damaged:  # or a process has written a part since the parts were listed
            files = _files(store, plan, one.id)
            parts = [part for part in found_parts(store, folder) if part.range_id == one.id]
            state = _state(store, folder, one, *files, parts)
        yield state


def _files(store: Store, plan: RunPlan, range_id: str) -> tuple[Checkpoint | None, Seal | None]:
    """Return a range's checkpoint and its seal; None for a file that is not there."""
    state = load_checkpoint(store, plan.target.bucket, plan.run, range_id)
    path = f"{run_path(plan.target.bucket, plan.run)}/{range_seal_name(range_id)}"
    return state, None if state is None else parse_seal(store.get(path))


def _state(
    store: Store, folder: str, one: PlannedRange, state: Checkpoint | None, seal: Seal | None, found: Sequence[Part]
) -> RangeState:
    if state is None:
        return RangeState(one, None, (), "it has not begun")
    parts = _parts(store, folder, state, one, seal, found)
    fault = damage(one, state.tally, parts, {part.path for part in found})
    damaged = fault is not None
    if damaged:  # no process reads again what the checkpoint covers
        fault = f"{fault}: start a new run"
    elif state.ended is None:
        fault = "it has come to " + ("no key" if state.start_after is None else visible(state.start_after))
    return RangeState(one, state, parts, fault, damaged)


def _parts(
    store: Store, folder: str, state: Checkpoint, one: PlannedRange, seal: Seal | None, found: Sequence[Part]
) -> tuple[SealedPart, ...]:
    """Return the entries of the parts that the checkpoint covers: those of the range's seal, and, read from the store,
    those that a killed process did not seal.
    """
    sealed = named_parts(seal.parts if seal else ())
    known = {entry.path: entry for part, entry in sealed if part.range_id == one.id and _covered(part, state)}
    unsealed = [part for part in found if part.path not in known and _covered(part, state)]
    empty = empty_parts(one.id, state.skipped_parts)
    return sorted_parts([*empty, *known.values(), *(sealed_from_store(store, folder, part) for part in unsealed)])


def _covered(part: Part, state: Checkpoint) -> bool:
    return part.number < state.next_part and part.number not in state.skipped_parts


def damage(one: PlannedRange, tally: Tally, parts: Sequence[SealedPart], there: set[str]) -> str | None:
    """Return how the range's files contradict each other, in words that are safe to print; None if they do not.

    tally: the counts of its checkpoint. parts: the entries of its parts. there: the paths of the files that are there.
    """
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
            return f"{part.path} has keys after the range"
    counts = {
        "objects": tally.coverage["listed"],
        "findings": sum(tally.findings.values()),
        "undecided": tally.coverage["undecided"],
        "routed": tally.routed["objects"],
    }
    for kind, number in counts.items():
        if lines[kind] != number:
            return f"its parts have {counted(lines[kind], 'line')} of {kind}, and its checkpoint counts {number:,}"
    return None
