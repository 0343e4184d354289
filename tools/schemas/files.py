"""The JSON Schemas in docs/schemas: one for each kind of file, line or answer that the auditor writes or takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from auditor.hashing.queue.message import MAX_OBJECTS, VERSION, WrittenMessage
from auditor.hashing.run import HashRunSummary
from auditor.ledger.manifests import csv_table
from auditor.ledger.manifests import export as history
from auditor.model.access import Verdict
from auditor.model.digest import ALGORITHMS
from auditor.model.estate import EstateReport
from auditor.model.object import Acl, Head, ObjectVersion, Skipped, Unread
from auditor.model.rollup import RollUps
from auditor.model.run_lines import FactState, FindingLine, ObjectLine, UndecidedLine, is_public
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.offline.check_run import RunCheck
from auditor.offline.estimate_report import Estimate
from auditor.offline.formats.base import COLUMNS, ExportEntry
from auditor.runs.checkpoint import Checkpoint
from auditor.runs.key_file import KeyFile
from auditor.runs.run_files import RunPlan, Seal
from auditor.verify.outcome import Verified
from auditor.verify.summary import VerifySummary
from tools.schemas.answers import (
    diff,
    diff_line,
    explanation,
    fix_kit,
    history_line,
    inventory,
    plan,
    probe,
    what_if,
    what_if_line,
    with_members,
)
from tools.schemas.events import event_of, step_result
from tools.schemas.json_schema import (
    FORM,
    MAYBE_TEXT,
    RUN,
    TEXT,
    TEXTS,
    WHOLE,
    Schema,
    SchemaMaker,
    document,
)

FOLDER: Final = "docs/schemas"


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """One schema. name: its file is docs/schemas/NAME.schema.json. of: the thing that it describes, for the index."""

    name: str
    of: str
    make: Callable[[SchemaMaker], Schema]
    strict_facts: bool = False

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}.schema.json"

    def schema(self) -> Schema:
        maker = SchemaMaker(strict_facts=self.strict_facts)
        return document(f"s3-auditor: {self.name}", self.make(maker), maker)

    def text(self) -> str:
        return json.dumps(self.schema(), indent=1) + "\n"


PARTIAL: Final = "partial"
"""The member of a `head` that is true for a partial HEAD."""


def _object_line(maker: SchemaMaker) -> Schema:
    """Say of an object's line also which facts and verdict go with its outcome."""
    unread: Schema = {"required": ["unread"]}
    read = {"properties": {"acl": {"not": unread}, "head": {"not": unread}, "verdict": {"not": {"type": "null"}}}}
    lacking = {"anyOf": [{"properties": {name: unread}, "required": [name]} for name in ("acl", "head")]}
    known = {"properties": {"verdict": {"not": {"type": "null"}}}}
    by_outcome = {
        "audited": read,
        "undecided": {**lacking, **known},
        "vanished": {"properties": {"verdict": {"type": "null"}}},
    }
    rules = [
        {"if": {"properties": {"outcome": {"const": outcome}}, "required": ["outcome"]}, "then": then}
        for outcome, then in by_outcome.items()
    ]
    flat = {
        "prefix1": {"description": 'The key up to its first slash, with the slash; "" if it has none.', **TEXT},
        "acl_state": {"description": "The form of `acl`.", **maker.of(FactState)},
        "public_grant": {
            "description": "True if the ACL has a grant to everyone or to any account; null if it was not read.",
            "type": ["boolean", "null"],
        },
        "acl": maker.of(Acl | Unread | Skipped, facts=True),
        "head_state": {"description": "The form of `head`.", **maker.of(FactState)},
        "head": _head(maker),
        "public": {
            "description": "True if anyone or any account can reach the object; null if that is unknown, or if the "
            "object is gone.",
            "type": ["boolean", "null"],
        },
    }
    return {**maker.members(ObjectLine, extra=flat), "allOf": [*rules, *_flat_rules()]}


def _head(maker: SchemaMaker) -> Schema:
    """Return the schema of `head`: of HEAD's answer, of a partial one, or of the reason why there is none."""
    forms = maker.of(Head | Unread | Skipped, facts=True)["oneOf"]
    whole, *missing = forms
    whole["not"] = {"anyOf": [*whole["not"]["anyOf"], {"required": [PARTIAL]}]}
    members = maker.definitions["Head"]["properties"]
    maker.definitions["PartialHead"] = {
        "description": "Members that another source than HeadObject names. One that is missing here was not read.",
        "type": "object",
        "properties": {PARTIAL: {"const": True}, **{name: members[name] for name in members if name != "metadata"}},
        "required": [PARTIAL],
        "additionalProperties": True,
    }
    description = "HEAD's answer, the members of it that S3 Inventory names, or why there is none."
    return {"description": description, "oneOf": [whole, {"$ref": "#/$defs/PartialHead"}, *missing]}


