"""The configuration by which a run judges, and its judge. run.json has it, so that the run can be judged again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.resume import rules_of
from auditor.config import values
from auditor.config.exceptions import EXCEPTIONS
from auditor.config.file import load, read
from auditor.config.layers import Layer, resolve
from auditor.config.settings import Settings
from auditor.errors import OutputError, UsageError
from auditor.model.bucket import BucketFacts
from auditor.model.exception import ExceptionEntry
from auditor.model.json_codec import plain
from auditor.model.object import Ask
from auditor.model.target import Target
from auditor.rules import RULES
from auditor.rules.base import Rule
from auditor.rules.judge import Judge
from auditor.rules.named import rule_id
from auditor.rules.plan import Plan
from auditor.runs.paths import began_at
from auditor.runs.run_plan import RunPlan, one_range

_SELECTING: Final = ("only", "ignore", "level")
JUDGING: Final = ("only", "ignore", "level", "trusted", "keep_metadata")
"""The settings that decide on verdicts and findings, besides the tables of auditor.toml."""


def new_plan(
    run_id: str,
    target: Target,
    rules: Sequence[Rule],
    settings: Settings,
    facts: BucketFacts,
    ask: Ask,
    *,
    selection: Mapping[str, Any],
    against: str | None,
) -> RunPlan:
    """Return run.json for a run of one range that begins. rules: the selected ones. facts: those of the bucket. ask:
    the calls for each object. selection: the questions of the run, by selection_of(). against: ID of the run with which
    it compares.
    """
    return RunPlan(
        run=run_id,
        target=target,
        now=began_at(run_id),
        ledger=selection["algorithms"] is not None,
        selected=tuple(rule.id for rule in rules),
        configuration=configuration_of(settings),
        selection=selection,
        facts=facts,
        ask=ask,
        against=against,
        ranges=one_range(target),
    )


def judge_of(settings: Settings, plan: Plan, facts: BucketFacts, *, versions: bool, now: datetime) -> Judge:
    """Return the judge of a bucket with these facts. versions: True if the target is of all versions. now: the time at
    which conditions with a date are judged.
    """
    return Judge(plan, facts, trusted=settings.trusted, options=settings.rules, versions=versions, now=now)


def configuration_of(settings: Settings) -> dict[str, Any]:
    """Return the settings that decide on verdicts and findings, as a document in the form of auditor.toml, which names
    rules by their IDs.
    """
    found: dict[str, Any] = {}
    for name in JUDGING:
        value = getattr(settings, name)
        found[name] = sorted(value) if isinstance(value, frozenset) else plain(value)
    for name in ("only", "ignore"):
        found[name] = [rule_id(one, RULES) for one in found[name]]
    return {
        **{name: value for name, value in found.items() if value is not None},
        "rules": plain(settings.rules),
        EXCEPTIONS: [_entry(entry) for entry in settings.exceptions],
    }


def _entry(entry: ExceptionEntry) -> dict[str, Any]:
    """Return an entry as auditor.toml has it."""
    return {name: value for name, value in plain(entry).items() if value not in (None, "")}


class JudgedBy(Struct, frozen=True):
    """The configuration by which a run is judged again. gone: IDs of rules by which the run was judged, and which this
    version does not have; their findings stay.
    """

    settings: Settings
    rules: tuple[Rule, ...]
    gone: frozenset[str] = frozenset()


def judged_by(
    file: RunPlan,
    place: str,
    given: Layer,
    config: str | None = None,
    *,
    anew: bool = False,
    trust: Sequence[str] = (),
) -> JudgedBy:
    """Return the configuration by which to judge a run again: its own, with the changes that are given.

    place: of run.json, for messages. given: settings that replace those of the run. config: path of an auditor.toml
    that replaces the run's whole configuration. anew: True to select among all rules of this version; False to take the
    rules that judged the run, unless config, only, ignore or level is given. trust: entries trusted in addition.

    Raises UsageError for a wrong setting, and if no rule is left. Raises OutputError if run.json is damaged.
    """
    known = {rule.id for rule in RULES}
    own = _own(file, place, known)
    layer, tables = own if config is None else load(config)
    settings = resolve([given, layer], tables)
    if trust:
        settings = replace(settings, trusted=settings.trusted | values.trusted(list(trust), "--trust"))
    if config is None and not anew and not any(given.values.get(name) is not None for name in _SELECTING):
        rules = tuple(rule for rule in RULES if rule.id in file.selected)
        return JudgedBy(settings, rules, frozenset(file.selected) - known)
    return JudgedBy(settings, rules_of(settings, ledger=file.ledger))


def _own(file: RunPlan, place: str, known: Set[str]) -> tuple[Layer, dict[str, Any]]:
    """Return the run's own configuration, which passes the checks of auditor.toml. known: IDs of this version's rules.

    Raises OutputError if run.json, at `place`, is damaged.
    """
    document = dict(file.configuration)
    options = document.get("rules")
    if isinstance(options, dict):
        document["rules"] = {name: value for name, value in options.items() if name in known}
    entries = document.get(EXCEPTIONS)
    if isinstance(entries, list):  # an entry for a rule that is gone covers nothing any more
        document[EXCEPTIONS] = [
            one for one in entries if not isinstance(one, dict) or one.get("rule", "") in {*known, ""}
        ]
    try:
        layer, tables = read(document, "configuration")
        settings = resolve([layer], tables)
        for rule in RULES:
            if rule.options and rule.id in file.selected and rule.id not in settings.rules:
                raise UsageError(f"configuration: [rules.{rule.id}] is missing")
    except UsageError as error:
        raise OutputError(f"{place} is damaged ({error}): audit again") from error
    return replace(layer, source=lambda key: f"{place}: {key}"), tables
