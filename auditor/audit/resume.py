"""Resume an earlier run: load its checkpoint, and check that this run may continue it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import RunChanged, RunComplete, RunMissing
from auditor.model.target import Target
from auditor.reports.rollup import RollUpBuilder
from auditor.rules import RULES
from auditor.rules.base import Rule
from auditor.rules.selection import select
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.documents import damaged
from auditor.runs.latest import name_latest
from auditor.runs.paths import UNDIVIDED, checkpoint_name
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store


def judging(settings: Settings, places: Resources) -> tuple[tuple[Rule, ...], dict[str, Any]]:
    """Return the rules that the settings select, and the settings that must stay the same when a run is resumed."""
    ledger = places.ledger is not None
    rules = rules_of(settings, ledger=ledger)
    return rules, selection_of(rules, settings, ledger=ledger)


def rules_of(settings: Settings, *, ledger: bool) -> tuple[Rule, ...]:
    """Return the rules that the settings select. ledger: True if there is a ledger. Raises UsageError if none is."""
    return select(RULES, settings.rules, settings.only, settings.ignore, settings.level, ledger=ledger)


def selection_of(rules: Sequence[Rule], settings: Settings, *, ledger: bool) -> dict[str, Any]:
    """Return the settings that must stay the same when the run is resumed, as the JSON values that a checkpoint has.

    ledger: True if the run has a ledger.
    """
    hashing = list(settings.algorithms) if ledger else None
    options = {rule.id: settings.rules.get(rule.id) for rule in rules}
    exceptions = sorted(f"{one.name} {one.until}" for one in settings.exceptions)
    selection = {"rules": options, "trusted": sorted(settings.trusted), "algorithms": hashing, "exceptions": exceptions}
    found: dict[str, Any] = json.loads(json.dumps(selection, default=str))
    return found


def checkpoint(
    store: Store, run_id: str, target: Target, selection: Mapping[str, Any]
) -> tuple[Checkpoint | None, Target]:
    """Return the checkpoint of the run to resume, and the target with the run's own key range.

    The checkpoint is None if the run has not written one. Raises RunMissing if there is no such run, RunComplete if it
    is complete, RunChanged if it has another selection or target, and RunDamaged if its checkpoint is damaged.
    """
    run = RunReader(store, target.bucket, run_id)
    check_exists(run)
    if run.complete:
        name_latest(run)
        raise RunComplete(f"run {run_id} is complete: there is nothing to resume")
    state = run.checkpoint
    if state is None:
        return None, target
    if target.start_after is None:
        target = replace(target, start_after=state.target.start_after)
    if state.target != target:
        raise RunChanged(f"run {run_id} has another target, prefix or key range: start a new run")
    check_selection(state, selection)
    try:
        begun_rollups(state)
    except ValueError as error:
        raise damaged(f"{run.uri}/{checkpoint_name(UNDIVIDED)}", error) from error
    return state, target


def check_exists(run: RunReader) -> None:
    """Raise RunMissing unless the run has a file."""
    if not run.exists:
        raise RunMissing(
            f"there is no run {run.run_id} of {run.bucket_name} at {run.store.uri()}, or it ended before it"
            " wrote anything: check --out, or start a new run without --resume"
        )


def check_selection(state: Checkpoint, selection: Mapping[str, Any]) -> None:
    """Raise RunChanged unless a run was begun with this selection: it says nothing about what others would select."""
    if (filled := state.selection.get("filled")) != selection.get("filled"):
        way = (
            "fills no run: leave --fill out"
            if filled is None
            else f"fills run {filled}: resume it with --fill and that run"
        )
        raise RunChanged(f"run {state.run} {way}")
    if state.selection != selection:
        raise RunChanged(
            f"run {state.run} began with other rules, options, exceptions, trusted IDs or algorithms, or with or"
            " without a ledger: resume it with the same settings, or start a new run"
        )


def begun_rollups(state: Checkpoint | None) -> RollUpBuilder:
    """Return the roll-ups with which a run continues. Raises JsonError if those in the checkpoint are damaged."""
    return RollUpBuilder() if state is None or not state.begun else RollUpBuilder.restored(state.rollups)