def _flat_rules() -> list[Schema]:
    """Say of the flat members of an object's line that they agree with those that they repeat."""
    states: dict[FactState, Schema] = {
        FactState.UNREAD: {"required": ["unread"]},
        FactState.SKIPPED: {"required": ["skipped"]},
        FactState.PARTIAL: {"required": [PARTIAL]},
    }
    states[FactState.READ] = {"not": {"anyOf": list(states.values())}}
    grants = {state: {"type": "boolean" if state is FactState.READ else "null"} for state in FactState}
    return [
        *(_when(f"{fact}_state", state, {fact: form}) for fact in ("acl", "head") for state, form in states.items()),
        *(_when("acl_state", state, {"public_grant": form}) for state, form in grants.items()),
        *(_when("verdict", verdict, {"public": {"const": is_public(verdict)}}) for verdict in (*Verdict, None)),
    ]


def _when(member: str, value: str | None, then: Schema) -> Schema:
    condition = {"properties": {member: {"const": value}}, "required": [member]}
    return {"if": condition, "then": {"properties": then}}


def _verify_summary(maker: SchemaMaker) -> Schema:
    resume = with_members(
        "Where to continue, and why the verification stopped.", {"reason": MAYBE_TEXT, "start_after": MAYBE_TEXT}
    )
    extra = {
        "format": FORM,
        "verify": {"description": "ID of the verification.", **RUN},
        "resume": {"anyOf": [resume, {"type": "null"}]},
    }
    return maker.members(VerifySummary, without=("run",), extra=extra)


def _queue_message(maker: SchemaMaker) -> Schema:
    schema = maker.members(WrittenMessage, extra={"v": {"const": VERSION}})
    schema["properties"]["algorithms"] |= {"items": {"enum": list(ALGORITHMS)}, "minItems": 1}
    schema["properties"]["objects"] |= {"minItems": 1, "maxItems": MAX_OBJECTS}
    return schema


def _latest(maker: SchemaMaker) -> Schema:
    by_prefix = {
        "description": "The ID of the run, by the target's prefix.",
        "type": "object",
        "additionalProperties": RUN,
    }
    runs = with_members(
        "The runs of current versions, and those of all versions.", {"current": by_prefix, "versions": by_prefix}
    )
    return with_members("The latest complete run of each target of a bucket.", {"format": FORM, "runs": runs})


def _failed(maker: SchemaMaker) -> Schema:
    members = {
        "target": maker.of(Target),
        "complete": {"const": False},
        "failed": {"description": "The reason in one sentence.", **TEXT},
        "exit_code": WHOLE,
    }
    return with_members("The line of a target that has no summary, because its audit failed.", members)


def _runs(summary: Any, maker: SchemaMaker) -> Schema:
    left = {"description": "A sentence for each run that another invocation has in hand or ended.", **TEXTS}
    members = {"runs": {"type": "array", "items": summary}, "left": left}
    return with_members("The answer of the function: a summary for each target.", members, optional=("left",))


def _audit_runs(maker: SchemaMaker) -> Schema:
    schema = _runs(maker.of(Summary), maker)
    schema["properties"]["estate"] = {
        "description": "The report on every bucket of the account, if the event is for all; `runs` is then empty.",
        **maker.of(EstateReport),
    }
    schema["properties"]["executions"] = {
        "description": "ARNs of the state machine's executions that go on with large targets.",
        **TEXTS,
    }
    return schema


def _verify_runs(maker: SchemaMaker) -> Schema:
    maker.definitions["VerifySummary"] = _verify_summary(maker)
    return _runs({"$ref": "#/$defs/VerifySummary"}, maker)


def _batch_result(function: str) -> Callable[[SchemaMaker], Schema]:
    failure = with_members("A message that SQS delivers again.", {"itemIdentifier": TEXT})
    members = {"batchItemFailures": {"type": "array", "items": failure}}
    return lambda maker: with_members(f"The answer of the {function} function.", members)


