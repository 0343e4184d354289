"""The JSON Schemas of the events that the audit and the verify function take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from auditor.config import values
from auditor.config.settings import SETTINGS, event_settings
from auditor.lambdas.map_step import ACTIONS
from auditor.model.digest import ALGORITHMS, FINDINGS
from auditor.model.finding import Severity
from auditor.model.reuse import NAMES
from auditor.model.summary import Summary
from auditor.s3.engines import ENGINES
from tools.schemas.json_schema import MAYBE_TEXT, RUN, TEXT, TEXTS, WHOLE, YES_OR_NO, Schema, SchemaMaker

_WORDS: Final[Schema] = {"anyOf": [TEXTS, {"description": "Names with commas between them.", **TEXT}]}
_TIME: Final[Schema] = {"type": "string", "pattern": "^[0-9]{1,9}(\\.[0-9]{1,9})?[smhdw]$"}
_ABOVE_0: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
RAW: Final[Mapping[values.Parse, Schema]] = {
    values.engine: {"enum": list(ENGINES)},
    values.concurrency: {
        "anyOf": [{"const": "auto"}, {"type": "integer", "minimum": 1, "maximum": values.MAX_CONCURRENCY}]
    },
    values.rate: {"anyOf": [{"const": "unlimited"}, _ABOVE_0]},
    values.whole: {"type": "integer", "minimum": 1},
    values.flag: YES_OR_NO,
    values.words: _WORDS,
    values.fail_on: {"enum": ["never", *Severity, *(f"new:{severity}" for severity in Severity)]},
    values.outcomes: {"anyOf": [{"type": "array", "items": {"enum": [*FINDINGS, "never"]}, "minItems": 1}, TEXT]},
    values.algorithms: {"anyOf": [{"type": "array", "items": {"enum": list(ALGORITHMS)}, "minItems": 1}, TEXT]},
    values.long_span: _TIME,
    values.span: _TIME,
    values.percent: {**_ABOVE_0, "maximum": 100},
    values.source: {"enum": [values.LIVE, values.MIXED]},
    values.keep: {
        "anyOf": [
            {
                "type": "object",
                "propertyNames": {"enum": list(NAMES)},
                "additionalProperties": _TIME,
                "minProperties": 1,
            },
            {"description": "NAME=AGE with commas between them.", **TEXT},
        ]
    },
    values.semantics: {"enum": ["aws", "ceph", "other", "auto"]},
}
"""By the reader of a setting, the values that an event may give it. Most readers take numbers as text, too."""
_OF_TARGET: Final[Mapping[str, Schema]] = {
    "all_buckets": {"description": "True for every bucket of the account.", "type": ["boolean", "null"]},
    "bucket": {"description": "The bucket; every configured one without it.", "type": "string", "minLength": 1},
    "prefix": {"description": "The beginning of the keys.", **MAYBE_TEXT},
    "start_after": {"description": "The key after which the range begins.", **MAYBE_TEXT},
    "stop_at": {"description": "The last key of the range.", **MAYBE_TEXT},
    "run": {"description": "ID of the run to continue.", "anyOf": [RUN, {"type": "null"}]},
    "hop": {"description": "Number of earlier invocations for the same work; a hand-over sets it.", **WHOLE},
}


_AT_ONCE: Final[Schema] = {"description": "Most ranges that are audited at once.", "type": "integer", "minimum": 1}
_RANGE_ID: Final[Schema] = {"description": "ID of a range.", "type": "string", "pattern": "^[0-9]{5,}$"}


def step_result(maker: SchemaMaker) -> Schema:
    """Return the schema of the answers of the audit function to a state machine."""
    complete = {"description": "True if nothing of it is left.", **YES_OR_NO}
    forms: list[tuple[str, dict[str, Schema]]] = [
        (
            "The action plan.",
            {
                "event": {"description": "The event of each later step, with the run.", "type": "object"},
                "claim": {"description": "The name of this plan's claim on the bucket.", **TEXT},
                "at_once": _AT_ONCE,
                "ranges": {
                    "description": "The ranges to audit; none while `again` is true.",
                    "type": "array",
                    "items": _RANGE_ID,
                },
                "again": {"description": "True if the next invocation goes on with the plan.", **YES_OR_NO},
            },
        ),
        (
            "The action range: how far the range is after this invocation.",
            {
                "run": RUN,
                "range": _RANGE_ID,
                "complete": complete,
                "fruitless": {"description": "Number of invocations in a row without progress.", **WHOLE},
            },
        ),
        (
            "The action summarize.",
            {
                "complete": complete,
                "again": {"description": "True if the next invocation goes on with the sum.", **YES_OR_NO},
                "runs": {
                    "description": "The summary of the run; none while `again` is true.",
                    "type": "array",
                    "items": maker.of(Summary),
                    "maxItems": 1,
                },
            },
        ),
    ]
    return {
        "description": "The answer of the audit function to a step of the state machine.",
        "oneOf": [
            {
                "description": words,
                "type": "object",
                "properties": members,
                "required": list(members),
                "additionalProperties": False,
            }
            for words, members in forms
        ],
    }


def _of_machine(ours: Schema) -> Schema:
    """Return the schema of a step of the state machine. ours: that of the event inside it."""
    return {
        "description": "A step of the state machine that audits a large target, range by range.",
        "type": "object",
        "properties": {
            "action": {"enum": list(ACTIONS)},
            "event": ours,
            "range": {"description": "The range to audit, five digits.", **TEXT},
            "claim": {"description": "The name of the plan's claim on the bucket.", **TEXT},
            "at_once": _AT_ONCE,
            "fruitless": {"description": "Number of earlier invocations in a row without progress.", **WHOLE},
            "attempt": {"description": "The range's execution, and how often it was redriven.", **TEXT},
        },
        "required": ["action", "event"],
        "additionalProperties": False,
    }


def event_of(function: str) -> Callable[[SchemaMaker], Schema]:
    """Return the function that makes the schema of the events of "audit" or "verify"."""

    def make(maker: SchemaMaker) -> Schema:
        named = {name: SETTINGS[name] for name in sorted(event_settings(function))}
        alone = ["bucket", "all_buckets"] if function == "audit" else ["bucket"]
        of_target = {name: one for name, one in _OF_TARGET.items() if function == "audit" or name != "all_buckets"}
        settings = {name: {"description": one.help, **RAW[one.read]} for name, one in named.items()}
        ours = {
            "description": "A call by hand, or a hand-over of the function to itself.",
            "type": "object",
            "properties": {**of_target, **settings},
            "dependentRequired": {name: ["bucket"] for name in ("prefix", "start_after", "stop_at")},
            "dependentSchemas": {name: {"anyOf": [{"required": [of]} for of in alone]} for name in ("hop", "run")},
            "additionalProperties": False,
        }
        if function == "audit":
            every = {"properties": {"all_buckets": {"const": True}}, "required": ["all_buckets"]}
            ours |= {"if": every, "then": {"not": {"required": ["bucket"]}}}
        of_schedule = {
            "description": "The event of a schedule, which means every configured bucket.",
            "type": "object",
            "properties": {
                "source": {"enum": ["aws.events", "aws.scheduler"]},
                "detail-type": {"const": "Scheduled Event"},
            },
            "required": ["source", "detail-type"],
            "additionalProperties": {"description": "A member that EventBridge adds."},
        }
        forms = [ours, of_schedule, *([_of_machine(ours)] if function == "audit" else [])]
        return {"description": f"The event of the {function} function.", "oneOf": forms}

    return make
