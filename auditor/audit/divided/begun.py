"""Read back what the begin of a divided run wrote: its ranges, the bucket's facts, and its questions."""

from __future__ import annotations

from msgspec import Struct

from auditor.errors import RunChanged, RunMissing
from auditor.model.bucket import BucketFacts
from auditor.model.object import Unread
from auditor.model.target import Target
from auditor.runs.bucket_file import BucketFile
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.plan_file import PlanFile, load_plan
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store


class BegunFiles(Struct, frozen=True):
    """The files of a begun run. path: of the run folder in its store. data: the bytes of bucket.json."""

    path: str
    plan: PlanFile
    file: BucketFile
    data: bytes
    state: Checkpoint


def read_begun(store: Store, target: Target, run_id: str) -> BegunFiles:
    """Return the files that the begin of a divided run wrote. Blocks.

    Raises RunMissing if the run was not begun, or not wholly, RunChanged if it is of another target, and OutputError if
    a file is damaged.
    """
    run = RunReader(store, target.bucket, run_id)
    plan = load_plan(store, target.bucket, run_id)
    if plan is None:
        raise RunMissing(f"{run.uri} has no plan of ranges: check --out and the run's ID, or start a new run")
    check_target(plan, target)
    file, data, state = run.bucket, run.bucket_data, run.checkpoint
    if file is None or data is None or state is None:
        raise RunMissing(f"run {run_id} did not begin completely: resume the whole run first")
    return BegunFiles(run.path, plan, file, data, state)


def check_target(plan: PlanFile, target: Target) -> None:
    """Raise RunChanged unless the plan is of this target."""
    if plan.target != target:
        raise RunChanged(f"run {plan.run} has another target, prefix or key range: start a new run")


def check_facts(file: BucketFile, facts: BucketFacts) -> None:
    """Raise RunChanged if the bucket has other settings than when the run began. All ranges are judged by bucket.json:
    an object that a new setting exposes would count as masked. file: bucket.json. facts: as they are now.

    A fact that was not read then may be anything now, because nothing was called clean by it. The policies of KMS keys
    are read by the ranges.
    """
    names = (name for name in BucketFacts.__struct_fields__ if name != "key_policies")
    pairs = {name: (getattr(file.facts, name), getattr(facts, name)) for name in names}
    changed = [name for name, (then, now) in pairs.items() if then != now and not isinstance(then, Unread)]
    if changed:
        raise RunChanged(
            f"the settings of bucket {facts.bucket} differ from those with which run {file.run} began"
            f" ({', '.join(changed)}), and all of its ranges are judged by these: start a new run"
        )