SCHEMAS: Final = (
    SchemaFile(
        "summary",
        "`summary.json`; `auditor audit` and `judge` with `--format json`; `export --format json`",
        lambda maker: maker.members(Summary),
    ),
    SchemaFile("failed", "the line of a failed target of `auditor audit --format json`", _failed),
    SchemaFile(
        "estate",
        "`estate.json`; the last line of `auditor audit --estate` and `--all-buckets` with `--format json`",
        lambda maker: maker.members(EstateReport),
    ),
    SchemaFile("rollups", "`rollups.json`", lambda maker: maker.members(RollUps)),
    SchemaFile("run", "`run.json`", lambda maker: maker.members(RunPlan), True),
    SchemaFile(
        "seal",
        "`seal.json`, and `checkpoint/parts-RANGE.json`",
        lambda maker: maker.members(Seal),
    ),
    SchemaFile("latest", "`latest.json`", _latest),
    SchemaFile(
        "checkpoint",
        "`checkpoint/RANGE.json`",
        lambda maker: maker.members(Checkpoint),
    ),
    SchemaFile(
        "keys",
        "`keys.json`, and `checkpoint/keys-RANGE.json`: the policies of KMS keys",
        lambda maker: maker.members(KeyFile, facts=True),
        True,
    ),
    SchemaFile("object-line", "a line of `objects/`", _object_line),
    SchemaFile("finding-line", "a line of `findings/`", lambda maker: maker.members(FindingLine)),
    SchemaFile("undecided-line", "a line of `undecided/`", lambda maker: maker.members(UndecidedLine)),
    SchemaFile("routed-line", "a line of `routed/`", lambda maker: maker.members(ObjectVersion)),
    SchemaFile("verify-summary", "`summary.json` of a verification; `auditor verify --format json`", _verify_summary),
    SchemaFile(
        "verify-line",
        "a line of `combined-*.jsonl.gz` of a verification",
        lambda maker: maker.members(Verified, without=("listed",)),
    ),
    SchemaFile("export-line", "a line of `auditor export --format jsonl`", lambda maker: maker.members(ExportEntry)),
    SchemaFile("diff", "`auditor diff --format json`", diff),
    SchemaFile("diff-line", "a line of `auditor diff --format jsonl`", diff_line),
    SchemaFile("what-if", "`auditor what-if --format json`", what_if),
    SchemaFile("what-if-line", "a line of the file of `auditor what-if --keys`", what_if_line),
    SchemaFile("probe", "`auditor probe --format json`", probe),
    SchemaFile("fix-kit", "`auditor fix-kit --format json`, and `kit.json`", fix_kit),
    SchemaFile("explanation", "each line of `auditor explain --format json`", explanation),
    SchemaFile("inventory", "`auditor inventory --format json`", inventory),
    SchemaFile("plan", "`auditor plan --format json`", plan),
    SchemaFile(
        "check",
        "`auditor check --format json`",
        lambda maker: maker.members(RunCheck, extra={"whole": {"type": "boolean"}}),
    ),
    SchemaFile(
        "estimate", "`auditor estimate --format json`, a line for each target", lambda maker: maker.members(Estimate)
    ),
    SchemaFile("hash", "`auditor hash --format json`", lambda maker: maker.members(HashRunSummary)),
    SchemaFile("history-line", "a line of `auditor digests history --format json-lines`", history_line),
    SchemaFile("queue-message", "a message on the hashing queue", _queue_message),
    SchemaFile(
        "audit-event",
        "the event of the audit function: a manual call, a hand-over or a schedule",
        event_of("audit"),
    ),
    SchemaFile("audit-result", "the answer of the audit function", _audit_runs),
    SchemaFile("audit-step-result", "its answer to a step of the state machine", step_result),
    SchemaFile("hashing-result", "the answer of the hashing function", _batch_result("hashing")),
    SchemaFile("renew-result", "the answer of the renew function", _batch_result("renew")),
    SchemaFile("verify-event", "the event of the verify function", event_of("verify")),
    SchemaFile("verify-result", "the answer of the verify function", _verify_runs),
)
"""Each schema, in the order of the index."""


def index() -> str:
    """docs/schemas/README.md."""
    rows = "".join(f"| [{one.name}]({one.name}.schema.json) | {one.of} |\n" for one in SCHEMAS)
    return f"""# JSON Schemas

<!-- Written by `make docs`: edit tools/schemas/files.py. -->

A schema (draft 2020-12) for each JSON file, line and answer of this release. They are made from the code's own types,
and the tests check real runs against them.

| schema | describes |
|---|---|
{rows}
- A member under `required` is always there. A file without `format`, which a development version wrote, is refused.
- `additionalProperties` is false where the auditor's own reader refuses a member that it does not know. Elsewhere a
  later release may add members: ignore those that you do not know.
- A fact (`acl`, `head`, each fact of `run.json`) is exactly one of three: the value, `{{"unread": ..}}` or
  `{{"skipped": ..}}`. A line whose ACL was not read never matches the form of one whose ACL was read.
- An object's line with the outcome `audited` has no unread fact; one that is `undecided` has at least one.

The tables in CSV have these headers:

| command | header |
|---|---|
| `auditor export RUN --format csv` | `{",".join(COLUMNS)}` |
| `auditor digests export s3://BUCKET --manifest csv` | `{",".join(csv_table.COLUMNS)}` |
| `auditor digests history s3://BUCKET --format csv` | `{",".join(history.COLUMNS)}` |

Any validator checks a file, for example `check-jsonschema` (`pip install check-jsonschema`):

    check-jsonschema --schemafile docs/schemas/summary.schema.json auditor-runs/bucket=my-bucket/run=ID/summary.json
"""


def pages() -> dict[str, Callable[[], str]]:
    """Return each file of docs/schemas with the function that makes its text."""
    return {f"{FOLDER}/README.md": index, **{one.path: one.text for one in SCHEMAS}}
