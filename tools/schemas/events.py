"""The JSON Schemas of the events that the audit and the verify function take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from auditor.config import values
from auditor.config.settings import SETTINGS, event_settings
from auditor.lambdas.event import ACTIONS
from auditor.model.digest import ALGORITHMS, FINDINGS
from auditor.model.estate import EstateReport
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
    "start": {"description": "ID of the start to continue; the function sets it.", "anyOf": [RUN, {"type": "null"}]},
    "verification": {
        "description": "ID of the verification to continue; the function sets it.",
        "anyOf": [RUN, {"type": "null"}],
    },
}
_OF_BUCKET: Final = ("prefix", "start_after", "stop_at", "run", "verification")
_AUDIT_ALONE: Final = ("all_buckets", "run", "start")


_AT_ONCE: Final[Schema] = {"description": "Most ranges that are audited at once.", "type": "integer", "minimum": 1}
_PAIR: Final[Schema] = {
    "description": "A range of a run.",
    "type": "object",
    "properties": {
        "bucket": TEXT,
        "run": RUN,
        "range": {"description": "ID of the range.", "type": "string", "pattern": "^[0-9]{5,}$"},
        "owner": {"description": "The bucket's account, for every bucket of an account.", **TEXT},
    },
    "required": ["bucket", "run", "range"],
    "additionalProperties": False,
}


def step_result(maker: SchemaMaker) -> Schema:
    """Return the schema of the answers of the audit function to a state machine."""
    forms: list[tuple[str, dict[str, Schema]]] = [
        (
            "The action begin.",
            {
                "event": {"description": "The event of each later step, with the start.", "type": "object"},
                "pairs": {
                    "description": "The key of the file with the ranges to audit; or the ranges, if they are few.",
                    "anyOf": [TEXT, {"type": "array", "items": _PAIR}],
                },
                "at_once": _AT_ONCE,
                "next": {"enum": ["begin", "ranges", "conclude"]},
            },
        ),
        (
            "The action range.",
            {
                "again": {"description": "True if the next invocation continues the range.", **YES_OR_NO},
                "fruitless": {"description": "Number of invocations in a row without progress.", **WHOLE},
            },
        ),
        (
            "The action conclude.",
            {
                "next": {"enum": ["conclude", "wait", "complete", "incomplete"]},
                "start": RUN,
                "runs": {
                    "description": "The summaries of the runs, as many as a state takes.",
                    "type": "array",
                    "items": maker.of(Summary),
                },
                "left": {"description": "Sentences on targets that failed or wait.", "type": "array", "items": TEXT},
                "estate": {
                    "description": "The report on every bucket of an account; null for named targets.",
                    "anyOf": [maker.of(EstateReport), {"type": "null"}],
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
        "description": "A step of the state machine.",
        "type": "object",
        "properties": {
            "action": {"enum": list(ACTIONS)},
            "event": {"description": "The event of the start.", "anyOf": [ours, {"type": "object"}]},
            "pair": _PAIR,
            "at_once": _AT_ONCE,
            "fruitless": {"description": "Number of earlier invocations in a row without progress.", **WHOLE},
        },
        "required": ["action", "event"],
        "additionalProperties": False,
    }


def event_of(function: str) -> Callable[[SchemaMaker], Schema]:
    """Return the function that makes the schema of the events of "audit" or "verify"."""

    def make(maker: SchemaMaker) -> Schema:
        named = {name: SETTINGS[name] for name in sorted(event_settings(function))}
        left_out = ("verification",) if function == "audit" else _AUDIT_ALONE
        of_target = {name: one for name, one in _OF_TARGET.items() if name not in left_out}
        settings = {name: {"description": one.help, **RAW[one.read]} for name, one in named.items()}
        ours = {
            "description": "A call by hand, or a call of the state machine.",
            "type": "object",
            "properties": {**of_target, **settings},
            "dependentRequired": {name: ["bucket"] for name in _OF_BUCKET if name in of_target},
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
