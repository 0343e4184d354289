"""The JSON Schemas of answers that no dataclass has: of `diff`, `explain`, `plan`, `what-if` and `digests history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from auditor.audit.ranges.plan import RangePlan
from auditor.ledger.base import Soundness, What
from auditor.ledger.manifests import history
from auditor.model.access import Verdict
from auditor.model.changes import ChangeKind, Changes
from auditor.model.finding import Severity
from auditor.reports.explain import ReasonGroup
from auditor.reports.what_if import Move
from tests.architecture.json_schema import COUNTS, MAYBE_TEXT, RUN, TEXT, TEXTS, WHOLE, YES_OR_NO, Schema, SchemaMaker


def with_members(description: str, members: Mapping[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    """Return the schema of an object that has all these members, apart from the optional ones, and may have more."""
    required = [name for name in members if name not in optional]
    return {
        "description": description,
        "type": "object",
        "properties": dict(members),
        "required": required,
        "additionalProperties": True,
    }


def diff(maker: SchemaMaker) -> Schema:
    """`auditor diff --format json`."""
    return with_members(
        "The changes between two runs, counted.", {"old": RUN, "new": RUN, "changes": maker.of(Changes)}
    )


def diff_line(maker: SchemaMaker) -> Schema:
    """A line of `auditor diff --format jsonl`."""
    verdict = maker.of(Verdict | None)
    members = {
        "kind": maker.of(ChangeKind),
        "of": {"enum": ["verdict", "finding"]},
        "key": {"description": "null for a finding on the bucket.", **MAYBE_TEXT},
        "version_id": MAYBE_TEXT,
        "before": {"description": "The verdict in the old run.", **verdict},
        "after": {"description": "The verdict in the new run.", **verdict},
        "rule": MAYBE_TEXT,
        "severity": maker.of(Severity | None),
        **dict.fromkeys(("grantee", "permission", "fingerprint", "since"), MAYBE_TEXT),
    }
    return with_members("One change between two runs, of an object's verdict or of a finding.", members)


def history_line(maker: SchemaMaker) -> Schema:
    """A line of `auditor digests history --format json-lines`."""
    said: dict[str, Schema] = {
        "at": {"description": "The time, in ISO 8601 in UTC.", **TEXT},
        "event": {"enum": list(get_args(What))},
        "premis_event_type": {"description": "The type of the event in PREMIS; null if it has none.", **MAYBE_TEXT},
        "size": {"description": "Size in bytes.", **WHOLE, "type": ["integer", "null"]},
        "seal": {"enum": list(get_args(Soundness))},
        "detail": {
            "type": "object",
            "additionalProperties": {"description": "A further fact of the line by its name."},
        },
    }
    members = {name: said.get(name, TEXT if name == "key" else MAYBE_TEXT) for name in history.COLUMNS}
    return with_members("A line of the history of a key in the ledger.", members)


def explanation(maker: SchemaMaker) -> Schema:
    """A line of `auditor explain --format json`."""
    groups = {group.name.lower(): {"description": f"Sentences: {group}.", **TEXTS} for group in ReasonGroup}
    members: dict[str, Schema] = {
        "bucket": TEXT,
        "key": TEXT,
        "version_id": MAYBE_TEXT,
        "run": {
            "description": "The run that the access comes from; null if the object was read just now.",
            **MAYBE_TEXT,
        },
        "verdict": maker.of(Verdict),
        "audience": TEXTS,
        "reasons": TEXTS,
        **groups,
        "not_looked_at": TEXTS,
    }
    return with_members("The access to one object, and its reasons.", members)


def plan(maker: SchemaMaker) -> Schema:
    """`auditor plan --format json`."""
    calls = with_members("Numbers of calls.", {"list": WHOLE})
    keys = {"description": "Number of keys, or of versions, in all ranges.", **WHOLE}
    target = with_members("The target.", {"bucket": TEXT, "prefix": TEXT, "versions": YES_OR_NO})
    return maker.members(RangePlan, extra={"target": target, "keys": keys, "calls": calls})


def what_if(maker: SchemaMaker) -> Schema:
    """`auditor what-if --format json`."""
    sample = with_members("One object.", {"key": TEXT, "version_id": MAYBE_TEXT})
    verdict = maker.of(Verdict)
    moved: dict[str, Schema] = {
        **dict.fromkeys(Move._fields, verdict),
        "objects": WHOLE,
        "prefixes": {"description": "Number of objects by the first folder of their keys.", **COUNTS},
        "samples": {"description": "The first objects.", "type": "array", "items": sample},
    }
    unsure = with_members(
        "The objects whose verdict after the change is unknown.",
        {"objects": WHOLE, "unknown_before": WHOLE, "causes": COUNTS},
    )
    members: dict[str, Schema] = {
        "run": RUN,
        "target": TEXT,
        "complete": {"description": "true if the run reached the end of its listing.", **YES_OR_NO},
        "change": {"description": "The change in words.", **TEXTS},
        "objects": WHOLE,
        "changed": WHOLE,
        "new_exposure": {"description": "Number of objects that the change opens to somebody.", **WHOLE},
        "narrower": {"description": "Number of objects that it closes to somebody, and opens to nobody.", **WHOLE},
        "not_predictable": unsure,
        "moves": {"type": "array", "items": with_members("Objects with the same verdicts before and after.", moved)},
        "gains": {"description": "Number of objects by each audience that gains access.", **COUNTS},
        "loses": {"description": "Number of objects by each audience that loses access.", **COUNTS},
        "remarks": TEXTS,
    }
    return with_members("The effect of a change of the bucket on the objects of a run.", members)


def what_if_line(maker: SchemaMaker) -> Schema:
    """A line of the file of `auditor what-if --keys`."""
    verdict = maker.of(Verdict)
    access = with_members("The access to the object.", {"verdict": verdict, "audience": TEXTS, "reasons": TEXTS})
    members: dict[str, Schema] = {
        "key": TEXT,
        "version_id": MAYBE_TEXT,
        "before": access,
        "after": access,
        "gains": TEXTS,
        "loses": TEXTS,
        "new_exposure": YES_OR_NO,
        "predictable": YES_OR_NO,
    }
    return with_members("An object that the change moves, or whose verdict it makes unpredictable.", members)
