"""Resume an earlier run: check that this process may continue it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from auditor.audit.sources.spread_file import RunReport
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import RunChanged, RunComplete, RunDamaged, RunMissing
from auditor.model.bucket import BucketFacts
from auditor.model.object import Unread
from auditor.model.target import Target
from auditor.reports.rollup import RollUpBuilder
from auditor.rules import RULES
from auditor.rules.base import Rule
from auditor.rules.selection import select
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.documents import damaged
from auditor.runs.latest import name_latest
from auditor.runs.paths import checkpoint_name
from auditor.runs.reading import RunReader
from auditor.runs.run_end import delete_checkpoints
from auditor.runs.run_plan import NAME, RunPlan


def judging(settings: Settings, places: Resources) -> tuple[tuple[Rule, ...], dict[str, Any]]:
    """Return the rules that the settings select, and the settings that must stay the same when a run is resumed."""
    ledger = places.ledger is not None
    rules = rules_of(settings, ledger=ledger)
    return rules, selection_of(rules, settings, ledger=ledger)


def rules_of(settings: Settings, *, ledger: bool) -> tuple[Rule, ...]:
    """Return the rules that the settings select. ledger: True if there is a ledger. Raises UsageError if none is."""
    return select(RULES, settings.rules, settings.only, settings.ignore, settings.level, ledger=ledger)


def selection_of(rules: Sequence[Rule], settings: Settings, *, ledger: bool) -> dict[str, Any]:
    """Return the settings that must stay the same when the run is resumed, as the JSON values that run.json has.

    ledger: True if the run has a ledger.
    """
    hashing = list(settings.algorithms) if ledger else None
    options = {rule.id: settings.rules.get(rule.id) for rule in rules}
    exceptions = sorted(f"{one.name} {one.until}" for one in settings.exceptions)
    selection = {"rules": options, "trusted": sorted(settings.trusted), "algorithms": hashing, "exceptions": exceptions}
    found: dict[str, Any] = json.loads(json.dumps(selection, default=str))
    return found


def begun_plan(run: RunReader, target: Target, settings: Settings, selection: Mapping[str, Any]) -> RunPlan:
    """Return the plan of a run that has begun and has not ended. Blocks. target: the one that is asked for; without a
    key to begin after, it stands for the run's own range of keys.

    Raises RunMissing if there is no such run, RunComplete if it is complete, RunChanged if it is of another target or
    was begun with other settings, and RunDamaged if run.json is damaged or gone.
    """
    if run.complete:
        finish_end(run)
        raise RunComplete(f"run {run.run_id} is complete: there is nothing to resume")
    plan = run.plan
    if plan is None:
        if not run.exists:
            raise RunMissing(
                f"there is no run {run.run_id} of {run.bucket_name} at {run.store.uri()}, or it ended before it"
                " wrote anything: check --out, or start a new run without --resume"
            )
        raise RunDamaged(f"{run.uri}/{NAME} is gone, and the whole run is judged by it: start a new run")
    own = plan.target
    if (own.prefix, own.versions, own.stop_at) != (target.prefix, target.versions, target.stop_at) or (
        target.start_after not in (None, own.start_after)
    ):
        raise RunChanged(f"run {plan.run} has another target, prefix or key range: start a new run")
    check_selection(plan, selection)
    if settings.key_policies and plan.ask.head is None and not plan.reads_keys:
        raise RunChanged(f"run {plan.run} was begun without --key-policies: leave that out, or start a new run")
    return plan


def finish_end(run: RunReader) -> None:
    """Do the rest of the end of a complete run, for a process that died after it wrote the summary. Blocks."""
    name_latest(run)
    if run.plan is not None:
        delete_checkpoints(run.store, run.path)
        RunReport(run.store, run.path, run.run_id).forget()


def check_selection(plan: RunPlan, selection: Mapping[str, Any]) -> None:
    """Raise RunChanged unless a run was begun with this selection: it says nothing about what others would select."""
    if (filled := plan.selection.get("filled")) != selection.get("filled"):
        way = (
            "fills no run: leave --fill out"
            if filled is None
            else f"fills run {filled}: resume it with --fill and that run"
        )
        raise RunChanged(f"run {plan.run} {way}")
    if plan.selection != selection:
        raise RunChanged(
            f"run {plan.run} began with other rules, options, exceptions, trusted IDs or algorithms, or with or"
            " without a ledger: resume it with the same settings, or start a new run"
        )


def check_facts(plan: RunPlan, facts: BucketFacts) -> None:
    """Raise RunChanged if the bucket has other settings than when the run began. All objects are judged by run.json:
    one that a new setting exposes would count as masked. facts: as they are now.

    A fact that was not read then may be anything now, because nothing was called clean by it. The policies of KMS keys
    are read as the objects are.
    """
    names = (name for name in BucketFacts.__struct_fields__ if name != "key_policies")
    pairs = {name: (getattr(plan.facts, name), getattr(facts, name)) for name in names}
    changed = [name for name, (then, now) in pairs.items() if then != now and not isinstance(then, Unread)]
    if changed:
        raise RunChanged(
            f"the settings of bucket {facts.bucket} differ from those with which run {plan.run} began"
            f" ({', '.join(changed)}), and all of its objects are judged by these: start a new run"
        )


def check_rollups(run: RunReader, range_id: str, state: Checkpoint | None) -> None:
    """Raise RunDamaged if the roll-ups in the checkpoint of a range are damaged."""
    try:
        begun_rollups(state)
    except ValueError as error:
        raise damaged(f"{run.uri}/{checkpoint_name(range_id)}", error) from error


def begun_rollups(state: Checkpoint | None) -> RollUpBuilder:
    """Return the roll-ups with which a range continues. Raises JsonError if those in the checkpoint are damaged."""
    return RollUpBuilder() if state is None or not state.begun else RollUpBuilder.restored(state.rollups)
